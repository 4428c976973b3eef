// Conversations, kept in this browser.

const STORE = "akunu.chats";

export const chats = load();
let full = () => {};
export const onStorageFull = (tell) => { full = tell; };

function load() {
  try {
    const found = JSON.parse(localStorage.getItem(STORE));
    return Array.isArray(found) ? found.filter((chat) => chat?.id && Array.isArray(chat.messages)) : [];
  } catch {
    return [];
  }
}

export function save() {
  try {
    localStorage.setItem(STORE, JSON.stringify(chats.filter((chat) => chat.messages.length || chat.touched)));
  } catch {
    full();
  }
}

/** A conversation without messages, the one that is there or a new one with the settings of `like`. */
export function fresh(like) {
  let chat = chats.find((one) => !one.messages.length);
  if (!chat) {
    chat = { id: crypto.randomUUID?.() ?? String(Math.random()).slice(2), title: "", messages: [], settings: { ...like?.settings }, model: like?.model };
    chats.unshift(chat);
  }
  return chat;
}

export function remove(chat) {
  chats.splice(chats.indexOf(chat), 1);
  save();
}

export const titleOf = (chat) =>
  chat.title || chat.messages.find((message) => message.role === "user")?.content.slice(0, 60) || "New conversation";

/** The request for the next answer. */
export function payload(chat) {
  const { system, tools, ...sampling } = chat.settings;
  const messages = chat.messages.filter((message) => !message.failed).map(({ role, content, tool_calls, tool_call_id }) => ({
    role,
    content: content || (tool_calls ? null : ""),
    ...(tool_calls && { tool_calls }),
    ...(tool_call_id && { tool_call_id }),
  }));
  if (system) messages.unshift({ role: "system", content: system });
  const numbers = Object.fromEntries(Object.entries(sampling).filter(([, value]) => typeof value === "number"));
  return { model: chat.model, messages, ...numbers, ...(tools && { tools: JSON.parse(tools) }) };
}

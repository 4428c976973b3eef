// Conversations, kept in this browser. Several tabs may write: each merges what it has changed into what is stored.

const STORE = "akunu.chats";

export const chats = stored();
let full = () => {};
export const onStorageFull = (tell) => { full = tell; };

function stored() {
  try {
    return valid(JSON.parse(localStorage.getItem(STORE)));
  } catch {
    return [];
  }
}

function valid(found) {
  if (!Array.isArray(found)) return [];
  return found.filter((chat) => chat?.id && Array.isArray(chat.messages)).map((chat) => ({ ...chat, settings: chat.settings ?? {} }));
}
const kept = (chat) => chat.messages.length > 0 || chat.touched;

/** Run `change` on what is stored: at once, since the page may be closed, and again where no other tab writes meanwhile. */
function merge(change) {
  const write = () => {
    try {
      const before = localStorage.getItem(STORE), after = JSON.stringify(change(stored()));
      if (after !== before) localStorage.setItem(STORE, after);
    } catch {
      full();
    }
  };
  write();
  navigator.locks?.request(STORE, write); // only pages from this machine or over HTTPS have locks
}

/** Store a conversation, and leave those of other tabs as they are. */
export function save(chat) {
  if (!kept(chat)) return;
  chat.saved = Date.now();
  const copy = structuredClone(chat);
  const newer = (all) => all.some((one) => one.id === copy.id && one.saved > copy.saved);
  merge((all) => (newer(all) ? all : [copy, ...all.filter((one) => one.id !== copy.id)]));
}

export function remove(chat) {
  chats.splice(chats.indexOf(chat), 1);
  merge((all) => all.filter((one) => one.id !== chat.id));
}

/** Add conversations of a file; one that is here already stays. Returns how many are new. */
export function bring(found) {
  const fresh = valid(found).filter((chat) => !chats.some((one) => one.id === chat.id));
  chats.push(...fresh);
  if (fresh.length) merge((all) => [...all, ...fresh.filter((chat) => !all.some((one) => one.id === chat.id))]);
  return fresh.length;
}

/** Tell which conversations another tab has changed: `changed` gets the one here and what it became, null if it is gone. */
export function onOtherTab(changed) {
  addEventListener("storage", (event) => {
    if (event.key !== STORE) return;
    const all = stored();
    for (const chat of chats.filter(kept)) {
      const other = all.find((one) => one.id === chat.id);
      if (!other ? chat.saved : (other.saved ?? 0) > (chat.saved ?? 0)) changed(chat, other ?? null);
    }
    for (const other of all) if (!chats.some((one) => one.id === other.id)) chats.unshift(other);
    changed(null, null);
  });
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

export const titleOf = (chat) =>
  chat.title || chat.messages.find((message) => message.role === "user")?.content.slice(0, 60) || "New conversation";

/** Whether a conversation has a text, in its title or in what was said. */
export const has = (chat, text) =>
  titleOf(chat).toLowerCase().includes(text) || chat.messages.some((message) => message.content.toLowerCase().includes(text));

/** What the model is given of a message: attached texts stand before it, each in a fence that it cannot end, and images before these. */
function written({ content, files }) {
  const images = (files ?? []).filter(({ image }) => image);
  const parts = (files ?? []).filter(({ image }) => !image).map(({ name, text }) => {
    const ticks = Math.max(2, ...(text.match(/`+/g) ?? []).map((run) => run.length));
    const fence = "`".repeat(ticks + 1);
    return `${name}:\n${fence}\n${text}${text.endsWith("\n") ? "" : "\n"}${fence}\n`;
  });
  const said = [...parts, content].join("\n");
  if (!images.length) return said;
  return [...images.map(({ image }) => ({ type: "image_url", image_url: { url: image } })), { type: "text", text: said }];
}

/** The request for the next answer. */
export function payload(chat) {
  const { system, tools, ...sampling } = chat.settings;
  const sent = chat.messages.slice(chat.forgotten ?? 0).filter((message) => !message.failed);
  const messages = sent.map((message) => ({
    role: message.role,
    content: written(message) || (message.tool_calls ? null : ""),
    ...(message.tool_calls && { tool_calls: message.tool_calls }),
    ...(message.tool_call_id && { tool_call_id: message.tool_call_id }),
  }));
  if (system) messages.unshift({ role: "system", content: system });
  const numbers = Object.fromEntries(Object.entries(sampling).filter(([, value]) => typeof value === "number"));
  return { model: chat.model, messages, ...numbers, ...(tools && { tools: JSON.parse(tools) }) };
}

/** Leave the oldest turns out of what the model is given, about half of it; false where only the last turn is left. */
export function forgetOldest(chat) {
  const begin = chat.forgotten ?? 0;
  const turns = chat.messages.flatMap((message, at) => (message.role === "user" && at > begin ? [at] : []));
  if (!turns.length) return false;
  chat.forgotten = turns[Math.floor((turns.length - 1) / 2)];
  return true;
}

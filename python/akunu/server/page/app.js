// The page: which conversation is shown, what is being answered, and the keys.

import { ApiError, complete, getJson, onKeyWanted } from "./api.js";
import { chats, forgetOldest, fresh, has, onOtherTab, onStorageFull, payload, remove, save, titleOf } from "./chats.js";
import { showEngine } from "./engine.js";
import * as files from "./files.js";
import * as getting from "./getting.js";
import * as messages from "./messages.js";
import * as settings from "./settings.js";
import * as voice from "./voice.js";

const at = (id) => document.getElementById(id);
const composer = at("composer"), models = at("model"), status = at("status"), sidebar = at("sidebar");
let chat = chats[0] ?? fresh();
let answering = null; // { chat, abort }
let cards = new Map(); // name of a model -> what the server says of it
let hears = ""; // the name of a speech model

// -- answers -------------------------------------------------------------------------------------------------------

/** Answer the last message, or go on with an answer that broke off; `before` are answers to it that there were. */
async function answer(of, before = []) {
  const request = payload(of); // before the empty answer is there
  const goesOn = of.messages.at(-1).role === "assistant";
  const message = goesOn ? of.messages.at(-1) : { role: "assistant", content: "" };
  message.writing = true;
  if (before.length) message.versions = before;
  if (!goesOn) of.messages.push(message);
  const abort = new AbortController();
  answering = { chat: of, abort };
  draw(() => (goesOn ? messages.update : messages.add)(message, of, actions), of);
  showAnswering();
  remember(of);
  const keep = setInterval(() => save(of), KEEP_MS); // what a reload finds
  const start = performance.now();
  let first = 0, frame = 0;
  const redraw = () => { frame = 0; draw(() => messages.update(message, of, actions), of); };
  try {
    if (!models.length) await listModels(); // who is quick asks before they are there
    request.model = of.model = offers(of.model) ? of.model : models.value;
    for await (const chunk of complete(request, abort.signal)) {
      take(message, chunk);
      if (!first && (message.content || message.reasoning || message.tool_calls)) first = performance.now();
      if (chunk.usage) {
        message.tokens = chunk.usage.completion_tokens;
        message.cached = chunk.usage.prompt_tokens_details?.cached_tokens;
        of.used = chunk.usage.total_tokens;
      }
      frame ||= requestAnimationFrame(redraw);
    }
  } catch (error) {
    if (error.name === "AbortError") message.reason = "stopped";
    else {
      message.failed = error instanceof ApiError ? error.message : String(error);
      message.full = error.code === "context_length_exceeded";
    }
  }
  cancelAnimationFrame(frame);
  clearInterval(keep);
  remember(null);
  delete message.writing;
  if (first) {
    message.first = (first - start) / 1000;
    message.seconds = (performance.now() - first) / 1000;
  }
  if (before.length) {
    message.versions = [...before, plain(message)];
    message.version = before.length;
  }
  answering = null;
  save(of);
  showAnswering();
  redraw();
  list();
  showRoom();
  listModels(); // what was loaded meanwhile says how large its context is
}

// Which conversation this tab is answering: the tab that is loaded again goes on with it.
const ANSWERING = "akunu.answering", KEEP_MS = 1000, LONG_MS = 300, BROKEN = "stopped";
function remember(of) {
  try {
    if (of) sessionStorage.setItem(ANSWERING, of.id);
    else sessionStorage.removeItem(ANSWERING);
  } catch { /* no storage: the answer is lost with the page */ }
}

/** Go on with what was being written when the page was loaded again. */
function goOn() {
  let id = null;
  try { id = sessionStorage.getItem(ANSWERING); } catch { /* no storage */ }
  remember(null);
  const of = chats.find((one) => one.id === id);
  const last = of?.messages.at(-1);
  if (!last || (last.role === "assistant" && last.reason !== BROKEN)) return;
  delete last.reason;
  go(of);
  answer(of, last.versions ?? []);
}

/** Answers that were being written when their page was left end where they are. */
function endBroken(of) {
  for (const message of of.messages) {
    if (!message.writing) continue;
    delete message.writing;
    message.reason = BROKEN;
  }
  const last = of.messages.at(-1);
  if (last?.reason !== BROKEN || (last.content && !last.tool_calls)) return;
  of.messages.pop(); // there is nothing to go on with: half a call, or thoughts alone
  if (last.versions) of.messages.push({ ...structuredClone(last.versions.at(-1)), versions: last.versions });
}

/** An answer without those before it. */
function plain({ versions, version, ...message }) {
  return structuredClone(message);
}

/** What a chunk adds to a message. */
function take(message, { choices: [choice], prompt_progress: read }) {
  if (!choice) return;
  message.writing = read?.time_ms >= LONG_MS && read.processed < read.total ? messages.reading(read) : true;
  const delta = choice.delta ?? {};
  message.content += delta.content ?? "";
  if (delta.reasoning_content) message.reasoning = (message.reasoning ?? "") + delta.reasoning_content;
  for (const part of delta.tool_calls ?? []) {
    message.tool_calls ??= [];
    const call = (message.tool_calls[part.index] ??= { id: part.id, type: "function", function: { name: "", arguments: "" } });
    call.function.name += part.function?.name ?? "";
    call.function.arguments += part.function?.arguments ?? "";
  }
  if (choice.finish_reason) message.reason = choice.finish_reason;
}

/** Change what is shown of a conversation, if it is the one that is shown; the end stays in view. */
function draw(change, of) {
  if (of !== chat) return;
  const follow = messages.atEnd();
  change();
  if (follow) messages.toEnd();
}

function say(message) {
  chat.messages.push(message);
  save(chat);
  messages.add(message, chat, actions);
  messages.toEnd();
  list();
  answer(chat);
}

const actions = {
  send(text, attached = files.take()) {
    if (answering || !text.trim()) return;
    say({ role: "user", content: text, ...(attached.length && { files: attached }) });
  },
  again(message) {
    if (answering) return;
    const before = message.failed ? message.versions ?? [] : message.versions ?? [plain(message)];
    chat.messages.length = chat.messages.indexOf(message);
    messages.show(chat, actions);
    answer(chat, before);
  },
  /** Show another answer to the same message; what was said after it goes, since it answers this one. */
  turn(message, to) {
    const at = chat.messages.indexOf(message);
    if (answering || !message.versions?.[to] || at < 0) return;
    if (at + 1 < chat.messages.length && !confirm("What was said after this answer is deleted. Go on?")) return;
    const { versions } = message;
    chat.messages.length = at;
    chat.messages.push({ ...structuredClone(versions[to]), versions, version: to });
    save(chat);
    messages.show(chat, actions);
  },
  edited(message, text) {
    if (answering || !text.trim()) return;
    chat.messages.length = chat.messages.indexOf(message);
    if ((chat.forgotten ?? 0) > chat.messages.length) chat.forgotten = 0;
    messages.show(chat, actions);
    actions.send(text, message.files ?? []);
  },
  makeRoom(message) {
    if (answering || !forgetOldest(chat)) {
      status.textContent = "There is nothing older to forget: the last message alone is too long.";
      return;
    }
    chat.messages.length = chat.messages.indexOf(message);
    messages.show(chat, actions);
    answer(chat);
  },
  giveBack(call, result) {
    if (answering) return;
    const open = chat.messages.findLast((message) => message.tool_calls)?.tool_calls ?? [];
    chat.messages.push({ role: "tool", tool_call_id: call.id, content: result });
    save(chat);
    messages.show(chat, actions);
    const answered = (one) => chat.messages.some((message) => message.tool_call_id === one.id);
    if (open.every(answered)) answer(chat);
  },
  redraw: (message) => messages.update(message, chat, actions),
  getModel: () => getting.open(),
};

function showAnswering() {
  const here = answering?.chat === chat;
  at("send").hidden = Boolean(answering);
  at("stop").hidden = !answering;
  messages.busy(here);
  status.textContent = answering && !here ? `answering in “${titleOf(answering.chat)}”` : "";
}

// -- conversations -------------------------------------------------------------------------------------------------

function list() {
  const wanted = at("search").value.trim().toLowerCase();
  const items = chats.filter((one) => !wanted || has(one, wanted)).map((one) => {
    const item = document.createElement("li");
    item.classList.toggle("current", one === chat);
    const open = document.createElement("button");
    open.className = "open";
    open.textContent = titleOf(one);
    open.title = "Open; twice: rename";
    if (one === chat) open.setAttribute("aria-current", "true");
    open.addEventListener("click", () => go(one));
    open.addEventListener("dblclick", () => rename(one, open));
    const gone = document.createElement("button");
    gone.className = "remove";
    gone.textContent = "×";
    gone.setAttribute("aria-label", `Delete ${titleOf(one)}`);
    gone.addEventListener("click", () => forget(one));
    item.append(open, gone);
    return item;
  });
  at("chats").replaceChildren(...items);
  document.title = chat.messages.length ? `${titleOf(chat)} – Akunu` : "Akunu";
}

function go(to) {
  chat = to;
  showView(false);
  if (offers(chat.model)) models.value = chat.model;
  messages.show(chat, actions, models.value);
  settings.fill(chat);
  showRoom();
  showAnswering();
  list();
  openSidebar(false);
  composer.focus();
}

function rename(one, open) {
  const field = document.createElement("input");
  field.value = titleOf(one);
  field.setAttribute("aria-label", "Title");
  const done = (keep) => {
    if (keep && field.value.trim()) one.title = field.value.trim();
    save(one);
    list();
  };
  field.addEventListener("blur", () => done(true), { once: true });
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter") field.blur();
    if (event.key === "Escape") { event.stopPropagation(); field.value = ""; field.blur(); }
  });
  open.replaceWith(field);
  field.select();
}

function forget(one) {
  if (one.messages.length && !confirm(`Delete “${titleOf(one)}”?`)) return;
  if (answering?.chat === one) answering.abort.abort();
  remove(one);
  go(one === chat ? chats[0] ?? fresh(one) : chat);
}

/** How much of the context the conversation fills, and the values that sampling has. */
function showRoom() {
  const card = cards.get(models.value);
  settings.inForce(card?.sampling);
  at("room").hidden = !card?.context || !chat.used || !chat.messages.length;
  if (at("room").hidden) return;
  at("room-meter").value = chat.used / card.context;
  at("room-text").textContent = `${chat.used.toLocaleString("en")} of ${card.context.toLocaleString("en")} tokens`;
  at("room").title = "How much of the model's context this conversation fills";
}

function openSidebar(is) {
  sidebar.classList.toggle("open", is);
  at("open-sidebar").setAttribute("aria-expanded", String(is));
}

function showView(engine) {
  at("chat").hidden = engine;
  showEngine(engine);
  at("show-engine").setAttribute("aria-pressed", String(engine));
}
const engineShown = () => at("chat").hidden;

// -- colours -------------------------------------------------------------------------------------------------------

const THEMES = ["system", "light", "dark"];
function theme(name) {
  document.documentElement.dataset.theme = name;
  at("theme").textContent = `Theme: ${name}`;
  try { localStorage.setItem("akunu.theme", name); } catch { /* no storage: for this visit only */ }
}

// -- what happens when ---------------------------------------------------------------------------------------------

function grow() {
  composer.style.height = "auto";
  composer.style.height = `${composer.scrollHeight + 2}px`;
}

at("composer-form").addEventListener("submit", (event) => {
  event.preventDefault();
  if (answering || !composer.value.trim()) return;
  const text = composer.value;
  composer.value = "";
  grow();
  actions.send(text);
});
composer.addEventListener("input", grow);
composer.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    at("composer-form").requestSubmit();
  }
  const mine = chat.messages.findLast((message) => message.role === "user");
  if (event.key === "ArrowUp" && !event.altKey && !composer.value && mine && !answering) {
    event.preventDefault();
    messages.edit(mine, actions);
  }
});

const step = (by) => {
  const next = chats[chats.indexOf(chat) + by];
  if (next) go(next);
};
const KEYS = {
  KeyN: () => go(fresh(chat)),
  KeyS: () => settings.open(),
  KeyE: () => showView(!engineShown()),
  KeyR: () => {
    const last = chat.messages.at(-1);
    if (last?.role === "assistant") actions.again(last);
  },
  ArrowUp: () => step(-1),
  ArrowDown: () => step(1),
};
document.addEventListener("keydown", (event) => {
  const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement?.tagName);
  if (event.altKey && !event.ctrlKey && !event.metaKey && KEYS[event.code]) {
    event.preventDefault();
    KEYS[event.code]();
  } else if (event.key === "Escape" && !document.querySelector("dialog[open]")) {
    if (answering) answering.abort.abort();
    else if (sidebar.classList.contains("open")) openSidebar(false);
    else if (settings.isOpen()) settings.open(false);
    else if (engineShown()) showView(false);
  } else if (event.key === "/" && !typing) {
    event.preventDefault();
    composer.focus();
  } else if (event.key === "?" && !typing) {
    at("help").showModal();
  }
});

at("stop").addEventListener("click", () => answering?.abort.abort());
at("new-chat").addEventListener("click", () => go(fresh(chat)));
at("delete-chat").addEventListener("click", () => forget(chat));
at("open-sidebar").addEventListener("click", () => openSidebar(!sidebar.classList.contains("open")));
at("shade").addEventListener("click", () => openSidebar(false));
at("open-settings").addEventListener("click", () => settings.open());
at("close-settings").addEventListener("click", () => settings.open(false));
at("show-engine").addEventListener("click", () => { showView(!engineShown()); openSidebar(false); });
at("show-help").addEventListener("click", () => at("help").showModal());
at("theme").addEventListener("click", () => theme(THEMES[(THEMES.indexOf(document.documentElement.dataset.theme) + 1) % THEMES.length]));
at("to-end").addEventListener("click", messages.toEnd);
messages.onScroll(() => { at("to-end").hidden = messages.atEnd(); });
models.addEventListener("change", () => {
  chat.model = models.value;
  chat.touched = true;
  save(chat);
  if (!chat.messages.length) messages.show(chat, actions, models.value);
  showRoom();
});
at("search").addEventListener("input", list);
settings.follow(() => chat, (said) => { status.textContent = said; list(); });
getting.onHad(async (name) => {
  chat.model = name;
  await listModels();
  if (offers(name)) models.value = name;
  chat.touched = true;
  save(chat);
  status.textContent = `${name} is here.`;
  composer.focus();
});
at("get-model").addEventListener("click", () => getting.open());
const showVoice = voice.follow(() => hears, (text) => {
  composer.value = [composer.value.trimEnd(), text].filter(Boolean).join(" ");
  grow();
  composer.focus();
}, (said) => { status.textContent = said; });
addEventListener("pagehide", () => {
  if (!answering) return;
  endBroken(answering.chat); // for other tabs; this one goes on with it when it is loaded again
  save(answering.chat);
});
files.follow((said) => { status.textContent = said; }, () => cards.get(models.value)?.images !== false);
onOtherTab((one, other) => {
  if (one && answering?.chat !== one) {
    if (other) Object.assign(one, other);
    else chats.splice(chats.indexOf(one), 1);
    if (one === chat) go(other ? chat : chats[0] ?? fresh(one));
  }
  list();
});
onStorageFull(() => { status.textContent = "The browser's storage is full: delete conversations to keep new ones."; });
onKeyWanted((admin) => new Promise((resolve) => {
  const dialog = at("key-dialog");
  at("key-title").textContent = admin ? "This is for the server's administrator" : "This server wants a key";
  at("key").value = "";
  dialog.addEventListener("close", () => resolve(dialog.returnValue === "ok" ? at("key").value : null), { once: true });
  dialog.returnValue = "";
  dialog.showModal();
}));

const offers = (model) => [...models.options].some(({ value }) => value === model);

async function listModels() {
  try {
    const { data } = await getJson("v1/models");
    const chatting = data.filter(({ kind }) => !kind || kind === "a text model"); // before it is loaded, anything
    cards = new Map(chatting.map((card) => [card.id, card]));
    hears = data.find(({ kind }) => kind === "a speech model")?.id ?? "";
    showVoice();
    const wanted = chat.model ?? models.value ?? chats.find((one) => one.model)?.model;
    models.replaceChildren(...chatting.map(({ id }) => new Option(id, id)));
    if (offers(wanted)) models.value = wanted;
    if (!chat.messages.length) messages.show(chat, actions, models.value);
    showRoom();
  } catch (error) {
    status.textContent = error.message;
  }
}

chats.forEach(endBroken);
theme(THEMES.includes(localStorage.getItem("akunu.theme")) ? localStorage.getItem("akunu.theme") : "system");
go(chat);
listModels();
goOn();

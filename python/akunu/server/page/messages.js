// Messages on the page. `actions` does what their buttons say; see app.js.

import { markdown } from "./markdown.js";

const log = document.getElementById("messages");
const shown = new Map(); // message -> its element

const make = (tag, className, ...children) => {
  const made = document.createElement(tag);
  if (className) made.className = className;
  made.append(...children);
  return made;
};

function button(text, title, act) {
  const made = make("button", "", text);
  made.type = "button";
  made.title = title;
  made.addEventListener("click", act);
  return made;
}

const EMBER = "ember is a model of 9 MB: it tells stories, does small sums and knows little. Get a real model here, or start the server with one: akunu serve qwen3:4b.";
const TRIES = ["What is the capital of France?", "Tell me a story about a lighthouse.", "Sort these words: pear, apple, fig."];

/** All messages of a conversation, in the place of what was there. */
export function show(chat, actions, model = "") {
  shown.clear();
  log.replaceChildren();
  if (!chat.messages.length) {
    const tries = make("div", "tries", ...TRIES.map((text) => button(text, "Send this", () => actions.send(text))));
    const about = model === "ember" ? EMBER : "Models on this machine, at your service.";
    if (model === "ember") tries.append(button("Get a real model", "Models that fit this machine", actions.getModel));
    log.append(make("div", "welcome", make("h1", "", "What can I do for you?"), make("div", "about", about), tries));
    return;
  }
  for (const message of chat.messages) add(message, chat, actions);
  if (chat.forgotten) shown.get(chat.messages[chat.forgotten])?.before(make("p", "forgotten", "The model no longer sees what is above."));
  log.scrollTop = log.scrollHeight;
}

export function add(message, chat, actions) {
  log.querySelector(".welcome")?.remove();
  const made = make("article", `message ${message.role}`);
  made.setAttribute("aria-label", { user: "You", assistant: "Answer", tool: "Result of a tool" }[message.role]);
  shown.set(message, made);
  log.append(made);
  update(message, chat, actions);
}

/** Draw a message again, after it has changed. */
export function update(message, chat, actions) {
  const made = shown.get(message);
  if (!made) return;
  const body = make("div", "body");
  if (message.role === "assistant") fillAnswer(body, message, chat, actions, made);
  else {
    for (const { name, text, image } of message.files ?? []) {
      if (image) {
        const picture = make("img", "picture");
        picture.src = image;
        picture.alt = name;
        picture.title = name;
        body.append(picture);
        continue;
      }
      body.append(make("details", "file", make("summary", "", `${name}, ${text.length.toLocaleString("en")} characters`), make("pre", "", text)));
    }
    body.append(message.content);
  }
  const acts = make("div", "acts");
  if (!message.writing) {
    if (navigator.clipboard && message.content) acts.append(button("Copy", "Copy the text", () => navigator.clipboard.writeText(message.content)));
    if (message.role === "user") acts.append(button("Edit", "Change it, and answer again", () => edit(message, actions, made)));
    if (message.role === "assistant") acts.append(button("Again", "Another answer; this one is kept (Alt R)", () => actions.again(message)));
    const versions = message.versions?.length ?? 0;
    if (versions > 1) {
      const at = message.version ?? versions - 1;
      const turn = (by, sign, title) => {
        const made = button(sign, title, () => actions.turn(message, at + by));
        made.disabled = at + by < 0 || at + by >= versions;
        return made;
      };
      acts.append(turn(-1, "‹", "The answer before"), make("span", "version", `${at + 1} of ${versions}`), turn(1, "›", "The answer after"));
    }
    acts.append(make("span", "facts", facts(message)));
  }
  made.replaceChildren(body, acts);
}

function fillAnswer(body, message, chat, actions, made) {
  if (message.reasoning) {
    const box = make("details", "reasoning", make("summary", "", message.writing && !message.content ? "Thinking …" : "Thoughts"), make("div", "", message.reasoning));
    const before = made.querySelector("details.reasoning");
    box.open = before ? before.open : false;
    body.append(box);
  }
  body.append(...markdown(message.content));
  for (const call of message.tool_calls ?? []) body.append(toolCall(call, message, chat, actions));
  if (message.failed) {
    const box = make("div", "failed", message.failed);
    if (message.full) box.append(button("Forget the oldest turns, and answer", "They stay here; the model no longer sees them", () => actions.makeRoom(message)));
    body.append(box);
  }
  if (message.writing) body.append(make("span", "waiting", message.writing === true ? "" : message.writing));
}

/** How far a long conversation is read before an answer begins. */
export const reading = ({ total, cache, processed }) => `Reading: ${Math.floor((100 * (processed - cache)) / (total - cache))} % of ${(total - cache).toLocaleString("en")} tokens `;

function toolCall(call, message, chat, actions) {
  let written = call.function.arguments;
  try { written = JSON.stringify(JSON.parse(written), null, 1).replace(/\n */g, " "); } catch { /* not whole yet */ }
  const box = make("div", "tool-call", make("b", "", call.function.name), " ", make("code", "", written));
  const answered = chat.messages.some((other) => other.tool_call_id === call.id);
  if (!message.writing && !answered) {
    const result = make("input");
    result.placeholder = "What the tool gives back";
    result.setAttribute("aria-label", `Result of ${call.function.name}`);
    const form = make("form", "", result, make("button", "", "Give back"));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      actions.giveBack(call, result.value);
    });
    box.append(form);
  }
  return box;
}

function facts(message) {
  const said = [];
  if (message.tokens) {
    // A few tokens that come at once have no speed.
    const speed = message.tokens >= 16 && message.seconds >= 0.05 ? `, ${(message.tokens / message.seconds).toFixed(1)}/s` : "";
    said.push(`${message.tokens} token${message.tokens === 1 ? "" : "s"}${speed}`);
  }
  if (message.first > 0) said.push(`first after ${message.first < 1 ? `${Math.round(message.first * 1000)} ms` : `${message.first.toFixed(1)} s`}`);
  if (message.cached) said.push(`${message.cached} of the prompt from the cache`);
  if (message.reason === "length") said.push("cut: no room for more");
  if (message.reason === "stopped") said.push("stopped");
  return said.join(" · ");
}

export function edit(message, actions, made = shown.get(message)) {
  const field = make("textarea", "edit");
  field.value = message.content;
  const leave = () => actions.redraw(message);
  const done = button("Send", "Enter", () => actions.edited(message, field.value));
  field.addEventListener("keydown", (event) => {
    if (event.key === "Escape") { event.stopPropagation(); leave(); }
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); done.click(); }
  });
  made.replaceChildren(field, make("div", "acts", done, button("Cancel", "Esc", leave)));
  field.focus();
}

// The newest text stays in view, unless the reader has scrolled away from it.
const NEAR = 60;
export const atEnd = () => log.scrollHeight - log.scrollTop - log.clientHeight < NEAR;
export const toEnd = () => { log.scrollTop = log.scrollHeight; };
export const onScroll = (act) => log.addEventListener("scroll", act, { passive: true });
export const busy = (is) => log.setAttribute("aria-busy", String(is));

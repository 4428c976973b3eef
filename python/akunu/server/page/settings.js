// The settings of a conversation: a form that is always what `chat.settings` holds.

import { bring, chats, save, titleOf } from "./chats.js";

const panel = document.getElementById("settings");
const form = document.getElementById("settings-form");
const wrong = document.getElementById("tools-error");

export function fill(chat) {
  for (const field of form.elements) if (field.name) field.value = chat.settings[field.name] ?? "";
  checkTools();
}

/** Show the values that the model has where a field is empty. */
export function inForce(sampling = {}) {
  for (const field of form.elements) if (field.type === "number") field.placeholder = sampling[field.name] ?? "";
}

function checkTools() {
  const text = form.elements.tools.value.trim();
  wrong.textContent = "";
  if (!text) return undefined;
  try {
    const tools = JSON.parse(text);
    if (!Array.isArray(tools)) throw new Error("expected a list");
    return text;
  } catch (error) {
    wrong.textContent = `Not used: ${error.message}`;
    return undefined;
  }
}

function download(name, content) {
  const file = new Blob([JSON.stringify(content, null, 2)], { type: "application/json" });
  const link = document.createElement("a");
  link.href = URL.createObjectURL(file);
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}

export function follow(current, brought) {
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", (event) => {
    const { name, type, value, valueAsNumber, validity } = event.target;
    if (!name) return;
    const chat = current();
    if (name === "tools") chat.settings.tools = checkTools();
    else if (type === "number") chat.settings[name] = value === "" || !validity.valid ? undefined : valueAsNumber;
    else chat.settings[name] = value || undefined;
    chat.touched = true;
    save(chat);
  });
  document.getElementById("export").addEventListener("click", () => {
    const chat = current();
    const { messages, settings, model } = chat;
    download(`${titleOf(chat).replace(/[^\p{L}\p{N}]+/gu, "-").slice(0, 40)}.json`, { model, settings, messages });
  });
  document.getElementById("export-all").addEventListener("click", () => {
    download("akunu-conversations.json", { format: "akunu.chats", chats: chats.filter((chat) => chat.messages.length) });
  });
  const chosen = document.getElementById("import-file");
  document.getElementById("import").addEventListener("click", () => chosen.click());
  chosen.addEventListener("change", async () => {
    const said = [];
    for (const file of chosen.files) {
      try {
        const found = JSON.parse(await file.text());
        const one = Array.isArray(found?.messages) && { id: `${file.name}-${file.lastModified}`, title: "", ...found };
        const n = bring(found?.chats ?? (one ? [one] : found));
        said.push(`${file.name}: ${n} new`);
      } catch (error) {
        said.push(`${file.name}: ${error.message}`);
      }
    }
    chosen.value = "";
    brought(said.join("; "));
  });
}

export function open(is = panel.hidden) {
  panel.hidden = !is;
  document.getElementById("open-settings").setAttribute("aria-expanded", String(is));
  if (is) form.elements.system.focus();
}
export const isOpen = () => !panel.hidden;

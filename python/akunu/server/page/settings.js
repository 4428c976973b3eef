// The settings of a conversation: a form that is always what `chat.settings` holds.

import { save, titleOf } from "./chats.js";

const panel = document.getElementById("settings");
const form = document.getElementById("settings-form");
const wrong = document.getElementById("tools-error");

export function fill(chat) {
  for (const field of form.elements) if (field.name) field.value = chat.settings[field.name] ?? "";
  checkTools();
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

export function follow(current) {
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", (event) => {
    const { name, type, value, valueAsNumber, validity } = event.target;
    if (!name) return;
    const chat = current();
    if (name === "tools") chat.settings.tools = checkTools();
    else if (type === "number") chat.settings[name] = value === "" || !validity.valid ? undefined : valueAsNumber;
    else chat.settings[name] = value || undefined;
    chat.touched = true;
    save();
  });
  document.getElementById("export").addEventListener("click", () => {
    const chat = current();
    const { messages, settings, model } = chat;
    const file = new Blob([JSON.stringify({ model, settings, messages }, null, 2)], { type: "application/json" });
    const link = document.createElement("a");
    link.href = URL.createObjectURL(file);
    link.download = `${titleOf(chat).replace(/[^\p{L}\p{N}]+/gu, "-").slice(0, 40)}.json`;
    link.click();
    URL.revokeObjectURL(link.href);
  });
}

export function open(is = panel.hidden) {
  panel.hidden = !is;
  document.getElementById("open-settings").setAttribute("aria-expanded", String(is));
  if (is) form.elements.system.focus();
}
export const isOpen = () => !panel.hidden;

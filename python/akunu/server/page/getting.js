// Models that can be had: fetched from the Hugging Face Hub by the server, and loaded.

import { askAgain, getJson, postJson, pull } from "./api.js";

const at = (id) => document.getElementById(id);
const dialog = at("models-dialog"), state = at("models-state"), name = at("models-name");
let fetching = null; // an AbortController, while a model is fetched
let had = () => {};

/** `tell` gets the name of a model that is here and loaded. */
export const onHad = (tell) => { had = tell; };

const size = (bytes) => (bytes >= 1e9 ? `${(bytes / 1e9).toFixed(1)} GB` : `${Math.round(bytes / 1e6)} MB`);

const make = (tag, ...children) => {
  const made = document.createElement(tag);
  made.append(...children);
  return made;
};

function row(model) {
  const get = make("button", model.here ? "Use it" : "Get it");
  get.type = "button";
  get.setAttribute("aria-label", `${get.textContent}: ${model.name}`);
  get.addEventListener("click", () => fetchAndLoad(model.name));
  const fits = make("td", `${size(model.memory_4k)}: ${model.fits ? "fits here" : "too large"}`);
  fits.title = `With a context of 4,096 tokens; with 32,768: ${size(model.memory_32k)}`;
  const made = make("tr", make("td", model.name), make("td", model.kind), make("td", size(model.bytes)), fits, make("td", model.licence), make("td", get));
  made.classList.toggle("too-large", !model.fits);
  return made;
}

/** Show which models there are. */
export async function open() {
  dialog.showModal();
  if (fetching) return;
  state.replaceChildren();
  at("models-about").textContent = "Looking which fit this machine …";
  askAgain();
  try {
    const { memory, models } = await getJson("admin/available");
    at("models-about").textContent = `The server fetches them from huggingface.co, once. This machine has ${size(memory)} of memory for a model. Any other in GGUF or SafeTensors can be had by its name there.`;
    at("models-table").replaceChildren(...models.sort((a, b) => b.fits - a.fits).map(row));
  } catch (error) {
    at("models-about").textContent = error.message;
  }
}

async function fetchAndLoad(model) {
  if (fetching) return;
  fetching = new AbortController();
  const bar = make("progress"), text = make("span", `Asking for ${model} …`), stop = make("button", "Stop");
  stop.type = "button";
  stop.addEventListener("click", () => fetching?.abort());
  state.replaceChildren(text, bar, stop);
  try {
    for await (const { total, completed } of pull(model, fetching.signal)) {
      if (!total) continue;
      [bar.max, bar.value] = [total, completed];
      text.textContent = `${model}: ${size(completed)} of ${size(total)}`;
    }
    bar.removeAttribute("value");
    text.textContent = `Loading ${model} …`;
    await postJson("admin/load", { model });
    state.replaceChildren();
    dialog.close();
    had(model);
  } catch (error) {
    state.replaceChildren(error.name === "AbortError" ? "Stopped. What was fetched stays, and the next time goes on with it." : error.message);
  }
  fetching = null;
}

at("models-form").addEventListener("submit", (event) => {
  event.preventDefault();
  fetchAndLoad(name.value.trim());
});

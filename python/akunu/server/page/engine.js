// A live view of the engine: texts, pages, speed, and where a token's time goes.

import { askAgain, getJson, postJson } from "./api.js";

const view = document.getElementById("engine");
const POLL_MS = 1000, REMEMBERED = 120;
const speeds = new Map(); // model -> tokens per second, newest last
const tables = new Map(); // model -> commands of its table
let timer = 0;

const make = (tag, text, ...children) => {
  const made = document.createElement(tag);
  if (text !== null) made.textContent = text;
  made.append(...children);
  return made;
};
const number = (value, digits = 0) => Number(value).toLocaleString("en", { maximumFractionDigits: digits });

function card(value, label, chart) {
  const made = make("div", null, make("b", value), make("span", label));
  made.className = "card";
  if (chart) made.append(chart);
  return made;
}

function line(values) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const top = Math.max(1, ...values);
  svg.setAttribute("viewBox", `0 0 ${REMEMBERED - 1} 30`);
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("aria-hidden", "true");
  const points = values.map((value, at) => `${REMEMBERED - values.length + at},${29 - (28 * value) / top}`);
  const drawn = document.createElementNS(svg.namespaceURI, "polyline");
  drawn.setAttribute("points", points.join(" "));
  svg.append(drawn);
  return svg;
}

function meter(value, most, label) {
  const made = document.createElement("meter");
  made.max = most || 1;
  made.value = value;
  made.setAttribute("aria-label", label);
  return made;
}

function table(heads, rows) {
  const body = make("tbody", null, ...rows.map((row) => make("tr", null, ...row.map((cell) => make("td", null, cell)))));
  const made = make("div", null, make("table", null, make("thead", null, make("tr", null, ...heads.map((head) => make("th", head)))), body));
  made.className = "scroll";
  return made;
}

function sequences(model) {
  if (!model.sequences.length) {
    const made = make("p", "No text is being written.");
    made.className = "quiet";
    return made;
  }
  return table(
    ["state", "prompt", "from the cache", "written", "seconds"],
    model.sequences.map((text) => [text.state, number(text.prompt_tokens), number(text.cached_tokens), number(text.tokens), number(text.seconds, 1)]),
  );
}

function commands(model) {
  const found = tables.get(model.id);
  if (!found) {
    const ask = make("button", "Time each command of a token");
    ask.addEventListener("click", async () => {
      ask.disabled = true;
      ask.textContent = "Timing …";
      try {
        tables.set(model.id, (await postJson("admin/table", { model: model.id })).commands);
      } catch (error) {
        ask.replaceWith(make("p", error.message));
        return;
      }
      draw();
    });
    return ask;
  }
  const total = found.reduce((sum, command) => sum + command.microseconds, 0);
  const most = Math.max(...found.map((command) => command.microseconds));
  const rows = found.map((command) => [
    command.name,
    command.op,
    number(command.microseconds, 1),
    meter(command.microseconds, most, "share of the time"),
    command.microseconds ? number(command.bytes / command.microseconds / 1000, 1) : "",
  ]);
  return make("div", null, make("p", `${found.length} commands, ${number(total / 1000, 2)} ms in all`), table(["command", "op", "µs", "", "GB/s"], rows));
}

function drawModel(model) {
  const head = [make("h2", model.id), make("div", `${model.device}, context ${number(model.context)}`)];
  if (model.kind !== "a text model") return [...head, make("p", `It is ${model.kind}: no texts, no pages.`)];
  const past = speeds.get(model.id) ?? [];
  past.push(model.tokens_per_second);
  speeds.set(model.id, past.slice(-REMEMBERED));
  const { pages, prefix, drafts } = model;
  const misses = Object.entries(prefix.misses).map(([why, count]) => `${number(count)} ${why}`).join(", ");
  const cards = make(
    "div", null,
    card(number(model.tokens_per_second, 1), "tokens per second", line(speeds.get(model.id))),
    card(`${model.sequences.filter((text) => text.state !== "waiting").length} of ${model.parallel}`, `texts; ${number(model.queue)} waiting`),
    card(`${number(pages.used)} of ${number(pages.total)}`, "pages of the cache in use", meter(pages.used, pages.total, "pages in use")),
    card(number(prefix.hits), `prompts begun from the cache${misses ? `; not: ${misses}` : ""}`),
    card(drafts.drafted ? `${Math.round((100 * drafts.accepted) / drafts.drafted)} %` : "–", `of ${number(drafts.drafted)} drafted tokens accepted`),
  );
  cards.className = "cards";
  return [...head, cards, make("h3", "Texts"), sequences(model), make("h3", "Dispatch table"), commands(model)];
}

let last = { models: [] };
const draw = () => {
  const top = view.scrollTop;
  view.replaceChildren(...(last.models.length ? last.models.flatMap(drawModel) : [make("p", "No model is loaded; the first message loads one.")]));
  view.scrollTop = top;
};

async function poll() {
  try {
    last = await getJson("admin/engine");
    // A table that is being timed keeps its button.
    if (!view.querySelector("button:disabled")) draw();
  } catch (error) {
    view.replaceChildren(make("p", error.message));
    if (error.code === "key_wanted") {
      const give = make("button", "Give a key");
      give.addEventListener("click", () => { askAgain(); poll(); });
      view.append(give);
      return;
    }
  }
  if (!view.hidden) timer = setTimeout(poll, document.hidden ? 5 * POLL_MS : POLL_MS);
}

export function showEngine(is) {
  view.hidden = !is;
  clearTimeout(timer);
  if (is) poll();
}

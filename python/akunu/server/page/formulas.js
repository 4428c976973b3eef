// Formulas in LaTeX, made into MathML by Temml, which is loaded with the first of them.

const MOST = 4000; // characters of a formula

let temml = null; // null: not asked for; else a promise of the library

function library() {
  temml ??= new Promise((done, failed) => {
    const style = document.createElement("link");
    style.rel = "stylesheet";
    style.href = "page/vendor/temml.css";
    const script = document.createElement("script");
    script.src = "page/vendor/temml.js";
    script.addEventListener("load", () => done(window.temml));
    script.addEventListener("error", failed);
    document.head.append(style, script);
  });
  return temml;
}

/** An element for a formula: its source, until it is drawn, and for good where it is no LaTeX. */
export function formula(tex, source, display) {
  const made = document.createElement("span");
  made.className = display ? "formula display" : "formula";
  made.textContent = source;
  made.title = tex.trim();
  if (tex.length > MOST) return made;
  const draw = (temml) => {
    const drawn = document.createElement("span");
    try {
      // Nothing is trusted: no links, no styles, no images; macros and sizes are bounded.
      temml.render(tex.trim(), drawn, { displayMode: display, throwOnError: true, trust: false, maxExpand: 500, maxSize: [20, 20] });
    } catch {
      return;
    }
    made.replaceChildren(...drawn.childNodes);
  };
  if (window.temml) draw(window.temml);
  else library().then(draw, () => {});
  return made;
}

// What begins a formula on lines of its own, and what ends it.
const BEGIN = /^\s*(\$\$|\\\[)/;
const ENDS = { "$$": "$$", "\\[": "\\]" };
const LINES = 200;

/** A formula that fills lines from `i` on: [element, the line after it], or null. */
export function formulaLines(lines, i) {
  const begin = BEGIN.exec(lines[i])?.[1];
  if (!begin) return null;
  const end = ENDS[begin];
  for (let at = i; at < Math.min(lines.length, i + LINES); at += 1) {
    const text = at === i ? lines[at].trim().slice(2) : lines[at].trim();
    if (!text.endsWith(end)) {
      if (text.includes(end) || (at > i && !text)) return null; // more follows on the line, or a new paragraph
      continue;
    }
    const source = lines.slice(i, at + 1).join("\n").trim();
    if (source.slice(2, -2).includes(end)) return null; // several, with text between them
    return [formula(source.slice(2, -2), source, true), at + 1];
  }
  return null;
}

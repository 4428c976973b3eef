// Markdown as models write it, made into elements: text never becomes markup.

import { coloured } from "./colours.js";
import { formula, formulaLines } from "./formulas.js";

// A child may be a list of them, of any length.
const element = (tag, ...children) => {
  const made = document.createElement(tag);
  for (const child of children.flat()) made.append(child);
  return made;
};

// Code first: nothing in it means anything else. Lengths are bounded, so that no text takes long.
const INLINE = [
  [/`([^`\n]{1,4000})`/g, (found) => element("code", found[1])],
  [/\$\$([^$\n]{1,4000})\$\$/g, (found) => formula(found[1], found[0], true)],
  [/\\\[((?:[^\\]|\\[^[\]]){1,4000})\\\]/g, (found) => formula(found[1], found[0], true)],
  [/\\\(((?:[^\\]|\\[^()]){1,4000})\\\)/g, (found) => formula(found[1], found[0], false)],
  // Between $: as Pandoc has it, so that prices are none.
  [/(?<![\\$\w])\$(?=[^\s$])((?:[^$\\\n]|\\[^\n]){1,2000})(?<!\s)\$(?![\d$])/g, (found) => formula(found[1], found[0], false)],
  [/\*\*(?=\S)([^*]{0,4000}[^\s*])\*\*/g, (found) => element("strong", inline(found[1]))],
  [/(?<![\w*])\*(?=[^\s*])([^*\n]{0,4000}[^\s*])\*(?![\w*])/g, (found) => element("em", inline(found[1]))],
  [/(?<!\w)_(?=[^\s_])([^_\n]{0,4000}[^\s_])_(?!\w)/g, (found) => element("em", inline(found[1]))],
  [/~~(?=\S)([^~\n]{1,4000})~~/g, (found) => element("del", inline(found[1]))],
  [/\[([^[\]\n]{1,1000})\]\((https?:\/\/[^\s)]{1,2000})\)/g, (found) => link(found[2], found[1])],
  [/https?:\/\/[^\s<>)\]]{1,2000}[^\s<>)\].,;:!?'"]/g, (found) => link(found[0], found[0])],
];

function link(address, text) {
  const made = element("a", text);
  made.href = address;
  made.target = "_blank";
  made.rel = "noopener noreferrer nofollow";
  return made;
}

function inline(text) {
  const made = [];
  // The next place of each pattern, which is looked for again only once it is passed.
  const next = INLINE.map(([pattern, make]) => ({ pattern, make, found: { index: -1 } }));
  let at = 0;
  for (;;) {
    let first = null;
    for (const one of next) {
      if (one.found && one.found.index < at) {
        one.pattern.lastIndex = at;
        one.found = one.pattern.exec(text);
      }
      if (one.found && (!first || one.found.index < first.found.index)) first = one;
    }
    if (!first) break;
    const { found, make } = first;
    if (found.index > at) made.push(text.slice(at, found.index));
    at = found.index + found[0].length;
    made.push(make(found));
  }
  if (at < text.length) made.push(text.slice(at));
  return made;
}

function code(language, text) {
  const copy = element("button", "Copy");
  copy.type = "button";
  copy.addEventListener("click", async () => {
    await navigator.clipboard.writeText(text);
    copy.textContent = "Copied";
    setTimeout(() => { copy.textContent = "Copy"; }, 1200);
  });
  copy.hidden = !navigator.clipboard; // only pages from this machine or over HTTPS have one
  const head = element("div", element("span", language || "text"), copy);
  head.className = "code-head";
  return element("pre", head, element("code", coloured(language, text)));
}

const cells = (line) => line.trim().replace(/^\||\|$/g, "").split("|").map((cell) => cell.trim());

function table(lines) {
  const row = (line, tag) => element("tr", ...cells(line).map((cell) => element(tag, inline(cell))));
  return element("table", element("thead", row(lines[0], "th")), element("tbody", ...lines.slice(2).map((line) => row(line, "td"))));
}

const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$/;
const FENCE = /^\s*(`{3,}|~{3,})\s*([\w+#.-]*)/;
const BLOCK = /^(#{1,6}\s|>|\s*(`{3,}|~{3,}|\$\$|\\\[))/;

/** A list from line `i` on: [element, the line after it]. */
function list(lines, i) {
  const [, indent, mark] = ITEM.exec(lines[i]);
  const made = element(/\d/.test(mark) ? "ol" : "ul");
  if (made.tagName === "OL") made.start = parseInt(mark, 10);
  while (i < lines.length) {
    const found = ITEM.exec(lines[i]);
    if (found && found[1].length > indent.length && made.lastChild) {
      const [inner, next] = list(lines, i);
      made.lastChild.append(inner);
      i = next;
    } else if (found && found[1].length === indent.length) {
      made.append(element("li", inline(found[3])));
      i += 1;
    } else if (!found && /^\s+\S/.test(lines[i]) && made.lastChild) {
      const drawn = formulaLines(lines, i);
      if (drawn) {
        made.lastChild.append(drawn[0]);
        i = drawn[1];
        continue;
      }
      for (const part of [" ", ...inline(lines[i].trim())]) made.lastChild.append(part);
      i += 1;
    } else if (!lines[i].trim() && ITEM.test(lines[i + 1] ?? "") && ITEM.exec(lines[i + 1])[1].length >= indent.length) {
      i += 1;
    } else {
      break;
    }
  }
  return [made, i];
}

/** The elements of a text. */
export function markdown(text) {
  const lines = text.split("\n");
  const made = [];
  let i = 0;
  while (i < lines.length) {
    const line = lines[i];
    const fence = FENCE.exec(line), drawn = formulaLines(lines, i);
    if (drawn) {
      made.push(element("p", drawn[0]));
      i = drawn[1];
    } else if (fence) {
      const end = lines.findIndex((other, at) => at > i && other.trim().startsWith(fence[1]) && !other.trim().slice(fence[1].length).trim());
      const last = end < 0 ? lines.length : end;
      made.push(code(fence[2], lines.slice(i + 1, last).join("\n")));
      i = last + 1;
    } else if (!line.trim()) {
      i += 1;
    } else if (/^#{1,6}\s/.test(line)) {
      const [, marks, title] = /^(#+)\s+(.*?)\s*#*$/.exec(line);
      made.push(element(`h${Math.min(6, marks.length + 2)}`, inline(title)));
      i += 1;
    } else if (/^\s*([-*_])(\s*\1){2,}\s*$/.test(line)) {
      made.push(element("hr"));
      i += 1;
    } else if (line.startsWith(">")) {
      let end = i;
      while (end < lines.length && lines[end].startsWith(">")) end += 1;
      made.push(element("blockquote", markdown(lines.slice(i, end).map((quoted) => quoted.replace(/^> ?/, "")).join("\n"))));
      i = end;
    } else if (line.includes("|") && /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)+\|?\s*$/.test(lines[i + 1] ?? "")) {
      let end = i;
      while (end < lines.length && lines[end].includes("|")) end += 1;
      made.push(table(lines.slice(i, end)));
      i = end;
    } else if (ITEM.test(line)) {
      const [item, next] = list(lines, i);
      made.push(item);
      i = next;
    } else {
      let end = i + 1;
      while (end < lines.length && lines[end].trim() && !BLOCK.test(lines[end]) && !ITEM.test(lines[end])) end += 1;
      const parts = lines.slice(i, end).flatMap((part, at) => (at ? [element("br"), ...inline(part)] : inline(part)));
      made.push(element("p", parts));
      i = end;
    }
  }
  return made;
}

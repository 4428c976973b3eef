// Colours of code: comments, strings, numbers and keywords. Text stays text; what is not known stays as it is.

const MOST = 50_000; // characters of one piece of code

const words = (text) => new Set(text.split(" "));
const C_LIKE = words("abstract as async auto await bool boolean break byte case catch char class const constexpr continue debugger default delete do double else enum explicit export extends extern false final finally float fn for func function go if impl implements import in include inline instanceof int interface let long loop match mod mut namespace new nil null nullptr number of operator override package private protected pub public readonly return self short signed sizeof static string struct super switch template this throw trait true try type typedef typename undefined union unsigned use using var virtual void volatile where while yield");
const PYTHON = words("and as assert async await break case class continue def del elif else except False finally for from global if import in is lambda match None nonlocal not or pass raise return self True try while with yield");
const SHELL = words("case cd do done echo elif else esac exit export fi for function if in local return set source then unset until while");
const SQL = words("alter and as asc between by case create delete desc distinct drop else end exists from group having in index inner insert into is join key left like limit not null offset on or order outer primary references right select set table then union unique update values view when where with");
const DATA = words("true false null yes no");

// What is not closed reaches to the end, so that no text is read twice.
const STRINGS = String.raw`"(?:\\[^]|[^"\\\n])*"?|'(?:\\[^]|[^'\\\n])*'?`;
const SLASHES = String.raw`\/\/[^\n]*|\/\*[^]*?(?:\*\/|$)`;
const HASH = String.raw`#[^\n]*`;
const KINDS = [
  [/^(c|h|cpp|c\+\+|cc|hpp|cs|csharp|c#|java|kotlin|swift|go|golang|js|jsx|javascript|ts|tsx|typescript|php|scala|dart|zig)$/, SLASHES, "`(?:\\\\[^]|[^`\\\\])*`?|" + STRINGS, C_LIKE],
  [/^(rust|rs)$/, SLASHES, String.raw`"(?:\\[^]|[^"\\])*"?`, C_LIKE], // ' begins a lifetime, too
  [/^(py|python|python3|gyp)$/, HASH, String.raw`"""[^]*?(?:"""|$)|'''[^]*?(?:'''|$)|` + STRINGS, PYTHON],
  [/^(sh|bash|zsh|shell|console|makefile|make|dockerfile|rb|ruby|r|perl)$/, HASH, STRINGS, SHELL],
  [/^(sql|sqlite|postgresql|mysql)$/i, String.raw`--[^\n]*|\/\*[^]*?(?:\*\/|$)`, STRINGS, SQL],
  [/^(json|jsonc|json5)$/, SLASHES, STRINGS, DATA],
  [/^(yaml|yml|toml|ini)$/, HASH, STRINGS, DATA],
  [/^css$/, String.raw`\/\*[^]*?(?:\*\/|$)`, STRINGS, words("important")],
].map(([names, comments, strings, keywords]) => ({
  names,
  keywords,
  pattern: new RegExp(String.raw`(${comments})|(${strings})|(\b\d[\w.]*)|([A-Za-z_]\w*)`, "g"),
}));

/** The code as nodes: texts, and elements with the class of what they are. */
export function coloured(language, text) {
  const kind = KINDS.find(({ names }) => names.test(language.toLowerCase()));
  if (!kind || text.length > MOST) return [text];
  const made = [];
  let at = 0;
  for (const found of text.matchAll(kind.pattern)) {
    const [whole, comment, string, number, word] = found;
    const known = word && (kind.keywords.has(word) || (kind.keywords === SQL && SQL.has(word.toLowerCase())));
    const name = comment ? "comment" : string ? "string" : number ? "number" : known ? "keyword" : "";
    if (!name) continue;
    const part = document.createElement("span");
    part.className = `code-${name}`;
    part.textContent = whole;
    made.push(text.slice(at, found.index), part);
    at = found.index + whole.length;
  }
  made.push(text.slice(at));
  return made;
}

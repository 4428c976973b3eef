"""Reads GBNF, the grammars of llama.cpp (``grammars/README.md`` there), and writes it for llguidance."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from akunu.base.errors import InvalidArgumentError
from akunu.chat.structured.gbnf_lark import lark_of_rules
from akunu.chat.structured.gbnf_node import LAST, Node, complement
from akunu.chat.structured.rule_graph import groups

__all__ = ["is_gbnf", "lark_of_gbnf"]

_RULE: Final = re.compile(r"^[ \t]*[\w-]+[ \t]*::=", re.MULTILINE)
_TOKEN: Final = re.compile(
    r"""(?P<define>::=) | (?P<name>[\w-]+) | (?P<text>"(?:[^"\\\n]|\\.)*") | (?P<set>\[(?:[^\]\\]|\\.)*\])
      | (?P<count>\{\s*\d+\s*(?:,\s*\d*\s*)?\}) | (?P<mark>[|()*+?.]) | (?P<line>\r?\n)
      | (?P<space>[ \t]+|\#[^\n]*)
    """,
    re.VERBOSE,
)
_ESCAPE: Final = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL)
_LETTERS: Final = {"n": "\n", "r": "\r", "t": "\t"}
_ITSELF: Final = frozenset('"\\[]^-')
MAX_REPEAT: Final = 2000
"""llama.cpp's limit for a count."""
MAX_RULES: Final = 10_000
MAX_NESTING: Final = 100
"""Parentheses within each other."""


def is_gbnf(text: str) -> bool:
    """Whether a grammar is in this form, by its sign for a rule; Lark's is a colon."""
    return _RULE.search(text) is not None


def lark_of_gbnf(text: str) -> str:
    """Return the grammar for llguidance.

    Raises
    ------
    InvalidArgumentError
        It is not GBNF; the message names the line or the rule.
    """
    rules = _Parser(text).rules()
    for name, node in rules.items():
        for other in node.names():
            if other not in rules:
                raise InvalidArgumentError(f"grammar: the rule {name} names {other}, which is not defined")
    if "root" not in rules:
        raise InvalidArgumentError("grammar: it has no rule root, where a text begins")
    return lark_of_rules(_ending(rules))


def _ending(rules: Mapping[str, Node]) -> dict[str, Node]:
    """Return the rules without what no text could leave again.

    Raises
    ------
    InvalidArgumentError
        Nothing is left of the root.
    """
    names = {name: list(node.names()) for name, node in rules.items()}
    users: dict[str, set[str]] = {name: set() for name in rules}
    for name, named in names.items():
        for other in named:
            users[other].add(name)
    found: set[str] = set()
    for group in groups(names):
        inside, work = set(group), list(group)
        while work:
            name = work.pop()
            if name not in found and rules[name].ending(found) is not None:
                found.add(name)
                work += users[name] & inside
    if "root" not in found:
        raise InvalidArgumentError("grammar: no text of the rule root ends: there is always more to come")
    left = {name: rules[name].ending(found) for name in rules}
    return {name: node for name, node in left.items() if node is not None}


class _Parser:
    """Reads rules: rule = name "::=" choice; choice = sequence ("|" sequence)*; sequence = repeated items."""

    def __init__(self, text: str) -> None:
        self._tokens: list[tuple[str, str, int]] = []
        at, line = 0, 1
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None:
                raise InvalidArgumentError(f"grammar: line {line}: {text[at : at + 20]!r} is not GBNF")
            kind = str(match.lastgroup)
            if kind != "space":
                self._tokens.append((kind, match[0], line))
            line += match[0].count("\n")
            at = match.end()
        self._tokens.append(("end", "the end", line))
        self._at = 0
        self._nesting = 0

    def rules(self) -> dict[str, Node]:
        rules: dict[str, Node] = {}
        self._skip_lines()
        while self._kind() != "end":
            name = self._expect("name")
            self._skip_lines()
            self._expect("define")
            self._skip_lines()
            if name in rules:
                raise InvalidArgumentError(f"grammar: the rule {name} is defined twice")
            if len(rules) == MAX_RULES:
                self._fail(f"at most {MAX_RULES} rules")
            rules[name] = self._choice(nested=False)
            if self._kind() not in ("line", "end"):
                self._fail("a new line")
            self._skip_lines()
        return rules

    def _choice(self, *, nested: bool) -> Node:
        parts = [self._sequence(nested=nested)]
        while self._peek() == "|":
            self._at += 1
            self._skip_lines()
            parts.append(self._sequence(nested=nested))
        return parts[0] if len(parts) == 1 else Node("choice", parts=tuple(parts))

    def _sequence(self, *, nested: bool) -> Node:
        parts: list[Node] = []
        while True:
            if nested:
                self._skip_lines()
            kind, text, _ = self._tokens[self._at]
            if kind == "count" or text in ("*", "+", "?"):
                if not parts:
                    self._fail("something to repeat")
                times = self._times(text)
                never = times in ("{0}", "{0,0}")
                parts[-1] = Node("sequence") if never else Node("repeat", times, (parts[-1],))
                self._at += 1
            elif kind in ("name", "text", "set") or text == ".":
                parts.append(self._item(kind, text))
                self._at += 1
            elif text == "(":
                parts.append(self._group())
            else:
                return parts[0] if len(parts) == 1 else Node("sequence", parts=tuple(parts))

    def _item(self, kind: str, text: str) -> Node:
        if kind == "name":
            return Node("name", text)
        if kind == "text":
            characters = [Node("set", ranges=((ord(c), ord(c)),)) for c, _ in self._characters(text[1:-1])]
            return characters[0] if len(characters) == 1 else Node("sequence", parts=tuple(characters))
        if kind == "set":
            return Node("set", ranges=self._set(text[1:-1]))
        return Node("set", ranges=((0, LAST),))

    def _group(self) -> Node:
        self._at += 1
        self._nesting += 1
        if self._nesting > MAX_NESTING:
            self._fail(f"at most {MAX_NESTING} parentheses within each other")
        node = self._choice(nested=True)
        self._nesting -= 1
        if self._peek() != ")":
            self._fail(")")
        self._at += 1
        return node

    def _times(self, text: str) -> str:
        if text in ("*", "+", "?"):
            return text
        numbers = [int(number) for number in re.findall(r"\d+", text)]
        if max(numbers) > MAX_REPEAT or numbers != sorted(numbers):
            self._fail(f"counts in order, of {MAX_REPEAT} at most")
        written = ",".join(map(str, numbers))
        return f"{{{written},}}" if "," in text and len(numbers) == 1 else f"{{{written}}}"

    def _set(self, text: str) -> tuple[tuple[int, int], ...]:
        """Characters and ranges, `^` for all others."""
        characters = list(self._characters(text.removeprefix("^")))
        found = []
        at = 0
        while at < len(characters):
            low = high = characters[at][0]
            if at + 2 < len(characters) and characters[at + 1] == ("-", False):
                high = characters[at + 2][0]
                at += 2
            if high < low:
                self._fail("a range that goes up")
            found.append((ord(low), ord(high)))
            at += 1
        if not found:
            self._fail("characters between [ and ]")
        return complement(found) if text.startswith("^") else complement(complement(found))

    def _characters(self, text: str) -> Iterator[tuple[str, bool]]:
        """Each character, and whether it was written with a backslash."""
        at = 0
        while at < len(text):
            escape = _ESCAPE.match(text, at)
            if escape is None:
                if text[at] == "\\":
                    self._fail("an escape")
                yield text[at], False
                at += 1
                continue
            code = escape[1] or escape[2] or escape[3]
            if code:
                yield self._character(int(code, 16)), True
            elif escape[4] in _LETTERS or escape[4] in _ITSELF:
                yield _LETTERS.get(escape[4], escape[4]), True
            else:
                self._fail(f"an escape, not {escape[0]}")
            at = escape.end()

    def _character(self, code: int) -> str:
        if code > 0x10FFFF or 0xD800 <= code < 0xE000:
            self._fail(f"a character, not U+{code:04X}")
        return chr(code)

    def _kind(self) -> str:
        return self._tokens[self._at][0]

    def _peek(self) -> str:
        return self._tokens[self._at][1]

    def _expect(self, kind: str) -> str:
        if self._kind() != kind:
            self._fail({"name": "a rule's name", "define": "::="}[kind])
        self._at += 1
        return self._tokens[self._at - 1][1]

    def _skip_lines(self) -> None:
        while self._kind() == "line":
            self._at += 1

    def _fail(self, expected: str) -> None:
        _, text, line = self._tokens[self._at]
        raise InvalidArgumentError(f"grammar: line {line}: found {text!r}, expected {expected}")

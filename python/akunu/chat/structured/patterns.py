"""Patterns of JSON schemas, ECMA-262's regular expressions, in the syntax that llguidance reads.

Both write most things alike. They differ in classes (``[[]``, ``[a&&b]``), braces that count nothing, the
escapes and what ``.``, ``\\d``, ``\\s`` and ``\\w`` mean. Where a class of ECMA differs from Python's, which
many validators use, only what both have is written.

A class of all control characters without the quotation mark or the backslash is written without U+0000:
llguidance takes it for one that has both (derivre 0.3.8, `quote_all_ctrl`), and writes them escaped.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Final

__all__ = ["Patterns", "has_alternatives", "llguidance_patterns"]

_DIGITS: Final = ((0x30, 0x39),)
_WORDS: Final = ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))
_SPACES: Final = (
    (9, 13), (32, 32), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A), (0x2028, 0x2029), (0x202F, 0x202F),
    (0x205F, 0x205F), (0x3000, 0x3000),
)  # fmt: skip
_NO_SPACES: Final = (*_SPACES, (0x1C, 0x1F), (0x85, 0x85), (0xFEFF, 0xFEFF))
"""The white space of ECMA or Python: `\\S` has none of it."""
_LINE_ENDS: Final = ((10, 10), (13, 13), (0x2028, 0x2029))
_SHORTHANDS: Final = {"d": _DIGITS, "w": _WORDS, "s": _SPACES}
"""The characters of a shorthand in both languages; `_shorthand` knows the rest."""
_CONTROLS: Final = {"n": 10, "r": 13, "t": 9, "v": 11, "f": 12, "0": 0}
_LAST: Final = 0x10FFFF

MAX_LOOK_AHEADS: Final = 20
"""The most look-aheads at the beginning of a pattern."""

Ranges = list[tuple[int, int]]

_COUNT: Final = re.compile(r"\{\d+(?:,\d*)?\}")
_CODE: Final = re.compile(r"\\(?:u\{([0-9a-fA-F]+)\}|u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|c([a-zA-Z]))")
_SPAN: Final = re.compile(r"-[^\]]")
_PROPERTY: Final = re.compile(r"\\[pP](?:\{[^}]*\}|\w)")
_GROUP: Final = re.compile(r"\(\?(?:P?<([A-Za-z_]\w*)>|:|[a-zA-Z-]+[:)])")


@dataclass(frozen=True, slots=True)
class Patterns:
    """A pattern as expressions for llguidance: a text that has it has all of `every`, and none of `none`.

    `none` are what a pattern that begins with ``^(?!...)`` excludes, at the beginning of a text.
    """

    every: tuple[str, ...]
    none: tuple[str, ...] = ()


def llguidance_patterns(pattern: str) -> Patterns:
    """Translate a pattern.

    Each look-ahead at its beginning is an expression of its own. What is not understood is left as it is, so
    that llguidance refuses it by name.

    Raises
    ------
    ValueError
        The pattern ends within an escape.
    """
    ahead, excluded, rest = _ahead(pattern)
    every, none = (tuple(_Translation(each).text() for each in parts) for parts in ((*ahead, rest), excluded))
    return Patterns(every, none)


def _ahead(pattern: str) -> tuple[list[str], list[str], str]:
    """The look-aheads at the beginning, those that exclude, and the pattern without them."""
    found: dict[str, list[str]] = {"(?=": [], "(?!": []}
    rest = pattern.removeprefix("^")
    while rest != pattern and rest[:3] in found and sum(map(len, found.values())) < MAX_LOOK_AHEADS:
        end = _closing(rest)
        if end is None:
            return [], [], pattern
        inside = rest[3:end]
        found[rest[:3]].append(f"^(?:{inside})" if rest.startswith("(?=") else f"^{inside.removeprefix('^')}")
        rest = rest[end + 1 :]
    if not any(found.values()) or has_alternatives(rest):
        return [], [], pattern
    return found["(?="], found["(?!"], f"^{rest}"


def _closing(pattern: str) -> int | None:
    """Return where the group that the pattern begins with ends."""
    depth = 0
    for at, char in _structure(pattern):
        depth += (char == "(") - (char == ")")
        if depth == 0:
            return at
    return None


def has_alternatives(pattern: str) -> bool:
    """Whether a pattern is a choice of several, outside of its groups."""
    depth = 0
    for _, char in _structure(pattern):
        depth += (char == "(") - (char == ")")
        if depth == 0 and char == "|":
            return True
    return False


def _structure(pattern: str) -> list[tuple[int, str]]:
    """Parentheses and bars that are neither escaped nor in a class."""
    found, at, in_class = [], 0, False
    while at < len(pattern):
        char = pattern[at]
        if char == "\\":
            at += 1
        elif in_class:
            in_class = char != "]"
        elif char == "[":
            in_class = True
        elif char in "()|":
            found.append((at, char))
        at += 1
    return found


class _Translation:
    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._excluding = False  # within a class of what is not meant
        self._letters: set[str] = set()  # of a class

    def text(self) -> str:
        parts = []
        while self._at < len(self._pattern):
            parts.append(self._next())
        return "".join(parts)

    def _next(self) -> str:
        pattern, at = self._pattern, self._at
        char = pattern[at]
        if char == "[":
            return self._class()
        if char == "\\":
            return self._escape()
        if char == "{" and (count := _COUNT.match(pattern, at)):
            return self._take(count.end())
        if char == "(" and (group := _GROUP.match(pattern, at)):
            self._at = group.end()
            return "(" if group[1] else group[0]
        self._at += 1
        if char == ".":
            return _written([*_LINE_ENDS], negated=True)
        return f"\\{char}" if char in "{}]" else char

    def _take(self, end: int) -> str:
        start, self._at = self._at, end
        return self._pattern[start:end]

    def _escape(self) -> str:
        """An escape outside a class."""
        found = self._class_escape()
        if isinstance(found, int):
            return _range(found, found)
        if isinstance(found, str):
            return found
        return _written(found, negated=False)

    def _class_escape(self) -> int | str | Ranges:
        """A character, what llguidance knows by the same name, or ranges."""
        pattern, at = self._pattern, self._at
        if named := _PROPERTY.match(pattern, at):
            return self._take(named.end())
        if code := _CODE.match(pattern, at):
            self._at = code.end()
            if code[4]:
                return ord(code[4]) % 32
            value = int(code[1] or code[2] or code[3], 16)
            low = _CODE.match(pattern, self._at)
            if 0xD800 <= value < 0xDC00 and low and low[2] and 0xDC00 <= int(low[2], 16) < 0xE000:
                self._at = low.end()
                return 0x10000 + ((value - 0xD800) << 10) + int(low[2], 16) - 0xDC00
            return value if value <= _LAST and not 0xD800 <= value < 0xE000 else code[0]
        letter = pattern[at + 1 : at + 2]
        self._at = at + 2
        if letter.lower() in _SHORTHANDS and letter:
            self._letters.add(letter)
            return _shorthand(letter, wide=self._excluding)
        if letter == "0" and pattern[at + 2 : at + 3].isdigit():
            return pattern[at : at + 2]
        if letter in _CONTROLS and letter:
            return _CONTROLS[letter]
        if not letter:
            raise ValueError("it ends in a backslash that escapes nothing")
        if letter.isalnum():  # an anchor or a reference
            return pattern[at : at + 2]
        return ord(letter)

    def _class(self) -> str:
        try:
            return self._inside()
        finally:
            self._excluding = False

    def _inside(self) -> str:
        """``[...]``: ranges, and properties by their names."""
        start = self._at
        self._at += 1
        negated = self._pattern[self._at : self._at + 1] == "^"
        self._at += negated
        self._excluding = negated
        self._letters = set()
        ranges: Ranges = []
        names: list[str] = []
        while self._pattern[self._at : self._at + 1] != "]":
            if self._at >= len(self._pattern):
                return self._pattern[start:]
            low = self._member()
            if isinstance(low, int) and _SPAN.match(self._pattern, self._at):
                back = self._at
                self._at += 1
                high = self._member()
                if isinstance(high, int):
                    if high < low:  # llguidance names the mistake
                        return self._take_class(start)
                    ranges.append((low, high))
                    continue
                self._at = back
            if isinstance(low, int):
                ranges.append((low, low))
            elif isinstance(low, str):
                if not low.startswith(("\\p", "\\P")) and low != "\\b":
                    return self._take_class(start)
                names, ranges = ([*names, low], ranges) if low != "\\b" else (names, [*ranges, (8, 8)])
            else:
                ranges += low
        self._at += 1
        if any(letter.upper() in self._letters for letter in self._letters if letter.islower()):
            ranges, names = [(0, _LAST)], []  # [\s\S] is any character, in both languages
        return _written(ranges, negated=negated, names="".join(names))

    def _member(self) -> int | str | Ranges:
        if self._pattern[self._at] == "\\":
            return self._class_escape()
        self._at += 1
        return ord(self._pattern[self._at - 1])

    def _take_class(self, start: int) -> str:
        """A class that is not understood, as it is."""
        end = next((at for at in range(self._at, len(self._pattern)) if self._pattern[at] == "]"), None)
        self._at = len(self._pattern) if end is None else end + 1
        return self._pattern[start : self._at]


def _shorthand(letter: str, *, wide: bool) -> Ranges:
    """Return the characters of ``\\d`` and the like in both languages; `wide`: in either."""
    ranges = list(_SHORTHANDS[letter.lower()])
    if wide != letter.isupper():
        ranges += _NO_SPACES if letter in "sS" else _pythons(letter.lower())
    return _complement(ranges) if letter.isupper() else ranges


@cache
def _pythons(letter: str) -> tuple[tuple[int, int], ...]:
    """List the characters beyond ASCII of ``\\d`` or ``\\w`` in Python."""
    text = "".join(map(chr, range(0x80, 0x40000)))  # beyond them there are none
    return tuple((found.start() + 0x80, found.end() + 0x7F) for found in re.finditer(rf"\{letter}+", text))


def _complement(ranges: tuple[tuple[int, int], ...] | Ranges) -> Ranges:
    found, at = [], 0
    for low, high in sorted(ranges):
        if low > at:
            found.append((at, low - 1))
        at = max(at, high + 1)
    return [*found, (at, _LAST)] if at <= _LAST else found


def _has(ranges: Ranges, code: int) -> bool:
    return any(low <= code <= high for low, high in ranges)


def _written(ranges: Ranges, *, negated: bool, names: str = "") -> str:
    """A class for llguidance; surrogates are no characters and are left out."""
    if names:
        inside = "".join(_range(low, high) for low, high in ranges)
        return f"[^{inside}\\x00{names}]" if negated else f"[{inside}{names}]"
    found = _complement(_complement(ranges)) if not negated else _complement(ranges)
    controls = all(_has(found, code) for code in range(32) if code != 10)
    if controls and not (_has(found, 0x22) and _has(found, 0x5C)):
        found = _complement([*_complement(found), (0, 0)])
    if not found:
        return r"[^\x{0}-\x{10FFFF}]"
    if found == [(0, _LAST)]:
        return "(?s:.)"
    return f"[{''.join(_range(low, high) for low, high in _without_surrogates(found))}]"


def _without_surrogates(ranges: Ranges) -> Ranges:
    parts = []
    for low, high in ranges:
        for first, last in ((low, min(high, 0xD7FF)), (max(low, 0xE000), high)):
            if first <= last:
                parts.append((first, last))
    return parts


def _range(low: int, high: int) -> str:
    bare = high < 128 and all(map(_is_bare_control, range(low, high + 1)))
    ends = [chr(code) if bare else _character(code) for code in (low, high)]
    return ends[0] if low == high else "-".join(ends)


def _is_bare_control(code: int) -> bool:
    """Whether JSON can write it as ``\\u...`` only; it stays bare, by which `json_schema` knows of it."""
    return code == 0x7F or (code < 32 and code not in (8, 9, 10, 12, 13))


def _character(code: int) -> str:
    char = chr(code)
    return char if char.isascii() and char.isalnum() else f"\\x{{{code:X}}}"

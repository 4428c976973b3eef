"""Values in the notations that models use, rewritten as JSON while they arrive.

What is written is JSON, whatever the model makes of it: control characters and backslashes in strings are
escaped where they have to be, `True` becomes `true`, and a comma before a closing bracket goes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from akunu.chat.incoming import Incoming, Malformed, Steps

__all__ = ["GEMMA", "JSON", "PYTHON", "Notation", "quoted", "read_string", "read_value", "rewritten"]

Write = Callable[[str], None]
"""Takes a fragment of JSON."""

MOST_NESTED: Final = 64


@dataclass(frozen=True)
class Notation:
    """The notation in which values are written.

    Attributes
    ----------
    quotes : tuple of str
        What a string begins and ends with.
    escapes : bool
        Whether a backslash in a string has a meaning.
    bare_keys : bool
        Whether keys may stand without quotes.
    """

    quotes: tuple[str, ...] = ('"',)
    escapes: bool = True
    bare_keys: bool = False


JSON: Final = Notation()
PYTHON: Final = Notation(quotes=('"', "'"))
GEMMA: Final = Notation(quotes=('<|"|>',), escapes=False, bare_keys=True)

_WORDS: Final[Mapping[str, str]] = {
    "true": "true", "false": "false", "null": "null", "True": "true", "False": "false", "None": "null",
}  # fmt: skip
_LETTERS: Final = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.$"
_KEY: Final = "_-.$"
"""The characters of a key without quotes besides letters and digits."""
_NUMBER: Final = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_HEX: Final = re.compile("[0-9a-fA-F]+")
_HIGH: Final = re.compile("[dD][89abAB][0-9a-fA-F]{2}")
_LOW: Final = re.compile("[dD][c-fC-F][0-9a-fA-F]{2}")
_ESCAPES: Final[Mapping[str, str]] = {char: "\\" + char for char in '"\\/bfnrt'} | {"'": "'"}


def quoted(text: str) -> str:
    """A text as it stands between the quotes of a JSON string."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


def read_value(source: Incoming, notation: Notation, write: Write) -> Steps[None]:
    """Read one value.

    Raises
    ------
    Malformed
        It is none; what was written up to there stands.
    """
    closers: list[str] = []
    while True:
        write((yield from source.space()))
        opener = yield from source.one_of(("{", "["))
        if opener:
            if len(closers) == MOST_NESTED:
                raise Malformed
            write(opener)
            closers.append("}" if opener == "{" else "]")
            write((yield from source.space()))
            if (yield from source.peek()) != closers[-1]:
                if opener == "{":
                    yield from _read_key(source, notation, write)
                continue
        else:
            yield from _scalar(source, notation, write)
        while closers:
            space = yield from source.space()
            mark = yield from source.expect(closers[-1], ",")
            if mark == ",":
                space += yield from source.space()
                if (yield from source.peek()) != closers[-1]:
                    write("," + space)
                    if closers[-1] == "}":
                        yield from _read_key(source, notation, write)
                    break
                yield from source.expect(closers[-1])
            write(space + closers.pop())
        else:
            return


def rewritten(text: str, notation: Notation) -> str | None:
    """The JSON of a whole text, white space around it aside; None where it is no value."""
    source = Incoming()
    source.push(text.strip())
    source.over = True
    parts: list[str] = []
    try:
        for _ in read_value(source, notation, parts.append):
            pass
    except Malformed:
        return None
    return "".join(parts) if source.at == len(source.text) else None


def _read_key(source: Incoming, notation: Notation, write: Write) -> Steps[None]:
    """Read a key and the colon after it."""
    quote = yield from source.one_of(notation.quotes)
    if quote:
        yield from read_string(source, quote, notation, write)
    elif notation.bare_keys and (name := (yield from source.word(_KEY))):
        write(f'"{name}"')
    else:
        raise Malformed
    write((yield from source.space()))
    yield from source.expect(":")
    write(":")


def read_string(source: Incoming, quote: str, notation: Notation, write: Write) -> Steps[None]:
    """Read what is left of a string, its first quote being taken."""
    write('"')
    marks = (quote, "\\") if notation.escapes else (quote,)
    while True:
        text, mark = yield from source.some(marks)
        write(quoted(text))
        if mark == quote:
            write('"')
            return
        if mark:
            write((yield from _escape(source)))
        elif not text:
            raise Malformed


def _escape(source: Incoming) -> Steps[str]:
    """Return what follows a backslash, as JSON; a backslash without a meaning is one.

    Half of a surrogate pair is no character: U+FFFD takes its place, since most readers of JSON refuse it.
    """
    char = yield from source.take(1)
    if char in _ESCAPES:
        return _ESCAPES[char]
    digits = {"u": 4, "x": 2}.get(char)
    if digits:
        start = source.at
        code = yield from source.take(digits)
        if _HIGH.fullmatch(code):
            return (yield from _pair(source, code))
        if _HEX.fullmatch(code):
            return "\\ufffd" if _LOW.fullmatch(code) else f"\\u{code:0>4}"
        source.at = start
    else:
        source.at -= 1
        char = ""
    return "\\\\" + char


def _pair(source: Incoming, high: str) -> Steps[str]:
    """The character that a first half begins, if the second follows."""
    start = source.at
    if (yield from source.one_of(("\\u",))):
        low = yield from source.take(4)
        if _LOW.fullmatch(low):
            return f"\\u{high}\\u{low}"
        source.at = start
    return "\\ufffd"


def _scalar(source: Incoming, notation: Notation, write: Write) -> Steps[None]:
    quote = yield from source.one_of(notation.quotes)
    if quote:
        yield from read_string(source, quote, notation, write)
        return
    word = yield from source.every(_LETTERS + "+")
    if word in _WORDS:
        write(_WORDS[word])
    elif _NUMBER.fullmatch(word):
        write(word)
    else:
        raise Malformed

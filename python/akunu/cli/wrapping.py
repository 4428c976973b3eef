"""Text that arrives in pieces, broken between words for a terminal."""

from __future__ import annotations

import re
import unicodedata

__all__ = ["WordWrap"]

_TOKENS = re.compile(r"\n|[^\S\n]+|\S+")
_TAB = 8


class WordWrap:
    """Breaks lines between words.

    A word is held back until it is complete, so `feed` gives whole words; `flush` gives what is left. Lines
    of code (inside ``` fences, or indented by four spaces or a tab) stay whole, so that they can be copied;
    the terminal itself folds them.

    Parameters
    ----------
    width
        Columns of the terminal; it may be changed between pieces.
    """

    def __init__(self, width: int) -> None:
        self.width = width
        self._column = 0
        self._held = ""
        self._line = ""  # what the text's own line has so far: tells code from prose
        self._fenced = False
        self._space = ""  # white space that is only written if a word follows on the same line
        self._may_break = False

    def feed(self, text: str) -> str:
        """Return what can be written now that `text` has arrived."""
        tokens = _TOKENS.findall(self._held + text)
        self._held = ""
        if tokens and not tokens[-1].isspace():
            *sure, last = _words(tokens.pop())
            tokens += sure
            if _is_wide(last[-1]) or columns(last) > self.width:
                tokens.append(last)
            else:
                self._held = last  # perhaps only the beginning of a word
        return "".join(map(self._token, tokens))

    def flush(self) -> str:
        """Return what was held back. The text may go on."""
        word, self._held = self._held, ""
        out = self._token(word) if word else ""
        out += self._space
        self._column += columns(self._space, self._column)
        self._space = ""
        return out

    def _token(self, token: str) -> str:
        if token == "\n":
            if self._line.lstrip().startswith("```"):
                self._fenced = not self._fenced
            self._line = self._space = ""
            self._column = 0
            return token
        self._line += token
        if token.isspace():
            self._space += token
            self._may_break = True
            return ""
        return "".join(map(self._word, _words(token)))

    def _word(self, word: str) -> str:
        space, self._space = self._space, ""
        may_break, self._may_break = self._may_break, _is_wide(word[-1])
        width = columns(word)
        after = self._column + columns(space, self._column) + width
        code = self._fenced or self._line.startswith(("    ", "\t", "```"))
        if code or after <= self.width or not (may_break and self._column) or width > self.width:
            self._column = after if after <= self.width else (after - 1) % self.width + 1
            return space + word
        self._column = width
        return "\n" + word


def _is_wide(char: str) -> bool:
    return unicodedata.east_asian_width(char) in "WF"


def _words(token: str) -> list[str]:
    """A word, cut after each wide character: Chinese and Japanese have no spaces."""
    if token.isascii():
        return [token]
    parts = [""]
    for char in token:
        parts[-1] += char
        if _is_wide(char):
            parts.append("")
    return [part for part in parts if part]


def columns(text: str, start: int = 0) -> int:
    """Columns that a text takes on a terminal, from column `start` on."""
    if text.isascii() and "\t" not in text:
        return len(text)
    column = start
    for char in text:
        if char == "\t":
            column += _TAB - column % _TAB
        elif unicodedata.category(char) not in ("Mn", "Me", "Cf"):
            column += 2 if _is_wide(char) else 1
    return column - start

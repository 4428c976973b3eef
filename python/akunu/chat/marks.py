"""Choose where strings from outside are marked, so that no control token comes out of them unmarked.

A mark is a private-use character that survives rendering. Where it comes out the text is cut into two
`Segment`, across which no control token is recognised.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from typing import Any, Final

from akunu.base.errors import InvalidArgumentError
from akunu.tokenizer.special import TextIndex

__all__ = ["ROLES", "Marks", "Places", "unused_character"]

Places = Callable[[str], set[int]]
"""The places of a string before which a mark goes."""

ROLES = (
    "system", "user", "assistant", "tool", "developer", "function", "ipython", "model", "observation",
    "environment", "tool_response",
)  # fmt: skip
"""Roles that a template may put into a control token, as in '<|' + role + '|>'. Any other is marked."""


_PRIVATE: Final = re.compile("[\ue000-\uf8ff\U000f0000-\U000ffffd]")


class Marks:
    """Ways to mark strings, for the control tokens of one model.

    Comparison ignores case, for templates that change it.
    """

    def __init__(self, control_texts: Iterable[str]) -> None:
        texts = {_lower(text) for text in control_texts}
        self._index = TextIndex(dict.fromkeys(texts, 0))
        self._beginnings = {text[:n] for text in texts for n in range(1, len(text))}
        self._endings = {text[n:] for text in texts for n in range(1, len(text))}
        self._longest = max(map(len, texts), default=0)
        self._joined = "\n".join(texts)
        leads = sorted({text[0] for text in texts if not text[0].isalnum() and not text[0].isspace()})
        self._lead = re.compile("[" + "".join(map(re.escape, leads)) + "]") if leads else None

    def spelt(self, string: str) -> set[int]:
        """Inside each control token, and where the string's beginning or end could be part of one."""
        places: set[int] = set()
        lower = _lower(string)
        position = 0
        while (start := self._index.candidate(lower, position)) >= 0:
            position = start + 1
            for end, _ in self._index.matches(lower, start):
                # Cut after the first character; a token of one character is cut out, see
                # `ChatTemplate.render`.
                places.update((start, end) if end == start + 1 else (start + 1,))
        # With and without the white space around it: templates trim.
        for begin, end in ((0, len(lower)), (len(lower) - len(lower.lstrip()), len(lower.rstrip()))):
            reach = min(self._longest, end - begin)
            if any(lower[begin : begin + n] in self._endings for n in range(1, reach + 1)):
                places.add(begin)
            if any(lower[end - n : end] in self._beginnings for n in range(1, reach + 1)):
                places.add(end)
        return places

    def narrow(self, string: str) -> set[int]:
        """Return these places, and both ends of a string that is the middle of a control token."""
        places = self.spelt(string)
        inner = _lower(string).strip()
        if inner and len(inner) < self._longest and inner in self._joined:
            places |= {0, len(string)}
        return places

    def wide(self, string: str) -> set[int]:
        """Return these, and what follows any beginning of a control token, which a template may end."""
        places = self.narrow(string)
        if self._lead:
            places.update(match.end() for match in self._lead.finditer(_lower(string)))
        return places

    def marked(self, given: Mapping[str, Any], mark: str, places: Places) -> dict[str, Any]:
        """A copy of a template's variables with `mark` at the `places` of every string."""

        def insert(string: str, places: Places) -> str:
            parts = []
            start = 0
            for place in sorted(places(string)):
                parts.append(string[start:place])
                start = place
            return mark.join([*parts, string[start:]])

        def visit(value: Any, key: str = "") -> Any:
            if isinstance(value, str):
                structural = (key == "role" and value in ROLES) or (key == "type" and value.isidentifier())
                return value if structural else insert(value, places)
            if isinstance(value, list):
                return [visit(item) for item in value]
            if isinstance(value, dict):
                return {insert(name, self.spelt): visit(item, name) for name, item in value.items()}
            return value

        return {name: visit(value) for name, value in given.items()}


def _lower(text: str) -> str:
    """Lower case, character by character: the same length as `text`."""
    lower = text.lower()
    if len(lower) == len(text):
        return lower
    return "".join(char.lower() if len(char.lower()) == 1 else char for char in text)


def unused_character(texts: Iterable[str]) -> str:
    """A private-use character that none of the texts has."""
    used = {char for text in texts if not text.isascii() for char in _PRIVATE.findall(text)}
    for code in chain(range(0xE000, 0xF900), range(0xF0000, 0xFFFFE)):
        if chr(code) not in used:
            return chr(code)
    raise InvalidArgumentError("the messages use every private-use character of Unicode")

"""Constraints that begin in the midst of an output, once it has begun in a certain way of its own accord."""

from __future__ import annotations

import copy
import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from akunu.base.errors import AkunuError
from akunu.chat.structured.constraint import Constraint
from akunu.chat.structured.structure import Structure
from akunu.chat.structured.vocabulary import CONTROL_MARK, TokenMask, VocabularyView

__all__ = ["Late", "LateConstraints", "LatePart"]

_MOST_BEFORE: Final = 400
"""Characters within which the constrained part has to begin: a longer beginning is something else."""


@dataclass(frozen=True)
class LatePart:
    """A part of an output that is constrained.

    Attributes
    ----------
    structure : Structure
        What it has to be. What may follow it in the token with its end is part of this; the part ends with
        that token.
    again : str
        What the pattern looks at after the part begins with the last of this character in the part.
    after : bool
        Or right after that character.
    """

    structure: Structure
    again: str
    after: bool = False


@dataclass(frozen=True)
class LateConstraints:
    """The beginnings that an output may have, and the constraints of what follows.

    Attributes
    ----------
    starts : tuple of str
        Characters of which the output has to have one first, after white space.
    pattern : re.Pattern
        What stands before a constrained part: from the beginning of the output, or from the end of the part
        before it.
    part : callable
        The part that follows what the pattern has found; None: all is free.
    reasoning : tuple of (str, str)
        What may stand before all that, between these marks.
    opened : bool
        The prompt ends within such reasoning.
    """

    starts: tuple[str, ...]
    pattern: re.Pattern[str]
    part: Callable[[re.Match[str]], LatePart | None]
    reasoning: tuple[str, str]
    opened: bool = False


class Late:
    """Leaves an output free but where a constrained part has begun, and where that does not fit.

    Parameters
    ----------
    view
        The vocabulary.
    late
        What is looked for.
    compiled
        Makes the constraint of a structure.
    inner
        A constraint of the whole output besides; None: there is none.
    """

    exact = False

    def __init__(
        self,
        view: VocabularyView,
        late: LateConstraints,
        compiled: Callable[[Structure], Constraint],
        inner: Constraint | None,
    ) -> None:
        self._view = view
        self._late = late
        self._compiled = compiled
        self._inner = inner
        self._part: Constraint | None = None
        self._again, self._after = "", False
        self._text = late.reasoning[0] if late.opened else ""
        self._data = b""  # of a character that is not complete
        self._free = False
        self.end_id = view.end_id

    @property
    def finished(self) -> bool:
        return self._inner is not None and self._inner.finished

    @property
    def complete(self) -> bool:
        return self._inner is None or self._inner.complete

    @property
    def ahead(self) -> float:
        inner = math.inf if self._inner is None else self._inner.ahead
        return inner if self._free else 1

    def mask(self) -> TokenMask | None:
        if self._part is not None:
            return self._part.mask()
        return None if self._inner is None else self._inner.mask()

    def forced(self) -> list[int]:
        if self._part is not None:
            return self._part.forced()
        return [] if self._inner is None else self._inner.forced()

    def fork(self) -> Late:
        other = copy.copy(self)
        other._inner, other._part = self._inner and self._inner.fork(), self._part and self._part.fork()
        return other

    def advance(self, tokens: Iterable[int]) -> None:
        for token in tokens:
            if self._inner is not None:
                self._inner.advance([token])
            if self._part is not None:
                self._read(token)
                self._go_on([token])
            elif not self._free and self._read(token):
                self._look()

    def _read(self, token: int) -> bool:
        """Take note of a token's text; whether there is a text to look at."""
        self._data += self._view.pieces[token].replace(CONTROL_MARK, b"")
        try:
            self._text, self._data = self._text + self._data.decode(), b""
        except UnicodeDecodeError:
            self._free = len(self._data) > len("😀".encode())
            return False
        return True

    def _look(self) -> None:
        begin, end = self._late.reasoning
        text = self._text.lstrip()
        if text.startswith(begin):
            if end in text:
                self._text = text.partition(end)[2]
                self._look_at(self._text.lstrip())
        elif text and not begin.startswith(text):
            self._look_at(text)

    def _look_at(self, text: str) -> None:
        if text and (not text.startswith(self._late.starts) or len(text) > _MOST_BEFORE):
            self._free = True
            return
        found = self._late.pattern.match(text)
        if found is None:
            return
        try:
            part = self._late.part(found)
            self._part = None if part is None else self._compiled(part.structure)
        except AkunuError:  # a schema that no constraint can be made of
            part = self._part = None
        if part is None or self._part is None:
            self._free = True
            return
        self._again, self._after, self._text = part.again, part.after, text[found.end() :]
        self._go_on(self._view.encode(self._text))

    def _go_on(self, tokens: list[int]) -> None:
        """Go on in the constrained part."""
        assert self._part is not None
        try:
            self._part.advance(tokens)
        except AkunuError:  # sampled before the part was known: it is something else
            self._part, self._free = None, True
            return
        if self._part.complete:
            self._part = None
            self._text = self._text[self._text.rfind(self._again) + self._after :]
            self._look_at(self._text)

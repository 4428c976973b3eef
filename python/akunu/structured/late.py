"""Constraints that begin in the midst of an output, once it has begun in a certain way of its own accord."""

from __future__ import annotations

import copy
import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from akunu.base.errors import AkunuError
from akunu.structured.constraint import Constraint
from akunu.structured.structure import Structure
from akunu.structured.vocabulary import CONTROL_MARK, TokenMask, VocabularyView

__all__ = ["Late", "LateConstraints"]

_MOST_BEFORE: Final = 400
"""Characters within which the constrained part has to begin: a longer beginning is something else."""


@dataclass(frozen=True)
class LateConstraints:
    """What an output may begin with, and the constraints of what follows.

    Attributes
    ----------
    starts : tuple of str
        Characters of which the output has to have one first, after white space.
    pattern : re.Pattern
        What stands before a constrained part: from the beginning of the output, or from the end of the part
        before it. Its group `name` says which part follows.
    structure : callable
        The structure that a name asks for; None: none.
    reasoning : tuple of (str, str)
        What may stand before all that, between these marks.
    opened : bool
        The prompt ends within such reasoning.
    """

    starts: tuple[str, ...]
    pattern: re.Pattern[str]
    structure: Callable[[str], Structure | None]
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
        self._text = late.reasoning[0] if late.opened else ""
        self._data = b""  # of a character that is not complete
        self._free = False
        self.end_id = view.end_id

    @property
    def finished(self) -> bool:
        return self._inner is not None and self._inner.finished

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
                self._go_on([token])
            elif not self._free:
                self._look(token)

    def _look(self, token: int) -> None:
        self._data += self._view.pieces[token].replace(CONTROL_MARK, b"")
        try:
            self._text, self._data = self._text + self._data.decode(), b""
        except UnicodeDecodeError:
            self._free = len(self._data) > len("😀".encode())
            return
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
            structure = self._late.structure(found["name"])
            self._part = None if structure is None else self._compiled(structure)
        except AkunuError:  # a schema that no constraint can be made of
            self._part = None
        if self._part is None:
            self._free = True
        else:
            self._go_on(self._view.encode(text[found.end() :]))

    def _go_on(self, tokens: list[int]) -> None:
        """Go on in the constrained part."""
        assert self._part is not None
        try:
            self._part.advance(tokens)
        except AkunuError:  # sampled before the part was known: it is something else
            self._part, self._free = None, True
            return
        if self._part.finished:
            self._part, self._text = None, ""

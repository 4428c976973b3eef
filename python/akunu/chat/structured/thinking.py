"""A reasoning block that is closed when it has had its tokens."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable
from dataclasses import dataclass

from akunu.chat.structured.constraint import Constraint
from akunu.chat.structured.vocabulary import TokenMask, VocabularyView

__all__ = ["Thinking", "ThinkingBudget"]


@dataclass(frozen=True, slots=True)
class ThinkingBudget:
    """The limit of an answer's thinking.

    Attributes
    ----------
    tokens : int
        The most tokens of all its reasoning together, the marks not counted.
    begin, end : str
        What reasoning stands between; control tokens of the vocabulary are tokens in them.
    closing : str
        What is written where the tokens are used up; it has `end` in it.
    opened : bool
        The prompt ends within the reasoning.
    """

    tokens: int
    begin: str
    end: str
    closing: str
    opened: bool


class Thinking:
    """The state of one text: its tokens are free, but for those that close the reasoning.

    Parameters
    ----------
    view
        The vocabulary.
    budget
        What it may think.
    inner
        A constraint of what follows; None: there is none.
    """

    def __init__(self, view: VocabularyView, budget: ThinkingBudget, inner: Constraint | None) -> None:
        self._view = view
        self._inner = inner
        # White space may stand before the mark, which may begin with some itself.
        self._begin, self._end = view.spell(budget.begin).lstrip(), view.spell(budget.end)
        # The constraint of what follows begins right after the mark.
        closing = budget.closing if inner is None else budget.closing.partition(budget.end)[0] + budget.end
        self._all_closing = [
            token
            for part in view.split(closing)
            for token in ([part] if isinstance(part, int) else view.encode(part))
        ]
        self._left = budget.tokens
        self._closing: list[int] = []
        self._inside = budget.opened
        self._over = False  # what follows is no reasoning any more
        self._tail = b""
        self.end_id = view.end_id
        self.exact = inner is not None and inner.exact
        self._close_if_used_up()

    @property
    def finished(self) -> bool:
        return self._inner is not None and self._inner.finished

    @property
    def complete(self) -> bool:
        return self._inner is None or self._inner.complete

    @property
    def ahead(self) -> float:
        inner = math.inf if self._inner is None else self._inner.ahead
        return inner if self._over else max(1, min(self._left, inner))

    def mask(self) -> TokenMask | None:
        if self._closing:
            return self._view.mask_of(self._closing[0])
        return None if self._inner is None else self._inner.mask()

    def fork(self) -> Thinking:
        other = copy.copy(self)
        other._inner, other._closing = self._inner and self._inner.fork(), list(self._closing)
        return other

    def advance(self, tokens: Iterable[int]) -> None:
        for token in tokens:
            self._follow(token)
            if self._inner is not None:
                self._inner.advance([token])

    def forced(self) -> list[int]:
        if self._closing:
            return list(self._closing)
        return [] if self._inner is None else self._inner.forced()

    def _follow(self, token: int) -> None:
        if self._over:
            return
        if self._closing:
            del self._closing[0]
            self._over = not self._closing
            return
        self._tail += self._view.pieces[token]
        if self._inside:
            self._left -= 1
            if self._end in self._tail:
                self._left += 1  # the mark's last token
                self._inside, self._tail = False, b""
            else:
                self._tail = self._tail[-len(self._end) :]
                self._close_if_used_up()
            return
        text = self._tail.lstrip()
        if text.startswith(self._begin):
            self._inside, self._tail = True, text[len(self._begin) :]
            self._close_if_used_up()
        elif not self._begin.startswith(text):
            self._over = True

    def _close_if_used_up(self) -> None:
        if self._inside and self._left <= 0:
            self._closing = list(self._all_closing)

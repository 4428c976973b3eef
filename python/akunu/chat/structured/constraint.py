"""Constraints: which tokens an output may go on with, token by token."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Protocol

from llguidance import LLMatcher

from akunu.base.errors import AkunuError, InvalidArgumentError
from akunu.chat.structured.vocabulary import TokenMask, VocabularyView

__all__ = ["Constraint", "GrammarConstraint", "TaggedText", "Watch", "plain_reason"]


class Constraint(Protocol):
    """The state of one output under a constraint.

    `advance` is told of its tokens in order, each before the next mask is asked for. A sequence that was
    suspended keeps this state.
    """

    @property
    def finished(self) -> bool:
        """The output is complete, and nothing may follow."""

    @property
    def complete(self) -> bool:
        """The output may end here."""

    @property
    def end_id(self) -> int:
        """A token that ends an output."""

    @property
    def exact(self) -> bool:
        """The constraint is about the whole output, byte by byte."""

    @property
    def ahead(self) -> float:
        """Tokens that may be sampled under one mask, at least one: nothing is decided before."""

    def mask(self) -> TokenMask | None:
        """The tokens that may come next; None: all. Valid until the next call.

        Raises
        ------
        AkunuError
            None may: the grammar is too complex for its limits.
        """

    def advance(self, tokens: Iterable[int]) -> None:
        """Take note of tokens that were appended to the output; one that ends it may be the last.

        Raises
        ------
        AkunuError
            One of them was not allowed.
        """

    def forced(self) -> list[int]:
        """The tokens that must come next, while there is no choice; `advance` is told of them too."""

    def fork(self) -> Constraint:
        """Return a copy of the state, which goes on by itself."""


def plain_reason(error: str) -> str:
    """Return what llguidance says of a grammar, without what only its authors read."""
    if "panic" in error:
        return "it is larger than what can be compiled (65,000 symbols)"
    if "too many expressions" in error or "Too many items" in error:
        return "it is larger than what can be followed; repeat less, or state a smaller number of repetitions"
    if "coerce_one_of" in error:
        return "oneOf: a value may be of two of its schemas, which is not supported; use anyOf if it may be"
    return error.partition("\n<")[0].partition("<state>")[0].strip()


class GrammarConstraint:
    """Holds all of an output, or the rest of it, to a grammar.

    Parameters
    ----------
    view
        The vocabulary.
    name
        The argument that has the grammar; errors begin with it.
    start
        A matcher in its initial state, which is not changed.
    """

    exact = True
    ahead = 1

    def __init__(self, view: VocabularyView, name: str, start: LLMatcher) -> None:
        self._name = name
        self._matcher = start.deep_copy()
        self._mask = view.mask_without((), ends=True)
        self.end_id = view.end_id

    @property
    def finished(self) -> bool:
        return self._matcher.is_stopped() and not self._matcher.is_error()

    @property
    def complete(self) -> bool:
        return self._matcher.is_accepting() and not self._matcher.is_error()

    def mask(self) -> TokenMask:
        self._matcher.unsafe_compute_mask_ptr(self._mask.ctypes.data, self._mask.nbytes)
        self._check()
        return self._mask

    def advance(self, tokens: Iterable[int]) -> None:
        for token in tokens:  # consume_tokens refuses one that ends the output after the last of the grammar
            self._matcher.consume_token(token)
        self._check()

    def forced(self) -> list[int]:
        tokens: list[int] = self._matcher.compute_ff_tokens()
        self._check()
        return tokens

    def fork(self) -> GrammarConstraint:
        other = copy.copy(self)
        other._matcher, other._mask = self._matcher.deep_copy(), self._mask.copy()
        return other

    def _check(self) -> None:
        if self._matcher.is_error():
            reason = plain_reason(self._matcher.get_error())
            if reason.startswith("NoExtension"):
                reason = "no token may come next"
            elif "doesn't satisfy the grammar" in reason:  # sampled where all that it allows were forbidden
                reason = "none of the tokens that may come next can be sampled; logit_bias may forbid them"
            raise InvalidArgumentError(f"{self._name}: the output cannot go on as it asks: {reason}")


class Watch:
    """Lets a stretch be anything, up to a mark.

    A token that has more after the mark is not sampled: what follows the mark begins with a token of its own.

    Parameters
    ----------
    view
        The vocabulary.
    marks
        Bytes of the marks (`VocabularyView.spell`), at least one.
    ends
        The text may end in this stretch.
    """

    def __init__(self, view: VocabularyView, marks: Iterable[bytes], *, ends: bool) -> None:
        self._view = view
        self._marks = sorted(marks, key=len, reverse=True)
        self._ends = ends
        self._longest = len(self._marks[0])
        self._masks: dict[frozenset[bytes], TokenMask | None] = {}
        self._overshooting = [
            i for mark in self._marks for i, piece in enumerate(view.pieces) if mark in piece[:-1]
        ]

    def check(self, token: int) -> None:
        """A token was sampled. Where all others are forbidden, it may be one that ends the text."""
        if not self._ends and token in self._view.end_ids:
            raise AkunuError("the text ended before what is required of it had begun")

    def found(self, tail: bytes) -> bytes | None:
        """The mark that a text with this end has just come to; the longest of several."""
        return next((mark for mark in self._marks if tail.endswith(mark)), None)

    def tail(self, text: bytes) -> bytes:
        """Return as much of a text's end as may be the beginning of a mark."""
        return text[-self._longest :]

    def mask(self, tail: bytes) -> TokenMask | None:
        """The tokens that may follow such an end."""
        rests = frozenset(
            mark[n:] for mark in self._marks for n in range(1, len(mark)) if tail.endswith(mark[:n])
        )
        if rests not in self._masks:
            self._masks[rests] = self._mask_before(rests)
        return self._masks[rests]

    def _mask_before(self, rests: frozenset[bytes]) -> TokenMask | None:
        overshooting = list(self._overshooting)
        if rests:
            begun = tuple(rests)
            for i, piece in enumerate(self._view.pieces):
                if piece.startswith(begun) and piece not in rests:
                    overshooting.append(i)
        if self._ends and not overshooting:
            return None
        return self._view.mask_without(overshooting, ends=self._ends)


class TaggedText:
    """Constrains stretches of an output: see `StructuralTag`.

    Parameters
    ----------
    before
        What ends the stretch that nothing is asked of; None: there is none.
    triggers
        What begins a constrained stretch after that; None: the first token does.
    matchers
        The grammar of what follows each trigger, and under None of what has no trigger.
    once
        The output ends with the first constrained stretch.
    """

    exact = False
    ahead = 1

    def __init__(
        self,
        view: VocabularyView,
        before: Watch | None,
        triggers: Watch | None,
        matchers: Mapping[bytes | None, LLMatcher],
        *,
        once: bool,
    ) -> None:
        self._view = view
        self._triggers = triggers
        self._matchers = matchers
        self._once = once
        self._watch = before
        self._grammar: GrammarConstraint | None = None
        self._tail = b""
        self.end_id = view.end_id
        if before is None:
            self._go_on()

    def fork(self) -> TaggedText:
        other = copy.copy(self)
        other._grammar = self._grammar and self._grammar.fork()
        return other

    @property
    def finished(self) -> bool:
        return self._grammar is not None and self._grammar.finished

    @property
    def complete(self) -> bool:
        return self._triggers is not None if self._grammar is None else self._grammar.complete

    def mask(self) -> TokenMask | None:
        if self._grammar is not None:
            return self._grammar.mask()
        assert self._watch is not None
        return self._watch.mask(self._tail)

    def advance(self, tokens: Iterable[int]) -> None:
        for token in tokens:
            if self._grammar is not None:
                self._grammar.advance([token])
                if self._grammar.finished and self._triggers is not None and not self._once:
                    self._go_on()
                continue
            assert self._watch is not None
            self._watch.check(token)
            text = self._tail + self._view.pieces[token]
            mark = self._watch.found(text)
            self._tail = self._watch.tail(text)
            if mark is None:
                continue
            if self._watch is self._triggers:
                self._grammar = GrammarConstraint(self._view, "structural_tag", self._matchers[mark])
            else:
                self._go_on()

    def forced(self) -> list[int]:
        return self._grammar.forced() if self._grammar is not None else []

    def _go_on(self) -> None:
        """Look for the next trigger, or hold all of the rest to its grammar."""
        self._watch, self._tail = self._triggers, b""
        self._grammar = (
            GrammarConstraint(self._view, "structural_tag", self._matchers[None])
            if self._triggers is None
            else None
        )

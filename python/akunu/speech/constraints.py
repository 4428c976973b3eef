"""Constrained transcripts: which tokens of a window's text may come next."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np

from akunu.chat.structured.structure import Structure

if TYPE_CHECKING:
    from akunu.chat.structured.constraint import GrammarConstraint
    from akunu.speech.model import Logits
    from akunu.speech.tokenizer import WhisperTokenizer

__all__ = ["CONSTRAINTS", "ConstraintRules"]

CONSTRAINTS: Final = ("grammar", "regex", "choice")
"""The options that constrain a transcript."""

_MOST: Final = 64
"""States that are kept: those of all beams and samples, and of what these go on from."""


class ConstraintRules:
    """Constrains the text of a window, for each of the candidates that are tried.

    Parameters
    ----------
    tokenizer : WhisperTokenizer
        The model's.
    structure : Structure
        A space may come before it, as Whisper writes one.

    Raises
    ------
    InvalidArgumentError
        The structure cannot be honoured.
    """

    def __init__(self, tokenizer: WhisperTokenizer, structure: Structure) -> None:
        from akunu.chat.structured.constraint import GrammarConstraint

        begin = tokenizer.compiler.constraint(_spoken(structure))
        assert isinstance(begin, GrammarConstraint)  # no other is of the kinds in CONSTRAINTS
        self._begin = begin
        self._end = tokenizer.special.end
        self._states: dict[tuple[int, ...], GrammarConstraint] = {}

    def apply(self, row: Logits, said: Sequence[int]) -> None:
        """Forbid in `row` what may not follow the tokens of a text."""
        state = self._state(tuple(said))
        allowed = np.zeros(len(row), bool)
        mask = None if state.finished else state.mask()
        if mask is None:
            allowed[self._end] = True
        else:
            bits = np.unpackbits(mask.view(np.uint8), bitorder="little")[: self._end + 1]
            allowed[: len(bits)] = bits
        row[~allowed] = -np.inf

    def _state(self, said: tuple[int, ...]) -> GrammarConstraint:
        if not said:
            return self._begin
        if said not in self._states:
            state = self._state(said[:-1]).fork()
            state.advance(said[-1:])
            self._states[said] = state
            if len(self._states) > _MOST:
                del self._states[next(iter(self._states))]
        return self._states[said]


@lru_cache(maxsize=_MOST)
def _spoken(structure: Structure) -> Structure:
    """Return the structure, also with a space before it."""
    if structure.kind == "choice":
        texts = json.loads(structure.text)
        return Structure("choice", json.dumps([*texts, *(f" {text}" for text in texts)]))
    if structure.kind == "regex":
        return Structure("regex", f" ?(?:{structure.text})")
    from akunu.chat.structured.gbnf import is_gbnf, lark_of_gbnf

    lark = lark_of_gbnf(structure.text) if is_gbnf(structure.text) else structure.text
    return Structure("grammar", f'start: SPACE? spoken\nSPACE: " "\nspoken: %lark {{\n{lark}\n}}')

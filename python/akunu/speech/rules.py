"""Rules for the next token, on rows of logits: suppression, repetition, timestamps, constraints."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from akunu.speech.constraints import ConstraintRules
from akunu.speech.model import Logits
from akunu.speech.options import TranscriptionOptions
from akunu.speech.tokenizer import WhisperTokenizer

__all__ = ["RuleTable", "TokenRules", "best_tokens", "log_softmax", "token_rules"]

_NEVER = np.float32(-np.inf)
_BLOCK = 64
_LONGEST: Final = 3600.0
"""Seconds; no window lasts as long."""


def log_softmax(logits: Logits) -> Logits:
    """log p along the last axis; -inf stays."""
    shifted = logits - logits.max(axis=-1, keepdims=True)
    with np.errstate(divide="ignore"):
        total: Logits = np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    result: Logits = shifted - total
    return result


def best_tokens(logits: Logits, count: int) -> tuple[npt.NDArray[np.int64], Logits]:
    """The `count` most probable tokens of each row, and their log p: [rows, count], the best ones first.

    Of equal ones, the smaller id comes first. Where a row allows fewer, the others have -inf.
    """
    rows, vocab = logits.shape
    count = min(count, vocab)
    top = logits.max(axis=-1, keepdims=True)
    log_total = np.log(np.exp(logits - top).sum(axis=-1, keepdims=True))
    # The k-th of the blocks' greatest is a lower bound of the k-th of all: few are left to be sorted.
    whole = vocab // _BLOCK
    greatest = logits[:, : whole * _BLOCK].reshape(rows, whole, _BLOCK).max(axis=-1)
    if whole >= count:
        bounds = np.partition(greatest, whole - count, axis=-1)[:, whole - count]
    else:
        bounds = np.full(rows, _NEVER)
    ids = np.empty((rows, count), np.int64)
    for row, bound, found in zip(logits, bounds, ids, strict=True):
        near = np.flatnonzero(row >= bound)
        found[:] = near[np.argsort(-row[near], kind="stable")[:count]]
    return ids, np.take_along_axis(logits, ids, axis=-1) - top - log_total


@dataclass(frozen=True, eq=False)
class RuleTable:
    """The rules as the engine applies them, without the host.

    Attributes
    ----------
    end : int
        The end of a text; smaller ids are words.
    timestamp_begin : int
        The first timestamp; 0 where timestamps are no matter.
    max_initial : int
        The first timestamp of a text is at most this one, counted from `timestamp_begin`.
    never, not_first : tuple of int
        Tokens that do not come, and those that do not come first.
    """

    end: int
    timestamp_begin: int
    max_initial: int
    never: tuple[int, ...]
    not_first: tuple[int, ...]

    def masks(self, vocab: int) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]]:
        """`never` and `not_first` as a bit for each token, 32 to a word."""
        return _mask(self.never, vocab), _mask(self.not_first, vocab)


def _mask(ids: Sequence[int], vocab: int) -> npt.NDArray[np.uint32]:
    bits = np.zeros((vocab + 31) // 32 * 32, np.uint8)
    bits[list(ids)] = 1
    return np.packbits(bits, bitorder="little").view("<u4").astype(np.uint32)


def token_rules(tokenizer: WhisperTokenizer, options: TranscriptionOptions) -> TokenRules:
    """The rules for these options: the same object for all windows and calls that have the same rules.

    But for a constraint: how far its candidates have come is part of one window's rules.
    """
    if options.structure is not None:
        return TokenRules(tokenizer, options)
    key = (
        options.without_timestamps,
        options.max_initial_timestamp,
        options.repetition_penalty,
        options.no_repeat_ngram_size,
        options.suppress_blank,
        tuple(options.suppress_tokens),
    )
    known = _KNOWN.setdefault(tokenizer, {})
    if key not in known:
        known[key] = TokenRules(tokenizer, options)
    return known[key]


_KNOWN: Final[WeakKeyDictionary[WhisperTokenizer, dict[object, TokenRules]]] = WeakKeyDictionary()


class TokenRules:
    """The rules of one transcription."""

    def __init__(self, tokenizer: WhisperTokenizer, options: TranscriptionOptions) -> None:
        special = tokenizer.special
        self._end = special.end
        self._timestamps = None if options.without_timestamps else special.timestamp_begin
        self._max_initial = round(min(options.max_initial_timestamp, _LONGEST) * 50)
        self._penalty = np.float32(options.repetition_penalty)
        self._ngram = options.no_repeat_ngram_size
        # What a constraint allows is not forbidden besides, or nothing might be left.
        self._structure = None if options.structure is None else ConstraintRules(tokenizer, options.structure)
        blank = options.suppress_blank and self._structure is None
        self._blank = list(tokenizer.not_first) if blank else []
        never = {special.no_timestamps}
        never |= {special.start, special.start_of_previous, special.start_of_lm, special.no_speech}
        never |= {special.translate, special.transcribe}
        for token in options.suppress_tokens if self._structure is None else ():
            never |= set(tokenizer.suppressed) if token == -1 else {token}
        self._never = np.array(sorted(never - {special.end}), dtype=np.int64)

    @functools.cached_property
    def table(self) -> RuleTable | None:
        """The rules for the engine; None where it cannot apply them: repetition, constraints."""
        if self._penalty != 1 or self._ngram or self._structure is not None:
            return None
        return RuleTable(
            self._end,
            self._timestamps or 0,
            self._max_initial,
            tuple(self._never.tolist()),
            tuple(self._blank),
        )

    def apply(self, logits: Logits, sampled: Sequence[Sequence[int]]) -> None:
        """Forbid tokens, in place.

        Parameters
        ----------
        logits : ndarray
            float32 [rows, vocab].
        sampled : sequence of sequences of int
            What each row's text has after its prompt.
        """
        logits[:, self._never] = _NEVER
        for row, tokens in zip(logits, sampled, strict=True):
            if not tokens:
                row[self._blank] = _NEVER
            self._repetition(row, tokens)
            if self._timestamps is not None:
                self._timestamp_rules(row, tokens, self._timestamps)
            if self._structure is not None:
                self._structure.apply(row, tokens)

    def _repetition(self, row: Logits, tokens: Sequence[int]) -> None:
        if self._penalty != 1 and tokens:
            seen = np.unique(tokens)
            row[seen] = np.where(row[seen] < 0, row[seen] * self._penalty, row[seen] / self._penalty)
        if self._ngram and len(tokens) >= self._ngram:
            known = self._ngram - 1
            last = list(tokens[len(tokens) - known :])
            for i in range(len(tokens) - known):
                if list(tokens[i : i + known]) == last:
                    row[tokens[i + known]] = _NEVER

    def _timestamp_rules(self, row: Logits, tokens: Sequence[int], first: int) -> None:
        """Timestamps come in pairs, at the beginning and between segments, and never go back."""
        if not tokens:
            row[:first] = _NEVER
            row[first + self._max_initial + 1 :] = _NEVER
            return
        after_timestamp = tokens[-1] >= first
        if after_timestamp:
            if len(tokens) < 2 or tokens[-2] >= first:
                row[first:] = _NEVER  # the second of a pair: text follows
            else:
                row[: self._end] = _NEVER  # the end of a segment: its twin follows, or the end
        stamps = [token for token in tokens if token >= first]
        if stamps:
            opens = after_timestamp and not (len(tokens) < 2 or tokens[-2] >= first)
            row[first : stamps[-1] + (0 if opens else 1)] = _NEVER
        # All timestamps together against the best text.
        top = row.max()
        if not np.isfinite(top):
            return
        with np.errstate(divide="ignore"):
            stamp_log = np.log(np.exp(row[first:] - top).sum())
        if stamp_log > row[:first].max() - top:
            row[:first] = _NEVER

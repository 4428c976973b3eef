"""When each word is said: dynamic time warping over the attention of the alignment heads."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from akunu.speech.batching import Attend, Work
from akunu.speech.rules import log_softmax
from akunu.speech.tokenizer import WhisperTokenizer, Word

__all__ = [
    "POSITIONS_PER_SECOND",
    "TimedWord",
    "align_words",
    "dtw",
    "join_punctuation",
    "median_filter",
    "shorten",
    "typical_duration",
]

POSITIONS_PER_SECOND: Final = 50
MEDIAN_WIDTH: Final = 7
SENTENCE_ENDS: Final = frozenset(".。!！?？")
LONGEST_TYPICAL_WORD: Final = 0.7  # seconds


@dataclass
class TimedWord:
    """A word and when it is said, in seconds from the start of the window; `tokens` spell it."""

    word: str
    tokens: list[int]
    start: float
    end: float
    probability: float


def median_filter(values: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """The median of `MEDIAN_WIDTH` neighbours along the last axis, which is reflected at its ends."""
    pad = MEDIAN_WIDTH // 2
    if values.shape[-1] <= pad:
        return values
    padded = np.pad(values, [(0, 0)] * (values.ndim - 1) + [(pad, pad)], mode="reflect")
    windows = np.lib.stride_tricks.sliding_window_view(padded, MEDIAN_WIDTH, axis=-1)
    found: npt.NDArray[np.float32] = np.partition(windows, pad, axis=-1)[..., pad]
    return found


def dtw(cost: npt.NDArray[np.floating[Any]]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The cheapest monotonic path through `cost` [rows, columns]: its row and column indices.

    A step goes one row down, one column on, or both; of equal ways the one along the columns is taken.
    """
    rows, columns = cost.shape
    best = np.full((rows + 1, columns + 1), np.inf, np.float32)
    best[0, 0] = 0
    trace = np.zeros((rows + 1, columns + 1), np.int8)
    # By diagonals, whose cells do not depend on each other.
    for diagonal in range(2, rows + columns + 1):
        i = np.arange(max(1, diagonal - columns), min(rows, diagonal - 1) + 1)
        j = diagonal - i
        both, down, on = best[i - 1, j - 1], best[i - 1, j], best[i, j - 1]
        way = np.full(len(i), 2, np.int8)
        way[(down < both) & (down < on)] = 1
        way[(both < down) & (both < on)] = 0
        trace[i, j] = way
        best[i, j] = cost[i - 1, j - 1] + np.choose(way, (both, down, on))
    trace[0, :], trace[:, 0] = 2, 1
    i, j = rows, columns
    path = []
    while i > 0 or j > 0:
        path.append((i - 1, j - 1))
        way_back = trace[i, j]
        i -= way_back != 2
        j -= way_back != 1
    indices = np.array(path[::-1], np.int64).reshape(-1, 2)
    return indices[:, 0], indices[:, 1]


def align_words(
    states: Any,
    tokenizer: WhisperTokenizer,
    start: Sequence[int],
    words: Sequence[Word],
    positions: int,
) -> Work[list[TimedWord]]:
    """The words of a window, with times.

    Parameters
    ----------
    start : sequence of int
        The start of the transcript (`WhisperTokenizer.start_sequence`).
    words : sequence of (str, list of int)
        All of the window's text, in order (`WhisperTokenizer.words`).
    positions : int
        The encoder's positions that hold sound; the rest is padding.
    """
    text = [token for _, ids in words for token in ids]
    if not text:
        return []
    special = tokenizer.special
    attention, logits = yield Attend(states, [*start, special.no_timestamps, *text, special.end])
    time_rows = _token_positions(attention[:, :, :positions], len(start))
    predicted = log_softmax(logits[len(start) : len(start) + len(text), : special.end])
    probabilities = np.exp(predicted[np.arange(len(text)), np.asarray(text)])
    borders = np.cumsum([0, *(len(ids) for _, ids in words)])
    found = [
        TimedWord(
            word,
            ids,
            float(time_rows[begin]) / POSITIONS_PER_SECOND,
            float(time_rows[end]) / POSITIONS_PER_SECOND,
            float(probabilities[begin:end].mean()),
        )
        for (word, ids), begin, end in zip(words, borders[:-1], borders[1:], strict=True)
    ]
    return found


def _token_positions(attention: npt.NDArray[np.float32], skip: int) -> npt.NDArray[np.int64]:
    """The position where each token of the text begins, and where the last one ends.

    A row of the attention belongs to the token that is predicted next; `skip` rows predict the start.
    """
    weights = attention / attention.sum(axis=-1, keepdims=True)
    mean = weights.mean(axis=-2, keepdims=True)
    deviation = weights.std(axis=-2, keepdims=True)
    weights = median_filter((weights - mean) / np.maximum(deviation, np.float32(1e-10)))
    rows, columns = dtw(-weights.mean(axis=0)[skip:-1])
    jumps = np.flatnonzero(np.diff(rows, prepend=-1))
    return columns[jumps]


def typical_duration(words: Sequence[TimedWord]) -> float:
    """The median duration of words, at most 0.7 s; 0 when none lasts."""
    durations = [word.end - word.start for word in words if word.end > word.start]
    return min(LONGEST_TYPICAL_WORD, float(np.median(durations))) if durations else 0.0


def shorten(words: Sequence[TimedWord], longest: float) -> None:
    """Words beside the end of a sentence, where the attention rests, last no longer."""
    for before, word in itertools.pairwise(words):
        if longest and word.end - word.start > longest:
            if word.word in SENTENCE_ENDS:
                word.end = word.start + longest
            elif before.word in SENTENCE_ENDS:
                word.start = word.end - longest


def join_punctuation(words: list[TimedWord], prepended: str, appended: str) -> list[TimedWord]:
    """Opening marks become part of the word after them, closing ones of the word before."""
    joined: list[TimedWord] = []
    for word in reversed(words):
        if joined and word.word.startswith(" ") and word.word.strip() in prepended:
            after = joined[-1]
            after.word, after.tokens = word.word + after.word, word.tokens + after.tokens
        else:
            joined.append(word)
    result: list[TimedWord] = []
    for word in reversed(joined):
        if result and not result[-1].word.endswith(" ") and word.word in appended:
            before = result[-1]
            before.word, before.tokens = before.word + word.word, before.tokens + word.tokens
        else:
            result.append(word)
    return result

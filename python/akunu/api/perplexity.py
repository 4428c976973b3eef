"""Perplexity of a text, by windows side by side or by one that slides (`Model.perplexity` defines both)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from akunu.base.arguments import Limit
from akunu.base.errors import InvalidArgumentError

__all__ = ["WINDOW", "perplexity", "windows"]

WINDOW: Final = 512
"""Tokens of a window, if nobody says otherwise: as in llama.cpp, whose figures most are compared with."""

Nll = Callable[[npt.NDArray[np.uint32], int], npt.NDArray[np.float32]]
"""`nll(ids, first)`: -log p(ids[i] | ids[:i]) for i = first, …, len(ids) - 1."""


def windows(n: int, size: int, stride: int) -> Iterator[tuple[int, int, int]]:
    """Windows (begin, score_from, end) over n tokens: `[begin, end)` is run, `[score_from, end)` is scored.

    The scored parts are the n tokens, each once; no window is longer than `size`.
    """
    end = min(n, size)
    yield 0, 0, end
    while end < n:
        score_from, end = end, min(n, end + stride)
        yield max(0, end - size), score_from, end


def perplexity(
    nll: Nll,
    ids: npt.NDArray[np.uint32],
    *,
    prefix: Sequence[int],
    context: int,
    stride: int | None,
    progress: Callable[[int, int], None] | None = None,
) -> float:
    """Perplexity of `ids`.

    Parameters
    ----------
    nll
        The model, see `Nll`.
    ids
        Tokens of the text, without `prefix`.
    prefix
        Tokens that start every window and are not scored: BOS, or nothing.
    context
        Tokens in a window, at least 2.
    stride, progress
        As in `Model.perplexity`.

    Raises
    ------
    InvalidArgumentError
        For a text without a token to score, or sizes out of range.
    """
    start = np.asarray(prefix, np.uint32)
    unscored = 0 if len(prefix) else 1  # of a window: nothing stands before its first token
    if context - len(prefix) <= unscored:
        raise InvalidArgumentError(f"context: {context} tokens leave none to score; give at least 2")
    if stride is not None:
        Limit(int, 1, context - len(prefix) - unscored).check("stride", stride)
    if len(ids) <= unscored:
        raise InvalidArgumentError(
            f"text: {len(ids)} tokens, of which none can be scored; give a longer text"
        )
    if stride is None and len(start) + len(ids) > context:
        parts = _side_by_side(start, ids, context)
    else:
        parts = _sliding(start, ids, context, stride or context, unscored)
    total, scored = 0.0, 0
    for window, first, end, last in parts:
        total += float(np.sum(nll(window, first), dtype=np.float64))
        scored += len(window) - first
        if progress:
            progress(end, last)
    mean = total / scored
    return math.exp(mean) if mean < 709 else math.inf


_Part = tuple[npt.NDArray[np.uint32], int, int, int]
"""The tokens of a window, the first that is scored, the tokens up to its end, and those of all windows."""


def _side_by_side(start: npt.NDArray[np.uint32], ids: npt.NDArray[np.uint32], size: int) -> Iterator[_Part]:
    """Whole windows of the text with `start` before it, each beginning with `start`; their second halves."""
    given = np.concatenate([start, ids])
    first = size // 2 + 1
    if first >= size:
        raise InvalidArgumentError(f"context: {size} tokens leave none to score; give at least 3")
    last = len(given) // size * size
    for begin in range(0, last, size):
        window = given[begin : begin + size].copy()
        window[: len(start)] = start
        yield window, first, begin + size, last


def _sliding(
    start: npt.NDArray[np.uint32], ids: npt.NDArray[np.uint32], context: int, stride: int, unscored: int
) -> Iterator[_Part]:
    """Windows that score each token once."""
    for begin, score_from, end in windows(len(ids), context - len(start), stride):
        first = len(start) + max(score_from - begin, unscored)
        yield np.concatenate([start, ids[begin:end]]), first, end, len(ids)

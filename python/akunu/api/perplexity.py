"""Perplexity of a text by a sliding window (`Model.perplexity` defines it)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from akunu.base.arguments import Limit
from akunu.base.errors import InvalidArgumentError

__all__ = ["perplexity", "windows"]

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
    size = context - len(prefix)
    unscored = 0 if len(prefix) else 1  # of a window: nothing stands before its first token
    if size <= unscored:
        raise InvalidArgumentError(f"context: {context} tokens leave none to score; give at least 2")
    step = max(1, size // 2) if stride is None else Limit(int, 1, size - unscored).check("stride", stride)
    if len(ids) <= unscored:
        raise InvalidArgumentError(
            f"text: {len(ids)} tokens, of which none can be scored; give a longer text"
        )
    total = 0.0
    start = np.asarray(prefix, np.uint32)
    for begin, score_from, end in windows(len(ids), size, step):
        first = len(prefix) + max(score_from - begin, unscored)
        losses = nll(np.concatenate([start, ids[begin:end]]), first)
        total += float(np.sum(losses, dtype=np.float64))
        if progress:
            progress(end, len(ids))
    mean = total / (len(ids) - unscored)
    return math.exp(mean) if mean < 709 else math.inf

"""Which tokens a perplexity scores, and with what before them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from akunu.api.perplexity import perplexity, windows
from akunu.base.errors import InvalidArgumentError


@given(n=st.integers(1, 300), size=st.integers(1, 50), data=st.data())
def test_each_token_is_scored_once_with_enough_before_it(n, size, data):
    stride = data.draw(st.integers(1, size))
    scored = []
    for begin, score_from, end in windows(n, size, stride):
        assert 0 <= begin <= score_from < end <= n
        assert end - begin <= size
        assert begin == 0 or score_from - begin >= size - stride
        scored += range(score_from, end)
    assert scored == list(range(n))


class Recorder:
    """A model whose loss for token t at index i is t, and that remembers what it was asked."""

    def __init__(self):
        self.calls = []

    def __call__(self, ids, first):
        self.calls.append((ids.tolist(), first))
        return ids[first:].astype(np.float32) / 100


def test_bos_starts_each_window_and_is_not_scored():
    model = Recorder()
    ids = np.arange(10, 22, dtype=np.uint32)
    value = perplexity(model, ids, prefix=[1], context=6, stride=3)
    assert model.calls[0] == ([1, 10, 11, 12, 13, 14], 1)
    assert model.calls[1] == ([1, 13, 14, 15, 16, 17], 3)
    assert all(call[0][0] == 1 and len(call[0]) <= 6 for call in model.calls)
    assert value == pytest.approx(math.exp(np.mean(np.arange(10, 22)) / 100))


def test_without_bos_the_first_token_is_not_scored():
    model = Recorder()
    value = perplexity(model, np.array([50, 10, 30], np.uint32), prefix=[], context=8, stride=None)
    assert model.calls == [([50, 10, 30], 1)]
    assert value == pytest.approx(math.exp(0.2))


def test_windows_are_llama_perplexitys_by_default():
    """Whole windows of the text with BOS; each begins with BOS, and its second half is scored."""
    model = Recorder()
    ids = np.arange(10, 35, dtype=np.uint32)  # with BOS three windows of eight, and two tokens
    seen = []
    value = perplexity(
        model, ids, prefix=[1], context=8, stride=None, progress=lambda *done: seen.append(done)
    )
    assert model.calls == [
        ([1, *range(10, 17)], 5),
        ([1, *range(18, 25)], 5),
        ([1, *range(26, 33)], 5),
    ]
    scored = [14, 15, 16, 22, 23, 24, 30, 31, 32]
    assert value == pytest.approx(math.exp(np.mean(scored) / 100))
    assert seen == [(8, 24), (16, 24), (24, 24)]
    model = Recorder()
    perplexity(model, ids, prefix=[], context=8, stride=None)
    assert model.calls == [(list(range(i, i + 8)), 5) for i in (10, 18, 26)]


def test_progress_ends_at_the_number_of_tokens():
    seen = []
    perplexity(
        Recorder(),
        np.arange(9, dtype=np.uint32),
        prefix=[1],
        context=5,
        stride=2,
        progress=lambda *done: seen.append(done),
    )
    assert seen == [(4, 9), (6, 9), (8, 9), (9, 9)]


@pytest.mark.parametrize(
    ("n", "prefix", "context", "stride", "word"),
    [
        (0, [1], 8, None, "text"),
        (1, [], 8, None, "text"),
        (5, [], 8, 0, "stride"),
        (5, [], 8, 1.5, "stride"),
        (5, [1], 8, 8, "stride"),
        (5, [], 8, 8, "stride"),
        (5, [], 2, None, "context: 2 tokens leave none to score; give at least 3"),
        (5, [], 1, None, "context: 1 tokens leave none to score"),
        (5, [1], 1, None, "context: 1 tokens leave none to score"),
    ],
)
def test_bad_sizes_are_refused(n, prefix, context, stride, word):
    with pytest.raises(InvalidArgumentError, match=word):
        perplexity(Recorder(), np.arange(n, dtype=np.uint32), prefix=prefix, context=context, stride=stride)


def test_an_impossible_text_is_infinite():
    assert (
        perplexity(
            lambda ids, first: np.full(1, 1e4, np.float32),
            np.array([1, 2], np.uint32),
            prefix=[],
            context=8,
            stride=None,
        )
        == math.inf
    )

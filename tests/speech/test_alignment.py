"""Words get the times at which the attention looks."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from akunu.speech.alignment import TimedWord, align_words, dtw, join_punctuation, median_filter, shorten

from . import tiny
from .counting import run
from .scripted import Script, ScriptedModel

TOKENIZER = tiny.tokenizer()
START = TOKENIZER.start_sequence("en")
SILENCE = np.zeros((1, 80, 3000), np.float32)


def slow_dtw(cost: np.ndarray) -> list[tuple[int, int]]:
    """The recurrence, cell by cell."""
    rows, columns = cost.shape
    best = np.full((rows + 1, columns + 1), np.inf)
    best[0, 0] = 0
    ways = {}
    for i in range(1, rows + 1):
        for j in range(1, columns + 1):
            options = [(best[i - 1, j - 1], (1, 1)), (best[i - 1, j], (1, 0)), (best[i, j - 1], (0, 1))]
            value, ways[i, j] = min(options, key=lambda option: option[0])
            best[i, j] = cost[i - 1, j - 1] + value
    path, (i, j) = [], (rows, columns)
    while i and j:
        path.append((i - 1, j - 1))
        i, j = i - ways[i, j][0], j - ways[i, j][1]
    return path[::-1]


@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (7, 1), (5, 9), (9, 5), (23, 40)])
def test_the_path_is_the_cheapest(shape: tuple[int, int]) -> None:
    cost = np.random.default_rng(3).normal(size=shape).astype(np.float32)
    rows, columns = dtw(cost)
    path = list(zip(rows.tolist(), columns.tolist(), strict=True))
    assert path == slow_dtw(cost)


def test_the_median_is_that_of_reflected_neighbours() -> None:
    values = np.random.default_rng(4).normal(size=(2, 3, 30)).astype(np.float32)
    padded = np.pad(values, [(0, 0), (0, 0), (3, 3)], mode="reflect")
    expected = np.stack([np.median(padded[..., i : i + 7], axis=-1) for i in range(30)], axis=-1)
    assert np.array_equal(median_filter(values), expected)
    assert np.array_equal(median_filter(values[..., :3]), values[..., :3])


def test_transformers_finds_the_same_path_and_medians() -> None:
    whisper = pytest.importorskip("transformers.models.whisper.generation_whisper")
    torch = pytest.importorskip("torch")
    values = np.random.default_rng(5).normal(size=(4, 20, 60)).astype(np.float32)
    expected = whisper._median_filter(torch.from_numpy(values)[None], 7)[0].numpy()
    assert np.array_equal(median_filter(values), expected)
    paths = zip(dtw(values[0]), whisper._dynamic_time_warping(values[0].astype(np.float64)), strict=True)
    assert all(np.array_equal(ours, theirs) for ours, theirs in paths)


def test_words_have_the_times_at_which_the_attention_looks() -> None:
    model = ScriptedModel(Script([]))
    words = TOKENIZER.words(TOKENIZER.encode(" and so, you say"))
    assert len(words) == 5
    starts = [0.5, 1.0, 1.6, 2.0, 2.7]
    moments = [
        np.linspace(start, start + 0.2, len(ids)) for start, (_, ids) in zip(starts, words, strict=True)
    ]
    states = model.encode(SILENCE)[0]
    model.times[0] = [*np.concatenate(moments).tolist(), 3.2]
    found = run(model, align_words(states, TOKENIZER, START, words, 500))
    assert [word.word for word in found] == [" and", " so", ",", " you", " say"]
    assert [word.start for word in found[1:]] == pytest.approx([1.0, 1.6, 2.0, 2.7], abs=0.25)
    assert all(before.end == after.start for before, after in itertools.pairwise(found))
    assert [word.probability for word in found] == pytest.approx([0.98] * 5, abs=0.02)
    assert run(model, align_words(states, TOKENIZER, START, [], 500)) == []


def test_padding_is_not_looked_at() -> None:
    model = ScriptedModel(Script([]))
    words = TOKENIZER.words(TOKENIZER.encode(" and so"))
    states = model.encode(SILENCE)[0]
    model.times[0] = [0.3, 0.8, 29.0]
    assert run(model, align_words(states, TOKENIZER, START, words, 60))[-1].end <= 60 / 50


def word(text: str, start: float, end: float) -> TimedWord:
    return TimedWord(text, [65], start, end, 0.9)


def test_marks_join_their_words() -> None:
    words = [word(" (", 0, 1), word("and", 1, 2), word(")", 2, 3), word(" so", 3, 4), word(".", 4, 5)]
    joined = join_punctuation(words, "(", ").")
    assert [(w.word, w.start, w.end) for w in joined] == [(" (and)", 1, 2), (" so.", 3, 4)]
    assert [len(w.tokens) for w in joined] == [3, 2]


def test_long_words_beside_the_end_of_a_sentence_are_cut() -> None:
    words = [word(" so", 0, 1), word(".", 1, 5), word(" and", 5, 10), word(" you", 10, 15)]
    shorten(words, 1.0)
    assert [(w.start, w.end) for w in words] == [(0, 1), (1, 2), (9, 10), (10, 15)]

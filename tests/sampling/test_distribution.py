"""Over many seeds tokens come as often as they should; log-probabilities are the raw model's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from .engines import open_file, run, start, synthetic, write_tiny
from .reference import Settings, probabilities

PROMPT = [1, 17, 42, 42, 200, 7, 17, 99]


@pytest.fixture(scope="module")
def tiny_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny(tmp_path_factory.mktemp("sampling") / "llama.gguf")


def chi_square_excess(counts: np.ndarray, p: np.ndarray) -> float:
    """Pearson's statistic, in deviations above its mean; tokens expected less than 8 times are pooled."""
    expected = p * counts.sum()
    rare = expected < 8
    observed = np.append(counts[~rare], counts[rare].sum())
    wanted = np.append(expected[~rare], expected[rare].sum())
    observed, wanted = observed[wanted > 0], wanted[wanted > 0]
    freedom = len(wanted) - 1
    return float((((observed - wanted) ** 2 / wanted).sum() - freedom) / np.sqrt(2 * freedom))


@pytest.mark.parametrize(
    "settings",
    [
        Settings(temperature=2.0),
        Settings(temperature=1.5, top_k=12),
        Settings(temperature=3.0, top_p=0.8),
        Settings(temperature=3.0, typical_p=0.6),
        Settings(temperature=2.0, min_p=0.1, presence_penalty=1.0),
    ],
)
def test_tokens_come_as_often_as_their_probability(tiny_file: Path, settings: Settings) -> None:
    engine = open_file(tiny_file)
    p = probabilities(engine.logits(PROMPT)[-1], PROMPT, settings)
    counts = np.zeros(len(p), np.int64)
    for seed in range(6000):
        counts[start(engine, PROMPT, settings, seed * 0x9E3779B97F4A7C15 % (1 << 64)).ids[0]] += 1
    assert counts[p == 0].sum() == 0
    assert abs(chi_square_excess(counts, p)) < 4


def test_positions_are_independent(tiny_file: Path) -> None:
    """One seed, eight equally likely tokens (the rest is banned): so at every position, and in pairs."""
    engine = open_file(tiny_file, context=512)
    bias = {token: -np.inf for token in range(263)} | dict.fromkeys(range(8), 0.0)
    settings = Settings(temperature=1e6, logit_bias=bias)
    ids = np.array(run(engine, PROMPT, 500, settings, 12345, chain=64))
    assert abs(chi_square_excess(np.bincount(ids, minlength=8), np.full(8, 1 / 8))) < 4
    pairs = np.bincount(ids[:-1] * 8 + ids[1:], minlength=64)
    # With 64 cells of 499 pairs the statistic is a little coarse, which the bound allows for.
    expected = pairs.sum() / 64
    assert abs(((pairs - expected) ** 2 / expected).sum() - 63) < 4 * np.sqrt(2 * 63)


def log_softmax(logits: np.ndarray) -> np.ndarray:
    x = logits.astype(np.float64)
    x -= x.max(-1, keepdims=True)
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


@pytest.mark.parametrize(
    "settings", [Settings(temperature=0), Settings(temperature=0.7, top_k=3, repeat_penalty=1.5)]
)
@pytest.mark.parametrize("chain", [1, 7, 64])
def test_logprobs_are_those_of_the_raw_logits(tiny_file: Path, settings: Settings, chain: int) -> None:
    engine = open_file(tiny_file)
    chunks = [start(engine, PROMPT, settings, 9, logprobs=20)]
    for _ in range(0, 40, chain):
        chunks.append(engine.decode(chain))
    ids = [token for chunk in chunks for token in chunk.ids]
    found = [value for chunk in chunks for value in chunk.logprobs]
    tops = [row for chunk in chunks for row in chunk.top_logprobs]
    expected = log_softmax(engine.logits(PROMPT + ids)[len(PROMPT) - 1 : -1])
    assert len(found) == len(tops) == len(ids) >= 40
    np.testing.assert_allclose(found, expected[np.arange(len(ids)), ids], atol=2e-6)
    for row, exact in zip(tops, expected, strict=True):
        order = np.argsort(-exact, kind="stable")[:20]
        assert [token for token, _ in row] == order.tolist()
        np.testing.assert_allclose([value for _, value in row], exact[order], atol=2e-6)


def test_logprobs_of_a_large_vocabulary() -> None:
    """Twenty best with ties, and a sum of 150,000 terms."""
    engine = synthetic(151_939, 32)
    chunk = start(engine, [1, 2], Settings(), 1, logprobs=20)
    exact = log_softmax(engine.logits([1, 2]))[-1]
    order = np.argsort(-exact, kind="stable")[:20]
    assert [token for token, _ in chunk.top_logprobs[0]] == order.tolist()
    np.testing.assert_allclose([value for _, value in chunk.top_logprobs[0]], exact[order], atol=2e-6)
    np.testing.assert_allclose(chunk.logprobs[0], exact[chunk.ids[0]], atol=2e-6)


def test_no_more_logprobs_than_tokens() -> None:
    engine = synthetic(5, 33)
    chunk = start(engine, [1, 2], Settings(), 1, logprobs=20)
    assert sorted(token for token, _ in chunk.top_logprobs[0]) == [0, 1, 2, 3, 4]
    assert abs(sum(np.exp(value) for _, value in chunk.top_logprobs[0]) - 1) < 1e-6


def test_only_the_asked_logprobs(tiny_file: Path) -> None:
    engine = open_file(tiny_file)
    assert start(engine, PROMPT, Settings(), 1).logprobs == []
    chunk = start(engine, PROMPT, Settings(), 1, logprobs=0)
    assert len(chunk.logprobs) == 1 and chunk.top_logprobs == []

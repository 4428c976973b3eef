"""Argmax, the sampler, log-probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sampling import reference as sampler

from .. import reference as ref
from ..problem import Problem, struct
from .common import (
    EXACT_NMSE,
    Traits,
    normal,
)


def _state(seed: int = 0, end_ids: Sequence[int] = (), **fields: Any) -> np.ndarray[Any, np.dtype[np.void]]:
    """SamplerState [1]; it changes nothing but for `fields`, which are also those of `sampler.Settings`."""
    state = np.zeros(1, struct("SamplerState"))
    state["top_p"] = state["typical_p"] = state["repeat_penalty"] = 1
    state["penalty_window"] = 64
    state["seed_lo"], state["seed_hi"] = seed & 0xFFFFFFFF, seed >> 32
    state["end_ids"][0, : len(end_ids)], state["n_end_ids"] = end_ids, len(end_ids)
    bias = list(fields.pop("logit_bias", {}).items())
    state["bias"][0, : len(bias)], state["n_bias"] = bias, len(bias)
    for name, value in fields.items():
        state[name] = value % 2**32 if name == "penalty_window" else value
    return state


def _logits(rng: np.random.Generator, vocab: int, sigma: float = 3.0) -> ref.F32:
    return normal(rng, vocab, sigma=sigma)


def argmax(
    p: Problem, dev: Traits, rng: np.random.Generator, vocab: int, kind: str, end: bool = False
) -> None:
    logits, best = _logits(rng, vocab), int(rng.integers(vocab))
    if kind == "equal":
        logits[:], best = 1.5, 0
    elif kind == "ties":
        others = rng.integers(best, vocab, 5)
        logits[others] = logits[best] = logits.max() + 1
    elif kind == "last":
        best = vocab - 1
        logits[best] = logits.max() + 1
    else:
        logits[logits < 1] = -np.inf
        logits[best] = 50
    position, context = 7, 20
    history = rng.integers(0, vocab, context).astype(np.uint32)
    control = np.zeros(2, np.uint32)
    state = _state(end_ids=[vocab, best, 3] if end else [vocab])
    p.run(
        "argmax",
        p.input("logits", logits),
        p.inout("history", history),
        p.input("state", state),
        p.inout("control", control),
        position=position,
        step=0,
        vocab=vocab,
    )
    p.bytes = 4 * vocab
    expected = history.copy()
    expected[position] = best
    p.expect("history", expected)
    p.expect("control", np.array([end, 1], np.uint32))


def sample_prepare(
    p: Problem,
    dev: Traits,
    rng: np.random.Generator,
    vocab: int,
    position: int = 40,
    biased: bool = False,
    **settings: Any,
) -> None:
    logits, history = _logits(rng, vocab), rng.integers(0, vocab, position + 4).astype(np.uint32)
    history[:position:3] = history[0]  # one token many times
    if biased:
        ids = np.unique(rng.integers(0, vocab, 40)).tolist()
        settings["logit_bias"] = {t: -np.inf if i % 7 == 0 else rng.uniform(-5, 5) for i, t in enumerate(ids)}
    p.run(
        "sample_prepare",
        p.input("logits", logits),
        p.input("history", history),
        p.input("state", _state(**settings)),
        p.inout("scaled", np.zeros(2 * vocab, np.float32)),
        position=position,
        step=0,
        vocab=vocab,
    )
    p.bytes = 8 * vocab
    if p.checking:
        expected = sampler.penalised(logits, history[:position].tolist(), sampler.Settings(**settings))
        p.expect("scaled", expected, EXACT_NMSE)
        p.expect("scaled", np.zeros(vocab, np.uint32), offset=4 * vocab)  # the counts are left at zero


def sample(
    p: Problem,
    dev: Traits,
    rng: np.random.Generator,
    vocab: int,
    draws: int,
    sigma: float = 3.0,
    seed: int = 7,
    **settings: Any,
) -> None:
    """Draws tokens one after the other, as a chain does: prepare, select, next position."""
    start = 10
    history = rng.integers(0, vocab, start + draws + 1).astype(np.uint32)
    p.input("state", _state(seed, **settings))
    p.inout("history", history)
    p.inout("control", np.zeros(2, np.uint32))
    p.inout("scaled", np.zeros(2 * vocab, np.float32))
    expected = history.copy()
    for position in range(start, start + draws):
        logits = _logits(rng, vocab, sigma)
        while p.checking:  # where rounding could decide between two tokens, other logits
            tokens = sampler.allowed(logits, expected[:position].tolist(), sampler.Settings(**settings), seed)
            expected[position] = min(tokens)
            if len(tokens) == 1:
                break
            logits = _logits(rng, vocab, sigma)
        name = p.input(f"logits{position}", logits)
        params = dict(position=position, step=0, vocab=vocab)
        p.run("sample_prepare", name, "history", "state", "scaled", **params)
        p.run("sample_select", "scaled", "history", "state", "control", **params)
    p.bytes = 4 * vocab
    if p.checking:
        p.expect("history", expected)
        p.expect("control", np.array([0, draws], np.uint32))


def logprobs(p: Problem, dev: Traits, rng: np.random.Generator, vocab: int, top: int, step: int) -> None:
    logits, position = _logits(rng, vocab), 5
    history = rng.integers(0, vocab, 8).astype(np.uint32)
    record = struct("LogprobRecord")
    p.run(
        "logprobs",
        p.input("logits", logits),
        p.input("history", history),
        p.input("state", _state(want_logprobs=1, n_logprobs=top)),
        p.output("records", step + 1, dtype=record),
        position=position,
        step=step,
        vocab=vocab,
    )
    p.bytes = 4 * vocab
    if not p.checking:
        return
    expected = ref.log_softmax(logits.astype(np.float64))
    at, k = step * record.itemsize, min(top, vocab)
    if vocab > 1:
        p.expect("records", expected[history[position]][None], EXACT_NMSE, at)
    else:  # log p = 0, which no relative error fits
        p.expect("records", np.zeros(1, np.float32), offset=at)
    best = np.lexsort((np.arange(vocab), -logits))[:k]
    fields = record.fields
    assert fields is not None
    p.expect("records", best.astype(np.uint32), offset=at + fields["ids"][1])
    if k and vocab > 1:
        p.expect("records", expected[best], EXACT_NMSE, at + fields["values"][1])
    if step:
        untouched = p.buffers["records"].data[:step]  # type: ignore[union-attr]
        p.expect("records", untouched)

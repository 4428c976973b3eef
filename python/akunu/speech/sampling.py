"""Candidates of a window: each token is the most probable one, or sampled; several run side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from akunu.speech.batching import Sample, Step, Work, applies
from akunu.speech.model import Logits, SpeechModel
from akunu.speech.rules import TokenRules, best_tokens, log_softmax

__all__ = ["Candidate", "sample"]

DRAWN_AT_ONCE: Final = 16
"""Tokens, where the model samples them itself."""


@dataclass(frozen=True)
class Candidate:
    """A text that may be a window's: tokens without the end, and log p with it."""

    tokens: list[int]
    log_prob: float


def sample(
    model: SpeechModel,
    sequence: Any,
    logits: Logits | None,
    rules: TokenRules,
    end: int,
    count: int,
    temperature: float,
    most: int,
    random: np.random.Generator,
    begun: Sequence[int] = (),
) -> Work[list[Candidate]]:
    """`count` texts of at most `most` tokens that go on from `sequence`, which stays as it is.

    Parameters
    ----------
    logits : ndarray, optional
        float32 [vocab] after the sequence; not read where the model samples itself (`applies`).
    temperature : float
        0: the most probable token.
    begun : sequence of int
        What the texts already have; part of the sequence, not of the result.
    """
    if applies(model, rules):
        found = yield from _drawn(model, sequence, rules, count, temperature, most, random, len(begun))
        return found
    assert logits is not None
    tokens: list[list[int]] = [[] for _ in range(count)]
    log_probs = [0.0] * count
    rows = np.repeat(logits[None], count, axis=0)
    sequences = {i: model.fork(sequence) for i in range(count)}
    try:
        for _ in range(most):
            live = list(sequences)
            rules.apply(rows, [[*begun, *tokens[i]] for i in live])
            if temperature == 0:
                ids, log_p = best_tokens(rows, 1)
                chosen, values = ids[:, 0], log_p[:, 0]
            else:
                chosen = (rows / temperature + random.gumbel(size=rows.shape)).argmax(axis=-1)
                values = np.take_along_axis(log_softmax(rows), chosen[:, None], axis=-1)[:, 0]
            for i, token, value in zip(live, chosen.tolist(), values.tolist(), strict=True):
                log_probs[i] += value
                if token == end:
                    model.free(sequences.pop(i))
                else:
                    tokens[i].append(token)
            if not sequences or len(tokens[next(iter(sequences))]) == most:
                break
            rows = yield Step(list(sequences.values()), [tokens[i][-1] for i in sequences])
    finally:
        for rest in sequences.values():
            model.free(rest)
    return [Candidate(*pair) for pair in zip(tokens, log_probs, strict=True)]


def _drawn(
    model: SpeechModel,
    sequence: Any,
    rules: TokenRules,
    count: int,
    temperature: float,
    most: int,
    random: np.random.Generator,
    begun: int,
) -> Work[list[Candidate]]:
    """Have the model itself sample, some tokens at a time, so that others get their turn."""
    seeds = random.integers(1 << 32, size=count).tolist()
    tokens: list[list[int]] = [[] for _ in range(count)]
    log_probs = [0.0] * count
    sequences = {i: model.fork(sequence) for i in range(count)}
    try:
        for start in range(0, most, DRAWN_AT_ONCE):
            live = list(sequences)
            length = min(DRAWN_AT_ONCE, most - start)
            found = yield Sample(
                list(sequences.values()), rules, temperature, length, [seeds[i] for i in live], begun
            )
            for i, (ids, log_p) in zip(live, found, strict=True):
                tokens[i] += ids
                log_probs[i] += log_p
                if len(ids) < length:
                    model.free(sequences.pop(i))
            if not sequences:
                break
    finally:
        for rest in sequences.values():
            model.free(rest)
    return [Candidate(*pair) for pair in zip(tokens, log_probs, strict=True)]

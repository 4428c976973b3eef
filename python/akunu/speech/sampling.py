"""Texts of a window, each token the most probable one or drawn at random; several run side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from akunu.speech.batching import Step, Work
from akunu.speech.model import Logits, SpeechModel
from akunu.speech.rules import TokenRules, best_tokens, log_softmax

__all__ = ["Candidate", "sample"]


@dataclass(frozen=True)
class Candidate:
    """A text that may be a window's: tokens without the end, and log p with it."""

    tokens: list[int]
    log_prob: float


def sample(
    model: SpeechModel,
    sequence: Any,
    logits: Logits,
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
    logits : ndarray
        float32 [vocab] after the sequence.
    temperature : float
        0: the most probable token.
    begun : sequence of int
        What the texts already have; part of the sequence, not of the result.
    """
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

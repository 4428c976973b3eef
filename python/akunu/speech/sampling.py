"""Texts of a window, each token the most probable one or drawn at random; several run side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from akunu.speech.model import Logits, SpeechModel
from akunu.speech.rules import TokenRules, log_softmax

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
) -> list[Candidate]:
    """`count` texts of at most `most` tokens that go on from `sequence`, which stays as it is.

    Parameters
    ----------
    logits : ndarray
        float32 [vocab] after the sequence.
    temperature : float
        0: the most probable token.
    """
    tokens: list[list[int]] = [[] for _ in range(count)]
    log_probs = [0.0] * count
    rows = np.repeat(logits[None], count, axis=0)
    sequences = {i: model.fork(sequence) for i in range(count)}
    try:
        for _ in range(most):
            live = list(sequences)
            rules.apply(rows, [tokens[i] for i in live])
            log_p = log_softmax(rows)
            if temperature == 0:
                chosen = log_p.argmax(axis=-1)
            else:
                chosen = (rows / temperature + random.gumbel(size=rows.shape)).argmax(axis=-1)
            for row, i in enumerate(live):
                log_probs[i] += float(log_p[row, chosen[row]])
                if chosen[row] == end:
                    model.free(sequences.pop(i))
                else:
                    tokens[i].append(int(chosen[row]))
            if not sequences or len(tokens[next(iter(sequences))]) == most:
                break
            rows = model.step(list(sequences.values()), [tokens[i][-1] for i in sequences])
    finally:
        for rest in sequences.values():
            model.free(rest)
    return [Candidate(*pair) for pair in zip(tokens, log_probs, strict=True)]

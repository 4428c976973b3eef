"""Beam search with patience (Kasai et al., 2022), as OpenAI's reference does it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from akunu.speech.batching import Step, Work
from akunu.speech.model import Logits, SpeechModel
from akunu.speech.rules import TokenRules, best_tokens
from akunu.speech.sampling import Candidate

__all__ = ["beam_search"]


def beam_search(
    model: SpeechModel,
    sequence: Any,
    logits: Logits,
    rules: TokenRules,
    end: int,
    size: int,
    patience: float,
    most: int,
    begun: Sequence[int] = (),
) -> Work[list[Candidate]]:
    """The finished texts of a search with `size` beams that goes on from `sequence`, which stays as it is.

    A step takes the `size` most probable texts that have not ended; those that end before are finished. The
    search ends with `size * patience` of them, or after `most` tokens. What the texts already have, `begun`,
    is part of the sequence and not of the result.
    """
    wanted = max(round(size * patience), 1)
    finished: list[Candidate] = []
    beams = [Candidate([], 0.0)]
    sequences = [model.fork(sequence)]
    rows = logits[None].copy()
    try:
        for length in range(1, most + 1):
            rules.apply(rows, [[*begun, *beam.tokens] for beam in beams])
            chosen = _extensions(beams, rows, size)
            grown: list[tuple[int, Candidate]] = []
            for source, token, log_prob in chosen:
                if token != end:
                    grown.append((source, Candidate([*beams[source].tokens, token], log_prob)))
                    if len(grown) == size:
                        break
                elif len(finished) < wanted:
                    finished.append(Candidate(beams[source].tokens, log_prob))
            beams = [beam for _, beam in grown]
            if not beams or len(finished) >= wanted or length == most:
                break
            sequences = _follow(model, sequences, [source for source, _ in grown])
            rows = yield Step(sequences, [beam.tokens[-1] for beam in beams])
    finally:
        for rest in sequences:
            model.free(rest)
    if len(finished) < size:
        finished += sorted(beams, key=lambda beam: -beam.log_prob)[: size - len(finished)]
    return finished


def _extensions(beams: list[Candidate], logits: Logits, size: int) -> list[tuple[int, int, float]]:
    """The `size` + 1 best tokens of each beam, all together by log p: (beam, token, log p of the text)."""
    ids, log_p = best_tokens(logits, size + 1)
    found = [
        (source, token, beam.log_prob + value)
        for source, beam in enumerate(beams)
        for token, value in zip(ids[source].tolist(), log_p[source].tolist(), strict=True)
        if value > -np.inf
    ]
    return sorted(found, key=lambda entry: (-entry[2], entry[1]))


def _follow(model: SpeechModel, sequences: list[Any], sources: list[int]) -> list[Any]:
    """The sequences of the beams that each source becomes: itself for the first, forks for the others."""
    followed = []
    taken: set[int] = set()
    for source in sources:
        followed.append(model.fork(sequences[source]) if source in taken else sequences[source])
        taken.add(source)
    for i, sequence in enumerate(sequences):
        if i not in taken:
            model.free(sequence)
    return followed

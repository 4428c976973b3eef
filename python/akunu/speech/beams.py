"""Beam search with patience (Kasai et al., 2022), as OpenAI's reference does it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from akunu.speech.batching import Rank, Step, Work, applies
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
    on_device = applies(model, rules, size + 1)
    rows = logits[None].copy()
    rules.apply(rows, [begun])
    ranked = best_tokens(rows, size + 1)
    try:
        for length in range(1, most + 1):
            chosen = _extensions(beams, *ranked)
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
            _follow(model, sequences, [source for source, _ in grown])
            last = [beam.tokens[-1] for beam in beams]
            if on_device:
                ranked = yield Rank(sequences, last, rules, size + 1, len(begun))
            else:
                rows = yield Step(sequences, last)
                rules.apply(rows, [[*begun, *beam.tokens] for beam in beams])
                ranked = best_tokens(rows, size + 1)
    finally:
        for rest in sequences:
            model.free(rest)
    if len(finished) < size:
        finished += sorted(beams, key=lambda beam: -beam.log_prob)[: size - len(finished)]
    return finished


def _extensions(
    beams: list[Candidate], ids: npt.NDArray[np.int64], log_p: Logits
) -> list[tuple[int, int, float]]:
    """The best tokens of each beam, all together by log p: (beam, token, log p of the text)."""
    found = [
        (source, token, beam.log_prob + value)
        for source, beam in enumerate(beams)
        for token, value in zip(ids[source].tolist(), log_p[source].tolist(), strict=True)
        if value > -np.inf
    ]
    return sorted(found, key=lambda entry: (-entry[2], entry[1]))


def _follow(model: SpeechModel, sequences: list[Any], sources: list[int]) -> None:
    """Make the sequences those of the new beams: of each source itself for the first one, forks for others.

    The list holds at any time what is alive, and never more than there are beams.
    """
    by_source = dict(enumerate(sequences))
    for i in reversed(range(len(sequences))):
        if i not in sources:
            model.free(sequences.pop(i))
    followed: list[Any] = []
    for n, source in enumerate(sources):
        if source in sources[:n]:
            sequences.append(model.fork(by_source[source]))
            followed.append(sequences[-1])
        else:
            followed.append(by_source[source])
    sequences[:] = followed

"""A window's text: the best of the beams, another temperature when it is poor, no sequence left behind."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from akunu.base.errors import ContextLengthError
from akunu.speech.beams import beam_search
from akunu.speech.decoding import best, compression_ratio, decode_window
from akunu.speech.options import TranscriptionOptions
from akunu.speech.sampling import Candidate, sample

from . import tiny
from .counting import run
from .scripted import Script, ScriptedModel, said

TOKENIZER = tiny.tokenizer()
PROMPT = TOKENIZER.start_sequence("en")
END = 4
SILENCE = np.zeros((1, 80, 3000), np.float32)


class Table:
    """A model of five tokens whose logits depend on the last two; the rules allow all."""

    parallel = 1

    def __init__(self, seed: int) -> None:
        self.table = np.random.default_rng(seed).normal(0, 1.5, (6, 6, 5)).astype(np.float32)
        self.alive: dict[int, list[int]] = {0: [5, 5]}
        self._next = 0

    def apply(self, logits: Any, sampled: Any) -> None:
        assert len(logits) == len(sampled)

    def fork(self, sequence: int) -> int:
        self._next += 1
        self.alive[self._next] = list(self.alive[sequence])
        return self._next

    def step(self, sequences: Sequence[int], tokens: Sequence[int]) -> Any:
        for sequence, token in zip(sequences, tokens, strict=True):
            self.alive[sequence].append(token)
        return np.stack([self.row(self.alive[sequence]) for sequence in sequences])

    def row(self, tokens: Sequence[int]) -> Any:
        return self.table[tokens[-2], tokens[-1]].copy()

    def free(self, sequence: int) -> None:
        del self.alive[sequence]

    def log_prob(self, tokens: Sequence[int]) -> float:
        total, held = 0.0, [5, 5]
        for token in tokens:
            row = self.row(held).astype(np.float64)
            total += row[token] - np.log(np.exp(row).sum())
            held.append(token)
        return total


@pytest.mark.parametrize("seed", range(5))
def test_enough_beams_find_every_text(seed: int) -> None:
    table = Table(seed)
    found = run(table, beam_search(table, 0, table.row([5, 5]), table, END, 300, 1.0, 4))  # type: ignore[arg-type]
    texts = [list(t) for n in range(4) for t in itertools.product(range(4), repeat=n)]
    assert len(texts) == 85
    by_text = {tuple(candidate.tokens): candidate.log_prob for candidate in found}
    for text in texts:
        assert by_text[tuple(text)] == pytest.approx(table.log_prob([*text, END]), abs=1e-4)
    assert list(table.alive) == [0]


@pytest.mark.parametrize("seed", range(5))
def test_beams_are_the_best_extensions_and_end_with_patience(seed: int) -> None:
    """A plain restatement: all extensions sorted, ended ones put aside, the best others kept."""
    table, size, patience, most = Table(seed), 3, 2.0, 12
    beams: list[list[int]] = [[]]
    ended: list[list[int]] = []
    for _ in range(most):
        extended = sorted(
            ([*beam, token] for beam in beams for token in range(5)), key=table.log_prob, reverse=True
        )
        kept: list[list[int]] = []
        for text in extended:
            if text[-1] == END:
                ended += [text[:-1]] if len(ended) < size * patience else []
            else:
                kept.append(text)
            if len(kept) == size:
                break
        beams = kept
        if len(ended) == size * patience:
            break
    found = run(table, beam_search(table, 0, table.row([5, 5]), table, END, size, patience, most))  # type: ignore[arg-type]
    assert [candidate.tokens for candidate in found] == ended
    assert list(table.alive) == [0]


def test_a_search_holds_no_more_sequences_than_beams() -> None:
    table = Table(0)
    fork, most = table.fork, 0

    def counted(sequence: int) -> int:
        nonlocal most
        copy = fork(sequence)
        most = max(most, len(table.alive))
        return copy

    table.fork = counted  # type: ignore[method-assign]
    run(table, beam_search(table, 0, table.row([5, 5]), table, END, 5, 1.0, 12))  # type: ignore[arg-type]
    assert most == 1 + 5


def test_one_beam_is_greedy() -> None:
    for seed in range(5):
        table = Table(seed)
        row = table.row([5, 5])
        beam = run(table, beam_search(table, 0, row, table, END, 1, 1.0, 10))[0]  # type: ignore[arg-type]
        random = np.random.default_rng(0)
        greedy = run(table, sample(table, 0, row, table, END, 1, 0.0, 10, random))[0]  # type: ignore[arg-type]
        if len(greedy.tokens) < 10:  # at the limit the beam that has ended before wins
            assert beam.log_prob >= greedy.log_prob - 1e-4


def test_samples_are_drawn_by_their_probability() -> None:
    table = Table(0)
    row = table.row([5, 5])
    random = np.random.default_rng(1)
    drawn = run(table, sample(table, 0, row, table, END, 4000, 0.7, 1, random))  # type: ignore[arg-type]
    counts = np.bincount([(candidate.tokens or [END])[0] for candidate in drawn], minlength=5)
    expected = np.exp(row / 0.7) / np.exp(row / 0.7).sum()
    assert np.abs(counts / 4000 - expected).max() < 0.03
    for candidate in drawn[:10]:
        assert candidate.log_prob == pytest.approx(table.log_prob(candidate.tokens or [END]), abs=1e-4)
    assert list(table.alive) == [0]


def decoded(script: Script, prompt: Sequence[int] = PROMPT, **options: Any) -> Any:
    model = ScriptedModel(script)
    states = model.encode(SILENCE)[0]
    return run(model, decode_window(model, states, TOKENIZER, prompt, TranscriptionOptions(**options)))


GOOD = said(0.0, " and so say you", 2.0)


@pytest.mark.parametrize("penalty", [0, 1, -2, 0.5, 3, 400.0, -400.0, 10**9, 1e300])
def test_the_best_text_is_that_of_the_definition_however_large_its_powers(penalty: float) -> None:
    found = [Candidate([0] * n, -x) for n, x in ((4, 3.0), (9, 5.0), (2, 1.75), (0, 0.5), (1, 0.75))]
    ranks = [math.log(-one.log_prob) - penalty * math.log(max(len(one.tokens), 1)) for one in found]
    assert best(found, penalty) is found[int(np.argmin(ranks))]
    if abs(penalty) < 9:
        powers = [one.log_prob / max(len(one.tokens), 1) ** penalty for one in found]
        assert best(found, penalty) is found[int(np.argmax(powers))]
    sure = Candidate([0] * 3, 0.0)
    assert best([*found, sure], penalty) is sure


@pytest.mark.parametrize("beams", [1, 5])
def test_a_sure_text_is_taken_at_once(beams: int) -> None:
    result = decoded(Script(GOOD), beam_size=beams)
    assert result.tokens == GOOD and result.temperature == 0
    assert -0.2 < result.avg_logprob < 0 and result.no_speech_prob == pytest.approx(0.01, rel=0.01)


def test_a_repetitive_text_is_tried_again_at_higher_temperatures() -> None:
    loop = said(0.0, " and so" * 30, 2.0)
    assert compression_ratio(TOKENIZER.decode(loop)) > 2.4
    options: dict[str, Any] = {"beam_size": 1, "best_of": 1, "log_prob_threshold": None}
    result = decoded(Script(loop, certainty=0.2), temperature=(0.0, 1.0), **options)
    assert result.temperature == 1.0 and result.compression_ratio < 2.4
    unguarded = decoded(Script(loop), beam_size=1, compression_ratio_threshold=None)
    assert unguarded.temperature == 0


def test_an_unlikely_text_is_tried_again_unless_there_is_no_speech() -> None:
    options: dict[str, Any] = {
        "beam_size": 1,
        "best_of": 1,
        "temperature": (0.0, 0.1),
        "log_prob_threshold": -0.05,
    }
    assert decoded(Script(GOOD), **options | {"log_prob_threshold": -1.0}).temperature == 0
    poor = Script(GOOD, certainty=0.5)
    # Both temperatures are poor: the more probable one is taken.
    assert decoded(poor, **options).avg_logprob < -0.05
    silent = Script(GOOD, certainty=0.5, silence=0.9)
    assert decoded(silent, **options).temperature == 0


def test_the_same_seed_gives_the_same_samples() -> None:
    model, options = tiny.model(1), TranscriptionOptions(temperature=1.0, best_of=2, max_new_tokens=8)
    states = model.encode(tiny.mel(1)[None])[0]
    texts = [
        run(model, decode_window(model, states, TOKENIZER, PROMPT, options, seed=(window,))).tokens
        for window in (0, 0, 1)
    ]
    assert texts[0] == texts[1] != texts[2]


def test_a_text_is_no_longer_than_asked_for() -> None:
    assert len(decoded(Script(said(0.0, "so" * 40)), max_new_tokens=7, beam_size=1).tokens) == 7


def test_sequences_are_freed_when_a_step_fails() -> None:
    model = ScriptedModel(Script(GOOD))
    states = model.encode(SILENCE)[0]

    def fails(*_: Any) -> Any:
        raise KeyboardInterrupt

    model.step = fails  # type: ignore[method-assign]
    for options in (TranscriptionOptions(beam_size=3), TranscriptionOptions(temperature=1.0)):
        with pytest.raises(KeyboardInterrupt):
            run(model, decode_window(model, states, TOKENIZER, PROMPT, options))
        assert not model.alive


def test_a_prompt_that_fills_the_context_is_an_error_with_both_numbers() -> None:
    with pytest.raises(ContextLengthError, match=r"448 tokens.*448"):
        decoded(Script(GOOD), prompt=[*PROMPT, *[65] * 445])

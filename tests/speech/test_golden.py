"""Greedy text with timestamps and the language are those that Transformers finds, with the same weights."""

from __future__ import annotations

import json

import numpy as np
import pytest

from akunu.speech.decoding import decode_window, language_probabilities
from akunu.speech.options import TranscriptionOptions

from . import golden, tiny
from .counting import run

GOLDEN = json.loads(golden.PATH.read_text())
GREEDY = TranscriptionOptions(beam_size=1, temperature=0)


@pytest.mark.parametrize("seed", golden.SEEDS)
def test_the_numpy_model_is_transformers_whisper(seed: int) -> None:
    model, expected = tiny.model(seed), GOLDEN[str(seed)]
    states = model.heard(tiny.mel(seed))
    assert np.allclose(states[::20, 3], expected["states"], atol=1e-4)
    prompt = tiny.tokenizer().start_sequence("en")
    logits, _ = model.logits(states, [*prompt, *golden.TEXT])
    assert np.allclose(logits[::4, 7], expected["logits"], atol=1e-3)


@pytest.mark.parametrize("seed", golden.SEEDS)
def test_greedy_text_with_timestamps_is_that_of_transformers(seed: int) -> None:
    """It drops what follows the last pair of timestamps, which the next window hears again."""
    model, tokenizer = tiny.model(seed), tiny.tokenizer()
    states = model.encode(tiny.mel(seed)[None])[0]
    work = decode_window(model, states, tokenizer, tokenizer.start_sequence("en"), GREEDY)
    found = run(model, work).tokens
    expected = GOLDEN[str(seed)]["greedy"]
    assert len(expected) > 5
    assert found[: len(expected)] == expected


@pytest.mark.parametrize("seed", golden.SEEDS)
def test_the_language_is_that_of_transformers(seed: int) -> None:
    model, tokenizer = tiny.model(seed), tiny.tokenizer()
    states = model.encode(tiny.mel(seed)[None])[0]
    found = run(model, language_probabilities(model, states, tokenizer))
    assert tokenizer.special.languages[found[0][0]] == GOLDEN[str(seed)]["language"]
    assert len(found) == 99 and sum(p for _, p in found) == pytest.approx(1)


@pytest.mark.long
def test_the_golden_data_are_what_transformers_says() -> None:
    pytest.importorskip("transformers")
    found = golden.compute(1)
    expected = GOLDEN["1"]
    assert (found["greedy"], found["language"]) == (expected["greedy"], expected["language"])
    assert np.allclose(found["logits"], expected["logits"], atol=1e-3)

"""The shipped speech model: its file, its vocabulary, and what it hears."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import akunu
from akunu._core import WhisperFile
from akunu.speech.config import WhisperConfig
from akunu.speech.tokenizer import WhisperTokenizer
from tools.ember_speech.sample import PAUSE, SENTENCES
from tools.ember_speech.sentences import sentences
from tools.ember_speech.tokens import Vocabulary


@pytest.fixture(scope="module")
def file(speech_path: Path) -> WhisperFile:
    return WhisperFile(str(speech_path))


@pytest.fixture(scope="module")
def model() -> Iterator[Any]:
    with akunu.load("ember-speech") as loaded:
        yield loaded


@pytest.fixture(scope="module")
def sample_path(speech_path: Path) -> Path:
    return speech_path.with_suffix(".ogg")


def test_it_fits_in_the_package(speech_path: Path, sample_path: Path) -> None:
    assert speech_path.stat().st_size <= 10_000_000
    assert sample_path.stat().st_size <= 200_000


def test_its_words_are_timed_by_the_heads_that_learned_it(file: WhisperFile) -> None:
    assert WhisperConfig.from_sizes(file.sizes).alignment_heads == ((1, 0), (2, 0))


def test_its_tokens_are_those_it_was_trained_with(file: WhisperFile) -> None:
    tokenizer, trained = WhisperTokenizer.from_file(file), Vocabulary()
    special = tokenizer.special
    assert (special.end, special.start, special.start_of_previous) == (
        trained.end,
        trained.start,
        trained.before,
    )
    assert (special.no_speech, special.no_timestamps) == (trained.no_speech, trained.no_timestamps)
    assert (special.timestamp_begin, file.sizes["n_vocab"]) == (trained.zero, trained.size)
    assert not tokenizer.multilingual
    for sentence in islice(sentences(1), 200):
        ids = [i for written, _ in sentence.words for i in trained.word(written)]
        assert tokenizer.encode(" " + sentence.text) == ids
        assert trained.text(ids) == tokenizer.decode(ids) == " " + sentence.text


def test_it_may_write_a_time_with_its_colon(file: WhisperFile) -> None:
    tokenizer = WhisperTokenizer.from_file(file)
    assert not {*tokenizer.encode(" at 10:45.")} & {*tokenizer.non_speech_tokens}


def test_the_sample_is_heard_as_it_was_said(model: Any, sample_path: Path) -> None:
    segments = model.transcribe(sample_path).segments
    assert [segment.text.strip() for segment in segments] == [sentence.text for sentence in SENTENCES]
    assert abs(segments[0].start - PAUSE) <= 0.2
    for before, after in pairwise(segments):
        assert abs(after.start - before.end - PAUSE) <= 0.2


def test_silence_and_noise_have_no_text(model: Any) -> None:
    noise = np.random.default_rng(1).normal(0, 0.1, 80_000).astype(np.float32)
    for sound in (np.zeros(80_000, np.float32), noise):
        assert model.transcribe(sound).text == ""


def test_another_language_is_refused_as_it_was_called(model: Any, sample_path: Path) -> None:
    assert model.transcribe(sample_path, language="English", clip_timestamps=[0, 1], beam_size=1) is not None
    for language in ("German", "de"):
        with pytest.raises(
            akunu.InvalidArgumentError, match=f"found '{language}', but this model knows only"
        ):
            model.transcribe_stream(sample_path, language=language)

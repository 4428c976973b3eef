"""Whisper as published: what faster-whisper writes of the same recordings, on one window and on many."""

from __future__ import annotations

import functools
import re
import shutil
import subprocess
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import akunu
from akunu.audio import audio_blocks
from missing import data, missing

from .models import real_model, recorded

SPOKEN = {
    "de": "Guten Morgen. Heute scheint die Sonne, und wir gehen zusammen in den Garten.",
    "es": "Buenos días. Hoy hace sol y vamos juntos al jardín de la casa.",
}
"""What espeak-ng says; `tools/record_real.py` has the same."""


def words(text: str) -> list[str]:
    """The words of a text, without punctuation and capitals."""
    return re.findall(r"[^\W_]+", unicodedata.normalize("NFC", text).lower())


def errors(found: str, wanted: str) -> int:
    """Words that differ, by edit distance."""
    rows, columns = words(found), words(wanted)
    last = list(range(len(columns) + 1))
    for i, one in enumerate(rows, 1):
        row = [i]
        for j, other in enumerate(columns, 1):
            row.append(min(last[j] + 1, row[-1] + 1, last[j - 1] + (one != other)))
        last = row
    return last[-1]


@functools.cache
def kennedy() -> np.ndarray:
    """Eleven seconds of John F. Kennedy, at 16 kHz."""
    return np.concatenate(list(audio_blocks(data("whisper/jfk.flac"))))


@pytest.fixture(scope="module")
def loaded() -> Iterator[Callable[[str], akunu.WhisperModel]]:
    models: dict[str, akunu.WhisperModel] = {}

    def load(name: str) -> akunu.WhisperModel:
        if name not in models:
            models[name] = akunu.load(real_model(name), task="transcribe", progress=False)
        return models[name]

    yield load
    for model in models.values():
        model.close()


Loaded = Callable[[str], akunu.WhisperModel]


@pytest.mark.parametrize("name", ["whisper-tiny.en", "whisper-base"])
def test_kennedy_is_written_word_for_word_with_the_times_of_words(name: str, loaded: Loaded) -> None:
    wanted = recorded(name)["jfk"]
    found = loaded(name).transcribe(data("whisper/jfk.flac"), word_timestamps=True)
    assert (found.language, words(found.text)) == (wanted["language"], words(wanted["text"]))
    assert [words(word.word) for word in found.words] == [words(word) for word, _, _ in wanted["words"]]
    starts = np.array([[word.start, word.end] for word in found.words])
    np.testing.assert_allclose(starts, [times for _, *times in wanted["words"]], atol=0.3)


def test_eight_copies_are_written_eight_times(loaded: Loaded) -> None:
    """Windows one after the other, batched, and streamed."""
    model, sound = loaded("whisper-base"), np.concatenate([kennedy()] * 8)
    once, wanted = (recorded("whisper-base")[name]["text"] for name in ("jfk", "jfk-88s"))
    stream = model.transcribe_stream(sound, language="en")
    streamed = "".join(segment.text for segment in stream)
    assert errors(streamed, once * 8) <= errors(wanted, once * 8)
    # Windows that know nothing of each other are cut amid a sentence; faster-whisper's have no error either.
    for beams in (1, 5):
        found = model.transcribe(sound, language="en", beam_size=beams, batch_size=4)
        assert errors(found.text, once * 8) <= 2


@pytest.mark.parametrize("language", SPOKEN)
def test_other_languages_are_known_and_written(language: str, loaded: Loaded, tmp_path: Path) -> None:
    if shutil.which("espeak-ng") is None:
        missing("espeak-ng is not installed")
    path = tmp_path / "spoken.wav"
    subprocess.run(["espeak-ng", "-v", language, "-w", path, SPOKEN[language]], check=True)
    found, wanted = loaded("whisper-base").transcribe(path), recorded("whisper-base")[language]
    assert found.language == wanted["language"] == language
    assert errors(found.text, SPOKEN[language]) <= errors(wanted["text"], SPOKEN[language])

"""Recordings as they are: of any length and shape, damaged, cut off, or none at all."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from akunu import AudioError
from akunu.speech.whisper_model import WhisperModel
from children import environment
from tokenizer.vocabularies import data_file

from . import tiny
from .babble import Babble

QUICK: dict[str, Any] = {"language": "en", "beam_size": 1, "temperature": 0, "max_new_tokens": 8}
RANDOM = np.random.default_rng(0)


@pytest.fixture
def model() -> Iterator[WhisperModel]:
    engine = Babble()
    with WhisperModel(engine, tiny.tokenizer(), "babble", Path("babble.bin")) as found:
        yield found
        assert not engine.alive and not engine.windows


def test_a_real_recording_of_any_form_says_the_same(model: WhisperModel) -> None:
    """As a path, as bytes, through a pipe, and as what is in it."""
    path = data_file("whisper/jfk.flac")
    expected = model.transcribe(path, **QUICK)
    assert expected.duration == 11.0 and expected.text
    assert model.transcribe(path.read_bytes(), **QUICK) == expected
    samples, rate = soundfile.read(path)
    assert model.transcribe(samples, sampling_rate=rate, **QUICK) == expected
    read, write = os.pipe()
    thread = threading.Thread(target=_pour, args=(write, path))
    thread.start()
    with open(read, "rb") as pipe:
        assert model.transcribe(pipe, **QUICK) == expected
    thread.join()


def _pour(descriptor: int, path: Path) -> None:
    with open(descriptor, "wb") as file:
        file.write(path.read_bytes())


@pytest.mark.parametrize(
    ("shape", "rate"), [((1,), 16000), ((16000, 8), 16000), ((192_000, 2), 192_000), ((8000,), 8000)]
)
def test_any_length_channels_and_rate(model: WhisperModel, shape: tuple[int, ...], rate: int) -> None:
    found = model.transcribe(RANDOM.normal(0, 0.1, shape), sampling_rate=rate, **QUICK)
    assert found.duration == pytest.approx(shape[0] / rate, abs=1e-3)
    assert all(segment.end <= found.duration + 0.01 for segment in found.segments)


@pytest.mark.parametrize(
    ("channels", "rate", "form"), [(8, 48000, "WAV"), (1, 192_000, "FLAC"), (2, 8000, "OGG")]
)
def test_a_file_of_any_channels_and_rate(model: WhisperModel, channels: int, rate: int, form: str) -> None:
    data = io.BytesIO()
    soundfile.write(data, RANDOM.normal(0, 0.1, (rate * 2, channels)), rate, format=form)
    assert model.transcribe(data.getvalue(), **QUICK).duration == pytest.approx(2, abs=0.02)


def test_a_file_without_samples_is_a_clear_error(model: WhisperModel) -> None:
    data = io.BytesIO()
    soundfile.write(data, np.zeros(0), 16000, format="WAV")
    with pytest.raises(AudioError, match="no samples"):
        model.transcribe(data.getvalue(), **QUICK)


@pytest.mark.parametrize("batch_size", [None, 3])
@pytest.mark.parametrize(
    ("audio", "message"),
    [
        (np.zeros(0), "no samples"),
        (np.full(1000, np.nan), "is nan"),
        (b"", "empty"),
        (b"This is text and no sound. " * 100, "not a recording"),
    ],
)
def test_what_is_no_recording_is_a_clear_error(
    model: WhisperModel, audio: Any, message: str, batch_size: int | None
) -> None:
    with pytest.raises(AudioError, match=message):
        model.transcribe(audio, batch_size=batch_size, **QUICK)


def test_clipped_sound_is_sound(model: WhisperModel) -> None:
    assert model.transcribe(np.clip(RANDOM.normal(0, 5, 48000), -1, 1), **QUICK).duration == 3


def test_a_truncated_file_gives_its_beginning_and_an_error(model: WhisperModel) -> None:
    data = io.BytesIO()
    soundfile.write(data, RANDOM.normal(0, 0.1, 16000 * 100), 16000, format="FLAC")
    stream = model.transcribe_stream(data.getvalue()[: len(data.getvalue()) // 2], **QUICK)
    assert next(stream).end <= 50
    with pytest.raises(AudioError, match=r"cut off|incomplete"):
        list(stream)


def test_a_pipe_whose_writer_is_killed_is_a_recording_that_was_cut_off(model: WhisperModel) -> None:
    code = "import sys, time; sys.stdout.buffer.write(open(sys.argv[1], 'rb').read()[:400_000])"
    code += "; sys.stdout.flush(); time.sleep(60)"
    path = str(data_file("whisper/jfk.flac"))
    with subprocess.Popen([sys.executable, "-c", code, path], stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        timer = threading.Timer(1, writer.kill)
        timer.start()
        with pytest.raises(AudioError, match=r"cut off|incomplete"):
            model.transcribe(writer.stdout, **QUICK)


@pytest.mark.long
def test_three_hours_through_the_model_that_comes_along_take_little_memory() -> None:
    """Silence, hum and a sentence every half an hour: less than 300 MB above the model."""
    code = """
import resource, numpy as np
import akunu
from akunu.audio import load_audio
from akunu.loading.finding import find_model
model = akunu.load("ember-speech", threads=1)
speech = load_audio(find_model("ember-speech").with_suffix(".ogg"))
options = {"batch_size": 2, "beam_size": 1, "temperature": 0}
expected = model.transcribe(speech, **options).text
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
hum = 0.01 * np.sin(np.arange(16000) / 20).astype(np.float32)
padded = np.pad(speech, (0, -len(speech) % 16000)).reshape(-1, 16000)
def recording():
    for second in range(3 * 3600):
        into = second % 1800 - 900
        yield padded[into] if 0 <= into < len(padded) else hum * (second // 600 % 2)
found = model.transcribe(recording(), **options)
print(found.duration, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
print(expected)
for n in range(6):
    print("".join(each.text for each in found.segments if each.start // 1800 == n).strip())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    first, expected, *said = done.stdout.strip().splitlines()
    seconds, megabytes = map(float, first.split())
    assert seconds == 10800 and megabytes < 300
    assert expected and said == [expected] * 6


@pytest.mark.long
@pytest.mark.in_turn
@pytest.mark.parametrize("options", [{}, {"batch_size": 4}, {"vad_filter": True}])
def test_three_hours_take_little_memory(options: dict[str, Any]) -> None:
    """In a process of its own, with a model that takes no time: less than 300 MB above the model."""
    code = f"""
import resource, numpy as np
from pathlib import Path
from akunu.speech.whisper_model import WhisperModel
from speech import tiny
from speech.babble import Babble
hum = np.random.default_rng(0).normal(0, 0.1, 16000).astype(np.float32)
hum *= np.sin(np.arange(16000) / 800)
def recording():
    for second in range(3 * 3600):
        yield hum * (0.01 if second % 40 > 30 else 1)
model = WhisperModel(Babble(), tiny.tokenizer(), "babble", Path("babble.bin"))
model.transcribe(hum, **{QUICK!r})
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
found = model.transcribe(recording(), **{QUICK | {"max_new_tokens": 2} | options!r})
print(found.duration, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment())
    assert done.returncode == 0, done.stderr
    seconds, megabytes = map(float, done.stdout.split())
    assert seconds == 10800 and megabytes < 300

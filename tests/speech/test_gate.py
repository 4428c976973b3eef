"""What is no speech is left out, and times stay those of the recording."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from akunu.audio import VadOptions, load_audio, speech_spans
from akunu.base.errors import InvalidArgumentError
from akunu.speech.gate import SpeechGate, cut_at_silence
from akunu.speech.segments import Segment, Word
from akunu.speech.whisper_model import WhisperModel
from tokenizer.vocabularies import data_file

from . import tiny
from .babble import Babble

Array = npt.NDArray[np.float32]
QUICK = VadOptions(min_silence_duration_ms=500, speech_pad_ms=100)


@pytest.fixture(scope="module")
def speech() -> Array:
    return load_audio(data_file("whisper/jfk.wav"))


@pytest.fixture(scope="module")
def recording(speech: Array) -> Array:
    """Somebody speaks from 5 to 16 s and from 31 to 42 s, of 50."""
    samples = np.zeros(50 * 16000, np.float32)
    for second in (5, 31):
        samples[second * 16000 : second * 16000 + len(speech)] = speech
    return samples


def blocks(samples: Array, size: int = 16000) -> Iterator[Array]:
    return (samples[i : i + size] for i in range(0, len(samples), size))


def test_only_speech_passes_and_every_sample_knows_its_time(recording: Array) -> None:
    gate = SpeechGate(blocks(recording), QUICK)
    kept = np.concatenate(list(gate))
    spans = list(speech_spans(blocks(recording), QUICK))
    assert np.array_equal(kept, np.concatenate([recording[s.start : s.end] for s in spans]))
    assert 12 < len(kept) / 16000 < 24
    borders = np.cumsum([0, *(s.end - s.start for s in spans)]) / 16000
    for span, border, after in zip(spans, borders[:-1], borders[1:], strict=True):
        assert gate.original(border) == pytest.approx(span.start / 16000, abs=0.011)
        assert gate.original(after, end=True) == pytest.approx(span.end / 16000, abs=0.011)


def test_segments_and_words_get_the_times_of_the_recording(recording: Array) -> None:
    gate = SpeechGate(blocks(recording), QUICK)
    length = sum(map(len, gate)) / 16000
    words = (Word(" a", 0.2, 0.4, 1.0), Word(" b", length - 0.5, length - 0.1, 1.0))
    segment = Segment(0, 0.0, length, " a b", [], 0.0, 0.0, 1.0, 0.0)
    plain, timed = (gate.restored(each) for each in (segment, Segment(**segment.__dict__ | {"words": words})))
    assert 4.5 < plain.start < 6 and 41 < plain.end < 43
    assert timed.start == timed.words[0].start > plain.start
    assert timed.end == timed.words[1].end < plain.end


def test_a_word_of_no_length_stays_on_its_side_of_a_silence(recording: Array) -> None:
    gate = SpeechGate(blocks(recording), QUICK)
    length = sum(map(len, gate)) / 16000
    border = next(at / 100 for at in range(round(length * 100)) if gate.original(at / 100) > 30)
    words = (Word(" a", border, border, 1.0), Word(" b", border, border + 0.3, 1.0))
    found = gate.restored(Segment(0, border, border + 0.3, " a b", [], 0.0, 0.0, 1.0, 0.0, words))
    assert 30 < found.start == found.words[0].start == found.words[0].end == found.words[1].start
    assert found.end == found.words[1].end > found.start


def test_hours_of_silence_and_of_speech_take_no_memory(speech: Array) -> None:
    """About two minutes are kept at most: a long speech is cut, silence is forgotten."""
    alive = most = 0

    def gone(_: object) -> None:
        nonlocal alive
        alive -= 1

    def long() -> Iterator[Array]:
        nonlocal alive, most
        for second in range(400):
            spoken = speech[(second - 200) % 11 * 16000 :][:16000] if second > 200 else speech[:16000] * 0
            block = spoken.copy()
            weakref.finalize(block, gone, None)
            alive += 1
            most = max(most, alive)
            yield block
            del block

    for piece in SpeechGate(long(), VadOptions()):
        del piece
    assert most < 130
    most = 0
    for _ in cut_at_silence(long(), None, 30):
        pass
    assert most < 110


def test_windows_end_in_silence_and_hold_all_speech(recording: Array) -> None:
    cuts = [(a / 16000, b / 16000) for a, b in cut_at_silence(blocks(recording), None, 30) if a < b]
    assert len(cuts) == 2 and all(b - a <= 30 for a, b in cuts)
    assert cuts[0][0] < 5.3 and 15.4 < cuts[0][1] < 17 and 30 < cuts[1][0] < 31.3 and cuts[1][1] < 43
    talk = np.tile(recording[5 * 16000 : 16 * 16000], 9)
    cuts = [(a / 16000, b / 16000) for a, b in cut_at_silence(blocks(talk), None, 30) if a < b]
    assert all(b - a <= 30 for a, b in cuts)
    assert sum(b - a for a, b in cuts) > 90
    assert all(a[1] <= b[0] for a, b in itertools.pairwise(cuts))


def test_padding_that_fills_a_window_is_refused_by_name(recording: Array) -> None:
    with pytest.raises(InvalidArgumentError, match=r"speech_pad_ms is 15000, .* a window of 30 s"):
        next(cut_at_silence(blocks(recording), VadOptions(speech_pad_ms=15000), 30))


@pytest.mark.parametrize("batch_size", [None, 4])
def test_a_model_hears_only_speech(recording: Array, batch_size: int | None) -> None:
    engine = Babble()
    options = {"language": "en", "beam_size": 1, "temperature": 0, "max_new_tokens": 8}
    with WhisperModel(engine, tiny.tokenizer(), "babble", Path("babble.bin")) as model:
        found = model.transcribe(recording, vad_filter=True, batch_size=batch_size, **options)  # type: ignore[arg-type]
        assert found.duration == 50 and found.segments
        for segment in found.segments:
            assert 4.5 < segment.start <= segment.end < 43
        silence = np.zeros(16000 * 40, np.float32)
        before = engine.heard_windows
        assert model.transcribe(silence, vad_filter=True, batch_size=batch_size, **options).text == ""  # type: ignore[arg-type]
        assert engine.heard_windows == before

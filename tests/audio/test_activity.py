"""Speech is found in silence and noise; noise, tones and silence are not speech."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pytest

from akunu.audio import VadOptions, load_audio, speech_probability, speech_spans
from akunu.base.errors import InvalidArgumentError
from tokenizer.vocabularies import data_file

Array = npt.NDArray[np.float32]
QUICK = VadOptions(min_silence_duration_ms=500, speech_pad_ms=100)
# Where somebody speaks in jfk.wav, to a tenth of a second; pauses of half a second and more between.
SPOKEN = [(0.3, 2.2), (3.3, 4.4), (5.4, 10.4)]


@pytest.fixture(scope="module")
def speech() -> Array:
    return load_audio(data_file("whisper/jfk.wav"))


def noise(seconds: float, level: float, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(0, level, round(seconds * 16000)).astype(np.float32)


def blocks(samples: Array, size: int = 16000) -> Iterator[Array]:
    return (samples[i : i + size] for i in range(0, len(samples), size))


def seconds(samples: Array, options: VadOptions = QUICK) -> list[tuple[float, float]]:
    return [(span.start / 16000, span.end / 16000) for span in speech_spans(blocks(samples), options)]


def share_of(spans: list[tuple[float, float]], wanted: list[tuple[float, float]]) -> float:
    """How much of what is wanted the spans cover."""
    both = sum(max(min(b, d) - max(a, c), 0.0) for a, b in spans for c, d in wanted)
    return both / sum(b - a for a, b in wanted)


@pytest.mark.parametrize("snr", [None, 20, 10, 5])
def test_speech_between_silences_or_in_noise_is_found_and_the_pauses_with_it(
    speech: Array, snr: float | None
) -> None:
    level = 0.0 if snr is None else float(np.sqrt(np.square(speech).mean()) / 10 ** (snr / 20))
    samples = noise(17, level)
    samples[48000 : 48000 + len(speech)] += speech
    spans = seconds(samples)
    wanted = [(a + 3, b + 3) for a, b in SPOKEN]
    assert share_of(spans, wanted) > (0.95 if snr is None else 0.8)
    assert spans[0][0] > 2.8 and spans[-1][1] < 14.3
    assert share_of(spans, [(5.45, 6.1), (7.65, 8.25)]) < 0.25


def sine(hz: float) -> Array:
    return (0.3 * np.sin(2 * np.pi * hz * np.arange(160_000) / 16000)).astype(np.float32)


def bursts() -> Array:
    return noise(10, 0.1) * (sine(0.7) > 0.1)


def brown() -> Array:
    walk = np.cumsum(noise(10, 0.1).astype(np.float64))
    walk -= np.convolve(walk, np.ones(800) / 800, "same")
    return (walk / np.abs(walk).max() / 2).astype(np.float32)


@pytest.mark.parametrize(
    "samples",
    [
        noise(10, 0.1),
        noise(10, 1e-4),
        np.zeros(160_000, np.float32),
        brown(),
        bursts(),
        sine(440),
        sine(100) + noise(10, 0.001),
        np.zeros(10, np.float32),
    ],
    ids=["white", "faint", "silence", "brown", "bursts", "tone", "hum", "ten samples"],
)
def test_what_is_no_speech_is_none(samples: Array) -> None:
    assert seconds(samples, VadOptions(min_speech_duration_ms=50)) == []


def test_ten_minutes_of_noise_hold_no_speech() -> None:
    assert seconds(noise(600, 0.05, seed=7)) == []


def test_the_cut_into_pieces_does_not_matter(speech: Array) -> None:
    whole = np.concatenate(list(speech_probability([speech])))
    assert len(whole) == len(speech) // 160
    for size in (1600, 7777, 100_000):
        pieces = np.concatenate(list(speech_probability(blocks(speech, size))))
        assert np.array_equal(pieces >= 0.5, whole >= 0.5)
        assert np.allclose(pieces, whole, atol=1e-4)


def test_spans_come_while_the_recording_is_read(speech: Array) -> None:
    read = 0

    def live() -> Iterator[Array]:
        nonlocal read
        for block in blocks(np.concatenate([speech, np.zeros(160_000, np.float32)]), 1600):
            read += len(block)
            yield block

    first = next(speech_spans(live(), QUICK))
    assert read / 16000 < first.end / 16000 + 0.5 + 1.6 + 1.1


def test_short_silence_is_part_of_the_speech_and_long_speech_is_cut(speech: Array) -> None:
    assert len(seconds(speech, VadOptions())) == 1
    spans = seconds(speech, VadOptions(max_speech_duration_s=4, speech_pad_ms=0))
    assert len(spans) >= 3 and all(end - start <= 4.01 for start, end in spans)
    assert share_of(spans, SPOKEN) > 0.95


def test_short_speech_may_be_left_out(speech: Array) -> None:
    options = VadOptions(min_silence_duration_ms=500, speech_pad_ms=100, min_speech_duration_ms=2000)
    assert len(seconds(speech, options)) < len(seconds(speech))


def test_numbers_of_any_kind_are_the_same(speech: Array) -> None:
    spans = list(speech_spans([speech], VadOptions(min_silence_duration_ms=200, speech_pad_ms=30)))
    for kind in (float, np.uint8, np.float32):
        options = VadOptions(min_silence_duration_ms=kind(200), speech_pad_ms=kind(30))
        assert list(speech_spans([speech], options)) == spans
        assert all(isinstance(end, int) for span in spans for end in (span.start, span.end))


def test_padding_stays_in_the_recording(speech: Array) -> None:
    spans = list(speech_spans([speech], VadOptions(speech_pad_ms=5000)))
    assert [(span.start, span.end) for span in spans] == [(0, len(speech))]


@pytest.mark.parametrize(
    "options",
    [
        {"threshold": 1.0},
        {"speech_pad_ms": -1},
        {"min_speech_duration_ms": -5},
        {"max_speech_duration_s": 0},
        {"speech_pad_ms": math.inf},
        {"neg_threshold": "low"},
        {"neg_threshold": math.nan},
        {"min_silence_duration_ms": 10**400},
        {"threshold": True},
    ],
)
def test_options_out_of_range_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(InvalidArgumentError, match=next(iter(options))):
        VadOptions(**options)  # type: ignore[arg-type]

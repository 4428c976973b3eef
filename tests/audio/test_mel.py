"""The log-mel front end equals OpenAI's: 400 points, their filters file, whole or in pieces."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from akunu.audio import LogMelStream, load_audio, log_mel, normalize_log_mel
from akunu.base.errors import InvalidArgumentError
from tokenizer.vocabularies import data_file

Array = npt.NDArray[np.float32]


def published_filters(mels: int) -> Array:
    return np.load(data_file("whisper/mel_filters.npz"))[f"mel_{mels}"]


def reference(samples: Array, filters: Array) -> npt.NDArray[np.float64]:
    """OpenAI's `log_mel_spectrogram` in float64."""
    count = len(samples) // 160
    padded = np.pad(samples.astype(np.float64), 200, mode="reflect")
    frames = np.lib.stride_tricks.sliding_window_view(padded, 400)[::160][:count]
    power = np.abs(np.fft.rfft(frames * np.hanning(401)[:400])) ** 2
    log = np.log10(np.maximum(power @ filters.T.astype(np.float64), 1e-10)).T
    return (np.maximum(log, log.max() - 8) + 4) / 4


@pytest.fixture(scope="module")
def speech() -> Array:
    return load_audio(data_file("whisper/jfk.flac"))


@pytest.mark.parametrize("mels", [80, 128])
def test_speech_is_within_1e_4_of_openai(speech: Array, mels: int) -> None:
    found = log_mel(speech, mels)
    assert found.shape == (mels, 1100) and found.dtype == np.float32
    assert np.abs(found - reference(speech, published_filters(mels))).max() < 1e-4


@pytest.mark.parametrize("mels", [80, 128])
def test_silence_that_is_added_counts(speech: Array, mels: int) -> None:
    padded = np.concatenate([speech, np.zeros(480_000, np.float32)])
    assert np.array_equal(log_mel(speech, mels, padding=480_000), log_mel(padded, mels))
    assert np.abs(log_mel(padded, mels) - reference(padded, published_filters(mels))).max() < 1e-4


@pytest.mark.parametrize("mels", [80, 128])
def test_pure_tones_of_any_length_are_within_3e_4_of_openai(mels: int) -> None:
    """Eight decades below a tone, float32 holds little of what the window lets through."""
    random = np.random.default_rng(0)
    filters = published_filters(mels)
    for _ in range(300):
        turns = np.arange(random.integers(201, 6000)) * random.uniform(0.01, 3.1)
        tone = (np.sin(turns) * 10 ** random.uniform(-3, 0)).astype(np.float32)
        assert np.abs(log_mel(tone, mels) - reference(tone, filters)).max() < 3e-4


@pytest.mark.parametrize("hz", [40, 400, 1000, 7960])
def test_a_tone_is_loudest_in_the_band_that_the_published_filters_give_it(hz: int) -> None:
    tone = np.sin(2 * np.pi * hz * np.arange(16000) / 16000).astype(np.float32)
    assert log_mel(tone, 128)[:, 50].argmax() == published_filters(128)[:, hz // 40].argmax()


@pytest.mark.parametrize("samples", [201, 359, 400, 401, 640, 999, 1600, 4321])
def test_both_ends_are_reflected(speech: Array, samples: int) -> None:
    part = speech[20_000 : 20_000 + samples]
    found = log_mel(part)
    assert found.shape == (80, samples // 160)
    assert np.abs(found - reference(part, published_filters(80))).max() < 1e-4


@pytest.mark.parametrize("samples", [0, 1, 2, 159])
def test_less_than_a_hop_has_no_frame(samples: int) -> None:
    assert log_mel(np.ones(samples, np.float32)).shape == (80, 0)


def test_samples_shorter_than_the_margin_are_reflected_repeatedly(speech: Array) -> None:
    part = speech[20_000:20_170]
    assert np.abs(log_mel(part) - reference(part, published_filters(80))).max() < 1e-4


@pytest.mark.parametrize("size", [1, 7, 160, 163, 400, 5000])
def test_pieces_have_the_frames_of_the_whole_to_the_bit(speech: Array, size: int) -> None:
    part = speech[: 3000 if size == 1 else 30_000]
    stream = LogMelStream(80)
    pieces = [stream.feed(part[i : i + size]) for i in range(0, len(part), size)]
    pieces.append(stream.feed(part[:0], end=True))
    assert np.array_equal(np.concatenate(pieces, axis=1), LogMelStream(80).feed(part, end=True))
    assert pieces[-1].shape[1] <= 3  # frames come as soon as they are complete


def test_a_stream_that_has_ended_takes_no_more() -> None:
    stream = LogMelStream()
    stream.feed(np.zeros(1000), end=True)
    with pytest.raises(InvalidArgumentError, match="after the end of the stream"):
        stream.feed(np.zeros(10))


def test_the_recording_s_own_top_may_be_given() -> None:
    quiet = LogMelStream().feed(np.full(3200, 1e-3, np.float32), end=True)
    assert normalize_log_mel(quiet, top=4.0).min() == 0
    assert normalize_log_mel(quiet).max() == pytest.approx((quiet.max() + 4) / 4)


def test_what_is_no_signal_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="2 dimensions"):
        log_mel(np.zeros((2, 1000)))
    with pytest.raises(InvalidArgumentError, match="mels is 0, expected 1 to 512"):
        log_mel(np.zeros(1000), 0)
    for padding in (-1, 2**31):
        with pytest.raises(InvalidArgumentError, match=f"padding is {padding}"):
            log_mel(np.zeros(1000), padding=padding)


def test_transformers_agrees(speech: Array) -> None:
    transformers = pytest.importorskip("transformers")
    for mels in (80, 128):
        extract = transformers.WhisperFeatureExtractor(feature_size=mels)
        expected = extract(speech, sampling_rate=16000, return_tensors="np").input_features[0]
        assert np.abs(log_mel(speech, mels, padding=480_000 - len(speech)) - expected).max() < 1e-4

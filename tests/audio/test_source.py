"""Any sound becomes mono samples at 16 kHz, in bounded memory, or a clear error."""

from __future__ import annotations

import contextlib
import io
import itertools
import os
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import soundfile

from akunu.audio import audio_blocks, load_audio
from akunu.base.errors import AudioError, InvalidArgumentError
from tokenizer.vocabularies import data_file

Array = npt.NDArray[np.float32]
Capture = pytest.CaptureFixture[str]


def tone(rate: int, seconds: float = 0.5, channels: int = 1) -> Array:
    one = 0.5 * np.sin(2 * np.pi * 440 * np.arange(int(rate * seconds)) / rate)
    return np.repeat(one[:, None], channels, axis=1).astype(np.float32)


def encoded(samples: Array, rate: int = 16000, kind: str = "WAV", subtype: str | None = None) -> bytes:
    file = io.BytesIO()
    soundfile.write(file, samples, rate, format=kind, subtype=subtype)
    return file.getvalue()


def same_tone(samples: Array, seconds: float = 0.5, within: float = 0.01) -> bool:
    expected = tone(16000, seconds)[:, 0]
    middle = slice(1000, -1000)
    return abs(len(samples) - len(expected)) <= 1 and bool(
        np.abs(samples[: len(expected)] - expected[: len(samples)])[middle].max() < within
    )


def test_speech_from_flac_in_stereo_at_44_khz_is_the_published_mono_wav() -> None:
    flac, wav = (load_audio(data_file(f"whisper/jfk.{kind}")) for kind in ("flac", "wav"))
    assert flac.dtype == np.float32 and abs(len(flac) - len(wav)) <= 1
    assert np.corrcoef(flac[: len(wav)], wav[: len(flac)])[0, 1] > 0.999


@pytest.mark.parametrize("rate", [8000, 11025, 16000, 22050, 44100, 48000, 192_000])
@pytest.mark.parametrize("channels", [1, 2, 8])
def test_every_rate_and_number_of_channels_gives_the_same_sound(rate: int, channels: int) -> None:
    assert same_tone(load_audio(encoded(tone(rate, channels=channels), rate)))
    assert same_tone(load_audio(tone(rate, channels=channels), sampling_rate=rate))


@pytest.mark.parametrize("kind", ["WAV", "FLAC", "OGG", "MP3", "AIFF"])
def test_a_path_its_content_an_open_file_and_a_pipe_are_the_same(kind: str, tmp_path: Path) -> None:
    content = encoded(tone(44100, channels=2), 44100, kind)
    path = tmp_path / "tone"
    path.write_bytes(content)
    expected = load_audio(content)
    assert same_tone(expected, within=0.2 if kind in ("OGG", "MP3") else 0.01)
    for audio in (path, str(path), io.BytesIO(content)):
        assert np.array_equal(load_audio(audio), expected)
    fifo = tmp_path / "pipe"
    os.mkfifo(fifo)
    writer = threading.Thread(target=fifo.write_bytes, args=(content,))
    writer.start()
    assert np.array_equal(load_audio(fifo), expected)
    writer.join()


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (np.array([0, 16384, -32768], np.int16), [0, 0.5, -1]),
        (np.array([0, 2**30, -(2**31)], np.int32), [0, 0.5, -1]),
        (np.array([128, 192, 0], np.uint8), [0, 0.5, -1]),
        (np.array([0.25, -2.0]), [0.25, -2]),
        (np.array([[1, 0], [0.5, 0.5]], np.float16), [0.5, 0.5]),
        (np.array([0.125]), [0.125]),
    ],
)
def test_arrays_are_at_full_scale_one_and_channels_are_averaged(array: Array, expected: list[float]) -> None:
    assert load_audio(array).tolist() == expected


def test_live_pieces_come_out_as_they_come_in() -> None:
    given: list[int] = []

    def live() -> Iterator[bytes]:
        for i in range(5):
            given.append(i)
            yield (tone(16000)[i * 100 : i * 100 + 100, 0] * 32767).astype("<i2").tobytes()

    blocks = audio_blocks(live())
    assert not given
    assert len(next(blocks)) == 100 and given == [0]
    assert sum(map(len, blocks)) == 400


@pytest.mark.parametrize("step", [1, 2])
def test_a_piece_is_counted_in_bytes(step: int) -> None:
    """Also of a view that counts samples, or whose samples lie apart."""
    pcm = (tone(16000)[: 801 * step, 0] * 32767).astype("<i2")[::step]
    assert np.array_equal(load_audio(iter([memoryview(pcm)])), load_audio(pcm))


def test_pieces_at_another_rate_are_the_whole_resampled() -> None:
    sound = tone(48000)[:, 0]
    pieces = load_audio((sound[i : i + 777] for i in range(0, len(sound), 777)), sampling_rate=48000)
    assert np.allclose(pieces, load_audio(sound, sampling_rate=48000), atol=1e-6)


FLAC = encoded(np.random.default_rng(1).normal(0, 0.1, (50_000, 1)).astype(np.float32), 44100, "FLAC")
MP3 = encoded(tone(44100, 2), 44100, "MP3")


@pytest.mark.parametrize(
    ("audio", "message"),
    [
        (b"", r"empty \(0 bytes\)"),
        (encoded(tone(16000)[:0]), "no samples"),
        (np.zeros(0), "no samples"),
        (iter(()), "no samples"),
        (b"And so, my fellow Americans" * 100, "not a recording that libsndfile reads"),
        (bytes(5000), "not a recording that libsndfile reads"),
        (FLAC[: len(FLAC) // 2], "damaged or cut off after"),
        (FLAC[:50], "not a recording"),
        (MP3[: len(MP3) // 2], r"announces 2\.\d\d s; it is incomplete"),
        (encoded(tone(16000, 2))[:32044], r"ends after 1\.00 s, but announces 2\.00 s; it is incomplete"),
        (encoded(tone(16000, 2), 16000, "AIFF")[:32000], r"announces 2\.00 s; it is incomplete"),
        (encoded(tone(16000, 2), 16000, "AU")[:32000], r"announces 2\.00 s; it is incomplete"),
        (encoded(tone(16000, 2), 16000, "W64")[:32000], r"announces 2\.00 s; it is incomplete"),
        (encoded(tone(16000, 2), 16000, "RF64")[:32000], r"announces 2\.00 s; it is incomplete"),
        (encoded(np.full((9, 1), np.nan, np.float32), subtype="FLOAT"), "sample 0 of the audio is nan"),
        (np.array([0, 1, np.inf]), "sample 2 of the audio is inf"),
        (iter([b"123"]), "3 bytes, expected an even number"),
        ("no such file.wav", "no such file.wav cannot be opened: No such file"),
        ("no\0file.wav", r"'no\\x00file.wav' cannot be opened: embedded null"),
        ("\ud800.wav", r"'\\ud800.wav' cannot be opened"),
        (os.path.dirname(__file__), "cannot be opened: Is a directory"),
        ("/dev/zero", "neither a file nor a pipe"),
    ],
    ids=itertools.count(),  # the bytes of some have the time of day
)
def test_what_holds_no_sound_is_a_clear_error(audio: object, message: str) -> None:
    with pytest.raises(AudioError, match=message):
        load_audio(audio)  # type: ignore[arg-type]


class Failing(io.BytesIO):
    """A file whose reading fails, once a part of it has been read."""

    def __init__(self, content: bytes, error: BaseException) -> None:
        super().__init__(content)
        self.error = error

    def read(self, size: int | None = -1) -> bytes:
        if self.tell() > len(self.getbuffer()) // 2:
            raise self.error
        return super().read(size)

    def readinto(self, buffer: object) -> int:
        data = self.read(len(memoryview(buffer)))  # type: ignore[arg-type]
        memoryview(buffer)[: len(data)] = data  # type: ignore[arg-type]
        return len(data)


@pytest.mark.parametrize("error", [OSError("the network is gone"), KeyboardInterrupt(), ValueError("closed")])
@pytest.mark.parametrize("kind", ["WAV", "FLAC", "OGG", "MP3"])
def test_what_a_file_raises_is_not_lost(kind: str, error: BaseException, capfd: Capture) -> None:
    content = encoded(np.random.default_rng(2).normal(0, 0.1, (200_000, 1)).astype(np.float32), 44100, kind)
    with pytest.raises(type(error)) as found:
        load_audio(Failing(content, error))
    assert found.value is error
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize("kind", ["WAV", "FLAC", "OGG", "MP3"])
def test_a_path_and_a_pipe_are_read_without_callbacks(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C in one is printed and dropped, and for the decoder the file ends there."""
    content = encoded(tone(44100), 44100, kind)
    path = tmp_path / "tone"
    path.write_bytes(content)
    expected = load_audio(content)
    callbacks: list[object] = []
    monkeypatch.setattr(soundfile.SoundFile, "_init_virtual_io", callbacks.append)
    assert np.array_equal(load_audio(path), expected)
    with subprocess.Popen(["cat", str(path)], stdout=subprocess.PIPE) as writer:
        assert np.array_equal(load_audio(writer.stdout), expected)  # type: ignore[arg-type]
    assert not callbacks


def test_a_damaged_head_says_nothing_besides_its_error(capfd: Capture) -> None:
    """Some lead before the start of the file; floats may be too large for their mean."""
    sounds = [encoded(tone(16000, channels=2), 16000, kind, "FLOAT") for kind in ("AU", "WAV", "AIFF")]
    sounds.append(encoded(tone(16000, channels=2), 16000, "MP3"))
    random = np.random.default_rng(4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for i in range(400):
            damaged = bytearray(sounds[i % len(sounds)])
            for at in random.integers(0, len(damaged) if i % 2 else 200, 20):
                damaged[at] = random.integers(256)
            with contextlib.suppress(AudioError, InvalidArgumentError):
                load_audio(bytes(damaged))
        with pytest.raises(AudioError, match="sample 0"):
            load_audio(np.full((4, 2), 3e38, np.float32))
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize("size", [0xFFFFFFFF, 0x80000000, 0x7FFFFFFF - 36])
def test_a_recording_from_a_pipe_does_not_know_its_length(size: int) -> None:
    """What ffmpeg, arecord and sox write there."""
    file = bytearray(encoded(tone(16000, 2)))
    start = file.index(b"data") + 4
    file[start : start + 4] = size.to_bytes(4, "little")
    assert len(load_audio(bytes(file))) == 32000


def test_a_pipe_whose_writer_was_killed_is_cut_off() -> None:
    part = FLAC[: len(FLAC) // 3]
    code = f"import os, sys; sys.stdout.buffer.write({part!r}); sys.stdout.flush(); os.kill(os.getpid(), 9)"
    with (
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as writer,
        pytest.raises(AudioError, match="cut off"),
    ):
        load_audio(writer.stdout)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("audio", "rate", "message"),
    [
        (np.zeros((2, 16000)), None, r"16000 channels.*transpose the array"),
        (np.zeros((2, 2, 2)), None, "3 dimensions"),
        (np.zeros(4, complex), None, "complex128"),
        (np.zeros(4), 0, "sampling_rate: found 0"),
        (np.zeros(4), 16000.0, "sampling_rate: found 16000.0"),
        (FLAC, 16000, "a recording states its own"),
        ([0.0, 0.5], None, "numbers in a list"),
        (12, None, "type int"),
        (io.StringIO("RIFF"), None, "was opened as text: open the file in binary mode, 'rb'"),
        (iter([1.0, 2.0]), None, "a piece of the audio is of type float"),
    ],
)
def test_what_is_no_audio_is_refused(audio: object, rate: int | None, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        list(audio_blocks(audio, sampling_rate=rate))  # type: ignore[arg-type]


def test_three_hours_take_little_memory(tmp_path: Path) -> None:
    """A file of zeros that takes no room on the disk."""
    path = tmp_path / "long.wav"
    seconds = 3 * 3600
    size = seconds * 16000 * 2
    header = bytearray(encoded(tone(16000)[:0], subtype="PCM_16"))
    header[4:8], header[40:44] = (n.to_bytes(4, "little") for n in (36 + size, size))
    path.write_bytes(header)
    os.truncate(path, len(header) + size)
    code = f"""
import resource
from akunu.audio import audio_blocks, load_audio
load_audio(__import__("numpy").zeros(48000), sampling_rate=48000)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(sum(map(len, audio_blocks({str(path)!r}))), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    samples, grown = map(int, result.stdout.split())
    assert samples == seconds * 16000
    assert grown * (1 if sys.platform == "darwin" else 1024) < 50e6

"""Recordings whose head does not tell the truth about what follows: all that is there is heard."""

from __future__ import annotations

import io
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import soundfile

import akunu
from akunu.audio import audio_blocks, load_audio
from akunu.base.errors import AudioError

Array = npt.NDArray[np.float32]
RATE, SECONDS = 16000, 3
SOUND: Array = np.random.default_rng(0).normal(0, 0.1, RATE * SECONDS).astype(np.float32)


def encoded(
    kind: str, subtype: str | None = None, sound: Array = SOUND, rate: int = RATE, **more: object
) -> bytes:
    file = io.BytesIO()
    soundfile.write(file, sound, rate, format=kind, subtype=subtype, **more)
    return file.getvalue()


def changed(data: bytes, *changes: tuple[int, bytes]) -> bytes:
    """The bytes with others from each of these places on."""
    found = bytearray(data)
    for at, new in changes:
        found[at : at + len(new)] = new
    return bytes(found)


WAV, FLOAT, ULAW = (encoded("WAV", subtype) for subtype in ("PCM_16", "FLOAT", "ULAW"))
RF64, W64, CAF, AU, AIFF, FLAC = (encoded(kind) for kind in ("RF64", "W64", "CAF", "AU", "AIFF", "FLAC"))
VORBIS, OPUS = encoded("OGG", "VORBIS"), encoded("OGG", "OPUS")


def wav(size: int, data: bytes = WAV) -> bytes:
    at = data.index(b"data") + 4
    return changed(data, (4, struct.pack("<I", min(size + 36, 0xFFFFFFFF))), (at, struct.pack("<I", size)))


def flac(samples: int, data: bytes = FLAC) -> bytes:
    """The same with another number in its head, and no sum."""
    head = bytes([data[21] & 0xF0 | samples >> 32]) + struct.pack(">I", samples & 0xFFFFFFFF)
    return changed(data, (21, head), (26, bytes(16)))


def aiff(form: int, frames: int, size: int) -> bytes:
    places = (4, AIFF.index(b"COMM") + 10, AIFF.index(b"SSND") + 4)
    return changed(AIFF, *zip(places, (struct.pack(">I", n) for n in (form, frames, size)), strict=True))


LIES = {
    # 0 and the most are what programs write that cannot seek back; other numbers were right once.
    **{
        f"WAV of {size:x}": wav(size)
        for size in (0, 100, 48000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFFFFDB)
    },
    "floats of 0": wav(0, FLOAT),
    "u-law of 0": wav(0, ULAW),
    "WAV of 0 in a whole of its size": changed(WAV, (WAV.index(b"data") + 4, bytes(4))),
    "RF64 of 0": changed(RF64, (RF64.index(b"ds64") + 8, bytes(24))),
    "RF64 of the most": changed(RF64, (RF64.index(b"ds64") + 8, b"\xff" * 24)),
    "W64 of 0": changed(W64, (16, bytes(8)), (W64.index(b"data") + 16, bytes(8))),
    "W64 of the most": changed(W64, (W64.index(b"data") + 16, b"\xff" * 7 + b"\x7f")),
    "CAF of -1": changed(CAF, (CAF.index(b"data") + 4, b"\xff" * 8)),
    "CAF of 0": changed(CAF, (CAF.index(b"data") + 4, bytes(8))),
    **{f"AU of {size:x}": changed(AU, (8, struct.pack(">I", size))) for size in (0, 48000, 0xFFFFFFFF)},
    "AIFF of 0": aiff(0, 0, 0),
    "AIFF of the most": aiff(0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF),
    "AIFF as sox pipes it": aiff(0x7F00002E, 0x3F800000, 0x7F000008),
    "AIFF of half": aiff(48046, 24000, 48008),
    "FLAC of 0": flac(0),
    "FLAC of half": flac(24000),
    "FLAC of 0 with tags": b"ID3\x04\0\0\0\0\0\x0a" + bytes(10) + flac(0) + b"TAG" + bytes(125),
}


@pytest.mark.parametrize("name", LIES)
def test_a_head_that_says_too_little_or_nothing_keeps_no_sound_back(name: str) -> None:
    found = load_audio(LIES[name])
    assert len(found) == len(SOUND)
    assert np.abs(found - SOUND).max() < (0.02 if name == "u-law of 0" else 1e-4)


def test_what_follows_the_sound_is_no_sound() -> None:
    """Chunks of other kinds, an odd byte, padding."""
    for more in (b"LIST\x04\0\0\0INFO", b"\0", bytes(2000)):
        assert len(load_audio(WAV + more)) == len(SOUND)
    at = WAV.index(b"data")
    empty = WAV[: at + 4] + bytes(4) + b"LIST\x04\0\0\0INFO"
    with pytest.raises(AudioError, match="no samples"):
        load_audio(empty)


@pytest.mark.parametrize("data", [WAV, RF64, W64, CAF, AU, AIFF, FLAC, VORBIS, OPUS])
def test_joined_files_are_heard_to_the_end(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "joined"
    path.write_bytes(data * 3)
    once = load_audio(data)
    for audio in (data * 3, path):
        found = load_audio(audio)
        assert np.array_equal(found, np.concatenate([once] * 3))


def test_joined_files_may_have_other_rates_and_channels() -> None:
    twice = np.repeat(SOUND, 2)[:, None].repeat(2, axis=1)
    for kind in ("WAV", "FLAC", "OGG"):
        found = load_audio(encoded(kind) + encoded(kind, sound=twice, rate=2 * RATE))
        assert abs(len(found) - 2 * len(SOUND)) <= 2


def test_a_flac_file_that_is_cut_off_is_heard_up_to_there() -> None:
    """Whether its head knows the length, which makes it an error, or not."""
    half = FLAC[: len(FLAC) // 2]
    cut = flac(0)[: len(FLAC) // 2]
    there = load_audio(cut)
    assert 0.4 * len(SOUND) < len(there) < 0.6 * len(SOUND)
    blocks, found = audio_blocks(half), 0
    with pytest.raises(AudioError, match=r"damaged or cut off after 1\.\d\d s: its head announces 3\.00 s"):
        for block in blocks:
            found += len(block)
    assert found == len(there)


@pytest.mark.parametrize("more", [b"TAG" + bytes(125), bytes(5000), b"APETAGEX" + bytes(100)])
def test_what_follows_the_last_frame_of_flac_is_no_sound(more: bytes) -> None:
    assert np.array_equal(load_audio(FLAC + more), load_audio(FLAC))


@pytest.mark.parametrize("data", [VORBIS, OPUS, VORBIS + OPUS])
def test_an_ogg_file_that_ends_within_a_page_is_heard_up_to_there(data: bytes) -> None:
    """One that ends behind a page may be all there is: what records calls does not mark the last one."""
    page = data.rindex(b"OggS")
    whole = load_audio(data[:page])
    found = []
    with pytest.raises(AudioError, match=r"is cut off after \d\.\d\d s; fetch it again"):
        for block in audio_blocks(data[: page + 100]):
            found.append(block)
    assert 0 < len(np.concatenate(found)) <= len(whole)


# -- MP3 -----------------------------------------------------------------------------------------------------


def mp3(rate: int = RATE, channels: int = 1, seconds: float = SECONDS, mode: str = "VARIABLE") -> bytes:
    time = np.arange(round(rate * seconds)) / rate
    sound = 0.3 * np.sin(2 * np.pi * 440 * time) * (time % 1 < 0.6)  # pauses, for a bit rate that varies
    return encoded("MP3", None, np.repeat(sound[:, None], channels, axis=1), rate, bitrate_mode=mode)


def without_table(data: bytes) -> bytes:
    """An MP3 file without its first frame, which holds the table."""
    from akunu.audio.mpeg import frame_size

    size = frame_size(data[:4])
    assert size and (b"Xing" in data[:size] or b"Info" in data[:size])
    return data[size:]


@pytest.mark.parametrize("mode", ["VARIABLE", "CONSTANT"])
@pytest.mark.parametrize("rate", [8000, 16000, 22050, 32000, 44100, 48000])
@pytest.mark.parametrize("channels", [1, 2])
def test_mp3_files_are_as_long_as_their_frames(mode: str, rate: int, channels: int) -> None:
    """With a table, without one, joined, and with damage between frames."""
    data = mp3(rate, channels, mode=mode)
    whole = len(load_audio(data))
    assert abs(whole - RATE * SECONDS) <= 1
    delay = 0.3 * RATE  # of the encoder: what a table tells besides
    random = np.random.default_rng(0)
    damage = random.integers(0, 255, 5000).astype(np.uint8).tobytes()
    middle = len(data) // 2
    for changes, times in (
        (without_table(data), 1),
        (data + data, 2),
        (without_table(data) + data, 2),
        (data[:middle] + damage + data[middle:], 1),
        (b"ID3\x04\0\0\0\0\0\x0a" + bytes(10) + data + b"TAG" + bytes(125), 1),
        (data + b"ID3\x04\0\0\0\0\0\x0a" + bytes(10) + data + b"TAG" + bytes(125), 2),
    ):
        assert abs(len(load_audio(changes)) - times * whole) < times * delay


def test_mp3_files_of_other_rates_and_channels_may_be_joined() -> None:
    found = load_audio(mp3(44100, 2) + mp3(16000, 1) + mp3(22050, 2))
    assert abs(len(found) - 3 * RATE * SECONDS) < RATE


def test_blocks_of_an_mp3_file_are_the_whole() -> None:
    data = mp3()
    with soundfile.SoundFile(io.BytesIO(data)) as file:
        assert np.array_equal(load_audio(data), file.read(dtype="float32"))


def test_an_mp3_file_shorter_than_its_table_is_incomplete() -> None:
    data = mp3()
    with pytest.raises(AudioError, match=r"announces 3\.\d\d s; it is incomplete"):
        load_audio(data[: len(data) // 2])


def test_other_files_are_not_taken_for_mp3() -> None:
    random = np.random.default_rng(0)
    for _ in range(20):
        with pytest.raises(AudioError, match="not a recording"):
            load_audio(b"\0\0\0 ftypM4A " + random.integers(0, 256, 200_000, dtype=np.uint8).tobytes())


def test_the_decoder_of_mp3_says_nothing_of_its_own(tmp_path: Path) -> None:
    """It prints lines where bits are missing; what Python and child processes write meanwhile arrives."""
    noisy = tmp_path / "noisy.mp3"
    speech = load_audio(Path(akunu.__file__).parent / "models" / "ember-speech.ogg")
    options = {"bitrate_mode": "VARIABLE", "compression_level": 0.2}
    noisy.write_bytes(encoded("MP3", None, speech, **options))
    code = f"""
import os, subprocess, sys, soundfile
from akunu.audio import audio_blocks
from akunu.audio.quiet import quiet
if sys.argv[1] == "bare":
    file = soundfile.SoundFile({str(noisy)!r})
    while len(file.read(1 << 14)):
        pass
else:
    for block in audio_blocks({str(noisy)!r}):
        pass
    with quiet():
        print("from Python", file=sys.stderr, flush=True)
        subprocess.run([sys.executable, "-c", "import sys; print('from a child', file=sys.stderr)"])
"""

    def said(how: str) -> str:
        return subprocess.run(
            [sys.executable, "-c", code, how], capture_output=True, text=True, check=True
        ).stderr

    assert "mpg123" in said("bare")
    assert said("quiet") == "from Python\nfrom a child\n"

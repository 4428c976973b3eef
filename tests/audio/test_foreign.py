"""What libsndfile does not read: FFmpeg's libraries (the package `av`) or its program do, or it is told."""

from __future__ import annotations

import importlib.util
import io
import shutil
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import numpy.typing as npt
import pytest

from akunu.audio import audio_blocks, foreign, load_audio
from akunu.audio.source import audio_channels, audio_seconds
from akunu.base.errors import AudioError
from missing import missing

Array = npt.NDArray[np.float32]
RATE, SECONDS = 48000, 3
TIME = np.arange(RATE * SECONDS) / RATE
TONES: Array = 0.5 * np.stack([np.sin(2 * np.pi * f * TIME) for f in (440, 1000)], 1).astype(np.float32)


def container(form: str, codec: str, sound: Array = TONES, **options: str) -> bytes:
    """A file as phones, browsers and cameras write it."""
    if importlib.util.find_spec("av") is None:
        missing("the package av is not installed")
    import av

    layout = ("mono", "stereo")[sound.shape[1] - 1]
    file = io.BytesIO()
    with av.open(file, "w", format=form, options=options) as output:
        stream = output.add_stream(codec, rate=RATE, layout=layout)
        frame = av.AudioFrame.from_ndarray(np.ascontiguousarray(sound).reshape(1, -1), "flt", layout)
        frame.sample_rate, frame.pts = RATE, 0
        fitting = av.AudioResampler(stream.codec_context.format, layout, RATE)
        for piece in [*fitting.resample(frame), *fitting.resample(None)]:
            output.mux(stream.encode(piece))
        output.mux(stream.encode(None))
    return file.getvalue()


def with_late_packets(sound: Array) -> bytes:
    """An Ogg file of Opus whose packets from the second second on come a little late, and then catch up."""
    import av

    file = io.BytesIO()
    encoded = av.open(io.BytesIO(container("ogg", "libopus", sound)))
    with encoded, av.open(file, "w", format="ogg") as output:
        stream = output.add_stream_from_template(encoded.streams.audio[0])
        for n, packet in enumerate(encoded.demux(audio=0)):
            if packet.pts is None:
                continue
            late = 384 if 60 <= n < 110 else 0
            packet.pts, packet.dts, packet.stream = packet.pts + late, packet.dts + late, stream
            output.mux(packet)
    return file.getvalue()


def test_ogg_pages_whose_times_do_not_fit_are_heard_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """libsndfile gives up there; FFmpeg goes on where it did."""
    sound = np.concatenate([TONES[: RATE * 2], TONES[: RATE * 2, ::-1]])
    even, late = container("ogg", "libopus", sound), with_late_packets(sound)
    expected, found = load_audio(even), load_audio(late)
    assert abs(len(found) - len(expected)) < 200
    n = min(len(found), len(expected))
    for begin in range(0, n - 16000, 8000):
        one, other = found[begin : begin + 16000], expected[begin : begin + 16000]
        assert np.dot(one, other) > 0.9 * np.linalg.norm(one) * np.linalg.norm(other)
    one = np.concatenate(list(audio_blocks(late, channel=0)))
    assert abs(pitch(one[: 2 * 16000]) - 440) < 2 and abs(pitch(one[2 * 16000 :]) - 1000) < 2
    monkeypatch.setattr(foreign, "available", lambda: False)
    monkeypatch.setattr("akunu.audio.files.foreign_recording", lambda *_: None)
    with pytest.raises(AudioError, match="damaged or cut off after"):
        load_audio(late)


def pitch(sound: Array) -> float:
    """The loudest frequency, in Hz."""
    middle = sound[8000:-8000]
    return float(np.argmax(np.abs(np.fft.rfft(middle))) * 16000 / len(middle))


@pytest.mark.parametrize(
    ("form", "codec"),
    [
        *(("mp4", "aac"), ("ipod", "aac"), ("mov", "pcm_s16le"), ("3gp", "aac"), ("adts", "aac")),
        *(("webm", "libopus"), ("matroska", "aac"), ("matroska", "flac"), ("mpegts", "aac"), ("avi", "mp3")),
    ],
)
def test_files_of_phones_and_browsers_are_heard(form: str, codec: str, tmp_path: Path) -> None:
    data = container(form, codec)
    path = tmp_path / "recording"
    path.write_bytes(data)
    both = load_audio(data)
    assert abs(len(both) - 16000 * SECONDS) < 2000
    assert audio_channels(data) == audio_channels(path) == 2
    assert abs((audio_seconds(path) or SECONDS) - SECONDS) < 0.2
    with tempfile.SpooledTemporaryFile(max_size=1000) as uploaded:
        uploaded.write(data)
        uploaded.seek(0)
        for audio in (path, io.BytesIO(data), uploaded):
            assert np.array_equal(load_audio(audio), both)
    for channel, frequency in enumerate((440, 1000)):
        one = np.concatenate(list(audio_blocks(data, channel=channel)))
        assert abs(pitch(one) - frequency) < 2 and 0.3 < np.abs(one).max() < 0.8


def test_what_a_browser_records_has_no_length_and_is_heard_to_the_end() -> None:
    data = container("webm", "libopus", live="1")
    assert abs(len(load_audio(data)) - 16000 * SECONDS) < 2000


def test_a_file_that_is_cut_off_is_heard_up_to_there() -> None:
    data = container("matroska", "aac")
    found = 0
    with pytest.raises(AudioError, match=r"cut off after|ends after .* incomplete"):
        for block in audio_blocks(data[: len(data) // 4]):
            found += len(block)
    assert found > 0.1 * 16000 * SECONDS


def test_a_film_without_sound_says_so() -> None:
    if importlib.util.find_spec("av") is None:
        missing("the package av is not installed")
    import av

    file = io.BytesIO()
    with av.open(file, "w", format="matroska") as output:
        stream = output.add_stream("mpeg4", rate=25, width=32, height=32, pix_fmt="yuv420p")
        output.mux(stream.encode(av.VideoFrame(32, 32, "yuv420p")))
        output.mux(stream.encode(None))
    with pytest.raises(AudioError, match="has no sound: found video"):
        load_audio(file.getvalue())


@pytest.mark.parametrize("playlist", ["#EXTM3U\n#EXTINF:1,\n{}\n", "ffconcat version 1.0\nfile '{}'\n"])
def test_a_playlist_opens_no_other_file(playlist: str, tmp_path: Path) -> None:
    other = tmp_path / "other.ts"
    other.write_bytes(container("mpegts", "aac"))
    path = tmp_path / "list"
    for text in (playlist.format(other), playlist.format(f"file://{other}"), playlist.format("other.ts")):
        path.write_text(text)
        with pytest.raises(AudioError, match="not a recording"):
            load_audio(path)


@pytest.fixture
def no_av(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foreign, "_av", lambda: False)


@pytest.mark.usefixtures("no_av")
def test_without_ffmpeg_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(AudioError, match=r"M4A.* need FFmpeg: pip install 'akunu\[av\]'.*ffmpeg -i INPUT"):
        load_audio(b"\0\0\0 ftypM4A " + bytes(2000))


FFMPEG = """#!{python}
# What ffmpeg writes to a pipe, of a file that holds samples after "RAW:"; what it says of others.
import sys
data = open(sys.argv[sys.argv.index("-i") + 1].removeprefix("file:"), "rb").read()
assert data and "-protocol_whitelist" in sys.argv and "-format_whitelist" in sys.argv
if not data.startswith(b"RAW:"):
    sys.exit("Invalid data found when processing input")
unknown = b"\\xff" * 4
fmt = b"fmt \\x10\\0\\0\\0\\1\\0\\2\\0\\x80\\x3e\\0\\0\\0\\xfa\\0\\0\\4\\0\\x10\\0"
sys.stdout.buffer.write(b"RIFF" + unknown + b"WAVE" + fmt + b"data" + unknown + data[4:])
if b"broken" in data:
    sys.exit("Error while decoding")
"""


@pytest.fixture
def program(no_av: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    path = tmp_path / "bin" / "ffmpeg"
    path.parent.mkdir()
    path.write_text(FFMPEG.format(python=sys.executable))
    path.chmod(0o755)
    monkeypatch.setattr(shutil, "which", lambda _: str(path))
    samples = np.arange(40000, dtype="<i2").reshape(-1, 2)
    return SimpleNamespace(samples=samples, data=b"RAW:" + samples.tobytes())


def test_the_program_is_used_where_the_package_is_missing(program: SimpleNamespace, tmp_path: Path) -> None:
    path = tmp_path / "-i.m4a"
    path.write_bytes(program.data)
    expected = program.samples.astype(np.float32) / 32768
    for audio in (program.data, path, io.BytesIO(program.data)):
        assert np.array_equal(load_audio(audio), expected.mean(axis=1, dtype=np.float32))
    assert audio_channels(path) == 2
    assert np.array_equal(np.concatenate(list(audio_blocks(path, channel=1))), expected[:, 1])


def test_what_the_program_says_is_the_error(program: SimpleNamespace) -> None:
    with pytest.raises(AudioError, match=r"not a recording .* FFmpeg does not read it either"):
        load_audio(b"no recording")
    blocks, found = audio_blocks(program.data + b"broken"), 0
    with pytest.raises(AudioError, match=r"cut off after 1\.25 s: Error while decoding"):
        for block in blocks:
            found += len(block)
    assert found >= len(program.samples)
    next(audio_blocks(program.data * 50)).sum()  # nobody reads on: the program ends

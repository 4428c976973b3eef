"""Recordings that libsndfile does not read (MP4, M4A, WebM, MKV, AAC, …), by FFmpeg.

Its libraries come with the package `av`; where that is missing, a program `ffmpeg` is used. Both take what is
in the file itself: formats that name other files or addresses (playlists) are refused, as a recording may be
anybody's.
"""

from __future__ import annotations

import contextlib
import importlib.util
import itertools
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from akunu.audio.pcm import MAX_CHANNELS, SAMPLE_RATE, Samples
from akunu.base.errors import AudioError

if TYPE_CHECKING:
    import av

__all__ = ["FOREIGN_SUFFIXES", "NEEDS", "Foreign", "available", "foreign_recording", "remedy"]

FOREIGN_SUFFIXES: Final = frozenset(
    {".m4a", ".m4b", ".mp4", ".m4v", ".mov", ".webm", ".mkv", ".mka", ".weba", ".aac", ".3gp", ".3g2"}
    | {".wma", ".wmv", ".asf", ".avi", ".flv", ".mpg", ".mpeg", ".mts", ".m2ts", ".amr", ".ac3", ".ape"}
    | {".wv", ".mp2", ".ra", ".rm", ".dts", ".tta", ".mxf", ".ogv"}
)
"""The suffixes of files that FFmpeg reads, and libsndfile does not."""

_FORMATS: Final = (
    "mov,mp4,m4a,3gp,matroska,webm,aac,adts,loas,mp3,ogg,flac,wav,w64,aiff,au,caf,asf,avi,flv,mpeg,mpegts,"
    "amr,amrnb,amrwb,ac3,eac3,dts,ape,wv,tta,tak,dsf,ircam,voc,rm,nut,mxf,mpc,mpc8,shn,gsm,oma,xwma"
)
_BLOCK: Final = 1 << 15
_SHORTFALL: Final = 0.02
"""The share of the announced length that may be missing, besides a second."""


@dataclass(frozen=True)
class Foreign:
    """A recording that is being decoded.

    Attributes
    ----------
    rate, channels : int
        Samples a second, and channels.
    seconds : float or None
        How long it says it is.
    blocks : iterator of ndarray
        float32 or int16 [n, channels].
    """

    rate: int
    channels: int
    seconds: float | None
    blocks: Iterator[npt.NDArray[Any]]


NEEDS: Final = (
    "MP4, M4A, WebM, MKV, AAC and the like need FFmpeg: pip install 'akunu[av]', or install the program "
    "ffmpeg (or convert it: ffmpeg -i INPUT output.wav)"
)


def available() -> bool:
    """Whether there is an FFmpeg."""
    return _av() or shutil.which("ffmpeg") is not None


def remedy() -> str:
    """Return what to do about a recording that nothing here reads, as the end of a message."""
    return "FFmpeg does not read it either" if available() else NEEDS


def _av() -> bool:
    return importlib.util.find_spec("av") is not None


def foreign_recording(file: IO[bytes], name: str, stack: ExitStack) -> Foreign | None:
    """The recording in a file that can seek, until `stack` is closed; None where nothing here reads it."""
    file.seek(0)
    if _av():
        return _by_av(file, name, stack)
    program = shutil.which("ffmpeg")
    return None if program is None else _by_program(program, file, name, stack)


def _by_av(file: IO[bytes], name: str, stack: ExitStack) -> Foreign | None:
    import av

    av.logging.set_level(av.logging.PANIC)
    options = {"format_whitelist": _FORMATS, "protocol_whitelist": "file,pipe"}
    container: Any
    try:
        # A temporary file's own mode is "w+b".
        container = stack.enter_context(av.open(file, "r", options=options, metadata_errors="ignore"))
    except (av.FFmpegError, ValueError, IndexError):
        return None
    streams = container.streams.audio
    if not streams:
        raise AudioError(f"{name} has no sound: found {_kinds(container)}")
    stream = streams[0]
    context: Any = stream.codec_context
    if context is None or context.sample_rate <= 0 or not 0 < context.channels <= MAX_CHANNELS:
        return None
    seconds = None
    if stream.duration is not None and stream.time_base is not None:
        seconds = float(stream.duration * stream.time_base)
    elif container.duration is not None:
        seconds = container.duration / 1e6
    blocks = _av_blocks(container, stream, name, seconds)
    return Foreign(context.sample_rate, context.channels, seconds, blocks)


def _kinds(container: Any) -> str:
    return ", ".join(sorted({stream.type for stream in container.streams})) or "nothing"


def _av_blocks(
    container: Any, stream: av.AudioStream, name: str, seconds: float | None
) -> Iterator[npt.NDArray[Any]]:
    import av

    # Rate and channels may change on the way. Packed, as `av` reads beyond its array of eight planes.
    layout, rate = stream.layout.name, stream.rate  # as they are at first

    def resampler() -> Any:
        return av.AudioResampler(format="flt", layout=layout, rate=rate)

    frames = 0

    def pieces() -> Iterator[Samples]:
        known: object = None
        same = resampler()
        try:
            for frame in itertools.chain(container.decode(stream), [None]):
                made = []
                if frame is not None and known not in (None, _setup(frame)):
                    made += same.resample(None)
                    same = resampler()
                known = frame and _setup(frame)
                for one in made + same.resample(frame):
                    yield one.to_ndarray().reshape(-1, one.layout.nb_channels)
        except (av.FFmpegError, ValueError, IndexError) as error:
            after = f"{frames / rate:.2f} s"
            raise AudioError(f"{name} is damaged or cut off after {after}: {error}") from None

    for block in _joined(pieces()):
        frames += len(block)
        yield block
    heard = frames / rate
    if seconds is not None and heard + 1 < seconds * (1 - _SHORTFALL):
        raise AudioError(
            f"{name} ends after {heard:.2f} s, but announces {seconds:.2f} s; it is incomplete, "
            "fetch it again"
        )


def _setup(frame: Any) -> tuple[object, ...]:
    """Return what a resampler takes from its first frame."""
    return frame.format.name, frame.layout.name, frame.sample_rate


def _joined(pieces: Iterator[Samples]) -> Iterator[Samples]:
    """The pieces in larger blocks; what came before an error comes first."""
    held: list[Samples] = []
    failed: AudioError | None = None
    try:
        for piece in pieces:
            held.append(piece)
            if sum(map(len, held)) >= _BLOCK:
                yield np.concatenate(held)
                held = []
    except AudioError as error:
        failed = error
    if held:
        yield np.concatenate(held)
    if failed is not None:
        raise failed


def _by_program(program: str, file: IO[bytes], name: str, stack: ExitStack) -> Foreign | None:
    """Open what `ffmpeg` writes as a WAV file, whose head tells rate and channels."""
    copy = stack.enter_context(tempfile.NamedTemporaryFile())  # noqa: SIM115
    shutil.copyfileobj(file, copy)
    copy.flush()
    said: IO[bytes] = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
    command = [program, "-v", "error", "-nostdin", "-protocol_whitelist", "file,pipe"]
    command += ["-format_whitelist", _FORMATS, "-i", f"file:{copy.name}", "-map", "0:a:0"]
    command += ["-ar", str(SAMPLE_RATE), "-c:a", "pcm_s16le", "-bitexact", "-f", "wav", "pipe:1"]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=said)
    stack.callback(_end, process)
    assert process.stdout is not None
    head = process.stdout.read(12)
    channels = 0
    while head:
        head = process.stdout.read(8)
        if head[:4] in (b"data", b""):
            break
        chunk = process.stdout.read(int.from_bytes(head[4:], "little"))
        if head[:4] == b"fmt ":
            channels = int.from_bytes(chunk[2:4], "little")
    if not head or not channels:
        return None
    return Foreign(
        SAMPLE_RATE,
        channels,
        None,
        _program_blocks(process, process.stdout.read, channels, said, name),
    )


def _program_blocks(
    process: subprocess.Popen[bytes],
    read: Callable[[int], bytes],
    channels: int,
    said: IO[bytes],
    name: str,
) -> Iterator[npt.NDArray[Any]]:
    frames = 0
    while data := read(_BLOCK * channels * 2):
        block = np.frombuffer(data[: len(data) // (2 * channels) * 2 * channels], "<i2")
        frames += len(block) // channels
        yield block.reshape(-1, channels)
    status = process.wait()
    said.seek(0)
    lines = said.read().decode("utf-8", "replace").strip().splitlines()
    if status or lines:
        told = lines[-1] if lines else f"ffmpeg ended with status {status}"
        raise AudioError(f"{name} is damaged or cut off after {frames / SAMPLE_RATE:.2f} s: {told}")


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.kill()
    process.wait()
    if process.stdout is not None:
        process.stdout.close()

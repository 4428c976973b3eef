"""Recordings in files, block by block: by libsndfile (WAV, FLAC, OGG, MP3, …), and others by FFmpeg."""

from __future__ import annotations

import errno
import functools
import io
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from typing import IO, TYPE_CHECKING, Any, Final

from akunu.audio.containers import recordings
from akunu.audio.foreign import Foreign, foreign_recording, remedy
from akunu.audio.parts import Bytes, FileRecording
from akunu.audio.pcm import Samples, check_rate, from_array
from akunu.audio.quiet import quiet
from akunu.base.errors import AudioError, InvalidArgumentError

if TYPE_CHECKING:
    import soundfile

__all__ = ["Recording"]

BLOCK_FRAMES: Final = 1 << 15
SHORTFALL: Final = 0.01
"""The announced length that may be missing: that of an MP3 file without a table is an estimate."""
_BYTES: Final = re.compile(
    r"^ *(?:data|SSND|BODY|Data Size|riff|Riff size) *: (\d+) \(should be (\d+)\)", re.MULTILINE
)
"""Lines of libsndfile's log: bytes of sound that a WAV, AIFF or AU file announces, and those there are; of
a W64 or RF64 file those of all of it."""
_UNKNOWN: Final = 0x7F000000
"""An announced size of at least this is unknown: programs that write to a pipe announce the largest one."""


class _Watched:
    """A file for libsndfile's callbacks, which cannot raise: an error is kept, and the file ends there."""

    def __init__(self, file: IO[bytes], failed: list[BaseException]) -> None:
        self._file = file
        self._failed = failed

    def read(self, size: int) -> bytes:
        return self._kept(self._file.read, size) or b""

    def tell(self) -> int:
        return self._kept(self._file.tell) or 0

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._kept(self._moved, offset, whence)
        return self.tell()

    def _moved(self, offset: int, whence: int) -> None:
        try:
            self._file.seek(offset, whence)
        except (ValueError, OSError) as error:
            # Where a damaged head leads before the start, it stays where it is.
            if getattr(error, "errno", errno.EINVAL) != errno.EINVAL:
                raise

    def _kept(self, function: Callable[..., Any], *arguments: int) -> Any:
        if not self._failed:
            try:
                return function(*arguments)
            except BaseException as error:
                self._failed.append(error)
        return None


class _Unread(AudioError):
    """libsndfile does not read it."""


class Recording:
    """A recording that is open, a context manager; iterating gives its parts, each a rate and its blocks.

    Parameters
    ----------
    file : str, os.PathLike, bytes or file object
        A path, a file's content, or an object with ``read``. What cannot seek, as a pipe, is copied to a
        temporary file first.
    channel : int, optional
        Only this channel, from 0 on; mixed to one when not given.
    """

    def __init__(self, file: str | os.PathLike[str] | bytes | IO[bytes], channel: int | None = None) -> None:
        self._name = "the audio"
        self._own = False  # a file of the system that nobody else reads
        self._channel = channel
        self._failed: list[BaseException] = []
        with ExitStack() as stack:
            source = self._seekable(file, stack)
            start = source.tell()
            if not source.read(1):
                raise AudioError(f"{self._name} is empty (0 bytes)")
            self._bytes = Bytes(source)
            self._parts: list[FileRecording | None] = list(recordings(self._bytes)) or [None]
            source.seek(start)
            self._source = source
            self._foreign: Foreign | None = None
            try:
                self._first = stack.enter_context(self._opened(self._parts[0]))
            except _Unread as error:
                self._foreign = foreign_recording(source, self._name, stack)
                if self._foreign is None:
                    raise AudioError(f"{error} {remedy()}".strip()) from None
            self._stack = stack.pop_all()

    @property
    def channels(self) -> int:
        """The number of channels of the first part."""
        return int((self._foreign or self._first).channels)

    @property
    def seconds(self) -> float | None:
        """The length that the head gives; None where it gives none, or where several parts have one each."""
        if self._foreign is not None:
            return self._foreign.seconds
        return None if len(self._parts) > 1 else float(self._first.frames / self._first.samplerate)

    def __enter__(self) -> Recording:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def __iter__(self) -> Iterator[tuple[int, Iterator[Samples]]]:
        if self._foreign is not None:
            blocks = (from_array(block, self._channel) for block in self._foreign.blocks)
            yield check_rate(self._foreign.rate), blocks
            return
        for i, part in enumerate(self._parts):
            broken: list[tuple[float, AudioError]] = []
            with nullcontext(self._first) if i == 0 else self._opened(part) as opened:
                yield check_rate(opened.samplerate), self._blocks(opened, part, broken)
            for seconds, error in broken:
                yield self._rest(part, seconds, error)

    def _rest(
        self, part: FileRecording | None, seconds: float, error: AudioError
    ) -> tuple[int, Iterator[Samples]]:
        """Return what FFmpeg hears of a part behind its first seconds, or the error where it reads none."""
        file: IO[bytes] = self._source
        if part is not None:
            file = self._stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
            self._bytes.copied(part, file)
        foreign = foreign_recording(file, self._name, self._stack)
        if foreign is None:
            raise error
        rate, left, blocks = foreign.rate, round(seconds * foreign.rate), foreign.blocks

        def behind() -> Iterator[Samples]:
            nonlocal left
            for block in blocks:
                if len(block) > left:
                    yield from_array(block[left:], self._channel)
                left = max(0, left - len(block))

        return check_rate(rate), behind()

    def _blocks(
        self, file: soundfile.SoundFile, part: FileRecording | None, broken: list[tuple[float, AudioError]]
    ) -> Iterator[Samples]:
        """The blocks of a part; what stops libsndfile, and not FFmpeg, goes to `broken`."""
        import soundfile

        frames = 0

        def seconds(count: int) -> str:
            return f"{count / file.samplerate:.2f} s"

        while True:
            try:
                with quiet(file.format == "MP3"):
                    # libFLAC would look for a frame in what stands behind the last one.
                    left = file.frames - frames if file.format == "FLAC" else BLOCK_FRAMES
                    block = file.read(min(left, BLOCK_FRAMES), dtype="float32", always_2d=True)
                self._raise_failed()
            except soundfile.LibsndfileError as error:
                self._raise_failed()
                told = AudioError(
                    f"{self._name} is damaged or cut off after {seconds(frames)}: {error.error_string}"
                )
                if file.format != "OGG":
                    raise told from None
                # Times in Ogg pages that do not fit their packets, as programs write that record calls.
                broken.append((frames / file.samplerate, told))
                return
            if not len(block):
                break
            frames += len(block)
            yield from_array(block, self._channel)
        if part is not None and part.cut:
            raise AudioError(f"{self._name} is cut off after {seconds(frames)}; fetch it again")
        if part is not None and part.announced is not None:
            raise AudioError(
                f"{self._name} is damaged or cut off after {seconds(frames)}: its head announces "
                f"{seconds(part.announced)}; fetch it again"
            )
        announced = _announced(file)
        if frames < announced * (1 - SHORTFALL):
            raise AudioError(
                f"{self._name} ends after {seconds(frames)}, but announces {seconds(announced)}; it is "
                "incomplete, fetch it again"
            )

    def _raise_failed(self) -> None:
        """Raise what the caller's file raised while libsndfile read it."""
        if self._failed:
            raise self._failed.pop()

    def _seekable(self, file: str | os.PathLike[str] | bytes | IO[bytes], stack: ExitStack) -> IO[bytes]:
        if isinstance(file, bytes):
            return io.BytesIO(file)
        if isinstance(file, str | os.PathLike):
            self._name = os.fspath(file)
            file = self._open_path(self._name, stack)
            self._own = True
        if isinstance(file.read(0), str):
            raise InvalidArgumentError(f"{self._name} was opened as text: open the file in binary mode, 'rb'")
        try:
            seekable = file.seekable()
        except AttributeError:
            seekable = False
        if seekable:
            return file
        self._own = True
        copy: IO[bytes] = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
        shutil.copyfileobj(file, copy)
        copy.seek(0)
        return copy

    def _open_path(self, path: str, stack: ExitStack) -> IO[bytes]:
        try:
            file = stack.enter_context(open(path, "rb"))  # noqa: SIM115
        except OSError as error:
            raise AudioError(f"{path} cannot be opened: {error.strerror}") from None
        except ValueError as error:  # no file can have that name
            raise AudioError(f"{path!r} cannot be opened: {error}") from None
        mode = os.fstat(file.fileno()).st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)):
            raise AudioError(f"{path} is neither a file nor a pipe")
        return file

    @contextmanager
    def _opened(self, part: FileRecording | None) -> Iterator[soundfile.SoundFile]:
        """A part for reading; what is not in the file as it stands is written to a temporary one."""
        with ExitStack() as stack:
            source, own = self._source, self._own
            if part is not None:
                source, own = stack.enter_context(tempfile.TemporaryFile()), True
                self._bytes.copied(part, source)
                source.flush()
            yield stack.enter_context(self._open(source, own))

    def _open(self, file: IO[bytes], own: bool) -> soundfile.SoundFile:
        import soundfile

        source: Any = _Watched(file, self._failed)
        if own:
            # Without callbacks, as Ctrl-C in one is lost.
            source = file.fileno()
            os.lseek(source, 0, os.SEEK_SET)
        try:
            with quiet():
                found = _forward()(source, closefd=False)
            self._raise_failed()
            return found
        except soundfile.LibsndfileError as error:
            self._raise_failed()
            raise _Unread(
                f"{self._name} is not a recording that libsndfile reads (WAV, FLAC, OGG, MP3, AIFF, …): "
                f"{error.error_string}"
            ) from None


@functools.cache
def _forward() -> Any:
    """`soundfile.SoundFile` without its move to where it is after each block.

    That fails at the end of a FLAC file of unknown length, and in an MP3 file leaves the decoder without the
    bits of the frames before.
    """
    import soundfile

    class Forward(soundfile.SoundFile):  # type: ignore[misc]
        def seekable(self) -> bool:
            return False

    return Forward


def _announced(file: soundfile.SoundFile) -> int:
    """Return how many frames the head promises, where libsndfile counts those there are."""
    frames: int = file.frames
    found = _BYTES.search(file.extra_info)
    size, there = map(int, found.groups()) if found else (0, 0)
    return frames * size // there if 0 < there < size < _UNKNOWN else frames

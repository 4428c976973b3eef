"""Recordings that libsndfile reads (WAV, FLAC, OGG, MP3, …), block by block."""

from __future__ import annotations

import errno
import io
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import IO, TYPE_CHECKING, Any, Final

from akunu.audio.pcm import Samples, check_rate, from_array
from akunu.base.errors import AudioError, InvalidArgumentError

if TYPE_CHECKING:
    import soundfile

__all__ = ["Recording"]

BLOCK_FRAMES: Final = 1 << 16
SHORTFALL: Final = 0.01
"""What may be missing of the announced length: that of an MP3 file without a table is an estimate."""
_BYTES: Final = re.compile(
    r"^ *(?:data|SSND|BODY|Data Size|riff|Riff size) *: (\d+) \(should be (\d+)\)", re.MULTILINE
)
"""Of libsndfile's log: bytes of sound that a WAV, AIFF or AU file announces, and those there are; of a W64 or
RF64 file those of all of it."""
_UNKNOWN: Final = (1 << 31) - (1 << 16)
"""Announced bytes from which they mean nothing: what writes to a pipe says the most that it can."""


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


class Recording:
    """A recording that is open, a context manager; iterating gives its blocks, mixed to one channel.

    Parameters
    ----------
    file : str, os.PathLike, bytes or file object
        A path, a file's content, or an object with ``read``. What cannot seek, as a pipe, is copied to a
        temporary file first.

    Attributes
    ----------
    sampling_rate : int
        In Hz.
    """

    def __init__(self, file: str | os.PathLike[str] | bytes | IO[bytes]) -> None:
        self._name = "the audio"
        self._own = False  # a file of the system that nobody else reads
        self._failed: list[BaseException] = []
        with ExitStack() as stack:
            self._file = self._open(self._seekable(file, stack))
            stack.callback(self._file.close)
            self.sampling_rate = check_rate(self._file.samplerate)
            self._stack = stack.pop_all()

    @property
    def seconds(self) -> float:
        """Its length, as its head tells it."""
        return float(self._file.frames / self.sampling_rate)

    def __enter__(self) -> Recording:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def __iter__(self) -> Iterator[Samples]:
        import soundfile

        frames = 0
        while True:
            try:
                block = self._file.read(BLOCK_FRAMES, dtype="float32", always_2d=True)
                self._raise_failed()
            except soundfile.LibsndfileError as error:
                self._raise_failed()
                raise AudioError(
                    f"{self._name} is damaged or cut off after {self._seconds(frames)}: {error.error_string}"
                ) from None
            if not len(block):
                break
            frames += len(block)
            yield from_array(block)
        announced = self._announced()
        if frames < announced * (1 - SHORTFALL):
            raise AudioError(
                f"{self._name} ends after {self._seconds(frames)}, but announces "
                f"{self._seconds(announced)}; it is incomplete, fetch it again"
            )

    def _announced(self) -> int:
        """How many frames its head promises, where libsndfile counts those there are."""
        frames: int = self._file.frames
        found = _BYTES.search(self._file.extra_info)
        size, there = map(int, found.groups()) if found else (0, 0)
        return frames * size // there if 0 < there < size < _UNKNOWN else frames

    def _raise_failed(self) -> None:
        """What the caller's file raised while libsndfile read it."""
        if self._failed:
            raise self._failed.pop()

    def _seconds(self, frames: int) -> str:
        return f"{frames / self.sampling_rate:.2f} s"

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

    def _open(self, file: IO[bytes]) -> soundfile.SoundFile:
        import soundfile

        start: Any = file.tell()
        if not file.read(1):
            raise AudioError(f"{self._name} is empty (0 bytes)")
        file.seek(start)
        source: Any = _Watched(file, self._failed)
        if self._own:
            # Without callbacks, as Ctrl-C in one is lost.
            source = file.fileno()
            os.lseek(source, 0, os.SEEK_SET)
        try:
            found = soundfile.SoundFile(source, closefd=False)
            self._raise_failed()
            return found
        except soundfile.LibsndfileError as error:
            self._raise_failed()
            raise AudioError(
                f"{self._name} is not a recording that libsndfile reads (WAV, FLAC, OGG, MP3, AIFF, …): "
                f"{error.error_string} Convert other formats first: ffmpeg -i INPUT output.wav"
            ) from None

"""A file that is not there until it is whole.

What is written goes to a hidden file beside it, whose name holds a digest of everything that decides the
bytes. So a conversion that was stopped, by whatever means, goes on from the last finished tensor when it is
started again, and one of other files or other options begins anew.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
from collections.abc import Iterable, Sequence
from glob import escape
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from akunu.base.errors import AkunuError

__all__ = ["PartFile", "digest_of", "stamps"]


def digest_of(parts: Iterable[object]) -> str:
    """Return the SHA-256 of these parts, shortened, in hexadecimal."""
    found = hashlib.sha256()
    for part in parts:
        data = part if isinstance(part, bytes) else repr(part).encode()
        found.update(len(data).to_bytes(8, "little") + data)
    return found.hexdigest()[:16]


def stamps(paths: Iterable[str]) -> list[tuple[str, int, int]]:
    """Return names, sizes and times of change, which tell files from others and from what they were."""
    found = [(Path(path).name, os.stat(path)) for path in paths]
    return [(name, status.st_size, status.st_mtime_ns) for name, status in found]


class PartFile:
    """The file that becomes `path` when it is whole.

    Parameters
    ----------
    path
        What it is to become; a file of that name is replaced at the end.
    digest
        The digest of all that decides the bytes.
    ends
        Sizes of the file at which something is finished, ascending; the last one is the whole.

    Attributes
    ----------
    done : int
        How many of `ends` an earlier run has reached. Writing goes on from there.

    Raises
    ------
    AkunuError
        Another process writes it, or the disk has no room.
    """

    def __init__(self, path: Path, digest: str, ends: Sequence[int]) -> None:
        self._path = path
        self._part = path.with_name(f".{path.name}.{digest}.part")
        self._remove_others()
        self.file: BinaryIO = open(self._part, "ab")  # noqa: SIM115  # closed by __exit__
        try:
            if not _locked(self.file):
                raise AkunuError(f"{path}: another process is writing it")
            size = os.fstat(self.file.fileno()).st_size
            self.done = sum(end <= size for end in ends)
            begin = ends[self.done - 1] if self.done else 0
            free = shutil.disk_usage(path.parent).free
            if ends[-1] - begin > free:
                if not size:
                    self._part.unlink()
                raise AkunuError(
                    f"{path}: needs {ends[-1] - begin} bytes more, but {path.parent} has {free} free"
                )
            self.file.truncate(begin)
        except BaseException:
            self.file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self.file:
            if kind is not None:
                return
            self.file.flush()
            os.fsync(self.file.fileno())
            os.replace(self._part, self._path)
        folder = os.open(self._path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def _remove_others(self) -> None:
        """Remove what is left of other conversions to the same name, unless they still run."""
        for other in self._path.parent.glob(f".{escape(self._path.name)}.*.part"):
            if other != self._part:
                with open(other, "ab") as file:
                    if _locked(file):
                        other.unlink()


def _locked(file: BinaryIO) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True

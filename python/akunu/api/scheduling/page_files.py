"""Pages of a KV cache in files, so that a prompt's beginning outlives the process that ran it.

A file holds one part of a page (`page_parts.py`); most models' pages have one. Its name is the part's number
and a hash of everything that its bytes follow from: the model and how it runs (`identity`), the salt of those
that may share it, a secret of the folder, and all tokens, or what stands in their place, up to the page's
end. So a name means one content, whoever writes it, and nobody else can tell it:

- A file is written beside its place and moved there, so it is there whole or not at all. Processes that
  write the same page write the same bytes, or, of a state, bytes that mean the same.
- What a power cut or a bad disk left behind is found by its checksum, and deleted.
- Files that were used longest ago are deleted when there are too many bytes, or the disk is full. One process
  at a time does that; a file that vanishes under a reader is a page that is not there.

Nothing but files of these names is touched in the folder.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import struct
import time
import zlib
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from akunu._core import PAGE
from akunu.api.scheduling.prefix import Prefix
from akunu.base.errors import InvalidArgumentError
from akunu.base.whole_file import PART, whole_file

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["DamagedPageError", "PageFiles"]

MAGIC: Final = b"akunupg1"
HEADER: Final = struct.Struct(f"<8sIQ{4 * PAGE}s")
"""Magic, CRC-32 of what follows it, bytes of the page, the page's tokens."""
_AFTER_CRC: Final = struct.calcsize("<8sI")
FOLDER: Final = "pages-"
"""Beginning of the folders' names, one for each identity."""
SUFFIX: Final = ".page"
ABANDONED_SECONDS: Final = 600.0
"""A file that is being written for so long belongs to a process that is no more."""
SLACK: Final = 16
"""Folders are listed when this part of the limit was written, and as much is deleted at a time."""


class DamagedPageError(Exception):
    """A file is there and does not hold what its name says."""


class PageFiles:
    """The pages of one model, among those of others that share the folder.

    Parameters
    ----------
    folder
        Made if it is not there.
    limit
        Bytes of all files, those of other models included.
    identity
        The identity of the model and how it runs: pages of equal tokens are equal exactly where this is.
    part_bytes
        The bytes of the parts of each page.

    Raises
    ------
    InvalidArgumentError
        The folder cannot be made, or the limit is less than a page.
    """

    def __init__(self, folder: Path, limit: int, identity: bytes, part_bytes: Sequence[int]) -> None:
        page_bytes = sum(size + HEADER.size for size in part_bytes)
        if limit < page_bytes:
            raise InvalidArgumentError(
                f"cache_size: {limit} bytes are less than a page, which has {page_bytes}"
            )
        self._root = folder.expanduser()
        self._folder = self._root / f"{FOLDER}{blake2b(identity, digest_size=16).hexdigest()}"
        try:
            self._make_folders()
            for place in (self._root, self._folder):
                _check_private(place)
            self._secret = _secret(self._root / ".key")
        except (OSError, RuntimeError) as error:
            raise InvalidArgumentError(f"cache_dir: {folder} cannot be used: {error}") from error
        self._limit = limit
        self._identity = identity
        self._part_bytes = tuple(part_bytes)
        self._bytes = limit + 1  # of all files, as far as known: they are not counted yet
        self._written = 0  # since they were counted: others may have written as much

    def keys(self, prefix: Prefix) -> list[str]:
        """The names of a sequence's whole pages."""
        begin = blake2b(blake2b(self._identity).digest(), digest_size=32, key=self._secret)
        if prefix.salt is not None:
            begin.update(b"salt" + prefix.salt.encode())
        if prefix.adapter is not None:
            begin = blake2b(
                begin.digest() + b"adapter" + prefix.adapter.encode(), digest_size=32, key=self._secret
            )
        key, keys = begin.digest(), list[str]()
        for end in range(PAGE, len(prefix.ids) + 1, PAGE):
            data = _tokens(prefix.ids, end)
            if prefix.contents is not None and (here := prefix.contents[end - PAGE : end]).any():
                data += here.astype("<u8").tobytes()
            key = blake2b(key + data, digest_size=20).digest()
            keys.append(key.hex())
        return keys

    def holds(self, key: str, part: int = 0) -> bool:
        """Whether there is a file for a part of a page."""
        return os.path.exists(self._path(key, part))  # False too where the folder cannot be read

    def announce(self, key: str, part: int = 0) -> None:
        """Have the system fetch a part of a page that is going to be read."""
        if not hasattr(os, "posix_fadvise"):
            return
        with contextlib.suppress(OSError), self._path(key, part).open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_WILLNEED)

    def read(self, key: str, ids: npt.NDArray[np.uint32], part: int = 0) -> npt.NDArray[np.uint8]:
        """A part of the page at the end of `ids`.

        Raises
        ------
        OSError
            There is none, or it cannot be read.
        DamagedPageError
            There is one that is not whole; it is deleted.
        """
        path = self._path(key, part)
        page = np.empty(self._part_bytes[part], np.uint8)
        with path.open("rb", buffering=0) as file:
            header = file.read(HEADER.size)
            size = _read_into(file.fileno(), page.data) if len(header) == HEADER.size else 0
            whole = size == len(page) and not file.read(1)
        if not (whole and header == self._header(_tokens(ids, len(ids)), page)):
            path.unlink(missing_ok=True)
            raise DamagedPageError(f"{path}: is not the page that its name says; it is deleted")
        return page

    def write(
        self, key: str, ids: npt.NDArray[np.uint32], page: npt.NDArray[np.uint8], part: int = 0
    ) -> None:
        """Keep a part of the page at the end of `ids`.

        Raises
        ------
        OSError
            It cannot be written. On a full disk that is tried again, once older pages are deleted.
        """
        size = HEADER.size + len(page)
        self._make_folders()  # somebody may have cleared the cache
        self._make_room(size)
        pieces = self._header(_tokens(ids, len(ids)), page), page.data
        path = self._path(key, part)
        try:
            self._write(path, pieces)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            self._make_room(size, full=True)
            self._write(path, pieces)
        self._bytes += size
        self._written += size

    def touch(self, key: str, at: int) -> None:
        """Note that a page was used, in nanoseconds since the epoch.

        A sequence's first pages are used last: without them the others are useless.
        """
        for part in range(len(self._part_bytes)):
            with contextlib.suppress(OSError):
                os.utime(self._path(key, part), ns=(at, at))

    def _make_folders(self) -> None:
        self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder.mkdir(mode=0o700, exist_ok=True)

    def _write(self, path: Path, pieces: Iterable[bytes | memoryview]) -> None:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        with whole_file(path, mode=0o600, synced=False) as file:
            file.writelines(pieces)

    def _path(self, key: str, part: int = 0) -> Path:
        return self._folder / key[:2] / f"{key}{f'-{part}' if part else ''}{SUFFIX}"

    def _header(self, tokens: bytes, page: npt.NDArray[np.uint8]) -> bytes:
        header = HEADER.pack(MAGIC, 0, len(page), tokens)
        crc = zlib.crc32(page.data, zlib.crc32(header[_AFTER_CRC:]))
        return HEADER.pack(MAGIC, crc, len(page), tokens)

    def _make_room(self, size: int, full: bool = False) -> None:
        """Delete what was used longest ago, if the new file is too much, or if the disk is full."""
        if not full and self._bytes + size <= self._limit and self._written + size <= self._limit // SLACK:
            return
        with _alone(self._root / ".lock") as alone:
            found = sorted(_files(self._root))
            total = sum(file_size for _, file_size, _ in found)
            most = min(total, self._limit) if full else self._limit
            if alone and (full or total + size > self._limit):
                allowed = most - most // SLACK - size
                for _, file_size, path in found:
                    if total <= allowed:
                        break
                    if path.endswith(PART):  # somebody writes it
                        continue
                    with contextlib.suppress(FileNotFoundError):
                        os.unlink(path)
                    total -= file_size
            self._bytes, self._written = total, 0


def _check_private(folder: Path) -> None:
    """Refuse a folder that somebody else may write to: a page put there would change what a model writes.

    Raises
    ------
    InvalidArgumentError
        It belongs to somebody else, or others may write to it.
    """
    found = folder.stat()
    if found.st_uid != os.geteuid():
        raise InvalidArgumentError(f"cache_dir: {folder} belongs to another user; take one of your own")
    if found.st_mode & 0o022:
        raise InvalidArgumentError(
            f"cache_dir: others may write to {folder}, and change what a model writes; chmod go-w {folder}"
        )


def _secret(path: Path) -> bytes:
    """The secret of a folder, made when it is first used: without it nobody can tell the name of a page."""
    if not path.exists():
        made = path.with_name(f".key.{os.getpid()}")
        with open(made, "wb", opener=_private) as file:
            file.write(os.urandom(32))
        with contextlib.suppress(FileExistsError):
            os.link(made, path)  # whoever is first
        made.unlink()
    found = path.read_bytes()
    if len(found) != 32 or path.stat().st_uid != os.geteuid():
        raise InvalidArgumentError(f"cache_dir: {path} is damaged; delete it, and what is cached with it")
    return found


def _tokens(ids: npt.NDArray[np.uint32], end: int) -> bytes:
    return ids[end - PAGE : end].astype("<u4").tobytes()


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _read_into(file: int, buffer: memoryview) -> int:
    """Fill the buffer as far as the file goes; returns the bytes read."""
    done = 0
    while done < len(buffer) and (n := os.readv(file, [buffer[done:]])):
        done += n
    return done


def _files(root: Path) -> Iterator[tuple[int, int, str]]:
    """When each file was used, its size, its path. What a process that is no more was writing is deleted."""
    abandoned = time.time_ns() - int(ABANDONED_SECONDS * 1e9)
    for folder in root.glob(f"{FOLDER}*/??"):
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    stat = entry.stat(follow_symlinks=False)
                    if entry.name.endswith(PART) and stat.st_mtime_ns < abandoned:
                        os.unlink(entry.path)
                    elif entry.name.endswith((SUFFIX, PART)):
                        yield stat.st_mtime_ns, stat.st_size, entry.path


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[bool]:
    """Whether no other process holds the lock; it is held until the end.

    Some network file systems have none. There several may delete at a time, which does no harm.
    """
    with open(path, "ab", opener=_private) as file:
        alone = True
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            alone = False
        except OSError:
            pass
        yield alone

"""A recording within a file, as a head and stretches of it, and the bytes of a file by their place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import IO, Final

__all__ = ["Bytes", "FileRecording", "after_id3"]

_AT_ONCE: Final = 1 << 20


@dataclass(frozen=True)
class FileRecording:
    """One recording: `head` and then these stretches of the file.

    `announced` is the number of samples that its head promises, where there are fewer; `cut` says that the
    file ends within it.
    """

    head: bytes
    stretches: tuple[tuple[int, int], ...]
    announced: int | None = None
    cut: bool = False


class Bytes:
    """A file's bytes, by their place."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        file.seek(0, 2)
        self.size = file.tell()
        self._block, self._first = b"", 0

    def at(self, offset: int, count: int) -> bytes:
        """Up to `count` bytes from `offset` on."""
        if offset < 0:
            return b""
        begin = offset - self._first
        if begin < 0 or begin + count > len(self._block):
            self._file.seek(offset)
            block = self._file.read(max(count, _AT_ONCE))
            self._block, self._first, begin = block, offset, 0
        return self._block[begin : begin + count]

    def copied(self, part: FileRecording, to: IO[bytes]) -> None:
        """Write a part of it as a file of its own."""
        to.write(part.head)
        for begin, end in part.stretches:
            for at in range(begin, end, _AT_ONCE):
                to.write(self.at(at, min(_AT_ONCE, end - at)))


def after_id3(tag: bytes, at: int) -> int:
    """Return the end of the tag that begins so at `at`."""
    size = 0
    for byte in tag[6:10]:
        size = size << 7 | byte & 0x7F
    return at + 10 + size + (10 if tag[5] & 0x10 else 0)

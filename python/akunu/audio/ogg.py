"""Ogg files that were joined, or chained by a radio station: each link is a recording of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from akunu.audio.parts import Bytes, FileRecording

__all__ = ["recordings"]

_HEAD: Final = 27
_BEGINS: Final = 2


def recordings(file: Bytes, begin: int) -> Iterator[FileRecording]:
    """The links: one begins with a page that begins a stream, after one that does not."""
    link, before, end = begin, _BEGINS, begin
    for at, flags, end in _pages(file, begin):  # noqa: B007 -- that of the last page
        if flags & _BEGINS and not before & _BEGINS:
            yield FileRecording(b"", ((link, at),))
            link = at
        before = flags
    yield FileRecording(b"", ((link, file.size),), cut=end > file.size)


def _pages(file: Bytes, at: int) -> Iterator[tuple[int, int, int]]:
    """Yield where each page begins, its flags, and where it ends."""
    while at < file.size:
        head = file.at(at, _HEAD)
        if head[:4] != b"OggS" or len(head) < _HEAD:
            at = _next(file, at + 1)
            continue
        flags, first = head[5], at
        at += _HEAD + head[26] + sum(file.at(at + _HEAD, head[26]))
        yield first, flags, at


def _next(file: Bytes, at: int) -> int:
    """Return where the next page may begin."""
    while block := file.at(at, 1 << 16):
        found = block.find(b"OggS")
        if found >= 0:
            return at + found
        at += max(len(block) - 3, 1)
    return file.size

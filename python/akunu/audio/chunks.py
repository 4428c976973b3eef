"""WAV, RF64, W64, CAF, AIFF and AU files whose sizes are unknown, wrapped or stale, or that were joined."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from akunu.audio.parts import Bytes, FileRecording

__all__ = ["FORMATS", "Chunks", "au_recordings"]

_UNKNOWN: Final = 1 << 62
"""A 64-bit size of at least this means that the length is unknown."""
_REST: Final = 4096
"""Bytes behind the sound that are left out, whatever they are, where they are fewer than this."""
_MOST_CHUNKS: Final = 1000


@dataclass(frozen=True)
class Chunks:
    """A format of chunks: an id and a size each."""

    magic: bytes
    first: int  # chunk, from the start
    data: bytes  # the id of the sound's
    order: str = "little"
    id_bytes: int = 4
    size_bytes: int = 4
    counts_head: bool = False
    aligned: int = 2
    total: int | None = 4  # where the size of all is

    @property
    def head(self) -> int:
        return self.id_bytes + self.size_bytes

    def recordings(self, file: Bytes, begin: int) -> Iterator[FileRecording]:
        """Each recording of what may be several files that were joined."""
        while begin < file.size:
            part, begin = self._one(file, begin)
            yield part

    def _one(self, file: Bytes, begin: int) -> tuple[FileRecording, int]:
        end = file.size
        whole = FileRecording(b"", ((begin, end),)), end
        at, wide = begin + self.first, 0
        for _ in range(_MOST_CHUNKS):
            name, size = self._chunk(file, at)
            if name == self.data:
                break
            if name == b"ds64":
                wide = at + self.head
            at = self._after(at, size)
            if at >= end:
                return whole
        else:
            return whole
        sound = at + self.head
        if wide and size == 0xFFFFFFFF:
            size = int.from_bytes(file.at(wide + 8, 8), "little")
        after = self._after(at, size)
        if after > end:
            # Of 32 bits, libsndfile knows itself what is no size.
            return self._to_end(file, begin, at, wide) if size >= _UNKNOWN else whole
        if file.at(after, len(self.magic)) == self.magic and self._is_file(file, after):
            return FileRecording(b"", ((begin, after),)), after
        rest = end - after
        if (size and rest < _REST) or end == sound or self._is_chunk(file, after):
            return whole
        return self._to_end(file, begin, at, wide)

    def _to_end(self, file: Bytes, begin: int, at: int, wide: int) -> tuple[FileRecording, int]:
        """All from the chunk at `at` on is sound."""
        sound, end = at + self.head, file.size
        head = bytearray(file.at(begin, sound - begin))

        def put(place: int, size: int, count: int) -> None:
            value = min(size, (1 << 8 * count) - 1)
            head[place - begin : place - begin + count] = value.to_bytes(count, self.order)  # type: ignore[arg-type]

        size = end - sound + (self.head if self.counts_head else 0)
        if wide:
            put(wide, end - begin - 8, 8)
            put(wide + 8, size, 8)
        else:
            put(at + self.id_bytes, size, self.size_bytes)
            if self.total is not None:
                total = end - begin if self.counts_head else end - begin - 8
                put(begin + self.total, total, self.size_bytes)
        return FileRecording(bytes(head), ((sound, end),)), end

    def _chunk(self, file: Bytes, at: int) -> tuple[bytes, int]:
        head = file.at(at, self.head)
        size = int.from_bytes(head[self.id_bytes :], self.order)  # type: ignore[arg-type]
        return head[: self.id_bytes], max(size - self.head, 0) if self.counts_head else size

    def _after(self, at: int, size: int) -> int:
        size += -size % self.aligned
        return at + self.head + size

    def _is_file(self, file: Bytes, at: int) -> bool:
        """Whether a file begins there: its first chunk ends within it."""
        return self._is_chunk(file, at + self.first)

    def _is_chunk(self, file: Bytes, at: int) -> bool:
        name, size = self._chunk(file, at)
        readable = all(0x20 <= byte < 0x7F for byte in name[:4])
        return len(name) == self.id_bytes and readable and at + self.head + size <= file.size + 1


_W64: Final = bytes.fromhex("f3acd3118cd100c04f8edb8a")
FORMATS: Final = (
    Chunks(b"RIFF", 12, b"data"),
    Chunks(b"RIFX", 12, b"data", "big"),
    Chunks(b"RF64", 12, b"data"),
    Chunks(b"BW64", 12, b"data"),
    Chunks(b"FORM", 12, b"SSND", "big"),
    Chunks(b"caff", 8, b"data", "big", size_bytes=8, aligned=1, total=None),
    Chunks(
        bytes.fromhex("726966662e91cf11a5d628db04c10000"),
        *(40, b"data" + _W64, "little", 16, 8, True, 8, 16),
    ),
)


def au_recordings(file: Bytes, begin: int) -> Iterator[FileRecording]:
    """Sun's format: a head that says where the sound begins, and how long it is."""
    while begin < file.size:
        head = file.at(begin, 12)
        first, size = (int.from_bytes(head[at : at + 4], "big") for at in (4, 8))
        end = begin + first + size
        if end <= file.size and file.at(end, 4) == b".snd":
            yield FileRecording(b"", ((begin, end),))
            begin = end
            continue
        more = file.size - end
        if more > 0 and (more >= _REST or not size):
            yield FileRecording(head[:8] + b"\xff" * 4, ((begin + 12, file.size),))
        else:
            yield FileRecording(b"", ((begin, file.size),))
        return

"""MP3 files as they are: their frames, which no table at the start has to count.

An MP3 file is a row of frames. Its first one may hold a table (Xing's, LAME's or Fraunhofer's) in place of
sound, which counts them. libmpg123 takes that for the length, and where there is none guesses by the first
frame; libsndfile reads no further. Here the frames are counted, and where the table is missing or counts too
few, the recording gets one that is right. What is no frame (tags of joined files, damage) is left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from akunu.audio.parts import Bytes, FileRecording, after_id3

__all__ = ["recordings"]

_RATES: Final = (44100, 48000, 32000)
_SPEEDS_1: Final = (0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320)
_SPEEDS_2: Final = (0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160)
_LEAD: Final = 1 << 17
"""Bytes in which the first frame is looked for."""
_SURE: Final = 4
"""Frames in a row that no other kind of file has by chance."""
_TABLE: Final = 64
"""Bytes of a frame that a table of ours needs."""


@dataclass
class _Run:
    """Frames of one kind, one after the other: what they share, and where they are."""

    kind: int
    stretches: list[tuple[int, int]]
    frames: int = 0
    counted: int | None = None  # by its table
    size: int = 0  # in bytes
    header: bytes = b""

    def add(self, at: int, size: int) -> None:
        self.frames += 1
        self.size += size
        if self.stretches and self.stretches[-1][1] == at:
            self.stretches[-1] = (self.stretches[-1][0], at + size)
        else:
            self.stretches.append((at, at + size))


def recordings(file: Bytes, begin: int) -> list[FileRecording]:
    """The recordings of an MP3 file; none where its table is right, or where it is no such file."""
    first = _following(file, begin, begin + _LEAD, frames=_SURE)
    if first is None:
        return []
    runs: list[_Run] = []
    at = first
    while at + 4 <= file.size:
        head = file.at(at, 4)
        size = frame_size(head)
        if not size or at + size > file.size:
            found = _skipped(file, at)
            if found is None:
                break
            at = found
            continue
        kind = _kind(head)
        if not runs or runs[-1].kind != kind:
            if runs and not _confirmed(file, at):
                at += 1
                continue
            runs.append(_Run(kind, [], header=head))
        table = file.at(at, 192)
        if (place := _table_at(table)) is None:
            runs[-1].add(at, size)
        elif runs[-1].counted is None:
            runs[-1].counted = _count(table, place)
        at += size
    runs = [run for run in runs if run.frames]
    whole = all(len(run.stretches) == 1 for run in runs)
    if len(runs) == 1 and whole and runs[0].counted is not None and runs[0].counted + 1 >= runs[0].frames:
        return []
    return [FileRecording(_made(run), tuple(run.stretches), _missing(run)) for run in runs]


def frame_size(head: bytes | bytearray) -> int:
    """Bytes of a frame of layer III that begins so; 0 where it is none."""
    if len(head) < 4 or head[0] != 0xFF or head[1] & 0xE6 != 0xE2 or head[1] & 0x18 == 0x08:
        return 0
    speed, rate = head[2] >> 4, head[2] >> 2 & 3
    if not 1 <= speed <= 14 or rate == 3:
        return 0
    version = head[1] >> 3 & 3  # 3: MPEG 1, 2: MPEG 2, 0: 2.5
    padded = head[2] >> 1 & 1
    if version == 3:
        return 144_000 * _SPEEDS_1[speed] // _RATES[rate] + padded
    return 72_000 * _SPEEDS_2[speed] // (_RATES[rate] >> (1 if version == 2 else 2)) + padded


def _kind(head: bytes) -> int:
    """Return what all frames of a recording share: version, rate, whether there is one channel."""
    return (head[1] & 0x18) << 8 | (head[2] & 0x0C) << 4 | (head[3] >> 6 == 3)


def _confirmed(file: Bytes, at: int, frames: int = 1) -> bool:
    """Whether a frame is there, and so many more of its kind follow, or the end does."""
    head = file.at(at, 4)
    for _ in range(frames):
        size = frame_size(head)
        if not size or at + size == file.size:
            return bool(size)
        at += size
        following = file.at(at, 4)
        if not frame_size(following) or _kind(following) != _kind(head):
            return False
        head = following
    return True


def _following(file: Bytes, at: int, end: int, frames: int = 1) -> int | None:
    """Return where the next frame before `end` is that so many more of its kind follow."""
    while at < min(end, file.size):
        block = file.at(at, 1 << 16)
        place = -1
        while (place := block.find(b"\xff", place + 1)) >= 0:
            head = file.at(at + place, 4) if place + 4 > len(block) else block[place : place + 4]
            if frame_size(head) and _confirmed(file, at + place, frames):
                return at + place
        at += max(len(block), 1)
    return None


def _skipped(file: Bytes, at: int) -> int | None:
    """Return where to go on after what is no frame."""
    tag = file.at(at, 10)
    if tag[:3] == b"ID3" and len(tag) == 10:
        return after_id3(tag, at)
    if tag[:3] == b"TAG":
        return at + 128
    return _following(file, at + 1, file.size)


def _table_at(frame: bytes) -> int | None:
    """Return where the table in a frame begins, if it holds one in place of sound."""
    one = frame[3] >> 6 == 3
    side = (17 if one else 32) if frame[1] & 0x08 else (9 if one else 17)
    for place in (4 + side, 6 + side):  # with a sum
        if frame[place : place + 4] in (b"Xing", b"Info"):
            return place
    return 36 if frame[36:40] == b"VBRI" else None


def _count(table: bytes, place: int) -> int | None:
    """Return how many frames a table counts."""
    if table[place : place + 4] == b"VBRI":
        return None  # libmpg123 does not read it
    flags = int.from_bytes(table[place + 4 : place + 8], "big")
    return int.from_bytes(table[place + 8 : place + 12], "big") if flags & 1 else None


def _missing(run: _Run) -> int | None:
    """Return how many samples the table promises, where there are fewer frames."""
    samples = 1152 if run.header[1] & 0x08 else 576
    return None if run.counted is None or run.counted <= run.frames else run.counted * samples


def _made(run: _Run) -> bytes:
    """A frame with a table that counts the frames and bytes of a recording."""
    head = bytearray(run.header)
    head[1] |= 1  # no sum
    head[2] &= 0x0C
    for speed in range(1, 15):
        head[2] = head[2] & 0x0C | speed << 4
        if frame_size(head) >= _TABLE:
            break
    frame = bytearray(frame_size(head))
    frame[:4] = head
    side = (17 if head[3] >> 6 == 3 else 32) if head[1] & 0x08 else (9 if head[3] >> 6 == 3 else 17)
    table = b"Xing" + (3).to_bytes(4, "big") + run.frames.to_bytes(4, "big")
    table += (run.size + len(frame)).to_bytes(4, "big")
    frame[4 + side : 4 + side + len(table)] = table
    return bytes(frame)

"""FLAC files whose head does not say how long they are, or says too little or too much.

A file that was written to a pipe has 0 samples by its head ("unknown"; RFC 9639, 8.2), and joined files keep
the head of the first. The number in the last whole frame tells how many there are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from akunu.audio.parts import Bytes, FileRecording

__all__ = ["recordings"]

_BEGIN: Final = re.compile(rb"fLaC[\x00\x80]\x00\x00\x22")
_TAIL: Final = 4 << 20
"""Bytes at the end in which the last frame is looked for; the largest has 16 MiB, common ones 20 KiB."""
_SIZES: Final = (0, 192, *(576 << n for n in range(4)), 0, 0, *(256 << n for n in range(8)))


@dataclass(frozen=True)
class _Frame:
    at: int
    first: int  # its first sample
    samples: int


def recordings(file: Bytes, begin: int) -> Iterator[FileRecording]:
    """Each FLAC stream; its head tells how many samples there are."""
    starts = [*_starts(file, begin), file.size]
    for start, end in pairwise(starts):
        yield _one(file, start, end)


def _starts(file: Bytes, begin: int) -> Iterator[int]:
    at = begin
    while block := file.at(at, 1 << 20):
        for found in _BEGIN.finditer(block):
            yield at + found.start()
        if len(block) < 8:
            return
        at += len(block) - 7


def _one(file: Bytes, start: int, end: int) -> FileRecording:
    """The stream from `start` to `end`."""
    head = bytearray(file.at(start, 42))
    plain = FileRecording(b"", ((start, end),))
    if len(head) < 42:
        return plain
    if file.at(end - 128, 3) == b"TAG":
        end -= 128
    block = int.from_bytes(head[8:10], "big")
    announced = (head[21] & 15) << 32 | int.from_bytes(head[22:26], "big")
    tail = max(start + 42, end - _TAIL)
    data = file.at(tail, end - tail)
    frames = [*_frames(data, block)]
    for frame, following in zip(reversed(frames), [None, *reversed(frames)], strict=False):
        stop = len(data) if following is None else following.at
        # The last one may have something behind it that is no sound: a tag, padding.
        complete = following is None and frame.first + frame.samples == announced
        if complete or _crc16(data[frame.at : stop]) == 0:
            break
    else:
        return plain
    there = frame.first + frame.samples
    if there == announced:
        return plain
    head[21] = head[21] & 0xF0 | there >> 32
    head[22:26] = (there & 0xFFFFFFFF).to_bytes(4, "big")
    head[26:42] = bytes(16)  # the sum of the samples: unknown
    cut_off = announced if announced > there else None
    return FileRecording(bytes(head), ((start + 42, tail + stop),), cut_off)


def _frames(data: bytes, block: int) -> Iterator[_Frame]:
    """Yield where frames seem to begin, by their heads."""
    at = -1
    while (at := data.find(b"\xff", at + 1)) >= 0:
        if at + 16 <= len(data) and data[at + 1] & 0xFE == 0xF8:
            frame = _head(data, at, block)
            if frame is not None:
                yield frame


def _head(data: bytes, at: int, block: int) -> _Frame | None:
    size, rate = data[at + 2] >> 4, data[at + 2] & 15
    if not size or rate == 15 or data[at + 3] >> 4 > 10 or data[at + 3] & 1:
        return None
    # The number is written as UTF-8 writes a character.
    lead = data[at + 4]
    more = 0 if lead < 0x80 else 8 - (lead ^ 0xFF).bit_length() - 1
    if lead >= 0x80 and not 1 <= more <= 6:
        return None
    number = lead if not more else lead & ((1 << (6 - more)) - 1)
    place = at + 5
    for byte in data[place : place + more]:
        number = number << 6 | byte & 0x3F
    place += more
    samples = _SIZES[size]
    if size in (6, 7):
        samples = int.from_bytes(data[place : place + size - 5], "big") + 1
        place += size - 5
    place += {12: 1, 13: 2, 14: 2}.get(rate, 0)
    if place >= len(data) or _crc8(data[at:place]) != data[place]:
        return None
    by_sample = data[at + 1] & 1
    return _Frame(at, number if by_sample else number * block, samples)


def _crc8(data: bytes) -> int:
    value = 0
    for byte in data:
        value = _CRC8[value ^ byte]
    return value


def _crc16(data: bytes) -> int:
    """0 of a frame with its own sum at the end."""
    value = 0
    for byte in data:
        value = (value << 8 & 0xFFFF) ^ _CRC16[value >> 8 ^ byte]
    return value


def _table(bits: int, polynomial: int) -> tuple[int, ...]:
    top, mask = 1 << (bits - 1), (1 << bits) - 1
    found = []
    for byte in range(256):
        value = byte << (bits - 8)
        for _ in range(8):
            value = (value << 1 & mask) ^ (polynomial if value & top else 0)
        found.append(value)
    return tuple(found)


_CRC8: Final = _table(8, 0x07)
_CRC16: Final = _table(16, 0x8005)

"""The header of a GGUF file (version 3, little-endian) as bytes, and the keys of one as they are stored.

Offsets of tensors follow from their sizes, so that a header is complete before the first weight is made.
"""

from __future__ import annotations

import enum
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["ALIGNMENT", "Stored", "TensorPlace", "header", "padded", "stored_metadata"]

ALIGNMENT: Final = 32
"""Tensors begin at multiples of this, counted from the end of the header: the format's default."""


class _Kind(enum.IntEnum):
    """Types of values, by the number that stands for them in a file."""

    UINT8 = 0
    INT8 = 1
    UINT16 = 2
    INT16 = 3
    UINT32 = 4
    INT32 = 5
    FLOAT32 = 6
    BOOL = 7
    STRING = 8
    ARRAY = 9
    UINT64 = 10
    INT64 = 11
    FLOAT64 = 12


_SCALARS: Final[Mapping[int, str]] = {
    _Kind.UINT8: "<B", _Kind.INT8: "<b", _Kind.UINT16: "<H", _Kind.INT16: "<h", _Kind.UINT32: "<I",
    _Kind.INT32: "<i", _Kind.FLOAT32: "<f", _Kind.BOOL: "<?", _Kind.UINT64: "<Q", _Kind.INT64: "<q",
    _Kind.FLOAT64: "<d",
}  # fmt: skip


@dataclass(frozen=True)
class Stored:
    """A value as a file holds it: its type and its bytes."""

    data: bytes


@dataclass(frozen=True)
class TensorPlace:
    """One tensor of a file; `shape` is outermost first, `offset` counts from the end of the header."""

    name: str
    shape: tuple[int, ...]
    dtype: int
    offset: int
    nbytes: int


def padded(n: int) -> int:
    """The next multiple of `ALIGNMENT`."""
    return -(-n // ALIGNMENT) * ALIGNMENT


def header(metadata: Mapping[str, object], tensors: Sequence[TensorPlace]) -> bytes:
    """Everything before the data.

    Parameters
    ----------
    metadata
        Values are texts, bools, ints (stored with 32 bits where they fit), floats (with 32 bits), lists of
        one of these (an empty one is of texts), bytes (an array of them), or `Stored`.
    tensors
        In the order of the file.
    """
    parts = [struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), len(metadata))]
    for key, value in metadata.items():
        parts += [_text(key), value.data if isinstance(value, Stored) else _typed(value)]
    for tensor in tensors:
        dims = tensor.shape[::-1]
        parts.append(_text(tensor.name))
        parts.append(struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, tensor.dtype, tensor.offset))
    data = b"".join(parts)
    return data.ljust(padded(len(data)), b"\0")


def stored_metadata(path: Path) -> dict[str, Stored]:
    """The keys of a file that `_core.GgufFile` has opened, hence found sound; strings keep their bytes."""
    with path.open("rb") as file:
        _, _, _, n_keys = struct.unpack("<4sIQQ", file.read(24))
        # Where the keys end is known when they have been read; the reader accepts no longer header.
        data = file.read(128 << 20)
    found = {}
    at = 0
    for _ in range(n_keys):
        (length,) = struct.unpack_from("<Q", data, at)
        key = data[at + 8 : at + 8 + length].decode("utf-8", "surrogateescape")
        begin = at + 8 + length
        (kind,) = struct.unpack_from("<I", data, begin)
        at = _end(data, begin + 4, kind)
        found[key] = Stored(data[begin:at])
    return found


def _end(data: bytes, at: int, kind: int) -> int:
    """Return where the value of this type that begins at `at` ends."""
    if kind in _SCALARS:
        return at + struct.calcsize(_SCALARS[kind])
    if kind == _Kind.STRING:
        return at + 8 + int.from_bytes(data[at : at + 8], "little")
    inner, count = struct.unpack_from("<IQ", data, at)
    at += 12
    if inner in _SCALARS:
        return at + int(count) * struct.calcsize(_SCALARS[inner])
    for _ in range(count):
        at = _end(data, at, inner)
    return at


def _text(text: str) -> bytes:
    data = text.encode("utf-8", "surrogateescape")
    return struct.pack("<Q", len(data)) + data


def _typed(value: object) -> bytes:
    if isinstance(value, bytes):
        return struct.pack("<IIQ", _Kind.ARRAY, _Kind.UINT8, len(value)) + value
    if isinstance(value, list):
        kind = _kind(value[0]) if value else _Kind.STRING
        kind = _Kind.INT32 if kind == _Kind.UINT32 else kind
        items = b"".join(_value(item, kind) for item in value)
        return struct.pack("<IIQ", _Kind.ARRAY, kind, len(value)) + items
    kind = _kind(value)
    return struct.pack("<I", kind) + _value(value, kind)


def _kind(value: object) -> _Kind:
    if isinstance(value, bool):
        return _Kind.BOOL
    if isinstance(value, int):
        return _Kind.UINT32 if 0 <= value < 1 << 32 else _Kind.INT64
    if isinstance(value, float):
        return _Kind.FLOAT32
    if isinstance(value, str):
        return _Kind.STRING
    raise TypeError(f"a value of GGUF: found {type(value).__name__}")


def _value(value: object, kind: _Kind) -> bytes:
    return _text(value) if isinstance(value, str) else struct.pack(_SCALARS[kind], value)

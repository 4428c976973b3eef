"""Writes model files of whisper.cpp field by field, so that a test can make any field lie."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

MAGIC = b"lmgg"
TINY = (51865, 1500, 384, 6, 4, 448, 384, 6, 4, 80, 1)


@dataclass
class Tensor:
    """One tensor; `dims` innermost first."""

    name: bytes
    dims: Sequence[int]
    kind: int
    data: bytes

    def record(self) -> bytes:
        head = struct.pack("<3I", len(self.dims), len(self.name), self.kind)
        return head + struct.pack(f"<{len(self.dims)}I", *self.dims) + self.name + self.data


def vocabulary(tokens: Sequence[bytes]) -> bytes:
    return struct.pack("<I", len(tokens)) + b"".join(struct.pack("<I", len(t)) + t for t in tokens)


def file(
    tensors: Sequence[Tensor] = (),
    tokens: Sequence[bytes] = (b"a", b"", b"\xe5\x9c"),
    sizes: Sequence[int] = TINY,
    filters: tuple[int, int] = (2, 3),
) -> bytes:
    head = (
        MAGIC
        + struct.pack("<11I", *sizes)
        + struct.pack("<2I", *filters)
        + bytes(4 * filters[0] * filters[1])
    )
    return head + vocabulary(tokens) + b"".join(tensor.record() for tensor in tensors)


SAMPLE = (
    Tensor(b"encoder.conv1.bias", (1, 4), 0, bytes(range(16))),
    Tensor(b"decoder.blocks.0.mlp.0.weight", (32, 2), 2, bytes(range(36))),
    Tensor(b"encoder.conv1.weight", (3, 2, 2), 1, bytes(range(24))),
)

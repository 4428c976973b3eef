"""MLX's layout of quantized matrices, in NumPy: planes of codes, scales and biases."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .safetensors_bytes import encode

BITS = (2, 3, 4, 5, 6, 8)
GROUPS = (32, 64, 128)
SCALES = ("F32", "F16", "BF16")


class Planes(NamedTuple):
    """codes uint32 [rows, cols·bits/32]; scales and biases [rows, cols/group], of their type's values."""

    codes: npt.NDArray[np.uint32]
    scales: npt.NDArray[np.float32]
    biases: npt.NDArray[np.float32]

    def values(self, bits: int) -> npt.NDArray[np.float32]:
        """scale·code + bias, one rounding each."""
        rows, group = len(self.codes), self.codes.shape[1] * 32 // bits // self.scales.shape[1]
        stream = np.unpackbits(self.codes.view(np.uint8), axis=1, bitorder="little")
        q = (stream.reshape(rows, -1, bits) << np.arange(bits, dtype=np.uint8)).sum(-1, dtype=np.float32)
        scales, biases = (np.repeat(p, group, axis=1) for p in (self.scales, self.biases))
        return np.asarray(scales * q + biases, np.float32)


def rounded(x: npt.NDArray[np.float32], dtype: str) -> npt.NDArray[np.float32]:
    """The nearest values of F32, F16 or BF16."""
    raw = encode(x, dtype)
    if dtype == "BF16":
        return (np.frombuffer(raw, "<u2").astype(np.uint32) << 16).view(np.float32).reshape(x.shape)
    return np.frombuffer(raw, {"F32": "<f4", "F16": "<f2"}[dtype]).astype(np.float32).reshape(x.shape)


def quantize(values: npt.NDArray[np.float32], bits: int, group: int, dtype: str) -> Planes:
    """The nearest codes between the least and the most of each group."""
    rows, most = len(values), (1 << bits) - 1
    groups = values.reshape(rows, -1, group)
    low, high = groups.min(-1), groups.max(-1)
    scales = rounded(np.maximum((high - low) / most, 1e-7).astype(np.float32), dtype)
    biases = rounded(low, dtype)
    q = np.rint((groups - biases[..., None]) / scales[..., None]).clip(0, most).astype(np.uint8)
    stream = (q.reshape(rows, -1, 1) >> np.arange(bits, dtype=np.uint8)) & 1
    codes = np.packbits(stream.reshape(rows, -1), axis=1, bitorder="little").view(np.uint32)
    return Planes(codes, scales, biases)


def blocks(planes: Planes, dtype: str) -> npt.NDArray[np.uint8]:
    """As `_core.dequantize` takes them: codes, scale and bias of each group."""
    rows, n = planes.scales.shape
    parts: list[Any] = [planes.codes.view(np.uint8).reshape(rows * n, -1)]
    parts += [np.frombuffer(encode(p, dtype), np.uint8).reshape(rows * n, -1) for p in planes[1:]]
    return np.concatenate(parts, axis=1)

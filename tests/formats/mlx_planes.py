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


MODES = {"mxfp4": (4, 32), "nvfp4": (4, 16), "mxfp8": (8, 32)}
"""Modes whose codes are floats: bits, and elements that share a scale."""

E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], np.float32)
E2M1 = np.concatenate([E2M1, -E2M1])


def _e4m3() -> npt.NDArray[np.float32]:
    code = np.arange(128)
    exponent, mantissa = code >> 3, code & 7
    values = np.where(exponent == 0, mantissa / 8 * 2.0**-6, (1 + mantissa / 8) * 2.0 ** (exponent - 7))
    values[127] = np.nan
    return np.concatenate([values, -values]).astype(np.float32)


E4M3 = _e4m3()
"""The value of each byte."""


def nearest(values: npt.NDArray[np.float32], table: npt.NDArray[np.float32]) -> npt.NDArray[np.uint8]:
    """The codes whose values are nearest."""
    known, codes = np.unique(table[np.isfinite(table)], return_index=True)
    codes = np.flatnonzero(np.isfinite(table))[codes]
    return np.asarray(codes[np.searchsorted((known[1:] + known[:-1]) / 2, values)], np.uint8)


class FloatPlanes(NamedTuple):
    """codes uint32 [rows, cols·bits/32], scales uint8 [rows, cols/group], and the values."""

    codes: npt.NDArray[np.uint32]
    scales: npt.NDArray[np.uint8]
    values: npt.NDArray[np.float32]


def quantize_floats(values: npt.NDArray[np.float32], mode: str) -> FloatPlanes:
    """A matrix in one of `MODES`."""
    bits, group = MODES[mode]
    table = E2M1 if bits == 4 else E4M3
    groups = values.reshape(len(values), -1, group)
    wanted = np.abs(groups).max(-1) / np.nanmax(table)
    if mode == "nvfp4":
        scales = nearest(wanted, E4M3)
        sizes = E4M3[scales]
    else:
        exponents = np.ceil(np.log2(np.maximum(wanted, 2.0**-100)))
        scales, sizes = (127 + exponents).astype(np.uint8), np.exp2(exponents).astype(np.float32)
    inverse = np.divide(1, sizes, out=np.zeros_like(sizes), where=sizes > 0)
    codes = nearest(groups * inverse[..., None], table)
    rounded_values = (sizes[..., None] * table[codes]).reshape(values.shape)
    codes = codes.reshape(len(values), -1)
    if bits == 4:
        codes = codes[:, ::2] | codes[:, 1::2] << 4
    return FloatPlanes(np.ascontiguousarray(codes).view(np.uint32), scales, rounded_values)


def blocks(planes: Planes, dtype: str) -> npt.NDArray[np.uint8]:
    """As `_core.dequantize` takes them: codes, scale and bias of each group."""
    rows, n = planes.scales.shape
    parts: list[Any] = [planes.codes.view(np.uint8).reshape(rows * n, -1)]
    parts += [np.frombuffer(encode(p, dtype), np.uint8).reshape(rows * n, -1) for p in planes[1:]]
    return np.concatenate(parts, axis=1)

"""Matrices as GPTQ, AWQ, compressed-tensors and bitsandbytes keep them, and their values.

Every writer follows the library's own packing, code by code, and shares nothing with Akunu's reader.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Arrays = dict[str, npt.NDArray[Any]]
Words = npt.NDArray[np.int32]

AWQ_ORDER = (0, 2, 4, 6, 1, 3, 5, 7)


@dataclass(frozen=True)
class Packed:
    """The tensors of a matrix by the ends of their names, their types if they are bytes, and its values."""

    tensors: Arrays
    values: npt.NDArray[np.float32]
    types: Mapping[str, str] = field(default_factory=dict)


def stream(codes: npt.NDArray[Any], bits: int) -> Words:
    """Words of a stream along the last axis, least significant bits first; the last word may have room."""
    flat = (codes.astype(np.uint32)[..., None] >> np.arange(bits, dtype=np.uint32) & 1).astype(np.uint8)
    flat = flat.reshape(*codes.shape[:-1], -1)
    room = -flat.shape[-1] % 32
    flat = np.pad(flat, [(0, 0)] * (flat.ndim - 1) + [(0, room)])
    return np.packbits(flat, axis=-1, bitorder="little").view("<i4")


def grouped(
    matrix: npt.NDArray[np.float32], bits: int, group: npt.NDArray[np.intp], *, symmetric: bool
) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]:
    """Codes [rows, cols], scales in F16 [rows, groups] and zeros of columns of the same group."""
    n, most = int(group.max()) + 1, (1 << bits) - 1
    low = np.stack([matrix[:, group == g].min(axis=1) for g in range(n)], axis=1)
    high = np.stack([matrix[:, group == g].max(axis=1) for g in range(n)], axis=1)
    if symmetric:
        scales = (2 * np.maximum(abs(low), abs(high)) / most).astype(np.float16)
        zeros = np.full(scales.shape, (most + 1) // 2)
    else:
        scales = ((np.maximum(high, 0) - np.minimum(low, 0)) / most).astype(np.float16)
        zeros = np.clip(np.round(-low / scales.astype(np.float32)), 1, most).astype(np.int64)
    wide = scales.astype(np.float32)[:, group]
    codes = np.clip(np.round(matrix / wide) + zeros[:, group], 0, most).astype(np.int64)
    return codes, scales, zeros


def values_of(
    codes: npt.NDArray[Any], scales: npt.NDArray[Any], zeros: npt.NDArray[Any], group: npt.NDArray[np.intp]
) -> npt.NDArray[np.float32]:
    return (codes - zeros[:, group]).astype(np.float32) * scales.astype(np.float32)[:, group]


def runs(n_cols: int, size: int) -> npt.NDArray[np.intp]:
    return np.arange(n_cols) // (size if size > 0 else n_cols)


def gptq(
    matrix: npt.NDArray[np.float32],
    *,
    bits: int = 4,
    size: int = 32,
    ordered: bool = False,
    symmetric: bool = False,
    second: bool = False,
    index: bool = True,
) -> Packed:
    """`ordered`: groups are of columns that do not follow each other (desc_act). `second`: gptq_v2."""
    group = runs(matrix.shape[1], size)
    if ordered:
        group = np.random.default_rng(matrix.size).permutation(group)
    codes, scales, zeros = grouped(matrix, bits, group, symmetric=symmetric)
    values = values_of(codes, scales, zeros, group)
    if ordered or (size > 0 and size % 32):
        values = values.astype(np.float16).astype(np.float32)  # as its kernels compute
    tensors = {
        "qweight": stream(codes, bits).T.copy(),
        "qzeros": stream((zeros if second else zeros - 1).T, bits),
        "scales": scales.T.copy(),
    }
    if index:
        tensors["g_idx"] = group.astype(np.int32)
    return Packed(tensors, values)


def awq(matrix: npt.NDArray[np.float32], *, size: int = 32) -> Packed:
    group = runs(matrix.shape[1], size)
    codes, scales, zeros = grouped(matrix, 4, group, symmetric=False)

    def words(upright: npt.NDArray[Any]) -> Words:
        """[.., rows / 8] of [.., rows]."""
        out = np.zeros((upright.shape[0], upright.shape[1] // 8), np.uint32)
        for i, place in enumerate(AWQ_ORDER):
            out |= upright[:, place::8].astype(np.uint32) << np.uint32(4 * i)
        return out.view(np.int32)

    tensors = {"qweight": words(codes.T), "qzeros": words(zeros.T), "scales": scales.T.copy()}
    return Packed(tensors, values_of(codes, scales, zeros, group))


def pack_quantized(
    matrix: npt.NDArray[np.float32],
    *,
    bits: int = 4,
    size: int = 32,
    symmetric: bool = True,
    ordered: bool = False,
) -> Packed:
    group = runs(matrix.shape[1], size)
    if ordered:
        group = np.random.default_rng(matrix.size).permutation(group)
    codes, scales, zeros = grouped(matrix, bits, group, symmetric=symmetric)
    values = values_of(codes, scales, zeros, group)
    tensors: Arrays = {
        "weight_packed": stream(codes, bits),
        "weight_scale": scales,
        "weight_shape": np.array(matrix.shape, np.int64),
    }
    if not symmetric:
        tensors["weight_zero_point"] = stream(zeros.T, bits).T.copy()
    if ordered:
        tensors["weight_g_idx"] = group.astype(np.int32)
        values = values.astype(np.float16).astype(np.float32)
    return Packed(tensors, values)


def int_quantized(matrix: npt.NDArray[np.float32]) -> Packed:
    scales = (abs(matrix).max(axis=1, keepdims=True) / 127).astype(np.float16)
    codes = np.round(matrix / scales.astype(np.float32)).astype(np.int8)
    values = codes.astype(np.float32) * scales.astype(np.float32)
    return Packed({"weight": codes, "weight_scale": scales}, values, {"weight": "I8"})


def llm_int8(matrix: npt.NDArray[np.float32]) -> Packed:
    peaks = abs(matrix).max(axis=1).astype(np.float32)
    codes = np.round(matrix * (127 / peaks[:, None])).astype(np.int8)
    values = codes.astype(np.float32) * (peaks[:, None] / np.float32(127))
    tensors: Arrays = {"weight": codes, "SCB": peaks, "weight_format": np.zeros((), np.uint8)}
    return Packed(tensors, values, {"weight": "I8"})


NF4 = np.array(
    [
        *(-1.0, -0.6961928, -0.52507305, -0.3949175, -0.28444138, -0.18477343, -0.09105004, 0.0),
        *(0.0795803, 0.1609302, 0.2461123, 0.33791524, 0.44070983, 0.562617, 0.72295684, 1.0),
    ],
    np.float32,
)


def nf4(matrix: npt.NDArray[np.float32], *, nested: bool = False) -> Packed:
    blocks = matrix.reshape(-1, 64)
    peaks = abs(blocks).max(axis=1).astype(np.float32)
    codes = abs(blocks[:, :, None] / peaks[:, None, None] - NF4).argmin(axis=2).reshape(-1, 2)
    state = {"quant_type": "nf4", "blocksize": 64, "dtype": "float16", "shape": list(matrix.shape)}
    table = np.linspace(-1, 1, 256, dtype=np.float32)
    tensors: Arrays = {
        "weight": (codes[:, 0] << 4 | codes[:, 1]).astype(np.uint8)[:, None],
        "weight.quant_map": NF4,
    }
    if nested:
        offset = float(peaks.mean())
        rest = np.pad(peaks - np.float32(offset), (0, -len(peaks) % 256)).reshape(-1, 256)
        most = abs(rest).max(axis=1).astype(np.float32)
        places = abs((rest / most[:, None])[:, :, None] - table).argmin(axis=2).astype(np.uint8)
        places = places.reshape(-1)[: len(peaks)]
        peaks = table[places] * most.repeat(256)[: len(peaks)] + np.float32(offset)
        state |= {"nested_blocksize": 256, "nested_dtype": "float32", "nested_offset": offset}
        tensors |= {"weight.nested_absmax": most, "weight.nested_quant_map": table}
    tensors["weight.absmax"] = places if nested else peaks
    text = np.frombuffer(json.dumps(state).encode(), np.uint8)
    tensors["weight.quant_state.bitsandbytes__nf4"] = text.copy()
    values = (NF4[codes].reshape(-1, 64) * peaks[:, None]).astype(np.float16).astype(np.float32)
    return Packed(tensors, values.reshape(matrix.shape))


Writer = Callable[[npt.NDArray[np.float32]], Packed]


def fits(name: str, array: npt.NDArray[Any]) -> bool:
    """Whether these libraries quantize it: a matrix but no embedding, head, router or short convolution."""
    kept = ("embed", "lm_head", "norm", "mlp.gate.weight", "shared_expert_gate", "conv", "router")
    return array.ndim == 2 and array.shape[1] % 32 == 0 and not any(part in name for part in kept)


def packed(
    write: Writer, *, values: bool = False, types: dict[str, str] | None = None
) -> Callable[[Arrays], Arrays]:
    """The matrices as tensors of the library's names, or their values; `types` gets types of tensors."""

    def change(weights: Arrays) -> Arrays:
        out: Arrays = {}
        for name, array in weights.items():
            if not fits(name, array):
                out[name] = array
                continue
            made, module = write(array), name.removesuffix("weight")
            if values:
                out[name] = made.values
                continue
            out |= {module + end: tensor for end, tensor in made.tensors.items()}
            if types is not None:
                types.update({module + end: kind for end, kind in made.types.items()})
        return out

    return change

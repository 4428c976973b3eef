"""Blocks of GGUF's quantized types, in NumPy: those that the ``gguf`` package cannot write.

The types are those of https://github.com/ggml-org/ggml/blob/master/docs/gguf.md; a block of the first two has
256 weights.
Q4_K: d and dmin (F16), 8 scales and 8 minima of 6 bits in 12 bytes, 128 bytes of nibbles;
w = d*s*q - dmin*m.
Q6_K: 128 bytes of low nibbles, 64 bytes of high bit pairs, 16 signed 8-bit scales, d (F16); w = d*s*(q - 32).
IQ4_NL: 32 weights, d (F16), 16 bytes of nibbles (low ones for the first half of the weights); w = d*table[q].
"""

from __future__ import annotations

import numpy as np
from gguf import GGMLQuantizationType, quants
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Bytes = NDArray[np.uint8]
SUPER = 256


def _f16(x: Floats) -> Floats:
    return x.astype(np.float16).astype(np.float32)


def _divide(a: Floats, b: Floats) -> Floats:
    """a / b, and 0 where b is 0."""
    return np.divide(a, b, out=np.zeros(np.broadcast_shapes(a.shape, b.shape), np.float32), where=b != 0)


def _fit_min(x: Floats, levels: int) -> tuple[Floats, Floats]:
    """Scale and minimum [n, 1], both >= 0, so that x ~ scale * q - minimum with q in 0..levels.

    Starts from the range and alternates: nearest q for (scale, minimum), then least squares for that q.
    The weight of an error is |x| plus the block's root mean square, as larger weights matter more.
    """
    low = np.minimum(x.min(1, keepdims=True), 0)
    weight = np.abs(x) + np.sqrt(np.mean(x * x, 1, keepdims=True))
    best_scale, best_low = (x.max(1, keepdims=True) - low) / levels, low

    def error(scale: Floats, low: Floats) -> Floats:
        q = np.clip(np.rint(_divide(x - low, scale)), 0, levels)
        return (weight * (scale * q + low - x) ** 2).sum(1, keepdims=True)

    best = error(best_scale, best_low)
    total = weight.sum(1, keepdims=True)
    mean_x = (weight * x).sum(1, keepdims=True) / np.maximum(total, 1e-30)
    for step in range(-9, 10):
        scale = (x.max(1, keepdims=True) - low) / (levels + 0.1 * step)
        q = np.clip(np.rint(_divide(x - low, scale)), 0, levels)
        mean_q = (weight * q).sum(1, keepdims=True) / np.maximum(total, 1e-30)
        dq = q - mean_q
        scale = _divide(
            (weight * dq * (x - mean_x)).sum(1, keepdims=True), (weight * dq * dq).sum(1, keepdims=True)
        )
        new_low = np.minimum(mean_x - scale * mean_q, 0)
        found = error(scale, new_low)
        better = (found < best) & (scale > 0)
        best_scale, best_low = np.where(better, scale, best_scale), np.where(better, new_low, best_low)
        best = np.where(better, found, best)
    return best_scale, -best_low


def quantize_q4_k(x: Floats) -> Bytes:
    """Rows of a multiple of 256 weights to Q4_K blocks of 144 bytes."""
    blocks = x.reshape(-1, 32).astype(np.float32)
    scale, minimum = (a.reshape(-1, 8) for a in _fit_min(blocks, 15))
    d, dmin = (_f16(a.max(1, keepdims=True) / 63) for a in (scale, minimum))
    scales, minima = (np.clip(np.rint(_divide(a, b)), 0, 63) for a, b in ((scale, d), (minimum, dmin)))
    step, low = (d * scales).reshape(-1, 1), (dmin * minima).reshape(-1, 1)
    q = np.clip(np.rint(_divide(blocks + low, step)), 0, 15).astype(np.uint8).reshape(-1, 4, 2, 32)
    nibbles = (q[:, :, 0] | q[:, :, 1] << 4).reshape(-1, 128)
    s, m = scales.astype(np.uint8), minima.astype(np.uint8)
    packed = np.concatenate(
        [
            s[:, :4] | (s[:, 4:] >> 4) << 6,
            m[:, :4] | (m[:, 4:] >> 4) << 6,
            (s[:, 4:] & 15) | (m[:, 4:] & 15) << 4,
        ],
        axis=1,
    )
    head = np.concatenate([d, dmin], 1).astype(np.float16).view(np.uint8)
    return np.concatenate([head, packed, nibbles], 1).reshape(*x.shape[:-1], -1)


def _fit_signed(x: Floats, levels: int) -> Floats:
    """Scale [n, 1] so that x ~ scale * q with q in -levels..levels-1; the scale may be negative."""
    peak = np.take_along_axis(x, np.abs(x).argmax(1, keepdims=True), 1)
    weight = x * x
    best_scale = -peak / levels
    best = np.full_like(best_scale, -1.0)
    for step in range(-9, 10):
        q = np.clip(np.rint(_divide(x * -(levels + 0.1 * step), peak)), -levels, levels - 1)
        xq, qq = (weight * x * q).sum(1, keepdims=True), (weight * q * q).sum(1, keepdims=True)
        gain = _divide(xq * xq, qq)  # the error falls by this much with the least-squares scale xq / qq
        better = gain > best
        best_scale, best = np.where(better, _divide(xq, qq), best_scale), np.where(better, gain, best)
    return best_scale


def quantize_q6_k(x: Floats) -> Bytes:
    """Rows of a multiple of 256 weights to Q6_K blocks of 210 bytes."""
    blocks = x.reshape(-1, 16).astype(np.float32)
    scale = _fit_signed(blocks, 32).reshape(-1, 16)
    peak = np.take_along_axis(scale, np.abs(scale).argmax(1, keepdims=True), 1)
    d = _f16(-peak / 128)
    scales = np.clip(np.rint(_divide(scale, d)), -128, 127)
    q = np.clip(np.rint(_divide(blocks, (d * scales).reshape(-1, 1))), -32, 31).astype(np.int8) + 32
    q = q.astype(np.uint8).reshape(-1, 2, 4, 32)
    low = np.stack([q[:, :, 0] & 15 | (q[:, :, 2] & 15) << 4, q[:, :, 1] & 15 | (q[:, :, 3] & 15) << 4], 2)
    high = q[:, :, 0] >> 4 | (q[:, :, 1] >> 4) << 2 | (q[:, :, 2] >> 4) << 4 | (q[:, :, 3] >> 4) << 6
    parts = [low.reshape(-1, 128), high.reshape(-1, 64), scales.astype(np.int8).view(np.uint8)]
    return np.concatenate([*parts, d.astype(np.float16).view(np.uint8)], 1).reshape(*x.shape[:-1], -1)


IQ4_NL = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113], np.float32)


def quantize_iq4_nl(x: Floats) -> Bytes:
    """Rows of a multiple of 32 weights to IQ4_NL blocks of 18 bytes: of 15 scales the best in squares."""
    blocks = x.reshape(-1, 32)
    largest = np.take_along_axis(blocks, np.abs(blocks).argmax(1, keepdims=True), 1)
    middles = (IQ4_NL[1:] + IQ4_NL[:-1]) / 2

    def fit(d: Floats) -> tuple[Floats, NDArray[np.intp], Floats]:
        q = np.searchsorted(middles, _divide(blocks, d))
        levels = IQ4_NL[q]
        d = _f16(_divide((levels * blocks).sum(1, keepdims=True), (levels * levels).sum(1, keepdims=True)))
        return d, q, ((d * levels - blocks) ** 2).sum(1, keepdims=True)

    d, q, error = fit(largest / IQ4_NL[0])
    for step in range(-7, 7):
        new_d, new_q, new_error = fit(largest / (IQ4_NL[0] + 2 * step))
        better = new_error < error
        d, q, error = (
            np.where(better, new_d, d),
            np.where(better, new_q, q),
            np.where(better, new_error, error),
        )
    nibbles = (q[:, :16] | q[:, 16:] << 4).astype(np.uint8)
    return np.concatenate([d.astype(np.float16).view(np.uint8), nibbles], 1).reshape(*x.shape[:-1], -1)


def quantize(x: Floats, kind: GGMLQuantizationType) -> NDArray[np.generic]:
    """A tensor as the bytes of a GGUF type (or as floats, for F32 and F16)."""
    match kind:
        case GGMLQuantizationType.F32:
            return x.astype(np.float32)
        case GGMLQuantizationType.F16:
            return x.astype(np.float16)
        case GGMLQuantizationType.Q4_K:
            return quantize_q4_k(x)
        case GGMLQuantizationType.Q6_K:
            return quantize_q6_k(x)
        case GGMLQuantizationType.IQ4_NL:
            return quantize_iq4_nl(x)
        case _:
            return quants.quantize(x.astype(np.float32), kind)

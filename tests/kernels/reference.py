"""What every op computes, in NumPy float64; the sampler is in tests/sampling/reference.py."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

F64 = npt.NDArray[np.float64]
F32 = npt.NDArray[np.float32]


def rms_norm(x: F64, weight: F64, eps: float) -> F64:
    """x / sqrt(mean(x²) + eps) · weight over the last axis."""
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + np.float32(eps)) * weight


def quantize_q8(x: F32) -> tuple[npt.NDArray[np.int8], F32]:
    """The int8 activation format: (q [rows, dim], d [rows, dim / 32]), with the roundings of binary32."""
    blocks = x.reshape(*x.shape[:-1], -1, 32)
    top = np.abs(blocks).max(axis=-1)
    d = (top / np.float32(127)).astype(np.float32)
    d[d < np.finfo(np.float32).tiny] = 0
    with np.errstate(divide="ignore", over="ignore"):
        inverse = np.where(d > 0, np.float32(127) / top, np.float32(0)).astype(np.float32)
    q = np.rint(blocks * inverse[..., None]).astype(np.int8)
    return q.reshape(x.shape), d


def round_activation(x: F32, fmt: str) -> F64:
    """The values that a matmul sees of `x` in an activation format."""
    if fmt == "q8":
        q, d = quantize_q8(x)
        return q.astype(np.float64) * np.repeat(d, 32, axis=-1)
    return x.astype({"f32": np.float32, "f16": np.float16}[fmt]).astype(np.float64)


def softcap(y: F64, cap: float) -> F64:
    """cap·tanh(y / cap), or y when the cap is 0."""
    return cap * np.tanh(y / cap) if cap > 0 else y


def activation(x: F64, kind: str) -> F64:
    """SiLU, GELU in its tanh form ("gelu") or its own, tanh, ReLU, its square, a sigmoid, or x itself."""
    if kind == "silu":
        return x / (1 + np.exp(-x))
    if kind == "gelu_erf":
        return 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))
    if kind == "tanh":
        return np.tanh(x)
    if kind == "relu":
        return np.maximum(x, 0)
    if kind == "relu2":
        return np.maximum(x, 0) ** 2
    if kind == "none":
        return x
    if kind == "sigmoid":
        return 1 / (1 + np.exp(-x))
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def rope_angles(position: int, rows: int, inv_freq: F32) -> F64:
    """[rows, half] angles. The product is one of binary32, which is what the models were trained with."""
    positions = np.arange(position, position + rows, dtype=np.float32)
    return (positions[:, None] * inv_freq).astype(np.float64)


def rotate(x: F64, cos: F64, sin: F64, style: str) -> F64:
    """x [rows, heads, head_dim] turned by cos, sin [rows, half]; dimensions from 2·half on pass through."""
    half = cos.shape[-1]
    a, b = (
        (np.s_[..., 0 : 2 * half : 2], np.s_[..., 1 : 2 * half : 2])
        if style == "interleaved"
        else (np.s_[..., :half], np.s_[..., half : 2 * half])
    )
    c, s = cos[:, None], sin[:, None]
    y = x.copy()
    y[a] = x[a] * c - x[b] * s
    y[b] = x[a] * s + x[b] * c
    return y


def attention(
    q: F64,
    k: F64,
    v: F64,
    position: int,
    scale: float,
    cap: float = 0,
    window: int = 0,
    both: bool = False,
    sinks: F32 | None = None,
    ends: npt.NDArray[np.uint32] | None = None,
) -> F64:
    """[rows, heads, head_dim]: rows from `position` on see the keys [length, kv_heads, head_dim] before.

    `both`: and those behind, with a window as many as before. `sinks`: a score of each head without a value.
    `ends`: where a row sees at least all keys before.
    """
    rows, heads, _ = q.shape
    length, kv_heads, _ = k.shape
    group = heads // kv_heads
    key = np.arange(length)
    at = position + np.arange(rows)[:, None]
    seen = key < at + (window or length) if both else key <= at
    if ends is not None:
        seen |= key < ends[:, None]
    visible = (key > at - window if window else True) & seen
    out = np.empty_like(q)
    for h in range(heads):
        scores = softcap(q[:, h] @ k[:, h // group].T * scale, cap)
        scores[~visible] = -np.inf
        top = scores.max(axis=1, keepdims=True)
        p = np.exp(scores - top)
        rest = 0.0 if sinks is None else np.exp(float(sinks[h]) - top)
        out[:, h] = p @ v[:, h // group] / (p.sum(axis=1, keepdims=True) + rest)
    return out


def log_softmax(logits: F64) -> F64:
    """Log-probabilities."""
    top = logits.max()
    return logits - (top + np.log(np.exp(logits - top).sum()))

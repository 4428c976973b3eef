"""Matmuls, alone and fused with the gate."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from .. import reference as ref
from ..problem import Activation, Problem
from ..weights import is_float, random_weight
from .common import (
    ACTIVATION,
    CUDA,
    EXACT_NMSE,
    F16_TILE_NMSE,
    FIXED,
    FIXED_MATMUL_NMSE,
    FORMAT,
    INT8_NMSE,
    ROW_CODES_NMSE,
    Traits,
    act_bytes,
    normal,
)
from .common import formats as format_bits


def matmul_input(p: Problem, dev: Traits, dtype: str, x: ref.F32) -> tuple[str, str]:
    """(name, format) of `x` in the format that weights of this type read."""
    fmt, (rows, dim) = dev.matmul_input(dtype), x.shape
    if fmt == "f32":
        return p.input("x", x), fmt
    name = p.opaque("x_act", Activation(fmt, rows, dim))
    p.run("quantize", p.input("x", x), None, name, rows=rows, dim=dim, formats=FORMAT[fmt])
    if p.checking:
        p.expect(name, x)
    return name, fmt


#: Inputs of a unit of the types whose codes lie in tiles on CUDA: cuda/kernels/tile_layout.h.
_CODE_TILES = {
    **dict.fromkeys(("q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "iq4_nl", "mxfp4"), 128),
    **dict.fromkeys(("q4_k", "q5_k", "q6_k", "iq4_xs"), 256),
}


#: Rows up to which CUDA multiplies codes in tiles as whole numbers: kByteRows of cuda/kernels/few_layout.h.
_CODE_ROWS = 4


def row_bound(dev: Traits, dtype: str, k: int) -> float:
    """The bound of a matmul of one row, or on CUDA of a few."""
    unit = _CODE_TILES.get(dtype, 0) if dev.isa.startswith(CUDA) else 0
    padded = unit == 128 < k and k % 32 == 0
    return ROW_CODES_NMSE if unit and (padded or k % unit == 0) else EXACT_NMSE


def _bound(dev: Traits, dtype: str, fmt: str, rows: int, k: int, whole: bool) -> float:
    if whole and is_float(dtype):
        return FIXED_MATMUL_NMSE if dev.isa in FIXED else EXACT_NMSE
    if rows == 1 or (rows <= _CODE_ROWS and dev.isa.startswith(CUDA)):
        return row_bound(dev, dtype, k)
    return (
        F16_TILE_NMSE
        if fmt == "f16" and rows > 16 and not is_float(dtype) and dtype != "mxfp4"
        else EXACT_NMSE
    )


def _cancellation(x: ref.F64, w: ref.F64, y: ref.F64) -> float:
    """How much larger than usual the terms of a few sums are than the sums: at least 1 (random ones: 0.4)."""
    if y.size >= 8:
        return 1.0
    terms = np.abs(x) @ np.abs(w).T
    return max(1.0, float((terms**2).sum() / (y**2).sum()) / x.shape[1])


def matmul(
    p: Problem,
    dev: Traits,
    rng: np.random.Generator,
    dtype: str,
    rows: int,
    n: int,
    k: int,
    bias: bool = False,
    accumulate: bool = False,
    cap: float = 0.0,
    activation: str = "",
    whole: bool = False,
    to: str = "f32",
) -> None:
    w, x = dataclasses.replace(random_weight(rng, dtype, n, k), whole=whole), normal(rng, rows, k)
    b, y = normal(rng, n), normal(rng, rows, n)
    source, fmt = matmul_input(p, dev, dtype, x)
    to = dev.matmul_input("q4_0") if to == "q8" else to
    if to == "f32":
        out = p.inout("y", y) if accumulate else p.output("y", rows, n)
    else:
        out = p.opaque("y", Activation(to, rows, n))
    p.run(
        "matmul",
        source,
        p.weight("w", w),
        out,
        p.input("bias", b) if bias else None,
        rows=rows,
        n=n,
        k=k,
        y_stride=n,
        accumulate=accumulate,
        has_bias=bias,
        softcap=cap,
        activation=1 + ACTIVATION[activation] if activation else 0,
        format=FORMAT[to],
    )
    p.bytes = len(w.data) + rows * (act_bytes(fmt) * k + act_bytes(to) * n * (2 if accumulate else 1))
    p.flops, p.integer = 2.0 * rows * n * k, fmt == "q8"
    if not p.checking:
        return

    def expected(values: ref.F64) -> ref.F64:
        out = ref.softcap(values @ w.values().T + (b if bias else 0), cap)
        out = ref.activation(out, activation) if activation else out
        return out + (y if accumulate else 0)

    values, weights = ref.round_activation(x, fmt), w.values()
    limit = _bound(dev, dtype, fmt, rows, k, whole) * _cancellation(values, weights, values @ weights.T)
    p.expect(out, expected(values), limit)
    if fmt != "f32" and to == "f32" and rows * n >= 128 and k >= 256 and cap == 0:  # enough to average
        p.expect(out, expected(x.astype(np.float64)), INT8_NMSE)


def gate_up(
    p: Problem,
    dev: Traits,
    rng: np.random.Generator,
    dtype: str,
    rows: int,
    n: int,
    k: int,
    activation: str,
    formats: Sequence[str],
    whole: bool = False,
) -> None:
    gate, up = (dataclasses.replace(random_weight(rng, dtype, n, k), whole=whole) for _ in range(2))
    x = normal(rng, rows, k)
    source, fmt = matmul_input(p, dev, dtype, x)
    p.run(
        "gate_up",
        source,
        p.weight("gate", gate),
        p.weight("up", up),
        *p.activations("out", formats, rows, n),
        rows=rows,
        n=n,
        k=k,
        activation=ACTIVATION[activation],
        formats=format_bits(formats),
    )
    p.bytes = 2 * len(gate.data) + rows * (act_bytes(fmt) * k + sum(map(act_bytes, formats)) * n)
    p.flops, p.integer = 4.0 * rows * n * k, fmt == "q8"
    if p.checking:
        values = ref.round_activation(x, fmt)
        hidden = ref.activation(values @ gate.values().T, activation) * (values @ up.values().T)
        p.expect_activations("out", hidden, _bound(dev, dtype, fmt, rows, k, whole))


def norm_qkv(
    p: Problem,
    dev: Traits,
    rng: np.random.Generator,
    dtype: str,
    n_q: int,
    n_kv: int,
    k: int,
    bias: bool = False,
    eps: float = 1e-5,
    parts: int = 3,
    v: str = "",
) -> None:
    """All of q, k and v, or the first `parts` of them; each begins at a multiple of 64 floats.

    `v` is the type of v's weights, where it is another.
    """
    sizes = {"q": n_q, "k": n_kv, "v": n_kv}
    names = list(sizes)[:parts]
    types = {"q": dtype, "k": dtype, "v": v or dtype}
    weights = {name: random_weight(rng, types[name], sizes[name], k) for name in names}
    n = sum(w.rows for w in weights.values())
    x, g, b = normal(rng, 1, k), 1 + normal(rng, k, sigma=0.3), normal(rng, n)
    k_offset = -(-n_q // 64) * 64
    v_offset = k_offset + -(-n_kv // 64) * 64
    offsets = (0, k_offset, v_offset)[:parts]
    y = normal(rng, offsets[-1] + sizes[names[-1]])
    out = p.inout("y", y)
    p.run(
        "norm_qkv",
        p.input("x", x),
        p.input("norm", g),
        *(p.weight(f"w{name}", weights[name]) if name in weights else None for name in sizes),
        out,
        p.input("bias", b) if bias else None,
        n_q=n_q,
        n_kv=n_kv if parts > 1 else 0,
        k=k,
        k_offset=k_offset if parts > 1 else 0,
        v_offset=v_offset if parts > 2 else 0,
        has_bias=bias,
        eps=eps,
    )
    p.bytes, p.flops = sum(len(w.data) for w in weights.values()) + 8.0 * k + 4.0 * n, 2.0 * n * k
    if not p.checking:
        return
    values, expected, at = ref.rms_norm(x[0].astype(np.float64), g, eps), y.astype(np.float64), 0
    for offset, w in zip(offsets, weights.values(), strict=True):
        part = w.values() @ values + (b[at : at + w.rows] if bias else 0)
        expected[offset : offset + w.rows] = part
        at += w.rows
    p.expect(out, expected, row_bound(dev, dtype, k))  # what lies between the parts is as it was


def norm_gate_up(
    p: Problem,
    dev: Traits,
    rng: np.random.Generator,
    dtype: str,
    n: int,
    k: int,
    activation: str,
    formats: Sequence[str],
    eps: float = 1e-5,
) -> None:
    gate, up = random_weight(rng, dtype, n, k), random_weight(rng, dtype, n, k)
    x, g = normal(rng, 1, k), 1 + normal(rng, k, sigma=0.3)
    p.run(
        "norm_gate_up",
        p.input("x", x),
        p.input("norm", g),
        p.weight("gate", gate),
        p.weight("up", up),
        *p.activations("out", formats, 1, n),
        n=n,
        k=k,
        activation=ACTIVATION[activation],
        formats=format_bits(formats),
        eps=eps,
    )
    p.bytes = 2 * len(gate.data) + 8.0 * k + sum(map(act_bytes, formats)) * n
    p.flops = 4.0 * n * k
    if p.checking:
        values = ref.rms_norm(x.astype(np.float64), g, eps)
        hidden = ref.activation(values @ gate.values().T, activation) * (values @ up.values().T)
        p.expect_activations("out", hidden, row_bound(dev, dtype, k))

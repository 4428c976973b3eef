"""Matmuls, alone and fused with the gate."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .. import reference as ref
from ..problem import Activation, Problem
from ..weights import random_weight
from .common import (
    ACTIVATION,
    EXACT_NMSE,
    FORMAT,
    INT8_NMSE,
    Traits,
    act_bytes,
    normal,
)
from .common import formats as format_bits


def _matmul_input(p: Problem, dev: Traits, dtype: str, x: ref.F32) -> tuple[str, str]:
    """(name, format) of `x` in the format that weights of this type read."""
    fmt, (rows, dim) = dev.matmul_input(dtype), x.shape
    if fmt == "f32":
        return p.input("x", x), fmt
    name = p.opaque("x_act", Activation(fmt, rows, dim))
    p.run("quantize", p.input("x", x), None, name, rows=rows, dim=dim, formats=FORMAT[fmt])
    if p.checking:
        p.expect(name, x)
    return name, fmt


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
) -> None:
    w, x = random_weight(rng, dtype, n, k), normal(rng, rows, k)
    b, y = normal(rng, n), normal(rng, rows, n)
    source, fmt = _matmul_input(p, dev, dtype, x)
    out = p.inout("y", y) if accumulate else p.output("y", rows, n)
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
    )
    p.bytes = len(w.data) + rows * (act_bytes(fmt) * k + 4 * n * (2 if accumulate else 1))
    p.flops, p.integer = 2.0 * rows * n * k, fmt == "q8"
    if not p.checking:
        return

    def expected(values: ref.F64) -> ref.F64:
        return ref.softcap(values @ w.values().T + (b if bias else 0), cap) + (y if accumulate else 0)

    p.expect(out, expected(ref.round_activation(x, fmt)), EXACT_NMSE)
    if fmt != "f32" and rows * n >= 128 and k >= 256 and cap == 0:  # enough to average
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
) -> None:
    gate, up, x = random_weight(rng, dtype, n, k), random_weight(rng, dtype, n, k), normal(rng, rows, k)
    source, fmt = _matmul_input(p, dev, dtype, x)
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
        p.expect_activations("out", hidden, EXACT_NMSE)

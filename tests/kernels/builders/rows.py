"""Rows in, rows out: what lies between the matmuls and attention."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .. import reference as ref
from ..problem import Activation, Problem
from ..weights import is_affine, random_weight, row_slice
from .attention import rows_of
from .common import (
    ACTIVATION,
    EXACT_NMSE,
    FORMAT,
    SQUARES_NMSE,
    Traits,
    act_bytes,
    normal,
)
from .common import formats as format_bits


def embed(
    p: Problem,
    dev: Traits,
    rng: np.random.Generator,
    dtype: str,
    rows: int,
    dim: int,
    vocab: int,
    prepared: bool = True,
    scale: float = 1.0,
    position: int = 0,
    accumulate: bool = False,
) -> None:
    before = normal(rng, rows, dim)
    w = random_weight(rng, dtype, vocab, dim, prepared, sigma=1)
    history = rng.integers(0, vocab, (3, position + rows + 3)).astype(np.uint32)
    slots, step = np.sort(rng.integers(0, 3, rows)), min(position, 2)
    at = np.arange(rows) + position
    if rows > 1:  # a token that the table does not have
        history[slots[-1], at[-1]] = vocab + 5
    ids = history[slots, at]
    p.run(
        "embed",
        p.input("history", history),
        p.weight("table", w),
        p.inout("h", before) if accumulate else p.output("h", rows, dim),
        rows_of(p, "rows", slots, at - step),
        rows=rows,
        step=step,
        dim=dim,
        vocab=vocab,
        history_stride=history.shape[1],
        scale=scale,
        accumulate=accumulate,
    )
    p.bytes = rows * (len(w.data) / vocab + 4 * dim)
    if p.checking:
        # A GPU may round scale·code + bias once.
        nmse = EXACT_NMSE if is_affine(dtype) or accumulate else None
        row = row_slice(w, np.where(ids < vocab, ids, 0)) * np.float32(scale)
        p.expect("h", before + row if accumulate else row, nmse)


def rope_table(
    p: Problem,
    dev: Traits,
    rng: np.random.Generator,
    rows: int,
    half: int,
    position: int,
    scale: float = 1.0,
    temperature: tuple[float, int] = (0.0, 0),
    axes: bool = False,
) -> None:
    """`temperature`: its weight, and the positions of which each full number counts."""
    weight, length = temperature
    inv_freq = (10000.0 ** -(np.arange(half) / half)).astype(np.float32)
    step = min(position, 5)
    axis = rng.integers(0, 3, half).astype(np.uint32)
    turns_by = rng.integers(0, position + 1, (rows, 3)).astype(np.uint32)
    p.run(
        "rope_table",
        p.input("inv_freq", inv_freq),
        p.output("table", rows, half, 2),
        rows_of(p, "rows", [0] * rows, np.arange(rows) + position - step),
        p.input("axes", axis) if axes else None,
        p.input("positions", turns_by) if axes else None,
        rows=rows,
        step=step,
        half_dim=half,
        scale=scale,
        temperature=weight,
        temperature_length=length,
        axes=axes,
    )
    p.bytes, p.flops = rows * 8 * half, rows * 2 * half
    if p.checking:
        angles = ref.rope_angles(position, rows, inv_freq)
        if axes:
            angles = (turns_by[:, axis].astype(np.float32) + np.float32(step)) * inv_freq
        expected = np.stack([np.cos(angles), np.sin(angles)], axis=-1) * np.float32(scale)
        if length:
            turns = (np.arange(rows) + position) // length
            expected *= (1 + np.float32(weight) * np.log1p(turns))[:, None, None]
        p.expect("table", expected, EXACT_NMSE)


def insert_rows(
    p: Problem,
    dev: Traits,
    rng: np.random.Generator,
    rows: int,
    dim: int,
    encoded: int,
    parts: int = 1,
    part: int = 0,
    accumulate: bool = False,
    step: int = 0,
) -> None:
    """`encoded`: rows that there are, of so many `parts`, one of which is inserted."""
    hidden, made = normal(rng, rows, dim), normal(rng, encoded, parts * dim)
    sources = rng.integers(0, encoded, rows).astype(np.uint32)
    sources[:: 1 + rows // 3] = 0xFFFFFFFF
    p.run(
        "insert_rows",
        p.inout("hidden", hidden),
        p.input("encoded", made),
        p.input("sources", sources),
        rows=rows,
        step=step,
        dim=dim,
        width=parts * dim,
        offset=part * dim,
        accumulate=accumulate,
    )
    p.bytes = rows * dim * 8
    if p.checking:
        expected, inserted = hidden.copy(), sources != 0xFFFFFFFF
        if step == 0:
            values = made[sources[inserted], part * dim : (part + 1) * dim]
            expected[inserted] = values + (hidden[inserted] if accumulate else 0)
        p.expect("hidden", expected, EXACT_NMSE)


def affine(
    p: Problem,
    dev: Traits,
    rng: np.random.Generator,
    rows: int,
    dim: int,
    scale: bool = False,
    bias: bool = False,
    bounds: tuple[float, float] = (-np.inf, np.inf),
) -> None:
    x, factor, added = normal(rng, rows, dim), normal(rng, dim), normal(rng, dim)
    p.run(
        "affine",
        p.input("x", x),
        p.input("scale", factor) if scale else None,
        p.input("bias", added) if bias else None,
        p.output("y", rows, dim),
        rows=rows,
        dim=dim,
        has_scale=scale,
        has_bias=bias,
        low=bounds[0],
        high=bounds[1],
    )
    p.bytes = rows * dim * 8
    if p.checking:
        y = x * factor if scale else x
        p.expect("y", np.clip(y + added if bias else y, *bounds), EXACT_NMSE)


def norm(
    p: Problem,
    dev: Traits,
    rng: np.random.Generator,
    rows: int,
    dim: int,
    formats: Sequence[str],
    gather: Sequence[int] = (),
    eps: float = 1e-5,
    sigma: float = 1.0,
) -> None:
    """`gather`: the rows that the output's are of."""
    rows = len(gather) or rows
    which = np.array(gather or range(rows), np.uint32)
    x, weight = (
        normal(rng, which.max() + (2 if gather else 1), dim, sigma=sigma),
        1 + normal(rng, dim, sigma=0.3),
    )
    p.run(
        "norm",
        p.input("x", x),
        p.input("weight", weight),
        *p.activations("out", formats, rows, dim),
        p.input("logit_rows", which) if gather else None,
        rows=rows,
        dim=dim,
        eps=eps,
        formats=format_bits(formats),
        gather=bool(gather),
        sum_scale=1,
    )
    p.bytes = rows * dim * (4 + sum(map(act_bytes, formats))) + 4 * dim
    p.flops = 4 * rows * dim
    if p.checking:
        p.expect_activations("out", ref.rms_norm(x[which].astype(np.float64), weight, eps), EXACT_NMSE)


def norm_add(
    p: Problem,
    dev: Traits,
    rng: np.random.Generator,
    rows: int,
    dim: int,
    eps: float = 1e-6,
    sum_scale: float = 1.0,
) -> None:
    x, weight, h = normal(rng, rows, dim), 1 + normal(rng, dim, sigma=0.3), normal(rng, rows, dim)
    p.run(
        "norm_add",
        p.input("x", x),
        p.input("weight", weight),
        p.inout("h", h),
        rows=rows,
        dim=dim,
        eps=eps,
        formats=FORMAT["f32"],
        gather=0,
        sum_scale=sum_scale,
    )
    p.bytes, p.flops = 12 * rows * dim, 5 * rows * dim
    if p.checking:
        expected = (h + ref.rms_norm(x.astype(np.float64), weight, eps)) * np.float32(sum_scale)
        p.expect("h", expected, EXACT_NMSE)


def quantize(
    p: Problem,
    dev: Traits,
    rng: np.random.Generator,
    rows: int,
    dim: int,
    formats: Sequence[str],
    kind: str = "normal",
) -> None:
    x = {
        "normal": lambda: normal(rng, rows, dim),
        "zeros": lambda: np.where(np.arange(dim) // 32 % 2, normal(rng, rows, dim), np.float32(0)),
        "outliers": lambda: normal(rng, rows, dim) * np.where(rng.random((rows, dim)) < 0.01, 1000, 1),
        "huge": lambda: normal(rng, rows, dim, sigma=1e37),
        "ties": lambda: rng.integers(-254, 255, (rows, dim)) / 2 + np.where(np.arange(dim) % 32, 0, 127),
    }[kind]()
    x = x.astype(np.float32)
    p.run(
        "quantize",
        p.input("x", x),
        *p.activations("out", formats, rows, dim),
        rows=rows,
        dim=dim,
        formats=format_bits(formats),
    )
    p.bytes, p.flops = rows * dim * (4 + sum(map(act_bytes, formats))), 2 * rows * dim
    if p.checking:
        for f in formats:
            p.expect(f"out_{f}", x)


def column_squares(
    p: Problem,
    dev: Traits,
    rng: np.random.Generator,
    rows: int,
    dim: int,
    formats: tuple[str],
    experts: int = 0,
    chosen: int = 0,
    apart: bool = False,
) -> None:
    """`apart`: the activation has a row for each choice of an expert."""
    n = rows * chosen if apart else rows
    x, (fmt,) = normal(rng, n, dim), formats
    if fmt == "f32":
        name = p.input("x", x)
    else:
        name = p.opaque("x_act", Activation(fmt, n, dim))
        p.run("quantize", p.input("x", x), None, name, rows=n, dim=dim, formats=FORMAT[fmt])
    ids = np.stack([rng.permutation(max(experts - 1, chosen))[:chosen] for _ in range(rows)]).astype(
        np.uint32
    )
    size = experts * (dim + 1) if experts else dim
    p.run(
        "column_squares",
        name,
        p.output("sums", size),
        p.input("ids", ids) if experts else None,
        rows=rows,
        dim=dim,
        format=FORMAT[fmt],
        experts=experts,
        chosen=chosen,
        apart=apart,
    )
    p.bytes, p.flops = n * dim * act_bytes(fmt), 2 * rows * dim * max(chosen, 1)
    if p.checking and not experts:
        p.expect("sums", (x.astype(np.float64) ** 2).sum(axis=0), SQUARES_NMSE[fmt])
    if p.checking and experts:
        sums, counts = np.zeros((experts, dim)), np.bincount(ids.reshape(-1), minlength=experts)
        squares = (x if apart else x.repeat(chosen, axis=0)).astype(np.float64) ** 2
        np.add.at(sums, ids.reshape(-1), squares)
        p.expect("sums", np.concatenate([sums.reshape(-1), counts]), SQUARES_NMSE[fmt])


def gate_act(
    p: Problem,
    dev: Traits,
    rng: np.random.Generator,
    rows: int,
    n: int,
    activation: str,
    formats: Sequence[str],
    sigma: float = 2.0,
    gated: bool = True,
    up_stride: int = 0,
) -> None:
    """`up_stride`: rows of up are so far apart, and begin the rows of an array."""
    gate, up = normal(rng, rows, n, sigma=sigma), normal(rng, rows, up_stride or n)
    p.run(
        "gate_act",
        p.input("gate", gate),
        p.input("up", up) if gated else None,
        *p.activations("out", formats, rows, n),
        rows=rows,
        n=n,
        activation=ACTIVATION[activation],
        formats=format_bits(formats),
        gated=gated,
        up_stride=up_stride or n,
    )
    p.bytes, p.flops = rows * n * ((8 if gated else 4) + sum(map(act_bytes, formats))), 5 * rows * n
    if p.checking:
        hidden = ref.activation(gate.astype(np.float64), activation) * (up[:, :n] if gated else 1)
        p.expect_activations("out", hidden, EXACT_NMSE)

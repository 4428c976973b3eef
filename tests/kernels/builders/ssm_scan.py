"""The state of Mamba-2, and the norm behind it: steps of sequences, each after the one before."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .. import reference as ref
from ..problem import Problem
from .common import EXACT_NMSE, Traits, normal
from .common import formats as format_bits
from .delta_rule import DELTA_NMSE, Sequences, StepRows, record_words, rows_in, slot_states, untouched_others


def ssm_scan(
    p: Problem,
    dev: Traits,
    rng: np.random.Generator,
    heads: tuple[int, int],
    dims: tuple[int, int],
    steps: Sequence[Sequence[StepRows | None]],
    block: int = 1,
    chain: int = 0,
    stopped: Sequence[int] = (),
    copies: int = 1,
) -> None:
    """The scan over several steps; the last one is at index `chain` of a chain.

    `heads`: groups and heads; `dims`: of the state and of a head; `block`: so many heads share a
    B in the record; `copies`: as many sequences alike.
    """
    steps = [[*parts] * copies for parts in steps]
    (groups, n_heads), (state_dim, head_dim) = heads, dims
    blocks = n_heads // block
    sequences = Sequences(p, rng, len(steps[0]), record_words((blocks, n_heads), dims) + 16)
    values, keys = n_heads * head_dim, groups * state_dim
    # Heads that forget at once, and heads that hardly do.
    a = -np.exp(rng.uniform(-5, 2, n_heads)).astype(np.float32)
    dt_bias = rng.uniform(-3, 2, n_heads).astype(np.float32)
    d = normal(rng, n_heads)
    p.input("constants", np.concatenate([a, dt_bias, d]))
    p.inout("state", sequences.records)
    slots = slot_states(p, sequences, stopped)
    past: list[list[tuple[ref.F32, ref.F32]]] = [[] for _ in steps[0]]
    for s, parts in enumerate(steps):
        step = chain if s == len(steps) - 1 else 0
        which = rows_in(parts)
        n = len(which)
        xbc, dt = normal(rng, n, values + 2 * keys), normal(rng, n, n_heads)
        rows, spans = sequences.step(f"step{s}", parts, step)
        p.run(
            "ssm_scan",
            p.input(f"xbc{s}", xbc),
            p.input(f"dt{s}", dt),
            "constants",
            "state",
            p.output(f"y{s}", n, values),
            rows,
            spans,
            slots,
            rows=n,
            step=step,
            groups=groups,
            blocks=blocks,
            heads=n_heads,
            state_dim=state_dim,
            head_dim=head_dim,
            state_words=sequences.records.shape[1],
        )
        p.bytes = 4 * values * state_dim * sum(part is not None for part in parts)
        p.flops = 4 * n * values * state_dim
        if not p.checking or stopped:
            continue
        for row, (sequence, position) in enumerate(which):
            del past[sequence][position:]
            past[sequence].append((xbc[row], dt[row]))
        out = np.empty((n, values))
        for sequence, part in enumerate(parts):
            if part is not None:
                position, count, _ = part
                here = [row for row, (i, _) in enumerate(which) if i == sequence]
                y = _scan(past[sequence], heads, dims, a, dt_bias, d)[position : position + count]
                out[here] = y.reshape(count, -1)
        p.expect(f"y{s}", out, DELTA_NMSE)
    untouched_others(p, sequences, stopped)


def _scan(
    rows: Sequence[tuple[ref.F32, ref.F32]],
    heads: tuple[int, int],
    dims: tuple[int, int],
    a: ref.F32,
    dt_bias: ref.F32,
    d: ref.F32,
) -> ref.F64:
    """[rows, heads, head_dim]: row by row from position 0."""
    (groups, n_heads), (state_dim, head_dim) = heads, dims
    group = np.arange(n_heads) // (n_heads // groups)
    state = np.zeros((n_heads, state_dim, head_dim))
    out = np.empty((len(rows), n_heads, head_dim))
    for i, (xbc, dt) in enumerate(rows):
        x, b, c = np.split(
            xbc.astype(np.float64), [n_heads * head_dim, n_heads * head_dim + groups * state_dim]
        )
        x, b, c = x.reshape(n_heads, head_dim), b.reshape(groups, -1)[group], c.reshape(groups, -1)[group]
        step = np.logaddexp(0, dt.astype(np.float64) + dt_bias)
        state *= np.exp(a * step)[:, None, None]
        state += b[:, :, None] * (step[:, None] * x)[:, None, :]
        out[i] = np.einsum("hn,hnp->hp", c, state) + d[:, None] * x
    return out


def gated_norm(
    p: Problem,
    dev: Traits,
    rng: np.random.Generator,
    rows: int,
    groups: int,
    dim: int,
    formats: Sequence[str] = ("f32",),
    eps: float = 1e-5,
) -> None:
    n = groups * dim
    x, gate, weight = normal(rng, rows, n), normal(rng, rows, n, sigma=3.0), 1 + normal(rng, n, sigma=0.3)
    p.run(
        "gated_norm",
        p.input("x", x),
        p.input("gate", gate),
        p.input("weight", weight),
        *p.activations("out", formats, rows, n),
        rows=rows,
        groups=groups,
        dim=dim,
        eps=eps,
        formats=format_bits(formats),
    )
    p.bytes, p.flops = 12 * rows * n, 10 * rows * n
    if p.checking:
        wide = gate.astype(np.float64)
        y = (x * wide / (1 + np.exp(-wide))).reshape(rows, groups, dim)
        y /= np.sqrt((y**2).mean(-1, keepdims=True) + eps)
        p.expect_activations("out", y.reshape(rows, n) * weight, EXACT_NMSE)

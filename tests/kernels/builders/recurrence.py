"""What advances a sequence's state row by row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .. import reference as ref
from ..problem import Problem, struct
from .attention import rows_of
from .common import EXACT_NMSE, STASH, Traits, normal
from .common import formats as format_bits


def recur(
    p: Problem,
    dev: Traits,
    rng: np.random.Generator,
    dim: int,
    spans: Sequence[tuple[int, int, int, int]],
    formats: tuple[str, ...] = ("f32",),
    step: int = 0,
    stopped: Sequence[int] = (),
) -> None:
    """Each span is a sequence: the position of its state, its first row's, its rows, how many may be refused.

    In a later step of a chain the state is that before the row, wherever the first step found it. A sequence
    that has stopped is left as it is.
    """
    slots = rng.permutation(len(spans) + 2)[: len(spans)]
    words = (1 + 2 * STASH) * dim + 16
    records = normal(rng, len(spans) + 2, words)
    x, gate = (normal(rng, sum(n for *_, n, _ in spans), dim) for _ in range(2))
    table = np.zeros(len(records), struct("StateSpan"))
    states = np.zeros(len(records), struct("SlotState"))
    expected, out = records.copy(), np.zeros(x.shape)
    where, positions, first = [], [], 0
    for i, (slot, (state_at, position, n, drafts)) in enumerate(zip(slots, spans, strict=True)):
        table[slot] = (state_at, position + n - drafts)
        states[slot]["stopped"] = i in stopped
        where += [slot] * n
        positions += range(position, position + n)
        rows = range(first, first + n)
        first += n
        if i in stopped:
            continue
        kept, stash = expected[slot, :dim], expected[slot, dim : (1 + 2 * STASH) * dim].reshape(STASH, 2, dim)
        s = (kept if state_at + step else np.zeros(dim)).astype(np.float64)
        for at in range(position if step else state_at, position):
            s = advance(s, *stash[at % STASH])
        for j, row in enumerate(rows):
            s = out[row] = advance(s, x[row], gate[row])
            if j + 1 == n - drafts:
                kept[:] = s
            if j >= n - drafts:
                stash[(position + step + j) % STASH] = x[row], gate[row]
    rows = len(where)
    p.run(
        "recur",
        p.input("x", x),
        p.input("gate", gate),
        p.inout("state", records),
        *p.activations("out", formats, rows, dim),
        rows_of(p, "rows", where, positions),
        p.input("spans", table),
        p.input("slots", states),
        rows=rows,
        step=step,
        dim=dim,
        formats=format_bits(formats),
        state_words=words,
    )
    p.bytes, p.flops = 12 * rows * dim, 8 * rows * dim
    if p.checking:
        p.expect("state", expected.astype(np.float64), EXACT_NMSE)
        if not stopped:
            p.expect_activations("out", out, EXACT_NMSE)


def advance(s: ref.F64, x: ref.F32, gate: ref.F32) -> ref.F64:
    """s + sigmoid(gate)·(x - s)"""
    return s + (x - s) / (1 + np.exp(-gate.astype(np.float64)))

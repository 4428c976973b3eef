"""The gated delta rule, and the convolution before it: steps of sequences, each after the one before."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .. import reference as ref
from ..problem import Problem, struct
from .attention import rows_of
from .common import EXACT_NMSE, STASH, Traits, normal
from .common import formats as format_bits

CHUNK = 32
"""Rows whose products with the state are computed together."""
# What heads remember for long sums up what many rows have added to it.
DELTA_NMSE = 1e-10

StepRows = tuple[int, int, int]
"""A sequence's rows in a step: the position of the first, how many, how many of them may be refused."""


class Sequences:
    """Where sequences lie, what each has read, and where the step before has left its state."""

    def __init__(self, p: Problem, rng: np.random.Generator, sequences: int, words: int) -> None:
        self.p, self.slots = p, rng.permutation(sequences + 1)
        self.records = normal(rng, sequences + 1, words)
        self.at = [0] * sequences

    def step(self, name: str, parts: Sequence[StepRows | None], chain: int = 0) -> tuple[str, str]:
        """The names of a step's rows and spans; `chain`: the index of this step in its chain."""
        where, positions = [], []
        spans = np.zeros(len(self.records), struct("StateSpan"))
        for i, part in enumerate(parts):
            if part is None:
                continue
            position, n, drafts = part
            assert self.at[i] <= position <= self.at[i] + STASH and (n == 1 or not chain)
            spans[self.slots[i]] = (self.at[i] - chain, position + n - drafts - chain)
            where += [self.slots[i]] * n
            positions += range(position - chain, position - chain + n)
            self.at[i] = position + n - drafts
        return rows_of(self.p, f"{name}_rows", where, positions), self.p.input(f"{name}_spans", spans)


def rows_in(parts: Sequence[StepRows | None]) -> list[tuple[int, int]]:
    """Sequence and position of each row."""
    return [(i, part[0] + j) for i, part in enumerate(parts) if part is not None for j in range(part[1])]


def slot_states(p: Problem, sequences: Sequences, stopped: Sequence[int]) -> str:
    states = np.zeros(len(sequences.records), struct("SlotState"))
    states["stopped"][[sequences.slots[i] for i in stopped]] = 1
    return p.input("slots", states)


def short_conv(
    p: Problem,
    dev: Traits,
    rng: np.random.Generator,
    channels: int,
    taps: int,
    steps: Sequence[Sequence[StepRows | None]],
    bias: bool = False,
    activation: str | None = "silu",
    chain: int = 0,
    stopped: Sequence[int] = (),
    copies: int = 1,
    gated: bool = False,
) -> None:
    """A convolution over several steps; the last one is at index `chain` of a chain.

    `copies`: as many sequences alike.
    """
    steps = [[*parts] * copies for parts in steps]
    words = (taps - 1 + STASH) * channels + 16
    sequences = Sequences(p, rng, len(steps[0]), words)
    weights = normal(rng, taps + bias, channels, sigma=0.5)
    p.input("weights", weights)
    p.inout("state", sequences.records)
    slots = slot_states(p, sequences, stopped)
    past: list[dict[int, ref.F32]] = [{} for _ in steps[0]]
    for s, parts in enumerate(steps):
        step = chain if s == len(steps) - 1 else 0
        which = rows_in(parts)
        x = normal(rng, len(which), (3 if gated else 1) * channels)
        inputs, gates = x, np.ones(x.shape)
        if gated:
            b, gates, v = np.split(x, 3, axis=1)
            inputs = b * v
        rows, _ = sequences.step(f"step{s}", parts, step)
        for (sequence, position), values in zip(which, inputs, strict=True):
            past[sequence][position] = values
        p.run(
            "short_conv",
            p.input(f"x{s}", x),
            "weights",
            "state",
            p.output(f"y{s}", *inputs.shape),
            rows,
            slots,
            rows=len(which),
            step=step,
            channels=channels,
            taps=taps,
            has_bias=bias,
            activation={None: 0, "silu": 1}[activation],
            state_words=words,
            gated=gated,
        )
        p.bytes, p.flops = 4 * x.size + 4 * inputs.size, 2 * taps * inputs.size
        if not p.checking or stopped:
            continue
        y = np.zeros(inputs.shape)
        for row, (sequence, position) in enumerate(which):
            for t in range(taps):
                at = position - (taps - 1) + t
                if at >= 0:
                    y[row] += weights[t].astype(np.float64) * past[sequence][at]
        y += weights[taps].astype(np.float64) if bias else 0
        p.expect(f"y{s}", gates * (y / (1 + np.exp(-y)) if activation else y), EXACT_NMSE)
    untouched_others(p, sequences, stopped)


def untouched_others(p: Problem, sequences: Sequences, stopped: Sequence[int]) -> None:
    nbytes = sequences.records[0].nbytes
    for slot in [sequences.slots[i] for i in stopped] + [sequences.slots[-1]]:
        p.expect("state", sequences.records[slot], offset=int(slot) * nbytes)


def delta_rule(
    p: Problem,
    dev: Traits,
    rng: np.random.Generator,
    heads: tuple[int, int],
    dims: tuple[int, int],
    steps: Sequence[Sequence[StepRows | None]],
    grouped: bool = True,
    formats: tuple[str, ...] = ("f32",),
    chain: int = 0,
    stopped: Sequence[int] = (),
    copies: int = 1,
) -> None:
    """The gated delta rule over several steps; the last one is at index `chain` of a chain.

    `copies`: as many sequences alike.
    """
    steps = [[*parts] * copies for parts in steps]
    (key_heads, value_heads), (key_dim, value_dim) = heads, dims
    sequences = Sequences(p, rng, len(steps[0]), record_words(heads, dims) + 16)
    keys, values = key_heads * key_dim, value_heads * value_dim
    # Heads that forget at once, and heads that hardly do.
    a_log = -np.exp(rng.uniform(-5, 2, value_heads)).astype(np.float32)
    dt_bias = rng.uniform(-3, 2, value_heads).astype(np.float32)
    norm = (1 + 0.2 * rng.standard_normal(value_dim)).astype(np.float32)
    p.input("constants", np.concatenate([a_log, dt_bias, norm]))
    p.inout("state", sequences.records)
    slots = slot_states(p, sequences, stopped)
    past: list[list[tuple[ref.F32, ...]]] = [[] for _ in steps[0]]
    for s, parts in enumerate(steps):
        step = chain if s == len(steps) - 1 else 0
        which = rows_in(parts)
        n = len(which)
        qkv, gates, z = (
            normal(rng, n, 2 * keys + values),
            normal(rng, n, 2 * value_heads),
            normal(rng, n, values),
        )
        rows, spans = sequences.step(f"step{s}", parts, step)
        p.run(
            "delta_rule",
            p.inout(f"qkv{s}", qkv),
            p.input(f"gates{s}", gates),
            p.input(f"z{s}", z),
            "constants",
            "state",
            *p.activations(f"out{s}", formats, n, values),
            rows,
            spans,
            slots,
            rows=n,
            step=step,
            key_heads=key_heads,
            value_heads=value_heads,
            key_dim=key_dim,
            value_dim=value_dim,
            grouped=grouped,
            formats=format_bits(formats),
            state_words=sequences.records.shape[1],
            scale=key_dim**-0.5,
            l2_eps=1e-6,
            norm_eps=1e-5,
        )
        p.bytes = 4 * value_heads * key_dim * value_dim * sum(part is not None for part in parts)
        p.flops = 6 * n * values * key_dim
        if not p.checking or stopped:
            continue
        for row, (sequence, position) in enumerate(which):
            del past[sequence][position:]
            past[sequence].append((qkv[row], gates[row]))
        out = np.empty(z.shape)
        for sequence, part in enumerate(parts):
            if part is not None:
                position, count, _ = part
                here = [row for row, (i, _) in enumerate(which) if i == sequence]
                o = _recurrence(past[sequence], heads, dims, grouped, a_log, dt_bias)[
                    position : position + count
                ]
                o /= np.sqrt((o**2).mean(-1, keepdims=True) + 1e-5)
                gate = z[here].astype(np.float64).reshape(o.shape)
                out[here] = (o * norm * gate / (1 + np.exp(-gate))).reshape(count, -1)
        p.expect_activations(f"out{s}", out, DELTA_NMSE)
    untouched_others(p, sequences, stopped)


def record_words(heads: tuple[int, int], dims: tuple[int, int]) -> int:
    """Floats of a sequence's record."""
    (key_heads, value_heads), (key_dim, value_dim) = heads, dims
    width = -(-value_dim // 16) * 16
    return value_heads * (key_dim * width + 2 * CHUNK * (width + 1)) + key_heads * 2 * CHUNK * key_dim


def _recurrence(
    rows: Sequence[tuple[ref.F32, ...]],
    heads: tuple[int, int],
    dims: tuple[int, int],
    grouped: bool,
    a_log: ref.F32,
    dt_bias: ref.F32,
) -> ref.F64:
    """[rows, value heads, value_dim]: row by row from position 0."""
    (key_heads, value_heads), (key_dim, value_dim) = heads, dims
    h = np.arange(value_heads)
    key_head = h // (value_heads // key_heads) if grouped else h % key_heads
    state = np.zeros((value_heads, key_dim, value_dim))
    out = np.empty((len(rows), value_heads, value_dim))
    for i, (qkv, gates) in enumerate(rows):
        q, k, v = np.split(qkv.astype(np.float64), [key_heads * key_dim, 2 * key_heads * key_dim])
        q, k = (x.reshape(key_heads, key_dim) for x in (q, k))
        q, k = (x / np.sqrt((x**2).sum(-1, keepdims=True) + 1e-6) for x in (q, k))
        q, k, v = q[key_head] * key_dim**-0.5, k[key_head], v.reshape(value_heads, value_dim)
        b, a = np.split(gates.astype(np.float64), 2)
        beta, decay = 1 / (1 + np.exp(-b)), np.exp(a_log * np.logaddexp(0, a + dt_bias))
        state *= decay[:, None, None]
        written = beta[:, None] * (v - np.einsum("hk,hkv->hv", k, state))
        state += k[:, :, None] * written[:, None, :]
        out[i] = np.einsum("hk,hkv->hv", q, state)
    return out

"""What encoders have besides a decoder's ops."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..problem import Problem
from .attention import rows_of
from .common import EXACT_NMSE, Traits, act_bytes, normal
from .common import formats as format_bits


def layer_norm(
    p: Problem,
    dev: Traits,
    rng: np.random.Generator,
    rows: int,
    dim: int,
    formats: Sequence[str],
    bias: bool = True,
    eps: float = 1e-12,
    mean: float = 0.0,
    gather: Sequence[int] = (),
) -> None:
    """`mean` of the rows, far from which their deviation is small; of the rows that `gather` names."""
    x = normal(rng, max((rows - 1, *gather)) + 1, dim) + np.float32(mean)
    weight, b = 1 + normal(rng, dim, sigma=0.3), normal(rng, dim)
    p.run(
        "layer_norm",
        p.input("x", x),
        p.input("weight", weight),
        p.input("bias", b) if bias else None,
        *p.activations("out", formats, rows, dim),
        p.input("logit_rows", np.array(gather, np.uint32)) if gather else None,
        rows=rows,
        dim=dim,
        eps=eps,
        formats=format_bits(formats),
        has_bias=bias,
        gather=bool(gather),
    )
    p.bytes, p.flops = rows * dim * (4 + sum(map(act_bytes, formats))), 7 * rows * dim
    if p.checking:
        wide = x[list(gather) or slice(rows)].astype(np.float64)
        centred = wide - wide.mean(axis=1, keepdims=True)
        normed = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + eps)
        p.expect_activations("out", normed * weight + (b if bias else 0), EXACT_NMSE * max(1.0, mean))


def embed_position(
    p: Problem,
    dev: Traits,
    rng: np.random.Generator,
    rows: int,
    dim: int,
    positions: int,
    kinds: int,
    step: int = 0,
) -> None:
    """Rows of two sequences, the second one of another kind; a table of no rows is none."""
    hidden = normal(rng, rows, dim)
    tables = normal(rng, max(positions, 1), dim), normal(rng, max(kinds, 1), dim)
    first = rows // 2
    at = np.array([*range(first), *range(rows - first)], np.uint32)
    kind = np.array([0] * first + [min(1, max(kinds - 1, 0))] * (rows - first), np.uint32)
    p.run(
        "embed_position",
        p.input("positions", tables[0]) if positions else None,
        p.input("kinds", tables[1]) if kinds else None,
        p.inout("hidden", hidden),
        rows_of(p, "rows", [3] * first + [0] * (rows - first), at.tolist()),
        p.input("row_kinds", kind) if kinds else None,
        rows=rows,
        step=step,
        dim=dim,
        positions=positions,
        kinds=kinds,
    )
    p.bytes, p.flops = 16 * rows * dim, 2 * rows * dim
    if p.checking:
        added = (tables[0][at + step] if positions else 0) + (tables[1][kind] if kinds else 0)
        p.expect("hidden", hidden.astype(np.float64) + added, EXACT_NMSE)


POOLINGS = {"mean": 0, "cls": 1, "last": 2}


def pool(
    p: Problem, dev: Traits, rng: np.random.Generator, lengths: Sequence[int], dim: int, pooling: str
) -> None:
    """Sequences of so many rows."""
    total = sum(lengths)
    x = normal(rng, total, dim)
    ends = np.cumsum(lengths)
    slots = [slot for slot, n in enumerate(lengths) for _ in range(n)]
    positions = [i for n in lengths for i in range(n)]
    p.run(
        "pool",
        p.input("x", x),
        rows_of(p, "rows", slots, positions),
        p.input("last_rows", (ends - 1).astype(np.uint32)),
        p.output("out", len(lengths), dim),
        rows=len(lengths),
        dim=dim,
        pooling=POOLINGS[pooling],
    )
    p.bytes, p.flops = 4 * dim * (total + len(lengths)), total * dim
    if p.checking:
        parts = np.split(x.astype(np.float64), ends[:-1])
        picked = {"mean": lambda a: a.mean(axis=0), "cls": lambda a: a[0], "last": lambda a: a[-1]}[pooling]
        p.expect("out", np.stack([picked(part) for part in parts]), EXACT_NMSE)


def relative_attention(
    p: Problem,
    dev: Traits,
    rng: np.random.Generator,
    lengths: Sequence[int],
    heads: int,
    head_dim: int,
    reach: int,
    distances: int,
    terms: Sequence[str] = (),
) -> None:
    """Sequences of so many rows; `terms`: "bias", "keys", "queries"."""
    total, dim = sum(lengths), heads * head_dim
    q, k, v = (normal(rng, total, dim) for _ in range(3))
    columns = rng.integers(0, distances, 2 * reach + 1).astype(np.uint32)
    bias, keys, queries = (
        normal(rng, distances, heads),
        normal(rng, distances, dim),
        normal(rng, distances, dim),
    )
    scale = (head_dim * (1 + ("keys" in terms) + ("queries" in terms))) ** -0.5
    p.run(
        "relative_attention",
        p.input("q", q),
        p.input("k", k),
        p.input("v", v),
        p.input("columns", columns),
        p.input("bias", bias) if "bias" in terms else None,
        p.input("distance_keys", keys) if "keys" in terms else None,
        p.input("distance_queries", queries) if "queries" in terms else None,
        p.output("out", total, dim),
        rows_of(
            p,
            "rows",
            [slot for slot, n in enumerate(lengths) for _ in range(n)],
            [i for n in lengths for i in range(n)],
        ),
        rows=total,
        n_heads=heads,
        head_dim=head_dim,
        reach=reach,
        scale=scale,
        has_bias="bias" in terms,
        has_keys="keys" in terms,
        has_queries="queries" in terms,
    )
    p.bytes = 16 * total * dim
    p.flops = 2 * dim * (2 + ("keys" in terms) + ("queries" in terms)) * sum(n * n for n in lengths)
    if not p.checking:
        return
    out, first = np.zeros((total, heads, head_dim)), 0

    def split(x: np.ndarray) -> np.ndarray:
        return x.astype(np.float64).reshape(-1, heads, head_dim)

    for n in lengths:
        a, b, c = (split(x[first : first + n]) for x in (q, k, v))
        at = np.arange(n)
        d = columns[np.clip(at - at[:, None], -reach, reach) + reach]
        scores = np.einsum("ihd,jhd->ijh", a, b)
        if "keys" in terms:
            scores += np.einsum("ihd,ijhd->ijh", a, split(keys)[d])
        if "queries" in terms:
            scores += np.einsum("jhd,ijhd->ijh", b, split(queries)[d])
        scores = scores * np.float32(scale) + (bias.astype(np.float64)[d] if "bias" in terms else 0)
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
        out[first : first + n] = np.einsum("ijh,jhd->ihd", weights, c)
        first += n
    p.expect("out", out.reshape(total, dim), EXACT_NMSE)

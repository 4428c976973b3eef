"""What models of speech have besides: convolutions as matmuls, and attention to a sound."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .. import reference as ref
from ..problem import Partials, Problem
from .attention import PAGE, Paged, paged, rows_of, write_cache
from .common import CUDA, EXACT_NMSE, F16_ATTENTION_NMSE, Traits, kv_bytes, kv_round, kv_types, normal
from .common import formats as format_bits


def unfold(
    p: Problem,
    dev: Traits,
    rng: np.random.Generator,
    length: int,
    channels: int,
    taps: int,
    stride: int,
    formats: Sequence[str] = ("f32",),
) -> None:
    """All rows of the input, with zeros around it."""
    x = normal(rng, length, channels)
    rows, around = (length - 1) // stride + 1, (taps - 1) // 2
    p.run(
        "unfold",
        p.input("x", x),
        *p.activations("out", formats, rows, taps * channels),
        rows=rows,
        channels=channels,
        length=length,
        taps=taps,
        stride=stride,
        formats=format_bits(formats),
    )
    p.bytes = 4 * channels * (length + rows * taps)
    if p.checking:
        padded = np.pad(x.astype(np.float64), [(around, around), (0, 0)])
        found = np.stack([padded[r * stride : r * stride + taps] for r in range(rows)])
        p.expect_activations("out", found.reshape(rows, -1), None)


def _sounds(
    p: Problem,
    dev: Traits,
    rng: np.random.Generator,
    count: int,
    keys: int,
    kv: str,
    kv_heads: int,
    head_dim: int,
) -> tuple[Paged, list[tuple[ref.F32, ref.F32]]]:
    """So many sounds in a cache."""
    cache = paged(p, dev, rng, kv, kv_heads, head_dim, [keys] * count, 0)
    sounds = []
    for i in range(count):
        k, v = (kv_round(normal(rng, keys, kv_heads, head_dim), name, np.float16) for name in kv_types(kv))
        write_cache(p, cache, kv, k, v, i, f"sound{i}")
        sounds.append((k, v))
    return cache, sounds


def cross_attention(
    p: Problem,
    dev: Traits,
    rng: np.random.Generator,
    rows: Sequence[int],
    keys: int,
    shape: tuple[int, int, int],
    kv: str,
    split: bool = False,
) -> None:
    """So many rows for each of several sounds, all of whose keys they see, wherever they are."""
    heads, kv_heads, head_dim = shape
    total, scale = sum(rows), head_dim**-0.5
    q = normal(rng, total, heads, head_dim, sigma=3.0)
    cache, sounds = _sounds(p, dev, rng, len(rows), keys, kv, kv_heads, head_dim)
    of = [i for i, n in enumerate(rows) for _ in range(n)]
    where = rows_of(p, "rows", [cache.slots[i] for i in of], rng.integers(0, 500, total).tolist())
    params = dict(
        rows=total,
        step=2,
        keys=7,
        n_heads=heads,
        n_kv_heads=kv_heads,
        head_dim=head_dim,
        window=0,
        scale=scale,
        softcap=0.0,
        formats=format_bits(("f32",)),
        bidirectional=0,
        fixed_keys=keys,
        row_ends=0,
        latent=0,
        **cache.params(),
    )
    out = p.output("out", total, heads, head_dim)
    if split:
        partials = p.opaque("partials", Partials(heads, head_dim, cache.max_pages * PAGE))
        p.run(
            "attention_split", p.input("q", q), cache.kv, partials, where, cache.pages, None, out, None,
            kv_dtype=kv, **params,
        )  # fmt: skip
        p.run("attention_merge", partials, out, None, where, **params)
        p.timed = -2
    else:
        p.run("attention", p.input("q", q), cache.kv, out, where, cache.pages, kv_dtype=kv, **params)
    p.bytes = 2 * keys * kv_heads * head_dim * kv_bytes(kv) * len(rows) + 8 * total * heads * head_dim
    p.flops = 4.0 * heads * head_dim * keys * total
    if p.checking:
        wide = [
            ref.attention(q[r : r + 1].astype(np.float64), *map(np.float64, sounds[i]), 0, scale, both=True)
            for r, i in enumerate(of)
        ]
        half = dev.isa.startswith(CUDA) and kv != "f32" and total >= 16
        p.expect("out", np.concatenate(wide), F16_ATTENTION_NMSE if half else EXACT_NMSE)


def attention_weights(
    p: Problem,
    dev: Traits,
    rng: np.random.Generator,
    rows: Sequence[int],
    keys: int,
    shape: tuple[int, int, int],
    kv: str,
    chosen: Sequence[int],
) -> None:
    """What some heads of rows give to the keys of several sounds."""
    heads, kv_heads, head_dim = shape
    total, scale, room = sum(rows), head_dim**-0.5, sum(rows) + 2
    q = normal(rng, total, heads, head_dim, sigma=3.0)
    cache, sounds = _sounds(p, dev, rng, len(rows), keys, kv, kv_heads, head_dim)
    of = [i for i, n in enumerate(rows) for _ in range(n)]
    out = np.full((len(chosen), room, keys), 7, np.float32)
    p.run(
        "attention_weights",
        p.input("q", q),
        cache.kv,
        p.input("heads", np.array(chosen, np.uint32)),
        p.inout("out", out),
        rows_of(p, "rows", [cache.slots[i] for i in of], [3] * total),
        cache.pages,
        kv_dtype=kv,
        rows=total,
        n_heads=heads,
        n_kv_heads=kv_heads,
        head_dim=head_dim,
        scale=scale,
        fixed_keys=keys,
        chosen=len(chosen),
        out_rows=room,
        **cache.params(),
    )
    p.bytes = keys * len(chosen) * (head_dim * kv_bytes(kv) * len(rows) + 4 * total)
    p.flops = 2.0 * len(chosen) * head_dim * keys * total
    if p.checking:
        expected = out.astype(np.float64)
        for r, i in enumerate(of):
            k = np.repeat(sounds[i][0].astype(np.float64), heads // kv_heads, axis=1)
            scores = np.einsum("hd,khd->hk", q[r].astype(np.float64), k) * scale
            weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
            expected[:, r] = (weights / weights.sum(axis=-1, keepdims=True))[list(chosen)]
        p.expect("out", expected, EXACT_NMSE)

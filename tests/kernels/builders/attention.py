"""The KV cache and attention over it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .. import reference as ref
from ..problem import Cache, Partials, Problem
from .common import (
    EXACT_NMSE,
    FORMAT,
    KV_NMSE,
    STYLE,
    Traits,
    kv_bytes,
    kv_round,
    normal,
)
from .common import formats as format_bits


def _caches(p: Problem, kv: str, kv_heads: int, head_dim: int, context: int) -> tuple[str, str]:
    a, b = (p.opaque(name, Cache(kv, kv_heads, head_dim, context)) for name in ("k_cache", "v_cache"))
    return a, b


def _write_cache(
    p: Problem,
    caches: tuple[str, str],
    kv: str,
    k: ref.F32,
    v: ref.F32,
    context: int,
    position: int,
    name: str,
) -> None:
    """Puts k and v [rows, kv_heads, head_dim] in the cache, by a rotation of nothing."""
    rows, kv_heads, head_dim = k.shape
    identity = np.zeros((rows, 1, 2), np.float32)
    identity[..., 0] = 1
    p.run(
        "rope_kv",
        p.inout(f"{name}_q", np.zeros_like(k)),
        p.inout(f"{name}_k", k),
        p.input(f"{name}_v", v),
        p.input(f"{name}_table", identity),
        *caches,
        None,
        None,
        kv_dtype=kv,
        position=position,
        rows=rows,
        n_heads=kv_heads,
        n_kv_heads=kv_heads,
        head_dim=head_dim,
        rope_dim=2,
        style=STYLE["half"],
        qk_norm=0,
        eps=1e-5,
        context=context,
    )


def rope_kv(
    p: Problem,
    dev: Traits,
    rng: np.random.Generator,
    rows: int,
    shape: tuple[int, int, int],
    style: str,
    kv: str,
    position: int = 0,
    rope_dim: int = 0,
    qk_norm: bool = False,
) -> None:
    """The rotation, seen in q, and what it stores, seen through attention."""
    heads, kv_heads, head_dim = shape
    rope_dim = rope_dim or head_dim
    length, eps = position + rows, 1e-6
    context = length + 5
    q, k = normal(rng, length, heads, head_dim), normal(rng, length, kv_heads, head_dim)
    v = normal(rng, length, kv_heads, head_dim)
    inv_freq = (10000.0 ** -(np.arange(rope_dim // 2) / max(rope_dim // 2, 1))).astype(np.float32)
    angles = ref.rope_angles(0, length, inv_freq)
    table = np.stack([np.cos(angles), np.sin(angles)], axis=-1).astype(np.float32)
    q_norm, k_norm = 1 + normal(rng, head_dim, sigma=0.3), 1 + normal(rng, head_dim, sigma=0.3)
    norms = (p.input("q_norm", q_norm), p.input("k_norm", k_norm)) if qk_norm else (None, None)
    caches = _caches(p, kv, kv_heads, head_dim, context)
    for i, part in enumerate([np.s_[:position], np.s_[position:]]):  # as a prompt in two chunks
        if (n := len(q[part])) == 0:
            continue
        p.run(
            "rope_kv",
            p.inout(f"q{i}", q[part]),
            p.inout(f"k{i}", k[part]),
            p.input(f"v{i}", v[part]),
            p.input(f"table{i}", table[part]),
            *caches,
            *norms,
            kv_dtype=kv,
            position=part.start or 0,
            rows=n,
            n_heads=heads,
            n_kv_heads=kv_heads,
            head_dim=head_dim,
            rope_dim=rope_dim,
            style=STYLE[style],
            qk_norm=qk_norm,
            eps=eps,
            context=context,
        )
    p.bytes = rows * head_dim * (8 * heads + kv_heads * (8 + 2 * kv_bytes(kv)))
    p.flops = 6 * rows * head_dim * (heads + kv_heads)
    if not p.checking:
        return
    q64, k64 = q.astype(np.float64), k.astype(np.float64)
    if qk_norm:
        q64, k64 = ref.rms_norm(q64, q_norm, eps), ref.rms_norm(k64, k_norm, eps)
    cos, sin = (table[..., i].astype(np.float64) for i in range(2))
    q64, k64 = ref.rotate(q64, cos, sin, style), ref.rotate(k64, cos, sin, style)
    p.expect("q1", q64[position:], EXACT_NMSE)

    query = normal(rng, length, heads, head_dim)
    common = dict(
        n_heads=heads,
        n_kv_heads=kv_heads,
        head_dim=head_dim,
        context=context,
        softcap=0.0,
        formats=FORMAT["f32"],
        scale=head_dim**-0.5,
    )
    read = p.input("query", query)
    # A window of one key gives that key's value, whatever its score.
    p.run(
        "attention",
        read,
        *caches,
        p.output("values", length, heads, head_dim),
        kv_dtype=kv,
        position=0,
        rows=length,
        window=1,
        **common,
    )
    stored_v = kv_round(v, kv)
    # The one weight is e^0, which fast math may get wrong in the last place; a scale may be f32 or f16.
    p.expect("values", np.repeat(stored_v, heads // kv_heads, axis=1), 1e-7 if kv == "q8_0" else EXACT_NMSE)
    p.run(
        "attention",
        read,
        *caches,
        p.output("mixed", length, heads, head_dim),
        kv_dtype=kv,
        position=0,
        rows=length,
        window=0,
        **common,
    )
    stored_k = kv_round(k64.astype(np.float32), kv).astype(np.float64)
    mixed = ref.attention(query.astype(np.float64), stored_k, stored_v.astype(np.float64), 0, head_dim**-0.5)
    p.expect("mixed", mixed, KV_NMSE[kv])


def attention(
    p: Problem,
    dev: Traits,
    rng: np.random.Generator,
    rows: int,
    position: int,
    shape: tuple[int, int, int],
    kv: str,
    window: int = 0,
    cap: float = 0.0,
    split: bool = False,
    slack: int = 3,
    spread: float = 3.0,
    formats: Sequence[str] = ("f32",),
) -> None:
    """`split`: the decode pair of ops. `spread`: standard deviation of the scores."""
    heads, kv_heads, head_dim = shape
    length = position + rows
    context = length + slack
    q = normal(rng, rows, heads, head_dim, sigma=spread)
    # Already as the cache keeps them, whether its scales are f32 or f16.
    k, v = (kv_round(normal(rng, length, kv_heads, head_dim), kv, np.float16) for _ in range(2))
    caches = _caches(p, kv, kv_heads, head_dim, context)
    _write_cache(p, caches, kv, k, v, context, 0, "all")
    scale = head_dim**-0.5
    params = dict(
        position=position,
        rows=rows,
        n_heads=heads,
        n_kv_heads=kv_heads,
        head_dim=head_dim,
        window=window,
        context=context,
        scale=scale,
        softcap=cap,
        formats=format_bits(formats),
    )
    if split:
        partials = p.opaque("partials", Partials(heads, head_dim, context))
        p.run("attention_split", p.input("q", q), *caches, partials, kv_dtype=kv, **params)
        p.run("attention_merge", partials, *p.activations("out", formats, rows, heads * head_dim), **params)
        p.timed = -2
    else:
        p.run(
            "attention",
            p.input("q", q),
            *caches,
            p.output("out_f32", rows, heads * head_dim),
            kv_dtype=kv,
            **params,
        )
    seen = [min(position + r + 1, window or length) for r in range(rows)]
    keys = min(length, window + rows - 1) if window else length
    p.bytes = 2 * keys * kv_heads * head_dim * kv_bytes(kv) + 8 * rows * heads * head_dim
    p.flops = 4.0 * heads * head_dim * sum(seen)
    if p.checking:
        wide = (a.astype(np.float64) for a in (q, k, v))
        out = ref.attention(*wide, position, scale, cap, window).reshape(rows, heads * head_dim)
        # A score's rounding error, which the exponential turns into a relative one, grows with the score.
        p.expect_activations("out", out, EXACT_NMSE * max(1.0, (spread / 3) ** 2))

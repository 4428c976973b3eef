"""Multi-head latent attention: what it keeps, attention over that, and products with the weights of heads."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from akunu._core import PAGE

from .. import reference as ref
from ..problem import Partials, Problem, Weight
from ..weights import random_weight
from .attention import Paged, paged, rows_of
from .common import (
    CUDA,
    EXACT_NMSE,
    F16_ATTENTION_NMSE,
    F16_TILE_NMSE,
    FORMAT,
    KV_NMSE,
    STYLE,
    Traits,
    kv_bytes,
    kv_round,
    normal,
)
from .common import formats as format_bits


def _write(
    p: Problem,
    cache: Paged,
    kv: str,
    shape: tuple[int, int, int, int],
    rows: ref.F32,
    q: ref.F32,
    table: ref.F32,
    norm: ref.F32,
    name: str,
    where: str,
    step: int,
    style: str,
    temperature: tuple[float, int],
) -> str:
    heads, nope, rope, latent = shape
    queries = p.inout(f"{name}_q", q)
    p.run(
        "latent_kv",
        p.input(f"{name}_kv", rows),
        queries,
        p.input(f"{name}_table", table),
        p.input(f"{name}_norm", norm),
        cache.kv,
        where,
        cache.pages,
        kv_dtype=kv,
        rows=len(rows),
        step=step,
        n_heads=heads,
        nope_dim=nope,
        rope_dim=rope,
        latent=latent,
        style=STYLE[style],
        eps=1e-6,
        temperature=temperature[0],
        temperature_length=temperature[1],
        **cache.params(),
    )
    return queries


def _kept(rows: ref.F32, table: ref.F32, norm: ref.F32, latent: int, style: str) -> ref.F64:
    wide = rows.astype(np.float64)
    c = ref.rms_norm(wide[:, :latent], norm.astype(np.float64), 1e-6)
    cos, sin = table[..., 0].astype(np.float64), table[..., 1].astype(np.float64)
    k = ref.rotate(wide[:, None, latent:], cos, sin, style)
    return np.concatenate([c, k[:, 0]], axis=1)


def latent_attention(
    p: Problem,
    dev: Traits,
    rng: np.random.Generator,
    rows: int,
    position: int,
    heads: int,
    latent: int,
    rope: int,
    kv: str,
    style: str = "interleaved",
    split: bool = False,
    temperature: tuple[float, int] = (0.0, 0),
    others: Sequence[tuple[int, int]] = (),
    formats: Sequence[str] = ("f32",),
) -> None:
    """Sequences whose rows are kept in two parts, those of a step last; then that step's attention.

    `rows` of one sequence are at `position`, then those of `others`. Queries' last part is rotated too.
    """
    nope, key = 24, latent + rope
    spans = [(rows, position), *others]
    lengths = [at + n for n, at in spans]
    cache = paged(p, dev, rng, kv, 1, key, lengths)
    norm = 1 + normal(rng, latent, sigma=0.2)
    inv_freq = (10000.0 ** -(np.arange(rope // 2) / (rope // 2))).astype(np.float32)
    kept, last = [], []
    for sequence, ((_, at), length) in enumerate(zip(spans, lengths, strict=True)):
        angles = ref.rope_angles(0, length, inv_freq)
        table = np.stack([np.cos(angles), np.sin(angles)], axis=-1).astype(np.float32)
        x = normal(rng, length, key)
        kept.append(kv_round(_kept(x, table, norm, latent, style).astype(np.float32), kv))
        if at:
            slots = [cache.slots[sequence]] * at
            where = rows_of(p, f"before{sequence}_rows", slots, range(at))
            q = normal(rng, at, heads, nope + rope)
            shape = (heads, nope, rope, latent)
            _write(
                p,
                cache,
                kv,
                shape,
                x[:at],
                q,
                table[:at],
                norm,
                f"before{sequence}",
                where,
                0,
                style,
                (0.0, 0),
            )
        last.append((x[at:], table[at:]))
    step = min(2, *(at for _, at in spans), 2)
    x, table = (np.concatenate([part[i] for part in last]) for i in range(2))
    places = [at + i for n, at in spans for i in range(n)]
    where = rows_of(
        p,
        "rows",
        [slot for slot, (n, _) in zip(cache.slots, spans, strict=True) for _ in range(n)],
        [at - step for at in places],
    )
    q = normal(rng, len(x), heads, nope + rope)
    queries = _write(
        p, cache, kv, (heads, nope, rope, latent), x, q, table, norm, "last", where, step, style, temperature
    )
    asked = normal(rng, len(x), heads, key, sigma=3.0)
    params = dict(
        rows=len(x),
        step=step,
        keys=max(lengths),
        n_heads=heads,
        n_kv_heads=1,
        head_dim=key,
        window=0,
        scale=key**-0.5,
        softcap=0.0,
        formats=format_bits(formats),
        bidirectional=0,
        fixed_keys=0,
        row_ends=0,
        latent=latent,
        **cache.params(),
    )
    if split:
        partials = p.opaque("partials", Partials(heads, latent, cache.max_pages * PAGE))
        out = p.activations("out", formats, 1, heads * latent)
        p.run(
            "attention_split", p.input("asked", asked), cache.kv, partials, where, cache.pages, None, *out,
            kv_dtype=kv, **params,
        )  # fmt: skip
        p.run("attention_merge", partials, *out, where, None, **params)
        p.timed = -2
    else:
        params["formats"] = FORMAT["f32"]
        p.run(
            "attention", p.input("asked", asked), cache.kv, p.output("out_f32", len(x), heads * latent),
            where, cache.pages, None, kv_dtype=kv, **params,
        )  # fmt: skip
    p.bytes = sum(lengths) * key * kv_bytes(kv) + 4 * len(x) * heads * (key + latent)
    p.flops = 2.0 * heads * (key + latent) * sum(at + 1 for at in places)
    if not p.checking:
        return
    wide = q.astype(np.float64)
    cos, sin = table[..., 0].astype(np.float64), table[..., 1].astype(np.float64)
    turned = ref.rotate(wide[..., nope:], cos, sin, style)
    scale = np.ones(len(x))
    if temperature[1]:
        scale += temperature[0] * np.log1p(np.asarray(places) // temperature[1])
    p.expect(queries, np.concatenate([wide[..., :nope], turned], axis=-1) * scale[:, None, None], EXACT_NMSE)
    parts, first = [], 0
    for (n, at), rows_kept in zip(spans, kept, strict=True):
        keys = rows_kept.astype(np.float64)[:, None, :]
        values = np.concatenate([keys[..., :latent], np.zeros((len(keys), 1, rope))], axis=-1)
        found = ref.attention(asked[first : first + n].astype(np.float64), keys, values, at, key**-0.5)
        parts.append(found[..., :latent].reshape(n, heads * latent))
        first += n
    tiles = F16_ATTENTION_NMSE if dev.isa.startswith(CUDA) and kv != "f32" else 0.0
    p.expect_activations("out", np.concatenate(parts), max(tiles, 3 * KV_NMSE[kv]))


def head_matmul(
    p: Problem,
    dev: Traits,
    rng: np.random.Generator,
    dtype: str,
    rows: int,
    heads: int,
    n: int,
    k: int,
    copied: int = 0,
) -> None:
    w: Weight = dataclasses.replace(random_weight(rng, dtype, heads * n, k), rows=n, experts=heads)
    x = normal(rng, rows, heads, k + copied)
    p.run(
        "head_matmul",
        p.input("x", x),
        p.weight("w", w),
        p.output("y", rows, heads, n + copied),
        rows=rows,
        heads=heads,
        n=n,
        k=k,
        x_stride=k + copied,
        copied=copied,
    )
    fmt = dev.matmul_input(dtype)
    p.bytes = len(w.data) + 4.0 * rows * heads * (k + n + 2 * copied)
    p.flops, p.integer = 2.0 * rows * heads * n * k, fmt == "q8"
    if not p.checking:
        return
    part = x[..., :k].reshape(rows * heads, k)
    values = ref.round_activation(part, "q8" if fmt == "q8" else "f32").reshape(rows, heads, k)
    y = np.einsum("rhk,hnk->rhn", values, w.values())
    # A GPU's tiles of rows hold inputs and weights as F16.
    tiles = dev.isa.startswith(CUDA) and rows > 1 and dtype != "f32"
    p.expect("y", np.concatenate([y, x[..., k:]], axis=-1), F16_TILE_NMSE if tiles else EXACT_NMSE)

"""The KV cache and attention over it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from akunu._core import PAGE

from .. import reference as ref
from ..problem import Cache, Partials, Problem, struct
from .common import (
    CUDA,
    EXACT_NMSE,
    F16_ATTENTION_NMSE,
    FIXED_NMSE,
    FORMAT,
    KV_NMSE,
    SPLIT_NMSE,
    STYLE,
    Traits,
    kv_bytes,
    kv_round,
    kv_types,
    normal,
)
from .common import formats as format_bits

#: Heads of multiples of so many elements may become integers.
_FIXED_STRIPS = {"avx512_vnni": 32, "avx2_vnni": 16, "avx2": 16}


def is_fixed(isa: str, head_dim: int) -> bool:
    """Whether whole sequences of F32 become integers."""
    strip = _FIXED_STRIPS.get(isa, 0)
    return strip > 0 and head_dim % strip == 0 and head_dim <= 512


@dataclass(frozen=True)
class Paged:
    """A cache whose pages lie in no order, among pages full of poison, and the names of its buffers."""

    kv: str
    pages: str
    max_pages: int
    page_words: int
    slots: npt.NDArray[np.uint32]
    """Slots of the sequences, in no order either."""

    def params(self) -> dict[str, int]:
        return dict(max_pages=self.max_pages, page_words=self.page_words)


def paged(
    p: Problem,
    dev: Traits,
    rng: np.random.Generator,
    kv: str,
    kv_heads: int,
    head_dim: int,
    lengths: Sequence[int],
    slack: int = 5,
) -> Paged:
    """Room for sequences of so many tokens."""
    max_pages = (max(lengths) + slack + PAGE - 1) // PAGE
    n_slots, n_pages = len(lengths) + 2, sum(-(-n // PAGE) for n in lengths) + 3
    slots = rng.permutation(n_slots)[: len(lengths)].astype(np.uint32)
    free = rng.permutation(n_pages).tolist()
    table = np.full((n_slots, max_pages), 0xFFFFFFFF, np.uint32)
    for slot, n in zip(slots, lengths, strict=True):
        for i in range(-(-n // PAGE)):
            table[slot, i] = free.pop()
    stride = -(-dev.kv_page_bytes(kv, kv_heads, head_dim) // 64) * 64
    return Paged(
        p.opaque("kv", Cache(n_pages * stride)), p.input("pages", table), max_pages, stride // 4, slots
    )


def rows_of(p: Problem, name: str, slots: Sequence[int], positions: Sequence[int]) -> str:
    """Row [n]."""
    rows = np.zeros(len(slots), struct("Row"))
    rows["slot"], rows["position"] = slots, positions
    return p.input(name, rows)


def write_cache(p: Problem, cache: Paged, kv: str, k: ref.F32, v: ref.F32, sequence: int, name: str) -> None:
    """Puts k and v [rows, kv_heads, head_dim] at a sequence's beginning, by a rotation of nothing."""
    rows, kv_heads, head_dim = k.shape
    identity = np.zeros((rows, 1, 2), np.float32)
    identity[..., 0] = 1
    p.run(
        "prepare_heads",
        p.inout(f"{name}_q", np.zeros_like(k)),
        p.inout(f"{name}_k", k),
        p.input(f"{name}_v", v),
        p.input(f"{name}_table", identity),
        cache.kv,
        None,
        rows_of(p, f"{name}_rows", [cache.slots[sequence]] * rows, range(rows)),
        cache.pages,
        kv_dtype=kv,
        rows=rows,
        step=0,
        n_heads=kv_heads,
        n_kv_heads=kv_heads,
        head_dim=head_dim,
        rope_dim=2,
        style=STYLE["half"],
        qk_norm=0,
        eps=1e-5,
        **cache.params(),
    )


def _tile_nmse(dev: Traits, head_dim: int) -> float:
    """The error where keys and values are taken as F16: tiles of long heads on Metal hold no more."""
    return F16_ATTENTION_NMSE if dev.isa.startswith("apple") and head_dim > 256 else 0.0


def prepare_heads(
    p: Problem,
    dev: Traits,
    rng: np.random.Generator,
    rows: int,
    shape: tuple[int, int, int],
    style: str,
    kv: str,
    position: int = 0,
    rope_dim: int | None = None,
    qk_norm: int = 0,
) -> None:
    """The rotation of `rope_dim` elements, or all, seen in q, and what it stores, seen through attention."""
    heads, kv_heads, head_dim = shape
    rope_dim = head_dim if rope_dim is None else rope_dim
    length, eps = position + rows, 1e-6
    q, k = normal(rng, length, heads, head_dim), normal(rng, length, kv_heads, head_dim)
    v = normal(rng, length, kv_heads, head_dim)
    inv_freq = (10000.0 ** -(np.arange(rope_dim // 2) / max(rope_dim // 2, 1))).astype(np.float32)
    angles = ref.rope_angles(0, length, inv_freq)
    table = np.stack([np.cos(angles), np.sin(angles)], axis=-1).astype(np.float32)
    own = (heads, kv_heads) if qk_norm == 2 else (1, 1)  # weights of each head, or one
    q_norm, k_norm = (1 + normal(rng, n, head_dim, sigma=0.3) for n in own)
    norms = p.input("qk_norm", np.concatenate([q_norm, k_norm])) if qk_norm else None
    cache = paged(p, dev, rng, kv, kv_heads, head_dim, [length])
    slot = [cache.slots[0]]
    for i, part in enumerate([np.s_[:position], np.s_[position:]]):  # as a prompt in two chunks
        step = min(i * 3, position)  # the second as a later step of a chain would be
        if (n := len(q[part])) == 0:
            continue
        p.run(
            "prepare_heads",
            p.inout(f"q{i}", q[part]),
            p.inout(f"k{i}", k[part]),
            p.input(f"v{i}", v[part]),
            p.input(f"table{i}", table[part]) if rope_dim else None,
            cache.kv,
            norms,
            rows_of(p, f"rows{i}", slot * n, np.arange(n) + (part.start or 0) - step),
            cache.pages,
            kv_dtype=kv,
            rows=n,
            step=step,
            n_heads=heads,
            n_kv_heads=kv_heads,
            head_dim=head_dim,
            rope_dim=rope_dim,
            style=STYLE[style],
            qk_norm=qk_norm,
            eps=eps,
            **cache.params(),
        )
    p.bytes = rows * head_dim * (8 * heads + kv_heads * (8 + 2 * kv_bytes(kv)))
    p.flops = 6 * rows * head_dim * (heads + kv_heads)
    if not p.checking:
        return
    q64, k64 = q.astype(np.float64), k.astype(np.float64)
    if qk_norm == 2:
        q64, k64 = (x - x.mean(-1, keepdims=True) for x in (q64, k64))
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
        softcap=0.0,
        formats=FORMAT["f32"],
        scale=head_dim**-0.5,
        step=0,
        keys=length,
        bidirectional=0,
        fixed_keys=0,
        latent=0,
        row_ends=0,
        **cache.params(),
    )
    read, all_rows = p.input("query", query), rows_of(p, "all_rows", slot * length, range(length))
    # A window of one key gives that key's value, whatever its score.
    p.run(
        "attention",
        read,
        cache.kv,
        p.output("values", length, heads, head_dim),
        all_rows,
        cache.pages,
        kv_dtype=kv,
        rows=length,
        window=1,
        **common,
    )
    k_type, v_type = kv_types(kv)
    stored_v = kv_round(v, v_type)
    # The one weight is e^0, which fast math may get wrong in the last place; a scale may be f32 or f16, which
    # is off by up to 2^-11 of itself.
    if dev.isa.startswith(CUDA) and v_type in ("q8_0", "q4_0"):
        bound = F16_ATTENTION_NMSE
    else:
        bound = 2.0**-22 if v_type == "q8_0" else EXACT_NMSE
    bound = max(bound, _tile_nmse(dev, head_dim))
    p.expect("values", np.repeat(stored_v, heads // kv_heads, axis=1), bound)
    p.run(
        "attention",
        read,
        cache.kv,
        p.output("mixed", length, heads, head_dim),
        all_rows,
        cache.pages,
        kv_dtype=kv,
        rows=length,
        window=0,
        **common,
    )
    stored_k = kv_round(k64.astype(np.float32), k_type).astype(np.float64)
    mixed = ref.attention(query.astype(np.float64), stored_k, stored_v.astype(np.float64), 0, head_dim**-0.5)
    p.expect("mixed", mixed, max(KV_NMSE[k_type], KV_NMSE[v_type], _tile_nmse(dev, head_dim)))


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
    others: Sequence[tuple[int, int]] = (),
    both: bool = False,
    sinks: bool = False,
    images: Sequence[tuple[int, int]] = (),
) -> None:
    """Rows of one sequence, then of `others` (rows, position); `split`: the decode pair of ops; `both`: rows
    see all of their sequence. Rows (first, end) of `images` see all of theirs.

    `spread`: standard deviation of the scores. `sinks`: each head has a score without a value, some of which
    are far above the others.
    """
    heads, kv_heads, head_dim = shape
    spans = [(rows, position), *others]
    total, lengths = sum(n for n, _ in spans), [at + n for n, at in spans]
    q = normal(rng, total, heads, head_dim, sigma=spread)
    cache = paged(p, dev, rng, kv, kv_heads, head_dim, lengths, slack)
    sequences = []
    for sequence, length in enumerate(lengths):
        # Already as the cache keeps them, whether its scales are f32 or f16.
        k, v = (kv_round(normal(rng, length, kv_heads, head_dim), name, np.float16) for name in kv_types(kv))
        write_cache(p, cache, kv, k, v, sequence, "all" if sequence == 0 else f"all{sequence}")
        sequences.append((k, v))
    scale, step = head_dim**-0.5, min(2, *(at for _, at in spans), 2)
    params = dict(
        rows=total,
        step=step,
        keys=max(lengths),
        n_heads=heads,
        n_kv_heads=kv_heads,
        head_dim=head_dim,
        window=window,
        scale=scale,
        softcap=cap,
        formats=format_bits(formats),
        bidirectional=int(both),
        fixed_keys=0,
        row_ends=int(bool(images)),
        latent=0,
        **cache.params(),
    )
    ends = np.zeros(total, np.uint32)
    positions = np.concatenate([np.arange(n) + start for n, start in spans])
    for first_row, end_row in images:
        ends[first_row:end_row] = positions[end_row - 1] + 1
    where = rows_of(
        p,
        "rows",
        [slot for slot, (n, _) in zip(cache.slots, spans, strict=True) for _ in range(n)],
        [at + i - step for n, at in spans for i in range(n)],
    )
    sink = normal(rng, heads, sigma=2 * spread) if sinks else None
    last = [p.input("sinks", sink)] if sink is not None else []
    rest = [*(last or [None]), p.input("ends", ends)] if images else last
    if split:
        partials = p.opaque("partials", Partials(heads, head_dim, cache.max_pages * PAGE))
        out = p.activations("out", formats, total, heads * head_dim)
        p.run(
            "attention_split", p.input("q", q), cache.kv, partials, where, cache.pages, *(last or [None]),
            *out, kv_dtype=kv, **params,
        )  # fmt: skip
        p.run("attention_merge", partials, *out, where, *last, **params)
        p.timed = -2
    else:
        p.run(
            "attention",
            p.input("q", q),
            cache.kv,
            p.output("out_f32", total, heads * head_dim),
            where,
            cache.pages,
            *rest,
            kv_dtype=kv,
            **params,
        )
    seen = [min(at + r + 1, window or at + n) for n, at in spans for r in range(n)]
    keys = sum(min(at + n, window + n - 1) if window else at + n for n, at in spans)
    p.bytes = 2 * keys * kv_heads * head_dim * kv_bytes(kv) + 8 * total * heads * head_dim
    p.flops = 4.0 * heads * head_dim * sum(seen)
    if p.checking:
        parts, first = [], 0
        for (n, at), (k, v) in zip(spans, sequences, strict=True):
            wide = (a.astype(np.float64) for a in (q[first : first + n], k, v))
            parts.append(
                ref.attention(*wide, at, scale, cap, window, both, sink, ends[first : first + n]).reshape(
                    n, heads * head_dim
                )
            )
            first += n
        # A score's rounding error, which the exponential turns into a relative one, grows with the score.
        bound = EXACT_NMSE
        if dev.isa.startswith(CUDA) and kv != "f32" and (total >= 16 or both):
            bound = F16_ATTENTION_NMSE
        if both and kv == "f32":
            fixed = is_fixed(dev.isa, head_dim)
            bound = FIXED_NMSE if fixed or tuple(formats) == ("q8",) else SPLIT_NMSE
        bound = max(bound, _tile_nmse(dev, head_dim))
        p.expect_activations("out", np.concatenate(parts), bound * max(1.0, (spread / 3) ** 2))


def copy_records(
    p: Problem, dev: Traits, rng: np.random.Generator, kv: str, kv_heads: int, head_dim: int, pairs: int
) -> None:
    """Pages are copied whole, those that no pair names stay."""
    words = dev.kv_page_bytes(kv, kv_heads, head_dim) // 4
    pages = rng.integers(0, 2**32, (2 * pairs + 3, words), dtype=np.uint32)
    order = rng.permutation(len(pages)).astype(np.uint32)
    which = order[: 2 * pairs].reshape(pairs, 2)
    p.run("copy_records", p.input("pairs", which), p.inout("records", pages), rows=pairs, record_words=words)
    p.bytes = 8 * words * pairs
    expected = pages.copy()
    expected[which[:, 1]] = pages[which[:, 0]]
    p.expect("records", expected)

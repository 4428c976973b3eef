"""Runs metal/kernels/attention on NumPy arrays: caches in their layouts, the grids of choose_attention."""

from __future__ import annotations

import re
import struct
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "metal")]

from flatten import flatten  # noqa: E402

from kernels import reference as ref  # noqa: E402
from metal_emulator.harness import FIFO, SCHEDULES_DEFAULT, Library, Schedule  # noqa: E402

F64 = npt.NDArray[np.float64]
F32 = npt.NDArray[np.float32]
Bytes = npt.NDArray[np.uint8]

KERNELS = ROOT / "metal/kernels/attention"
HEADERS = ROOT / "metal/include"
INCLUDE = (HEADERS, ROOT / "cpp")
F32_FORMAT, F16_FORMAT = 1, 4  # ActFormatBits
SPLIT_KEYS, BATCH_SPLITS, PAGE = 128, 32, 32  # metal/include/kv_layout.h
FILES = ("f16", "f32", "q8_0", "merge")


@dataclass(frozen=True)
class Mutation:
    """A text of a .metal file or of a header of it, what replaces it, and at which occurrence."""

    old: str
    new: str
    which: int = 0
    in_merge: bool = False  # attention_merge.metal's, not the cache type's


@cache
def library(name: str, sanitizer: str = "", mutation: Mutation | None = None, only: str = "") -> Library:
    """attention_<name>.metal as Metal's default math mode compiles it.

    A mutation is compiled for one test, so then with the kernel `only` alone.
    """
    path = KERNELS / f"attention_{name}.metal"
    source: str | Path = path
    if mutation is not None:
        parts = flatten(path, list(INCLUDE), set()).split(mutation.old)
        assert len(parts) > mutation.which + 1, f"the text to replace is gone: {mutation.old}"
        first, rest = parts[: mutation.which + 1], parts[mutation.which + 1 :]
        source = mutation.old.join(first) + mutation.new + mutation.old.join(rest)
        if only:
            source = with_one_kernel(source, only)
    return Library.compile(source, include=INCLUDE, sanitizer=sanitizer, fast_math=True)


def with_one_kernel(text: str, name: str) -> str:
    """The text of a cache type with one of the instantiations of attention_types.h."""
    call = re.search(r'^AKUNU_ATTENTION\("(\w+)", (\w+), (\d+)\)$', text, flags=re.M)
    assert call
    for strings, kernel in re.findall(r"AKUNU_KERNEL\((.*?), (\w+<.*>)\)", text):
        if "".join(re.findall(r'"(\w*)"', strings.replace("type", f'"{call[1]}"'))) == name:
            kernel = kernel.replace("kKeys256", call[3]).replace("Kv", call[2])
            return text.replace(call[0], f'AKUNU_KERNEL("{name}", {kernel})')
    raise AssertionError(f"no instantiation of {name}")


# ---- the cache ---------------------------------------------------------------------------------


def round_16(n: int) -> int:
    return (n + 15) // 16 * 16


@dataclass(frozen=True)
class CacheShape:
    """One layer's K or V as kv_layout.h lays it out."""

    kv: str
    kv_heads: int
    head_dim: int
    context: int
    pages: tuple[int, ...] = ()  # of each 32 positions, empty: contiguous

    @property
    def unit_positions(self) -> int:
        return PAGE if self.pages else self.context

    @property
    def unit_bytes(self) -> int:
        n = self.unit_positions * self.head_dim
        if self.kv != "q8_0":
            return n * {"f16": 2, "f32": 4}[self.kv]
        return round_16(n) + round_16(self.unit_positions * -(-self.head_dim // 32) * 2)

    @property
    def units(self) -> int:
        return self.kv_heads * (max(self.pages) + 1 if self.pages else 1)

    def empty(self) -> Bytes:
        """Full of NaN."""
        return np.full(self.units * self.unit_bytes, 0xFF, np.uint8)

    def place(self, head: int, position: int) -> tuple[int, int]:
        """(unit, row)."""
        if not self.pages:
            return head, position
        return self.pages[position // PAGE] * self.kv_heads + head, position % PAGE

    def planes(self, raw: Bytes) -> tuple[npt.NDArray[Any], npt.NDArray[np.float16] | None]:
        """Views [unit, position, head_dim], and for q8_0 of the scales [unit, position, block]."""
        units = raw.reshape(self.units, self.unit_bytes)
        shape = (self.unit_positions, self.head_dim)
        if self.kv != "q8_0":
            dtype = np.float16 if self.kv == "f16" else np.float32
            return units.view(dtype).reshape(self.units, *shape), None
        n, blocks = self.unit_positions * self.head_dim, -(-self.head_dim // 32)
        scales = units[:, round_16(n) :][:, : self.unit_positions * blocks * 2]
        values = np.lib.stride_tricks.as_strided(
            units.view(np.int8), (self.units, *shape), (self.unit_bytes, self.head_dim, 1)
        )
        half = np.lib.stride_tricks.as_strided(
            scales[:, :2].view(np.float16),
            (self.units, self.unit_positions, blocks),
            (self.unit_bytes, blocks * 2, 2),
        )
        return values, half

    def write(self, raw: Bytes, x: F32) -> F64:
        """Stores rows [length, kv_heads, head_dim]; returns what they are afterwards."""
        values, scales = self.planes(raw)
        for head in range(self.kv_heads):
            for position in range(len(x)):
                unit, row = self.place(head, position)
                if scales is None:
                    values[unit, row] = x[position, head]
                    continue
                for b, block in enumerate(np.split(x[position, head], range(32, self.head_dim, 32))):
                    d = np.float16(np.abs(block).max() / 127)
                    scales[unit, row, b] = d
                    q = np.rint(block / np.float32(d)) if d else np.zeros_like(block)
                    values[unit, row, b * 32 : b * 32 + len(block)] = np.clip(q, -127, 127).astype(np.int8)
        return self.read(raw, len(x))

    def read(self, raw: Bytes, length: int) -> F64:
        """Rows [length, kv_heads, head_dim]."""
        values, scales = self.planes(raw)
        x = np.empty((length, self.kv_heads, self.head_dim))
        for head in range(self.kv_heads):
            for position in range(length):
                unit, row = self.place(head, position)
                x[position, head] = values[unit, row]
                if scales is not None:
                    x[position, head] *= np.repeat(scales[unit, row].astype(np.float64), 32)[: self.head_dim]
        return x


def page_table(rng: np.random.Generator, context: int) -> tuple[int, ...]:
    """Pages in no order, one of the pool unused."""
    n = -(-context // PAGE)
    return tuple(int(i) for i in rng.permutation(n + 1)[:n])


# ---- RoPE and the cache write ------------------------------------------------------------------


@dataclass(frozen=True)
class Rope:
    """A case of rope_kv."""

    rows: int = 3
    position: int = 5
    heads: int = 4
    kv_heads: int = 2
    head_dim: int = 64
    kv: str = "f16"
    half: bool = True
    rope_dim: int = 0
    qk_norm: bool = False
    paged: bool = False


def run_rope(case: Rope, lib: Library, schedule: Schedule = FIFO) -> float:
    """Worst NMSE of the turned q, of K and of V; infinite when anything else was written."""
    c, rng = case, np.random.default_rng(case.head_dim + case.rows)
    rope_dim = c.rope_dim or c.head_dim
    context = c.position + c.rows + 3
    pages = page_table(rng, context) if c.paged else ()
    shape = CacheShape(c.kv, c.kv_heads, c.head_dim, context, pages)
    q = rng.standard_normal((c.rows, c.heads, c.head_dim)).astype(np.float32)
    k, v = rng.standard_normal((2, c.rows, c.kv_heads, c.head_dim)).astype(np.float32)
    k[-1, 0] *= 0.05  # blocks of small numbers, whose scales f16 still has all bits of
    v[0, 0] = 0
    angles = rng.uniform(0, 6, (c.rows, rope_dim // 2))
    table = np.stack([np.cos(angles), np.sin(angles)], -1).astype(np.float32)
    q_norm, k_norm = (1 + 0.3 * rng.standard_normal((2, c.head_dim))).astype(np.float32)
    eps, style = 1e-6, "half" if c.half else "interleaved"
    cos, sin = (table[..., i].astype(np.float64) for i in range(2))

    def turned(x: F32, weight: F32) -> F64:
        wide = x.astype(np.float64)
        return ref.rotate(ref.rms_norm(wide, weight, eps) if c.qk_norm else wide, cos, sin, style)

    expected_q, expected_k = turned(q, q_norm), turned(k, k_norm)
    k_cache, v_cache = shape.empty(), shape.empty()
    params = struct.pack(
        "IIIIIIIIfI",
        *(c.position, c.rows, c.heads, c.kv_heads, c.head_dim, rope_dim),
        *(int(c.half), int(c.qk_norm), eps, context),
    )
    buffers: dict[int, Any] = {0: q, 1: k, 2: v, 3: table, 4: k_cache, 5: v_cache, 6: q_norm, 7: k_norm}
    buffers |= {8: params, 10: np.array(pages or [0], np.uint32)}
    lib.run(
        function(c),
        buffers,
        groups=(-(-(c.heads + 2 * c.kv_heads) // 4), c.rows),
        threads=128,
        constants=constants(c),
        schedule=schedule,
    )
    worst = nmse(q, expected_q)
    written = np.s_[c.position : c.position + c.rows]
    for raw, x in ((k_cache, expected_k), (v_cache, v.astype(np.float64))):
        stored = shape.read(raw, context)[written]
        if c.kv == "q8_0":
            top = (
                np.abs(np.pad(x, ((0, 0), (0, 0), (0, -c.head_dim % 32))))
                .reshape(*x.shape[:2], -1, 32)
                .max(-1)
            )
            limit = np.repeat(top / 127 * 0.54, 32, axis=-1)[..., : c.head_dim]  # the scale is an f16
            worst = max(worst, 0.0 if (np.abs(stored - x) <= limit + 1e-7).all() else np.inf)
        else:
            worst = max(worst, nmse(stored, x) / (1 if c.kv == "f32" else 1e5))
        # All else is untouched.
        empty, got = shape.planes(shape.empty()), shape.planes(raw)
        for head in range(c.kv_heads):
            for position in [*range(c.position), *range(c.position + c.rows, context)]:
                at = shape.place(head, position)
                for before, after in zip(empty, got, strict=True):
                    if (
                        before is not None
                        and after is not None
                        and before[at].tobytes() != after[at].tobytes()
                    ):
                        worst = np.inf
    return worst


# ---- attention ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """Rows `position`.. of a sequence against all keys before; `split`: by the decode pair of kernels."""

    rows: int = 1
    position: int = 40
    heads: int = 4
    kv_heads: int = 2
    head_dim: int = 64
    kv: str = "f16"
    window: int = 0
    cap: float = 0.0
    spread: float = 3.0  # standard deviation of the scores
    slack: int = 3
    split: bool = False
    most_splits: int = 32
    batched: bool = False  # keys split over threadgroups, a second pass
    causal: bool = True
    paged: bool = False
    formats: int = F32_FORMAT

    @property
    def id(self) -> str:
        names = [f"{k}={v}" for k, v in self.__dict__.items() if v != getattr(Case, k)]
        return "-".join(names) or "default"


def function(case: Case | Rope) -> str:
    """The kernel that choose_attention names."""
    if isinstance(case, Rope):
        return f"rope_kv_{case.kv}"
    if not case.split:
        return f"attention_{case.kv}_hd{next(n for n in (64, 128, 256) if case.head_dim <= n)}"
    group = next(g for g in (1, 4, 8, 16) if case.heads // case.kv_heads <= g)
    return f"attention_split_{case.kv}_g{group}_hd{128 if case.head_dim <= 128 else 256}"


def constants(case: Case | Rope, causal: bool = True, batched: bool = False) -> dict[str | int, Any]:
    most = case.most_splits if isinstance(case, Case) else 1
    return {
        0: case.head_dim,
        1: case.heads // case.kv_heads,
        2: case.paged,
        3: causal,
        4: batched,
        5: most,
    }


def nmse(found: npt.NDArray[Any], expected: F64) -> float:
    """Normalised mean square error; infinite where a NaN is."""
    error = float(((found.astype(np.float64) - expected) ** 2).sum() / (expected**2).sum())
    return error if np.isfinite(error) else np.inf


def tolerance(case: Case) -> float:
    """As in tests/kernels: a score's rounding error, which the exponential makes relative, grows with it."""
    return 1e-11 * max(1.0, (case.spread / 3) ** 2)


def attention_reference(case: Case, q: F64, k: F64, v: F64) -> F64:
    scale = case.head_dim**-0.5
    if case.causal:
        return ref.attention(q, k, v, case.position, scale, case.cap, case.window)
    last = [ref.attention(row[None], k, v, len(k) - 1, scale, case.cap, case.window) for row in q]
    return np.concatenate(last)


def run_attention(case: Case, lib: Library, merge: Library, schedule: Schedule = FIFO) -> float:
    """NMSE of the output, infinite for a NaN."""
    c, rng = case, np.random.default_rng(case.head_dim * 1000 + case.position)
    length, group = c.position + c.rows, c.heads // c.kv_heads
    context = length + c.slack
    pages = page_table(rng, context) if c.paged else ()
    shape = CacheShape(c.kv, c.kv_heads, c.head_dim, context, pages)
    q = (rng.standard_normal((c.rows, c.heads, c.head_dim)) * c.spread).astype(np.float32)
    caches = [shape.empty(), shape.empty()]
    k, v = (
        shape.write(raw, rng.standard_normal((length, c.kv_heads, c.head_dim)).astype(np.float32))
        for raw in caches
    )
    params = struct.pack(
        "IIIIIIIffI",
        *(c.position, c.rows, c.heads, c.kv_heads, c.head_dim, c.window, context),
        *(c.head_dim**-0.5, c.cap, c.formats),
    )
    expected = attention_reference(c, q.astype(np.float64), k, v)
    f32 = np.full(q.shape, np.nan, np.float32)
    f16 = np.full(q.shape, np.nan, np.float16)
    common: dict[int, Any] = {
        0: q,
        1: caches[0],
        2: caches[1],
        8: params,
        10: np.array(pages or [0], np.uint32),
    }
    fixed: dict[str, Any] = dict(threads=128, constants=constants(c, c.causal, c.batched), schedule=schedule)
    if c.split:
        keys = min(length, c.window + SPLIT_KEYS - 1) if c.window else length
        room = min(-(-context // SPLIT_KEYS), c.most_splits)
        partials = np.full(c.heads * room * (c.head_dim + 2), np.nan, np.float32)
        splits = min(-(-keys // SPLIT_KEYS), c.most_splits)
        lib.run(function(c), common | {3: partials}, groups=(splits, c.kv_heads), **fixed)
        merge.run("attention_merge", {0: partials, 1: f32, 2: f16, 8: params}, groups=c.heads, **fixed)
    else:
        tiles = -(-c.rows // ((32 if c.head_dim <= 128 else 16) // group))
        each = -(-context // (SPLIT_KEYS * BATCH_SPLITS)) * SPLIT_KEYS
        partials = np.full(c.rows * c.heads * -(-context // each) * (c.head_dim + 2), np.nan, np.float32)
        keys = min(length, c.window + each - 1) if c.window else length
        buffers = common | {3: f32, 9: partials}
        lib.run(
            function(c), buffers, groups=(tiles, c.kv_heads, -(-keys // each) if c.batched else 1), **fixed
        )
        if c.batched:
            merge.run("attention_merge_rows", buffers, groups=(c.heads, c.rows), **fixed)
    if c.formats & F16_FORMAT:
        half = nmse(f16, expected)
        return half / 1e5 if np.isnan(f32).all() else np.inf
    return nmse(f32, expected)


def run_case(
    case: Case | Rope,
    schedules: Sequence[Schedule] = SCHEDULES_DEFAULT[:1],
    sanitizer: str = "",
    mutation: Mutation | None = None,
) -> float:
    """The worst result over the schedules, as a share of what is tolerated."""
    in_merge = mutation is not None and mutation.in_merge
    lib = library(case.kv, sanitizer) if in_merge else library(case.kv, sanitizer, mutation, function(case))
    if isinstance(case, Rope):
        return max(run_rope(case, lib, s) / 1e-11 for s in schedules)
    merge = library("merge", sanitizer, mutation if in_merge else None)
    return max(run_attention(case, lib, merge, s) / tolerance(case) for s in schedules)

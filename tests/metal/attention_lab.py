"""Runs metal/kernels/attention on NumPy arrays: caches in their layouts, the grids of choose_attention."""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kernels import reference as ref
from metal.buffer_index import PARAMS, SCRATCH
from metal_emulator.harness import FIFO, SCHEDULES_DEFAULT, Library, Schedule
from tools.flatten import flatten

ROOT = Path(__file__).resolve().parents[2]
F64 = npt.NDArray[np.float64]
F32 = npt.NDArray[np.float32]
Bytes = npt.NDArray[np.uint8]

KERNELS = ROOT / "metal/kernels/attention"
HEADERS = ROOT / "metal/include"
INCLUDE = (HEADERS, ROOT / "cpp")
F32_FORMAT, F16_FORMAT = 1, 4  # ActFormatBits
SPLIT_KEYS, UNSPLIT_KEYS, SHORT_SPLITS = 32, 128, 16  # metal/include/kv_layout.h
BATCH_SPLIT_KEYS, BATCH_SPLITS, PAGE = 128, 32, 32
FILES = ("f16", "f32", "q8_0", "pair", "merge")


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
    call = re.search(r'^AKUNU_ATTENTION\("(\w+)", ([^,]+), (\d+), ([^,]+)\)$', text, flags=re.M)
    assert call
    for strings, kernel in re.findall(r"AKUNU_KERNEL\((.*?), (\w+<.*>)\)", text):
        if "".join(re.findall(r'"(\w*)"', strings.replace("type", f'"{call[1]}"'))) == name:
            kernel = kernel.replace("kKeys256", call[3]).replace("Kv512", call[4])
            kernel = re.sub(r"\bKv\b", call[2], kernel)
            return text.replace(call[0], f'AKUNU_KERNEL("{name}", {kernel})')
    raise AssertionError(f"no instantiation of {name}")


# ---- the cache ---------------------------------------------------------------------------------


def round_16(n: int) -> int:
    return (n + 15) // 16 * 16


@dataclass(frozen=True)
class CacheShape:
    """One layer's keys and values as kv_layout.h lays them out, for sequences of so many tokens."""

    kv: str
    kv_heads: int
    head_dim: int
    lengths: tuple[int, ...]
    slack: int = 3

    @property
    def max_pages(self) -> int:
        return -(-(max(self.lengths) + self.slack) // PAGE)

    @property
    def n_pages(self) -> int:
        """Two are of no sequence."""
        return sum(-(-n // PAGE) for n in self.lengths) + 2

    @property
    def slots(self) -> npt.NDArray[np.uint32]:
        """Return the slot of each sequence: the slots are in no order, and one is unused."""
        n = len(self.lengths)
        return np.random.default_rng(n).permutation(n + 1)[:n].astype(np.uint32)

    @property
    def tables(self) -> npt.NDArray[np.uint32]:
        """[slot, page]: pages in no order; what no sequence has is no page."""
        free = np.random.default_rng(self.n_pages).permutation(self.n_pages).tolist()
        tables = np.full((len(self.lengths) + 1, self.max_pages), 0xFFFFFFFF, np.uint32)
        for slot, length in zip(self.slots, self.lengths, strict=True):
            for i in range(-(-length // PAGE)):
                tables[slot, i] = free.pop()
        return tables

    @property
    def unit_bytes(self) -> int:
        n = PAGE * self.head_dim
        if self.kv != "q8_0":
            return n * {"f16": 2, "f32": 4}[self.kv]
        return round_16(n) + round_16(PAGE * -(-self.head_dim // 32) * 2)

    @property
    def page_bytes(self) -> int:
        """With another layer's part behind this one's."""
        return -(-2 * self.kv_heads * self.unit_bytes // 64) * 64 + 128

    def empty(self) -> Bytes:
        """Full of NaN."""
        return np.full(self.n_pages * self.page_bytes, 0xFF, np.uint8)

    def planes(self, raw: Bytes) -> tuple[npt.NDArray[Any], npt.NDArray[np.float16] | None]:
        """Views [page, unit, row, head_dim], and for q8_0 of the scales [page, unit, row, block]."""
        blocks = -(-self.head_dim // 32)
        outer, shape = (self.page_bytes, self.unit_bytes), (self.n_pages, 2 * self.kv_heads, PAGE)
        dtype = {"f16": np.dtype(np.float16), "f32": np.dtype(np.float32)}.get(self.kv, np.dtype(np.int8))
        inner = (self.head_dim * dtype.itemsize, dtype.itemsize)
        values = np.ndarray((*shape, self.head_dim), dtype, raw, 0, (*outer, *inner))
        if self.kv != "q8_0":
            return values, None
        offset = round_16(PAGE * self.head_dim)
        return values, np.ndarray((*shape, blocks), np.float16, raw, offset, (*outer, blocks * 2, 2))

    def place(self, sequence: int, position: int) -> tuple[int, int]:
        """(page, row)."""
        return int(self.tables[self.slots[sequence], position // PAGE]), position % PAGE

    def write(self, raw: Bytes, sequence: int, x: F32, of_values: bool) -> F64:
        """Stores rows [length, kv_heads, head_dim]; returns what they are afterwards."""
        values, scales = self.planes(raw)
        for position in range(len(x)):
            page, row = self.place(sequence, position)
            for head in range(self.kv_heads):
                unit = head + of_values * self.kv_heads
                if scales is None:
                    values[page, unit, row] = x[position, head]
                    continue
                for b, block in enumerate(np.split(x[position, head], range(32, self.head_dim, 32))):
                    d = np.float16(np.abs(block).max() / 127)
                    scales[page, unit, row, b] = d
                    q = np.rint(block / np.float32(d)) if d else np.zeros_like(block)
                    values[page, unit, row, b * 32 : b * 32 + len(block)] = np.clip(q, -127, 127)
        return self.read(raw, sequence, range(len(x)), of_values)

    def read(self, raw: Bytes, sequence: int, positions: range, of_values: bool) -> F64:
        """Rows [positions, kv_heads, head_dim]."""
        values, scales = self.planes(raw)
        units = np.s_[self.kv_heads :] if of_values else np.s_[: self.kv_heads]
        x = np.empty((len(positions), self.kv_heads, self.head_dim))
        for i, position in enumerate(positions):
            page, row = self.place(sequence, position)
            x[i] = values[page, units, row]
            if scales is not None:
                wide = scales[page, units, row].astype(np.float64)
                x[i] *= np.repeat(wide, 32, axis=-1)[:, : self.head_dim]
        return x


# ---- rows --------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Spans:
    """`rows` of a sequence from `position` on, then of `others` (rows, position)."""

    rows: int = 1
    position: int = 40
    others: tuple[tuple[int, int], ...] = ()

    @property
    def spans(self) -> list[tuple[int, int]]:
        return [(self.rows, self.position), *self.others]

    @property
    def total(self) -> int:
        return sum(n for n, _ in self.spans)

    @property
    def lengths(self) -> tuple[int, ...]:
        return tuple(n + at for n, at in self.spans)

    @property
    def step(self) -> int:
        """Of the chain."""
        return min(2, *(at for _, at in self.spans), 2)

    def where(self, slots: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
        """Slot and position of each row."""
        rows = [
            (slot, at + i - self.step)
            for slot, (n, at) in zip(slots, self.spans, strict=True)
            for i in range(n)
        ]
        return np.array(rows, np.uint32)


# ---- RoPE and the cache write ------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Rope(Spans):
    """A case of prepare_heads."""

    rows: int = 3
    position: int = 5
    heads: int = 4
    kv_heads: int = 2
    head_dim: int = 64
    kv: str = "f16"
    half: bool = True
    rope_dim: int = 0
    qk_norm: int = 0


def run_rope(case: Rope, lib: Library, schedule: Schedule = FIFO) -> float:
    """Worst NMSE of the turned q, of K and of V; infinite when anything else was written."""
    c, rng = case, np.random.default_rng(case.head_dim + case.rows)
    rope_dim = c.rope_dim or c.head_dim
    shape = CacheShape(c.kv, c.kv_heads, c.head_dim, c.lengths)
    q = rng.standard_normal((c.total, c.heads, c.head_dim)).astype(np.float32)
    k, v = rng.standard_normal((2, c.total, c.kv_heads, c.head_dim)).astype(np.float32)
    k[-1, 0] *= 0.05  # blocks of small numbers, whose scales f16 still has all bits of
    v[0, 0] = 0
    angles = rng.uniform(0, 6, (c.total, rope_dim // 2))
    table = np.stack([np.cos(angles), np.sin(angles)], -1).astype(np.float32)
    own = (c.heads, c.kv_heads) if c.qk_norm == 2 else (1, 1)
    norms = (1 + 0.3 * rng.standard_normal((sum(own), c.head_dim))).astype(np.float32)
    eps, style = 1e-6, "half" if c.half else "interleaved"
    cos, sin = (table[..., i].astype(np.float64) for i in range(2))

    def turned(x: F32, weight: F32) -> F64:
        wide = x.astype(np.float64)
        wide -= wide.mean(-1, keepdims=True) * (c.qk_norm == 2)
        return ref.rotate(ref.rms_norm(wide, weight, eps) if c.qk_norm else wide, cos, sin, style)

    expected_q, expected_k = turned(q, norms[: own[0]]), turned(k, norms[own[0] :])
    cache = shape.empty()
    params = struct.pack(
        "IIIIIIIIfII",
        *(c.total, c.step, c.heads, c.kv_heads, c.head_dim, rope_dim),
        *(int(c.half), int(c.qk_norm), eps, shape.max_pages, shape.page_bytes // 4),
    )
    buffers: dict[int, Any] = {0: q, 1: k, 2: v, 3: table, 4: cache, 5: norms}
    buffers |= {6: c.where(shape.slots), 7: shape.tables, PARAMS: params}
    lib.run(
        function(c),
        buffers,
        groups=(-(-(c.heads + 2 * c.kv_heads) // 4), c.total),
        threads=128,
        constants=constants(c),
        schedule=schedule,
    )
    worst, first, left = nmse(q, expected_q), 0, cache.copy()
    for sequence, (n, at) in enumerate(c.spans):
        rows, positions = np.s_[first : first + n], range(at, at + n)
        first += n
        for x, of_values in ((expected_k[rows], False), (v[rows].astype(np.float64), True)):
            stored = shape.read(cache, sequence, positions, of_values)
            worst = max(worst, stored_error(c.kv, stored, x))
        for plane in shape.planes(left):
            for page, row in (shape.place(sequence, i) for i in positions):
                if plane is not None:
                    plane[page, :, row].view(np.uint8)[:] = 0xFF
    # All else is untouched.
    return worst if (left == shape.empty()).all() else np.inf


def stored_error(kv: str, stored: F64, x: F64) -> float:
    """How far a cache's rows are from what was to be stored, of which 1e-11 is tolerated."""
    if kv != "q8_0":
        return nmse(stored, x) / (1 if kv == "f32" else 1e5) if x.any() else float(np.abs(stored).max())
    dim = x.shape[-1]
    blocks = np.pad(x, ((0, 0), (0, 0), (0, -dim % 32))).reshape(*x.shape[:2], -1, 32)
    limit = np.repeat(np.abs(blocks).max(-1) / 127 * 0.54, 32, axis=-1)[..., :dim]  # the scale is an f16
    return 0.0 if (np.abs(stored - x) <= limit + 1e-7).all() else np.inf


# ---- attention ---------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Case(Spans):
    """Rows against the keys that they see; `split`: one row, by the decode pair of kernels."""

    heads: int = 4
    kv_heads: int = 2
    head_dim: int = 64
    kv: str = "f16"
    window: int = 0
    cap: float = 0.0
    spread: float = 3.0  # standard deviation of the scores
    slack: int = 3
    split: bool = False
    most_splits: int = 32  # at most; 1 leaves nothing to merge
    batched: bool = False  # keys split over threadgroups, a second pass
    formats: int = F32_FORMAT
    both: bool = False  # rows see what comes after them
    sinks: bool = False  # heads have a score that has no value
    fixed: int = 0  # keys that every row sees, wherever it is
    images: tuple[tuple[int, int], ...] = ()  # rows (first, end) that see all of theirs

    @property
    def lengths(self) -> tuple[int, ...]:
        """Return how many keys each sequence has."""
        return tuple(self.fixed or n + at for n, at in self.spans)

    @property
    def id(self) -> str:
        names = [f"{k}={v}" for k, v in self.__dict__.items() if v != getattr(Case, k)]
        return "-".join(names) or "default"


def function(case: Case | Rope) -> str:
    """The kernel that choose_attention names."""
    if isinstance(case, Rope):
        return f"prepare_heads_{case.kv}"
    if isinstance(case, Weights):
        return f"attention_weights_{case.kv}"
    if not case.split:
        return f"attention_{case.kv}_hd{next(n for n in (64, 128, 256) if case.head_dim <= n)}"
    group = next(g for g in (1, 4, 8, 16) if case.heads // case.kv_heads <= g)
    return f"attention_split_{case.kv}_g{group}_hd{128 if case.head_dim <= 128 else 256}"


def constants(case: Case | Rope) -> dict[str | int, Any]:
    group, one = case.heads // case.kv_heads, isinstance(case, Rope)
    return {
        0: case.head_dim,
        1: group,
        2: not one and case.batched,
        3: 1 if one else case.most_splits,
        4: not one and case.sinks,
    }


def nmse(found: npt.NDArray[Any], expected: F64) -> float:
    """Normalised mean square error; infinite where a NaN is."""
    error = float(((found.astype(np.float64) - expected) ** 2).sum() / (expected**2).sum())
    return error if np.isfinite(error) else np.inf


def tolerance(case: Case) -> float:
    """As in tests/kernels: a score's rounding error, which the exponential makes relative, grows with it."""
    return 1e-11 * max(1.0, (case.spread / 3) ** 2)


def split_count(blocks: int, most: int) -> int:
    """The number of splits of decode attention, as metal/include/kv_layout.h has it."""
    return min(blocks, max(SHORT_SPLITS, -(-blocks // 4)), most)


def run_attention(case: Case, lib: Library, merge: Library, schedule: Schedule = FIFO) -> float:
    """NMSE of the output, infinite for a NaN."""
    c, rng = case, np.random.default_rng(case.head_dim * 1000 + case.position)
    length, group = max(c.lengths), c.heads // c.kv_heads
    shape = CacheShape(c.kv, c.kv_heads, c.head_dim, c.lengths, c.slack)
    context = shape.max_pages * PAGE
    q = (rng.standard_normal((c.total, c.heads, c.head_dim)) * c.spread).astype(np.float32)
    cache, expected, first = shape.empty(), np.empty(q.shape), 0
    sinks = rng.standard_normal(c.heads).astype(np.float32) * c.spread if c.sinks else None
    positions = np.concatenate([at + np.arange(n) for n, at in c.spans])
    ends = np.zeros(c.total, np.uint32)
    for first_row, end_row in c.images:
        ends[first_row:end_row] = positions[end_row - 1] + 1
    for sequence, (n, at) in enumerate(c.spans):
        k, v = (
            shape.write(cache, sequence, x.astype(np.float32), bool(of_values))
            for of_values, x in enumerate(
                rng.standard_normal((2, c.lengths[sequence], c.kv_heads, c.head_dim))
            )
        )
        wide, both = q[first : first + n].astype(np.float64), c.both or c.fixed > 0
        expected[first : first + n] = ref.attention(
            wide, k, v, at, c.head_dim**-0.5, c.cap, c.window, both, sinks if c.sinks else None,
            ends[first : first + n],
        )  # fmt: skip
        first += n
    params = struct.pack(
        "IIIIIIIIIffIIII",
        *(c.total, c.step, length, c.heads, c.kv_heads, c.head_dim, c.window),
        *(shape.max_pages, shape.page_bytes // 4),
        *(c.head_dim**-0.5, c.cap, c.formats, int(c.both), c.fixed, bool(c.images)),
    )
    f32 = np.full(q.shape, np.nan, np.float32)
    f16 = np.full(q.shape, np.nan, np.float16)
    where = c.where(shape.slots)
    common: dict[int, Any] = {0: q, 1: cache, 3: where, 4: shape.tables, PARAMS: params}
    fixed: dict[str, Any] = dict(threads=128, constants=constants(c), schedule=schedule)
    if c.split:
        keys = min(length, c.window + SPLIT_KEYS - 1) if c.window else length
        room = split_count(-(-context // SPLIT_KEYS), c.most_splits)
        partials = np.full(c.heads * room * (c.head_dim + 2), np.nan, np.float32)
        short = (min(length, c.window) if c.window else length) <= UNSPLIT_KEYS
        splits = 1 if short else split_count(-(-keys // SPLIT_KEYS), c.most_splits)
        split = common | {2: partials, 6: f32, 7: f16} | ({5: sinks} if c.sinks else {})
        lib.run(function(c), split, groups=(splits, c.kv_heads), **fixed)
        if splits == 1:
            assert np.isnan(partials).all()
        else:
            assert np.isnan(f32).all() and np.isnan(f16).all()
            merged = {0: partials, 1: f32, 2: f16, 3: where, PARAMS: params} | ({4: sinks} if c.sinks else {})
            merge.run("attention_merge", merged, groups=c.heads, **fixed)
    else:
        tiles = -(-c.total // ((32 if c.head_dim <= 128 else 16) // group))
        each = -(-context // (BATCH_SPLIT_KEYS * BATCH_SPLITS)) * BATCH_SPLIT_KEYS
        partials = np.full(c.total * c.heads * -(-context // each) * (c.head_dim + 2), np.nan, np.float32)
        keys = min(length, c.window + each - 1) if c.window else length
        buffers = common | {2: f32, SCRATCH: partials, 6: ends} | ({5: sinks} if c.sinks else {})
        lib.run(
            function(c), buffers, groups=(tiles, c.kv_heads, -(-keys // each) if c.batched else 1), **fixed
        )
        if c.batched:
            merge.run("attention_merge_rows", buffers, groups=(c.heads, c.total), **fixed)
    if c.formats & F16_FORMAT:
        half = nmse(f16, expected)
        return half / 1e5 if np.isnan(f32).all() else np.inf
    return nmse(f32, expected)


@dataclass(frozen=True, kw_only=True)
class Weights(Case):
    """A case of attention_weights."""

    fixed: int = 37
    chosen: tuple[int, ...] = (3, 0)


def run_weights(case: Weights, lib: Library, schedule: Schedule = FIFO) -> float:
    """NMSE of the weights; infinite where others were written."""
    c, rng, room = case, np.random.default_rng(case.fixed), case.total + 2
    shape = CacheShape(c.kv, c.kv_heads, c.head_dim, c.lengths, c.slack)
    q = (rng.standard_normal((c.total, c.heads, c.head_dim)) * c.spread).astype(np.float32)
    cache, first = shape.empty(), 0
    expected = np.full((len(c.chosen), room, c.fixed), 7.0)
    for sequence, (n, _) in enumerate(c.spans):
        k = shape.write(
            cache, sequence, rng.standard_normal((c.fixed, c.kv_heads, c.head_dim)).astype(np.float32), False
        )
        keys = np.repeat(k, c.heads // c.kv_heads, axis=1)[:, list(c.chosen)]
        queries = q[first : first + n, list(c.chosen)].astype(np.float64) * c.head_dim**-0.5
        scores = np.einsum("rhd,khd->hrk", queries, keys)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        expected[:, first : first + n] = weights / weights.sum(-1, keepdims=True)
        first += n
    params = struct.pack(
        "IIIIIIfIII",
        *(c.total, c.heads, c.kv_heads, c.head_dim, shape.max_pages, shape.page_bytes // 4),
        *(c.head_dim**-0.5, c.fixed, len(c.chosen), room),
    )
    out = np.full(expected.shape, 7, np.float32)
    lib.run(
        function(c),
        {
            0: q, 1: cache, 2: np.array(c.chosen, np.uint32), 3: out,
            4: c.where(shape.slots), 5: shape.tables, PARAMS: params,
        },
        groups=(c.total, len(c.chosen)), threads=128, constants=constants(c), schedule=schedule,
    )  # fmt: skip
    return nmse(out[:, : c.total], expected[:, : c.total]) if (out[:, c.total :] == 7).all() else np.inf


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
    if isinstance(case, Weights):
        return max(run_weights(case, lib, s) / tolerance(case) for s in schedules)
    merge = library("merge", sanitizer, mutation if in_merge else None)
    return max(run_attention(case, lib, merge, s) / tolerance(case) for s in schedules)

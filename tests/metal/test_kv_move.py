"""Moving positions of a KV cache: overlaps in both directions, keys turned to their new positions."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from metal_emulator.harness import (
    FIFO,
    SCHEDULES_DEFAULT,
    KernelError,
    Library,
    Schedule,
    in_sanitizer,
    lint,
)

ROOT = Path(__file__).resolve().parents[2]
KERNEL = ROOT / "metal" / "kernels" / "kv" / "move.metal"
INCLUDE = (ROOT / "metal" / "include", ROOT / "cpp")
F64 = npt.NDArray[np.float64]
U8 = npt.NDArray[np.uint8]

STYLE = {"interleaved": 0, "half": 1}
FLOATS = {"f16": np.float16, "f32": np.float32}


def library(sanitizer: str = "", mutation: tuple[str, str] | None = None) -> Library:
    source: str | Path = KERNEL
    if mutation:
        text = KERNEL.read_text()
        assert mutation[0] in text, "the text to replace is gone"
        source = text.replace(mutation[0], mutation[1])
    return Library.compile(source, include=INCLUDE, fast_math=True, sanitizer=sanitizer)


# ---- caches as metal/include/kv_layout.h has them -------------------------------------------------


def _q8_planes(unit: U8, context: int, head_dim: int) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.float16]]:
    blocks, start = -(-head_dim // 32), -(-context * head_dim // 16) * 16
    q = unit[: context * head_dim].view(np.int8).reshape(context, head_dim)
    d = unit[start : start + 2 * context * blocks].view(np.float16).reshape(context, blocks)
    return q, d


def empty(kind: str, heads: int, context: int, head_dim: int) -> U8:
    """[heads, bytes]"""
    if kind == "q8_0":
        up = lambda n: -(-n // 16) * 16  # noqa: E731
        size = up(context * head_dim) + up(context * -(-head_dim // 32) * 2)
    else:
        size = context * head_dim * np.dtype(FLOATS[kind]).itemsize
    return np.full((heads, size), 0xAA, np.uint8)


def fill(kind: str, cache: U8, values: npt.NDArray[np.float32]) -> None:
    _, context, head_dim = values.shape
    for unit, x in zip(cache, values, strict=True):
        if kind != "q8_0":
            unit[:] = np.ascontiguousarray(x.astype(FLOATS[kind])).view(np.uint8).reshape(-1)
            continue
        q, d = _q8_planes(unit, context, head_dim)
        for b in range(d.shape[1]):
            part = x[:, 32 * b : 32 * b + 32]
            scale = np.abs(part).max(1) / 127
            d[:, b] = scale
            q[:, 32 * b : 32 * b + 32] = np.rint(part / np.maximum(scale, 1e-30)[:, None])


def read(kind: str, cache: U8, context: int, head_dim: int) -> F64:
    """[heads, context, head_dim]"""
    out = []
    for unit in cache:
        if kind != "q8_0":
            out.append(unit.view(FLOATS[kind]).reshape(context, head_dim).astype(np.float64))
            continue
        q, d = _q8_planes(unit, context, head_dim)
        out.append(q * np.repeat(d.astype(np.float64), 32, axis=1)[:, :head_dim])
    return np.stack(out)


def turned(x: F64, turn: int, inv_freq: npt.NDArray[np.float32], style: str) -> F64:
    """RoPE by `turn` positions over the last axis."""
    n = len(inv_freq)
    a, b = (
        (slice(0, 2 * n, 2), slice(1, 2 * n, 2)) if style == "interleaved" else (slice(0, n), slice(n, 2 * n))
    )
    angle = float(turn) * inv_freq.astype(np.float64)
    out = x.copy()
    out[..., a] = x[..., a] * np.cos(angle) - x[..., b] * np.sin(angle)
    out[..., b] = x[..., a] * np.sin(angle) + x[..., b] * np.cos(angle)
    return out


def move(
    lib: Library,
    kind: str,
    head_dim: int,
    source: int,
    target: int,
    count: int,
    *,
    turn: int = 0,
    style: str = "half",
    rope_dim: int = 0,
    context: int = 60,
    other: int = 0,
    heads: int = 2,
    schedule: Schedule = FIFO,
) -> float:
    """Largest error over its bound; `other`: the context of another cache to copy to."""
    rng = np.random.default_rng(head_dim + source)
    rope_dim = rope_dim or head_dim
    values = rng.standard_normal((heads, context, head_dim)).astype(np.float32)
    cache = empty(kind, heads, context, head_dim)
    fill(kind, cache, values)
    inv_freq = (10000.0 ** (-np.arange(0, rope_dim, 2) / rope_dim)).astype(np.float32)
    before = read(kind, cache, context, head_dim)
    to = empty(kind, heads, other, head_dim) if other else cache
    if other:
        fill(kind, to, rng.standard_normal((heads, other, head_dim)).astype(np.float32))
    expected = read(kind, to, other or context, head_dim)
    moved = before[:, source : source + count]
    expected[:, target : target + count] = turned(moved, turn, inv_freq, style) if turn else moved
    params = struct.pack(
        "6IiII", source, target, count, head_dim, context, other or context, turn, rope_dim, STYLE[style]
    )
    lib.run(
        f"kv_move_{kind}",
        {0: cache, 1: to, 2: inv_freq, 8: params},  # without `other` one memory, bound twice
        groups=heads,
        threads=256,
        constants={"TURN": turn != 0},
        schedule=schedule,
    )
    got = read(kind, to, other or context, head_dim)
    if not turn:
        return 0.0 if np.array_equal(got, expected) else 2.0
    step = {"f16": 2**-11, "f32": 3e-7, "q8_0": 2**-11}[kind]
    bound_error = step * np.abs(expected) + 2e-6
    if kind == "q8_0":  # half a step of the block's scale
        padded = np.zeros((*got.shape[:2], -(-head_dim // 32) * 32))
        padded[..., :head_dim] = np.abs(expected)
        largest = padded.reshape(*got.shape[:2], -1, 32).max(3)
        bound_error += np.repeat(largest, 32, axis=2)[..., :head_dim] / 127 * 0.51
    return float((np.abs(got - expected) / bound_error).max())


SHIFTS = {
    "down by one": (1, 0, 59), "down by a few": (10, 3, 50), "down, no overlap": (40, 2, 11),
    "up by one": (0, 1, 59), "up by a few": (3, 10, 50), "in place": (5, 5, 20), "one position": (7, 3, 1),
    "nothing": (7, 3, 0),
}  # fmt: skip


@pytest.mark.parametrize("schedule", SCHEDULES_DEFAULT, ids=str)
@pytest.mark.parametrize("kind", ["f16", "f32", "q8_0"])
def test_overlapping_moves(kind: str, schedule: Schedule) -> None:
    """Values are moved to the bit, nothing else changes."""
    lib = library()
    for source, target, count in SHIFTS.values():
        assert move(lib, kind, 40, source, target, count, schedule=schedule) == 0


@pytest.mark.parametrize("kind", ["f16", "f32", "q8_0"])
@pytest.mark.parametrize(
    ("head_dim", "style", "rope_dim"),
    [
        (64, "half", 64),
        (80, "half", 20),
        (128, "interleaved", 128),
        (16, "interleaved", 8),
        (256, "half", 256),
    ],
)
def test_keys_are_turned_to_their_new_positions(kind: str, head_dim: int, style: str, rope_dim: int) -> None:
    lib = library()
    for turn, (source, target, count) in [(-7, (10, 3, 50)), (-59, (59, 0, 1)), (5, (2, 7, 30))]:
        assert move(lib, kind, head_dim, source, target, count, turn=turn, style=style, rope_dim=rope_dim) < 1
    # Far: the angle's rounding would show.
    assert move(lib, kind, head_dim, 10, 3, 50, turn=-100_003, style=style, rope_dim=rope_dim) < 1


@pytest.mark.parametrize("kind", ["f16", "f32", "q8_0"])
def test_copies_to_another_cache(kind: str) -> None:
    for head_dim, other in [(64, 100), (80, 33)]:
        assert move(library(), kind, head_dim, 4, 9, 23, other=other) == 0


def test_free_of_lint() -> None:
    assert lint(KERNEL, include=INCLUDE) == []


def run_all(sanitizer: str, old: str = "", new: str = "") -> None:
    lib = library(sanitizer, (old, new) if old else None)
    for schedule in (Schedule("fifo", 0, workers=2), Schedule("priority", 1, workers=2)):
        for kind in ("f16", "q8_0"):
            for source, target, count in [(1, 0, 19), (0, 3, 17)]:
                for turn in (0, target - source):
                    error = move(
                        lib, kind, 40, source, target, count, turn=turn, context=20, schedule=schedule
                    )
                    assert error < 1, (kind, source, target, turn, error)
    print("clean")


@pytest.mark.long
@pytest.mark.parametrize("sanitizer", ["tsan", "asan"])
def test_clean_under_sanitizers(sanitizer: str) -> None:
    done = in_sanitizer(sanitizer, __file__, "run_all", sanitizer)
    assert done.returncode == 0 and done.stdout == "clean\n", done.stderr[-4000:]


BARRIER = "threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);"
MUTATIONS = {
    "order": ("down ? n : p.count - 1 - n", "n"),
    "barrier before writing": (f"{BARRIER}\n        if (n < p.count) {{", "if (n < p.count) {"),
    "barrier without caches": (BARRIER, "threadgroup_barrier(mem_flags::mem_none);"),
    "barrier before turning": ("        threadgroup_barrier(mem_flags::mem_threadgroup);\n", ""),
    "partner": ("i + half_dim", "i + half_dim - 1"),
    "direction": ("x * r.x - y * r.y", "x * r.x + y * r.y"),
    "last block": ("(p.head_dim + 31) / 32 * 32", "p.head_dim / 32 * 32"),
}


@pytest.mark.long
@pytest.mark.parametrize("name", MUTATIONS)
def test_a_mutation_is_seen(name: str) -> None:
    old, new = MUTATIONS[name]
    if name.startswith("barrier"):
        assert in_sanitizer("tsan", __file__, "run_all", "tsan", old, new).returncode != 0
        return
    with pytest.raises((AssertionError, KernelError)):
        run_all("", old, new)

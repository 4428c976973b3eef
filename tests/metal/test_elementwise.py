"""Norms, RoPE tables, gates and activation formats of metal/kernels/elementwise against NumPy float64."""

from __future__ import annotations

import struct
from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest

from metal.buffer_index import PARAMS
from metal_emulator.harness import (
    SCHEDULES_DEFAULT,
    KernelError,
    Library,
    Schedule,
    in_sanitizer,
    lint,
)

ROOT = Path(__file__).resolve().parents[2]
KERNELS = ROOT / "metal/kernels/elementwise"
INCLUDE = [ROOT / "metal/include", ROOT / "cpp"]
F32, F16 = 1, 4  # ActFormatBits
FILES = ("norm", "activations", "rope_table")


@cache
def library(name: str, sanitizer: str = "", old: str = "", new: str = "") -> Library:
    """A file's kernels as Metal's default math mode compiles them, or with one text replaced."""
    options = dict(sanitizer=sanitizer, fast_math=True, include=tuple(INCLUDE))
    if not old:
        return Library.compile(KERNELS / f"{name}.metal", **options)
    text = (KERNELS / f"{name}.metal").read_text()
    header = (ROOT / "metal/include/reduce.h").read_text().replace("#pragma once\n", "")
    text = text.replace('#include "reduce.h"\n', header)
    assert old in text, "the text to replace is gone"
    return Library.compile(text.replace(old, new), **options)


def error(found: np.ndarray, expected: np.ndarray) -> float:
    """Root of the normalised mean square error; infinite where a NaN is."""
    e = np.sqrt(((found.astype(np.float64) - expected) ** 2).sum() / (expected**2).sum())
    return float(e) if np.isfinite(e) else float("inf")


def round_up(n: int, unit: int) -> int:
    return (n + unit - 1) // unit * unit


def outputs(rows: int, dim: int) -> tuple[np.ndarray, np.ndarray]:
    return np.full((rows, dim), np.nan, np.float32), np.full((rows, dim), np.nan, np.float16)


def check_formats(f32: np.ndarray, f16: np.ndarray, formats: int, expected: np.ndarray) -> float:
    """Worst relative error; a format that was not asked for must be untouched."""
    worst = error(f32, expected) if formats & F32 else 0.0 if np.isnan(f32).all() else np.inf
    limited = np.clip(expected, -65504, 65504)
    half = error(f16, limited) / 1000 if formats & F16 else 0.0 if np.isnan(f16).all() else np.inf
    return float(max(worst, half))


def run_norm(
    lib: Library,
    schedule: Schedule = SCHEDULES_DEFAULT[0],
    rows: int = 3,
    dim: int = 132,
    formats: int = F32 | F16,
    gather: bool = False,
    sigma: float = 1.0,
    threads: int = 0,
) -> float:
    rng = np.random.default_rng(rows * 1000 + dim)
    x = (rng.standard_normal((2 * rows if gather else rows, dim)) * sigma).astype(np.float32)
    which = rng.permutation(len(x))[:rows].astype(np.uint32) if gather else np.arange(rows, dtype=np.uint32)
    weight = (1 + 0.3 * rng.standard_normal(dim)).astype(np.float32)
    f32, f16 = outputs(rows, dim)
    eps = 1e-5
    params = struct.pack("IIfIIf", rows, dim, eps, formats, int(gather), 1)
    lib.run(
        "norm",
        {0: x, 1: weight, 2: f32, 3: f16, 4: which, PARAMS: params},
        groups=rows,
        threads=threads or min(512, round_up(-(-dim // 4), 32)),
        schedule=schedule,
    )
    wide = x[which].astype(np.float64)
    expected = wide / np.sqrt((wide**2).mean(1, keepdims=True) + np.float32(eps)) * weight
    return check_formats(f32, f16, formats, expected)


def run_norm_add(
    lib: Library, schedule: Schedule = SCHEDULES_DEFAULT[0], rows: int = 3, dim: int = 132
) -> float:
    rng = np.random.default_rng(rows * 1000 + dim)
    x, h = rng.standard_normal((2, rows, dim)).astype(np.float32)
    weight = (1 + 0.3 * rng.standard_normal(dim)).astype(np.float32)
    wide = x.astype(np.float64)
    expected = (h + wide / np.sqrt((wide**2).mean(1, keepdims=True) + np.float32(1e-6)) * weight) * 0.75
    params = struct.pack("IIfIIf", rows, dim, 1e-6, F32, 0, 0.75)
    lib.run(
        "norm_add",
        {0: x, 1: weight, 2: h, PARAMS: params},
        groups=rows,
        threads=round_up(-(-dim // 4), 32),
        schedule=schedule,
    )
    return error(h, expected)


def run_gate_act(
    lib: Library,
    schedule: Schedule = SCHEDULES_DEFAULT[0],
    rows: int = 3,
    n: int = 161,
    gelu: bool = False,
    formats: int = F32 | F16,
    sigma: float = 2.0,
) -> float:
    rng = np.random.default_rng(rows * 1000 + n)
    gate = (rng.standard_normal((rows, n)) * sigma).astype(np.float32)
    up = rng.standard_normal((rows, n)).astype(np.float32)
    f32, f16 = outputs(rows, n)
    params = struct.pack("IIIIII", rows, n, int(gelu), formats, 1, n)
    lib.run(
        "gate_act",
        {0: gate, 1: up, 2: f32, 3: f16, PARAMS: params},
        groups=(-(-n // 512), rows),
        threads=128,
        schedule=schedule,
    )
    g = gate.astype(np.float64)
    with np.errstate(over="ignore"):
        tanh = np.tanh(np.sqrt(2 / np.pi) * (g + 0.044715 * g**3))
        expected = (0.5 * g * (1 + tanh) if gelu else g / (1 + np.exp(-g))) * up
    return check_formats(f32, f16, formats, expected)


def run_quantize(
    lib: Library,
    schedule: Schedule = SCHEDULES_DEFAULT[0],
    rows: int = 3,
    dim: int = 50,
    formats: int = F32 | F16,
    sigma: float = 1.0,
) -> float:
    """Bits are exact: 0, or infinite."""
    x = (np.random.default_rng(dim).standard_normal((rows, dim)) * sigma).astype(np.float32)
    f32, f16 = outputs(rows, dim)
    params = struct.pack("III", rows, dim, formats)
    lib.run(
        "quantize",
        {0: x, 1: f32, 2: f16, PARAMS: params},
        groups=(-(-dim // 512), rows),
        threads=128,
        schedule=schedule,
    )
    right = np.array_equal(f32, x) if formats & F32 else np.isnan(f32).all()
    clipped = np.clip(x, -65504, 65504).astype(np.float16)
    right &= np.array_equal(f16, clipped) if formats & F16 else np.isnan(f16).all()
    return 0.0 if right else np.inf


def run_rope_table(
    lib: Library,
    schedule: Schedule = SCHEDULES_DEFAULT[0],
    rows: int = 3,
    half: int = 36,
    position: int = 131000,
    scale: float = 1.19,
    temperature: tuple[float, int] = (0.1, 4096),
    axes: bool = False,
) -> float:
    rng = np.random.default_rng(rows)
    inv_freq = (10000.0 ** -(np.arange(half) / half)).astype(np.float32)
    table = np.full((rows, half, 2), np.nan, np.float32)
    step = min(position, 3)
    positions = position + rng.integers(0, 100, rows)  # of many sequences
    where = np.stack([np.zeros(rows), positions - step], -1).astype(np.uint32)
    axis = rng.integers(0, 3, half).astype(np.uint32)
    own = np.asarray(position + rng.integers(0, 100, (rows, 3)))
    turned = own[:, axis] if axes else np.broadcast_to(positions[:, None], (rows, half))
    lib.run(
        "rope_table",
        {
            0: inv_freq,
            1: table,
            2: where,
            3: axis,
            4: (own - step).astype(np.uint32),
            PARAMS: struct.pack("IIIffII", rows, step, half, scale, *temperature, axes),
        },
        groups=(-(-half // 128), rows),
        threads=128,
        schedule=schedule,
    )
    # The product is one of binary32, which is what the models were trained with.
    angles = turned.astype(np.float32) * inv_freq
    expected = np.stack([np.cos(angles.astype(np.float64)), np.sin(angles.astype(np.float64))], -1)
    weight, length = temperature
    if length:
        expected *= 1 + np.float32(weight) * np.log1p(turned // length)[..., None]
    return error(table, expected * np.float32(scale))


RUNS = {
    "norm": ("norm", run_norm),
    "norm_add": ("norm", run_norm_add),
    "gate_act": ("activations", run_gate_act),
    "quantize": ("activations", run_quantize),
    "rope_table": ("rope_table", run_rope_table),
}
TOLERANCE = 1e-6


@pytest.mark.long
@pytest.mark.parametrize("schedule", SCHEDULES_DEFAULT, ids=str)
@pytest.mark.parametrize("name", RUNS)
def test_results_do_not_depend_on_the_schedule(name: str, schedule: Schedule) -> None:
    file, run = RUNS[name]
    assert run(library(file), schedule) <= TOLERANCE


@pytest.mark.parametrize(
    ("rows", "dim", "options"),
    [
        (1, 2, {}),
        (2, 32, {"formats": F16}),
        (2, 127, {"formats": F32}),
        (3, 896, {"gather": True}),
        (2, 127, {"gather": True}),
        (3, 4096, {}),  # several elements per thread
        (2, 4099, {}),
        (2, 64, {"sigma": 1e-3}),  # eps counts
        (2, 2048, {"sigma": 1e6}),
        (2, 260, {"threads": 1024}),
    ],
)
def test_norm(rows: int, dim: int, options: dict[str, float]) -> None:
    assert run_norm(library("norm"), rows=rows, dim=dim, **options) <= TOLERANCE


@pytest.mark.parametrize(("rows", "dim"), [(1, 1), (17, 100), (2, 2304), (1, 2305)])
def test_norm_add(rows: int, dim: int) -> None:
    assert run_norm_add(library("norm"), rows=rows, dim=dim) <= TOLERANCE


@pytest.mark.parametrize("gelu", [False, True], ids=["silu", "gelu"])
@pytest.mark.parametrize(
    ("rows", "n", "options"),
    [
        (1, 1, {}),
        (2, 512, {"formats": F16}),
        (3, 516, {}),
        (2, 173, {"formats": F32}),
        (2, 256, {"formats": F32, "sigma": 60.0}),  # where e^x overflows and underflows
        (1, 64, {"sigma": 1e5}),  # beyond f16
    ],
)
def test_gate_act(rows: int, n: int, options: dict[str, float], gelu: bool) -> None:
    assert run_gate_act(library("activations"), rows=rows, n=n, gelu=gelu, **options) <= TOLERANCE


@pytest.mark.parametrize("formats", [F32, F16, F32 | F16])
@pytest.mark.parametrize(("rows", "dim"), [(1, 1), (3, 96), (2, 515), (2, 1024)])
def test_quantize_copies_exactly(rows: int, dim: int, formats: int) -> None:
    assert run_quantize(library("activations"), rows=rows, dim=dim, formats=formats) == 0


def test_values_beyond_f16_are_clamped() -> None:
    assert run_quantize(library("activations"), dim=64, sigma=1e37) == 0


@pytest.mark.parametrize(("half", "position"), [(1, 0), (32, 0), (129, 5000)])
def test_rope_table(half: int, position: int) -> None:
    run = partial(run_rope_table, library("rope_table"), half=half, position=position, scale=1.0)
    assert run(temperature=(0.0, 0)) <= TOLERANCE
    assert run(temperature=(0.2, 7)) <= TOLERANCE
    assert run(temperature=(0.2, 7), axes=True) <= TOLERANCE


@pytest.mark.mutation
@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("norm", "    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);\n", ""),
        ("norm", "lane < n_simdgroups ? partials[lane] : 0.0f", "partials[lane]"),
        ("norm", "gathered[row] : row", "gathered[row] + 1 : row"),
        ("norm", "precise::rsqrt", "precise::sqrt"),
        ("norm_add", "h += ulong(row) * n;", ""),
        ("gate_act", "first + 4, p.n", "first + 4, p.n - 1"),
        ("gate_act", "activate(p.activation", "activate(1 - p.activation"),
        ("quantize", "first + 4, p.dim", "first + 4, p.dim + 1"),
        ("rope_table", "precise::cos", "cos"),
        ("rope_table", "rows[at.y]", "rows[0]"),
        ("rope_table", "first + p.step", "first"),
        ("rope_table", "position / p.temperature_length", "position"),
    ],
)
def test_mutations_are_seen(name: str, old: str, new: str) -> None:
    file, run = RUNS[name]
    options = {"dim": 1100, "gather": True} if name == "norm" else {}
    found = []
    for schedule in SCHEDULES_DEFAULT:
        try:
            found.append(run(library(file, "", old, new), schedule, **options))
        except KernelError:
            found.append(np.inf)
    assert max(found) > TOLERANCE


@pytest.mark.parametrize("file", FILES)
def test_no_lint(file: str) -> None:
    assert lint(KERNELS / f"{file}.metal", include=tuple(INCLUDE)) == []


def run_under(sanitizer: str, old: str = "", new: str = "") -> None:
    if old:
        run_norm(library("norm", sanitizer, old, new))
        return
    for file, run in RUNS.values():
        for schedule in SCHEDULES_DEFAULT[:2]:
            assert (
                run(library(file, sanitizer), Schedule(schedule.kind, schedule.seed, workers=2)) <= TOLERANCE
            )
    print("clean")


@pytest.mark.long
@pytest.mark.parametrize("sanitizer", ["tsan", "asan"])
def test_clean_under_sanitizers(sanitizer: str) -> None:
    done = in_sanitizer(sanitizer, __file__, "run_under", sanitizer)
    assert done.returncode == 0 and done.stdout == "clean\n", done.stderr[-4000:]


@pytest.mark.long
def test_thread_sanitizer_sees_a_barrier_without_memory() -> None:
    done = in_sanitizer(
        "tsan",
        __file__,
        "run_under",
        "tsan",
        "barrier(metal::mem_flags::mem_threadgroup)",
        "barrier(metal::mem_flags::mem_none)",
    )
    assert done.returncode == 66 and "data race" in done.stderr, done.stderr[-4000:]

"""Whisper's kernels against float64, in every schedule and under sanitizers."""

# ruff: noqa: E501  (MSL reads better unbroken)
from __future__ import annotations

import math
import struct
from pathlib import Path
from typing import Any

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
KERNELS = ROOT / "metal" / "kernels" / "audio"
INCLUDE = (ROOT / "metal" / "include", ROOT / "cpp")
F64 = npt.NDArray[np.float64]

erf = np.vectorize(math.erf)


def gelu(x: F64) -> F64:
    return np.asarray(0.5 * x * (1 + erf(x / math.sqrt(2))))


def library(name: str, sanitizer: str = "", mutation: tuple[str, str] | None = None) -> Library:
    source: str | Path = KERNELS / f"{name}.metal"
    if mutation:
        text = Path(source).read_text()
        assert mutation[0] in text, "the text to replace is gone"
        source = text.replace(mutation[0], mutation[1], 1)
    return Library.compile(source, include=INCLUDE, fast_math=True, sanitizer=sanitizer)


# The largest difference from float64, over what the result's format allows.


def conv_error(
    lib: Library, length: int, channels: int, out_channels: int, stride: int, kind: str, schedule: Schedule = FIFO
) -> float:  # fmt: skip
    """Width 3 with zeros at both ends; f32 input is [channel][position], f16 [position][channel]."""
    rng = np.random.default_rng(length * 100 + channels)
    x = rng.standard_normal((length, channels)).astype(np.float16)
    w = (rng.standard_normal((out_channels, channels, 3)) / math.sqrt(3 * channels)).astype(np.float16)
    bias = rng.standard_normal(out_channels).astype(np.float32)
    out_length = (length - 1) // stride + 1
    y = np.full((out_length, out_channels), np.nan, np.float16)
    data = np.ascontiguousarray(x.T.astype(np.float32)) if kind == "f32" else x
    lib.run(
        f"conv_gelu_{kind}",
        {0: data, 1: w, 2: bias, 3: y, 8: struct.pack("5I", length, out_length, channels, out_channels, stride)},
        groups=(-(-out_channels // 32), -(-out_length // 32)),
        threads=128,
        schedule=schedule,
    )  # fmt: skip
    padded = np.pad(x.astype(np.float64), ((1, 1), (0, 0)))
    taps = [padded[k : k + stride * (out_length - 1) + 1 : stride] @ w[:, :, k].T.astype(np.float64) for k in range(3)]  # fmt: skip
    expected = gelu(sum(taps) + bias)
    return float((np.abs(y - expected) / (1e-6 + 1e-5 * np.sqrt(channels) + 2**-11 * np.abs(expected))).max())


def norm_error(lib: Library, rows: int, dim: int, formats: int, mean: float = 0.0, schedule: Schedule = FIFO) -> float:  # fmt: skip
    rng = np.random.default_rng(dim)
    x = (rng.standard_normal((rows, dim)) * 2 + mean).astype(np.float32)
    w, b = rng.standard_normal((2, dim)).astype(np.float32)
    f32, f16 = np.full((rows, dim), np.nan, np.float32), np.full((rows, dim), np.nan, np.float16)
    lib.run(
        "layer_norm_f32",
        {0: x, 1: w, 2: b, 3: f32, 4: f16, 8: struct.pack("IIfIII", rows, dim, 1e-5, formats, 1, 0)},
        groups=rows,
        threads=256,
        schedule=schedule,
    )
    z = x.astype(np.float64)
    z = (z - z.mean(1, keepdims=True)) / np.sqrt(z.var(1, keepdims=True) + 1e-5) * w + b
    error = 0.0
    if formats & 1:
        # x has 24 bits, and what remains of them after the mean is gone is all that can be right.
        error = float((np.abs(f32 - z) / (2e-6 * (1 + abs(mean)) * (1 + np.abs(z)))).max())
    if formats & 4:
        error = max(
            error, float((np.abs(f16 - z) / (2e-6 * (1 + abs(mean)) + 2**-11 * (np.abs(z) + 1e-3))).max())
        )
    assert np.isnan(f32).all() == (not formats & 1) and np.isnan(f16).all() == (not formats & 4)
    return error


def bias_error(lib: Library, name: str, rows: int, n: int, schedule: Schedule = FIFO) -> float:
    rng = np.random.default_rng(n)
    half_input = name == "add_positions_f16"
    x = (rng.standard_normal((rows, n)) * 3).astype(np.float16 if half_input else np.float32)
    second = rng.standard_normal((rows + 5, n) if name.startswith("add") else n).astype(np.float32)
    out = rng.standard_normal((rows, n)).astype(np.float16 if name in ("bias_f16", "bias_gelu_f16") else np.float32)  # fmt: skip
    z = x.astype(np.float64)
    expected = {
        "bias_f16": lambda: z + second,
        "bias_gelu_f16": lambda: gelu(z + second),
        "bias_residual_f32": lambda: out.astype(np.float64) + z + second,
        "add_positions_f16": lambda: z + second[5:],
        "add_positions_f32": lambda: z + second[5:],
    }[name]()
    groups = (-(-n // 32), -(-rows // 4))
    lib.run(name, {0: x, 1: second, 2: out, 8: struct.pack("3I", rows, n, 5)}, groups=groups, threads=(32, 4), schedule=schedule)  # fmt: skip
    step = 2**-11 if out.dtype == np.float16 else 2**-23
    return float((np.abs(out - expected) / (1e-6 + step * np.abs(expected))).max())


CONVS = [
    (1, 1, 1, 1, "f32"), (2, 3, 5, 2, "f32"), (33, 80, 40, 1, "f32"), (65, 17, 33, 2, "f16"), (64, 48, 32, 2, "f16"),
    (100, 128, 64, 1, "f32"), (31, 384, 96, 2, "f16"), (7, 16, 70, 1, "f16"),
]  # fmt: skip
NORMS = [(1, 1, 1, 0.0), (3, 31, 5, 0.0), (2, 384, 4, 0.0), (5, 1280, 5, 0.0), (2, 1000, 1, 100.0)]
BIASES = ["bias_f16", "bias_gelu_f16", "bias_residual_f32", "add_positions_f16", "add_positions_f32"]
SHAPES = [(1, 1), (3, 33), (5, 384)]


@pytest.mark.parametrize("schedule", SCHEDULES_DEFAULT, ids=str)
@pytest.mark.parametrize("row", CONVS, ids=str)
def test_convolution(row: tuple[int, int, int, int, str], schedule: Schedule) -> None:
    assert conv_error(library("conv"), *row, schedule=schedule) < 1


@pytest.mark.parametrize("schedule", SCHEDULES_DEFAULT, ids=str)
@pytest.mark.parametrize("row", NORMS, ids=str)
def test_layer_norm(row: tuple[int, int, int, float], schedule: Schedule) -> None:
    assert norm_error(library("layer_norm"), *row, schedule=schedule) < 1


@pytest.mark.parametrize("name", BIASES)
def test_bias_and_positions(name: str) -> None:
    for rows, n in SHAPES:
        assert bias_error(library("bias"), name, rows, n) < 1


def test_gelu_over_its_whole_range() -> None:
    x = np.concatenate([np.linspace(-12, 12, 40001), [-1e30, -65504, 0.0, 65504, 1e30]]).astype(np.float32)
    out = np.zeros((1, len(x)), np.float16)
    library("bias").run(
        "bias_gelu_f16",
        {0: x, 1: np.zeros_like(x), 2: out, 8: struct.pack("3I", 1, len(x), 0)},
        groups=(-(-len(x) // 256), 1),
        threads=256,
    )
    expected = np.clip(gelu(x.astype(np.float64)), -65504, 65504)
    assert (np.abs(out[0] - expected) <= 3e-7 + 2**-11 * np.abs(expected)).all()


@pytest.mark.parametrize("path", sorted(KERNELS.glob("*.metal")), ids=lambda p: p.name)
def test_free_of_lint(path: Path) -> None:
    assert lint(path, include=INCLUDE) == []


def run_all(sanitizer: str, name: str = "", old: str = "", new: str = "") -> None:
    """Small odd shapes; with a name, a mutation of that file only."""
    runs: dict[str, Any] = {
        "conv": lambda lib, s: max(conv_error(lib, *row, schedule=s) for row in (CONVS[1], CONVS[3])),
        "layer_norm": lambda lib, s: max(norm_error(lib, *row, schedule=s) for row in NORMS[1:3]),
        "bias": lambda lib, s: max(bias_error(lib, b, 3, 33, s) for b in BIASES),
    }
    for file, run in runs.items():
        if name in ("", file):
            lib = library(file, sanitizer, (old, new) if name else None)
            for schedule in (Schedule("fifo", 0, workers=2), Schedule("priority", 1, workers=2)):
                error = run(lib, schedule)
                assert error < 1, (file, error)
    print("clean")


@pytest.mark.long
@pytest.mark.parametrize("sanitizer", ["tsan", "asan"])
def test_clean_under_sanitizers(sanitizer: str) -> None:
    done = in_sanitizer(sanitizer, __file__, "run_all", sanitizer)
    assert done.returncode == 0 and done.stdout == "clean\n", done.stderr[-4000:]


BARRIER = "threadgroup_barrier(mem_flags::mem_threadgroup);"
MUTATIONS = {
    "padding": ("conv", "i / kConvDepth - 1", "i / kConvDepth"),
    "last position": ("conv", "t < p.in_length", "t + 1 < p.in_length"),
    "taps swapped": ("conv", "(tap * kConvDepth + c) * kConvTile + o", "((2 - tap) * kConvDepth + c) * kConvTile + o"),
    "stride of rows": ("conv", "c, p.stride * kConvDepth)", "c, kConvDepth)"),
    "variance": ("layer_norm", "(in[i] - mean) * (in[i] - mean)", "in[i] * in[i]"),
    "last element": ("layer_norm", "i < p.dim; i += kRowThreads) sum", "i + 1 < p.dim; i += kRowThreads) sum"),
    "one array": ("layer_norm", "threadgroup_sum(square, squares", "threadgroup_sum(square, sums"),
    "row of the embedding": ("bias", "p.position + at.y", "at.y"),
}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("name", MUTATIONS)
def test_a_mutation_is_seen(name: str) -> None:
    file, old, new = MUTATIONS[name]
    if name == "one array":  # a race, which only ThreadSanitizer sees for certain
        assert in_sanitizer("tsan", __file__, "run_all", "tsan", file, old, new).returncode != 0
        return
    with pytest.raises((AssertionError, KernelError)):
        run_all("", file, old, new)


@pytest.mark.long
@pytest.mark.parametrize("which", [0, 1, 2])
def test_a_missing_barrier_is_seen(which: int) -> None:
    text = (KERNELS / "conv.metal").read_text()
    at = -1
    for _ in range(which + 1):
        at = text.index(BARRIER, at + 1)
    old = text[at : at + 120]
    done = in_sanitizer("tsan", __file__, "run_all", "tsan", "conv", old, old.replace(BARRIER, ""))
    assert done.returncode != 0

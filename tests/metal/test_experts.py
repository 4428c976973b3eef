"""Products with the weights of experts, which the router has written: metal/include/matmul_experts.h."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernels.cases import EXPERT_CHECKS
from kernels.problem import struct
from kernels.runner import run
from kernels.weights import dtype_row, is_affine, is_planar
from metal.buffer_index import PARAMS
from metal_emulator.harness import FIFO, SCHEDULES_DEFAULT, Library, Schedule

ROOT = Path(__file__).resolve().parents[2]
KERNELS = ROOT / "metal/kernels/matmul"
INCLUDE = (ROOT / "metal/include", ROOT / "cpp")
ALIGNED = 64
"""Bytes that the planes of a planar type begin at a multiple of."""
SCALE_TYPES = {"f32": 0, "f16": 1, "bf16": 30}


def affine(dtype: str) -> tuple[int, int, str] | None:
    """Bits, group and type of scales of "mlx_q4_g64_bf16"; None for another type."""
    if not is_affine(dtype):
        return None
    _, bits, group, scales = dtype.split("_")
    return int(bits[1:]), int(group[1:]), scales


@cache
def library(name: str) -> Library:
    return Library.compile((KERNELS / f"{name}.metal").read_text(), include=INCLUDE, fast_math=True)


class Experts:
    """Weights as MetalDevice::prepare_experts lays them."""

    def __init__(self, dtype: str, planes: Sequence[bytes]) -> None:
        self.dtype = dtype
        padded = [plane + bytes(-len(plane) % ALIGNED) for plane in planes]
        self.data = np.frombuffer(b"".join(padded), np.uint8)


class ExpertsLab:
    """A lab as tests/kernels knows it; `split`: SIMD-groups that share the inputs of a row of weights."""

    def __init__(self, split: int, schedule: Schedule = FIFO) -> None:
        self.split, self.schedule, self.isa = split, schedule, "apple9"

    def matmul_input(self, dtype: str) -> str:
        return "f32" if dtype == "f32" else "f16"

    def activation_bytes(self, fmt: str, rows: int, dim: int) -> int:
        return rows * dim * (2 if fmt == "f16" else 4)

    def weight(self, dtype: str, data: Any, *_: Any, **__: Any) -> Experts:
        if not is_planar(dtype):
            return Experts(dtype, [bytes(data)])
        row = dtype_row(dtype)
        blocks, ends = data.reshape(-1, row["block_bytes"]), np.cumsum(row["planes"])
        return Experts(dtype, [plane.tobytes() for plane in np.split(blocks, ends[:-1], axis=1)])

    def run(self, op: str, buffers: Sequence[Any], params: bytes, *, kv_dtype: str = "f16") -> None:
        """One command, in a grid as metal/choose/matmul.cpp has."""
        p = np.frombuffer(params, struct(op))[0]
        if op == "quantize":
            buffers[2][:] = buffers[0].astype(np.float16).reshape(-1).view(np.uint8)
            return
        weights = next(b for b in buffers if isinstance(b, Experts))
        rows = 2 if op == "experts_gate_up" else 4
        kind = affine(weights.dtype)
        name = weights.dtype if kind is None else f"mlx_q{kind[0]}"
        constants: dict[str | int, Any] = {0: int(p["k"]) % 4 == 0, 1: rows, 2: self.split}
        if kind is not None:
            constants |= {3: kind[1], 4: SCALE_TYPES[kind[2]]}
        per_group = 4 // self.split * rows
        across = int(p["rows"]) * (int(p["chosen"]) if op == "experts_gate_up" else 1)
        bound: dict[int, Any] = {PARAMS: params}
        for i, b in enumerate(buffers):
            bound[i] = b.data if isinstance(b, Experts) else np.zeros(256, np.uint8) if b is None else b
        library(name).run(
            f"{op}_{name}", bound, groups=(-(-int(p["n"]) // per_group), across), threads=128,
            constants=constants, schedule=self.schedule,
        )  # fmt: skip


CASES = [c for c in EXPERT_CHECKS if c.builder not in ("route", "cluster_logits") and c.runs_on("metal")]
SOME = ("f32", "f16", "bf16", "q4_0", "q4_k", "mxfp4", "mlx_q4_g64_bf16", "mlx_q3_g32_f32")
FEW = [c for c in CASES if c.get("dtype") in SOME and c.get("rows") <= 7]


@pytest.mark.parametrize("split", [1, 2])
def test_a_few_rows(split: int) -> None:
    lab = ExpertsLab(split)
    for row in FEW:
        assert not run(row.build(lab), lab), row.id  # type: ignore[arg-type]


@pytest.mark.parametrize("schedule", SCHEDULES_DEFAULT, ids=str)
def test_every_schedule(schedule: Schedule) -> None:
    lab = ExpertsLab(4, schedule)
    for row in [c for c in FEW if c.get("dtype") == "q4_0"]:
        assert not run(row.build(lab), lab), row.id  # type: ignore[arg-type]


@pytest.mark.long
def test_the_kernel_table() -> None:
    lab = ExpertsLab(2)
    for row in CASES:
        assert not run(row.build(lab), lab), row.id  # type: ignore[arg-type]

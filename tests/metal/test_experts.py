"""Products with the weights of experts, which the router has written: metal/include/matmul_experts.h."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernels.case import Case, case
from kernels.cases import EXPERT_CHECKS
from kernels.problem import struct
from kernels.runner import device_buffers, run
from kernels.weights import dtype_row, is_affine, is_planar
from metal.buffer_index import PARAMS, SCRATCH
from metal_emulator.harness import FIFO, SCHEDULES_DEFAULT, Library, Schedule

ROOT = Path(__file__).resolve().parents[2]
KERNELS = ROOT / "metal/kernels"
INCLUDE = (ROOT / "metal/include", ROOT / "cpp")
ALIGNED = 64
"""Bytes that the planes of a planar type begin at a multiple of."""
MOST_SORTED = 1024
"""Experts whose choices are sorted: kMostExperts of metal/include/expert_tiles.h. Clusters may be more."""
SCALE_TYPES = {"f32": 0, "f16": 1, "bf16": 30}


def affine(dtype: str) -> tuple[int, int, str] | None:
    """Bits, group and type of scales of "mlx_q4_g64_bf16"; None for another type."""
    if not is_affine(dtype):
        return None
    _, bits, group, scales = dtype.split("_")
    return int(bits[1:]), int(group[1:]), scales


@cache
def library(file: str, fast_math: bool = True) -> Library:
    return Library.compile((KERNELS / f"{file}.metal").read_text(), include=INCLUDE, fast_math=fast_math)


class Experts:
    """Weights as MetalDevice::prepare_experts lays them."""

    def __init__(self, dtype: str, planes: Sequence[bytes]) -> None:
        self.dtype = dtype
        padded = [plane + bytes(-len(plane) % ALIGNED) for plane in planes]
        self.data = np.frombuffer(b"".join(padded), np.uint8)


class ExpertsLab:
    """A lab as tests/kernels knows it.

    `split`: SIMD-groups that share the inputs of a row of weights; `wide`: rows of weights of a SIMD-group,
    of all matrices together; `tiles`: whether choices are sorted by expert, as those of many rows are;
    `fast_math`: whether the compiler may change the order of sums.
    """

    isa = "apple9"

    def __init__(
        self,
        split: int,
        schedule: Schedule = FIFO,
        *,
        tiles: bool = False,
        wide: int = 4,
        fast_math: bool = True,
    ) -> None:
        self.split, self.schedule = split, schedule
        self.tiles, self.wide, self.fast_math = tiles, wide, fast_math

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
        rows = self.wide // 2 if op == "experts_gate_up" else self.wide
        kind = affine(weights.dtype)
        name = weights.dtype if kind is None else f"mlx_q{kind[0]}"
        constants: dict[str | int, Any] = {0: int(p["k"]) % 4 == 0, 1: rows, 2: self.split}
        if kind is not None:
            constants |= {3: kind[1], 4: SCALE_TYPES[kind[2]]}
        per_group = 4 // self.split * rows
        columns, choices = -(-int(p["n"]) // per_group), int(p["rows"]) * int(p["chosen"])
        bound: dict[int, Any] = {PARAMS: params}
        for i, b in enumerate(buffers):
            bound[i] = b.data if isinstance(b, Experts) else np.zeros(256, np.uint8) if b is None else b

        def kernel(
            file: str, function: str, groups: tuple[int, int], threads: int, values: dict[str | int, Any]
        ) -> None:
            library(file, self.fast_math).run(
                function, bound, groups=groups, threads=threads, constants=values, schedule=self.schedule
            )

        if not self.tiles or p["experts"] > MOST_SORTED:
            across = choices if op == "experts_gate_up" else int(p["rows"])
            kernel(f"matmul/{name}", f"{op}_{name}", (columns, across), 128, constants)
            return
        results = choices * int(p["n"]) if op == "experts_down" else 0
        bound[SCRATCH] = np.full(4 + 3 * choices + results, 0xFFFFFFFF, np.uint32)
        sizes: dict[str | int, Any] = {0: 32 // self.wide, 1: columns}
        kernel("elementwise/experts", f"{op}_sort", (1, 1), 256, sizes)
        self.sorted = bound[SCRATCH].copy()
        grid = (int(self.sorted[0]), int(self.sorted[1]))
        kernel(f"matmul/{name}", f"{op}_tiles_{name}", grid, 128, constants)
        if op == "experts_down":
            kernel("elementwise/experts", f"{op}_sum", (-(-int(p["n"]) // 64), int(p["rows"])), 64, {})


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
@pytest.mark.in_turn
@pytest.mark.parametrize("tiles", [False, True])
def test_the_kernel_table(tiles: bool) -> None:
    lab = ExpertsLab(2, tiles=tiles)
    for row in CASES:
        assert not run(row.build(lab), lab), row.id  # type: ignore[arg-type]


def left_by(row: Case, lab: ExpertsLab) -> dict[str, Any]:
    """What a case's commands leave in its buffers."""
    problem = row.build(lab, checking=False)  # type: ignore[arg-type]
    buffers = device_buffers(problem, lab)  # type: ignore[arg-type]
    for c in problem.commands:
        lab.run(c.op, [None if b is None else buffers[b] for b in c.buffers], c.params)
    return buffers


def outputs(row: Case, lab: ExpertsLab) -> dict[str, bytes]:
    return {name: a.tobytes() for name, a in left_by(row, lab).items() if isinstance(a, np.ndarray)}


SORTED = [
    c
    for c in CASES
    if c.get("dtype") in SOME and c.get("rows") in (1, 7, 30, 60) and c.get("experts") <= 1024
]  # more are clusters, which are not sorted


#: Each is compiled once more for this alone: floats and codes run by default, the other types are long.
TILED = [
    pytest.param(dtype, split, wide, marks=() if dtype in ("f16", "q4_k") else pytest.mark.long)
    for dtype in SOME
    for split, wide in ((1, 4), (2, 4), (4, 4), (1, 8))
]


@pytest.mark.parametrize(("dtype", "split", "wide"), TILED)
def test_tiles_have_the_bits_of_single_rows(dtype: str, split: int, wide: int) -> None:
    """Sums as they are written; with fast math a compiler chooses an order for each kernel."""
    labs = [ExpertsLab(split, tiles=tiles, wide=wide, fast_math=False) for tiles in (False, True)]
    for row in [c for c in SORTED if c.get("dtype") == dtype]:
        one, tiled = (outputs(row, lab) for lab in labs)
        assert one == tiled, row.id


@pytest.mark.parametrize("schedule", SCHEDULES_DEFAULT, ids=str)
def test_tiles_in_every_schedule(schedule: Schedule) -> None:
    for row in [c for c in SORTED if c.get("dtype") == "q4_k"]:
        want = outputs(row, ExpertsLab(2, tiles=True))
        assert outputs(row, ExpertsLab(2, schedule, tiles=True)) == want, row.id


@pytest.mark.parametrize(("rows", "experts", "chosen"), [(1, 1, 1), (60, 4, 3), (40, 32, 4), (3, 512, 10)])
def test_a_grid_has_as_many_tiles_as_there_are(rows: int, experts: int, chosen: int) -> None:
    lab = ExpertsLab(1, tiles=True)
    row = case("experts_down", dtype="q4_0", rows=rows, experts=experts, chosen=chosen, n=43, k=64)
    ids, choices = left_by(row, lab)["ids"].reshape(-1), rows * chosen
    of_experts = np.bincount(ids, minlength=experts)
    across, tiles, depth = lab.sorted[:3].tolist()
    assert (across, tiles, depth) == (-(-43 // 16), int((-(-of_experts // 8)).sum()), 1)
    order = lab.sorted[4 : 4 + choices]
    assert sorted(order.tolist()) == list(range(choices))
    at = 0
    for first, what in lab.sorted[4 + choices :][: 2 * tiles].reshape(-1, 2).tolist():
        expert, count = what & 0xFFFF, what >> 16
        assert first == at and 1 <= count <= 8
        assert (ids[order[first : first + count]] == expert).all()
        at += count
    assert at == choices

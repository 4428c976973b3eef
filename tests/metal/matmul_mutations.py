"""Bugs put into the matmul kernels, each of which a test must see."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from metal import matmul_lab as lab
from metal_emulator.harness import SCHEDULES_DEFAULT, KernelError, Library, Schedule

BARRIER = "threadgroup_barrier(mem_flags::mem_threadgroup);"


@dataclass(frozen=True)
class Mutation:
    """Occurrence `which` of `old` behind `after` in a type's text becomes `new`; `run` is what then fails."""

    old: str
    new: str
    run: Callable[..., float]
    args: tuple[Any, ...]
    which: int = 0
    sanitizer: str = ""
    after: str = ""


SPLIT = (lab.matmul, ("q4_0", 1, 6, 544, "gemv"))  # more than one part takes at a time
GEMM = (lab.matmul, ("q4_0", 33, 70, 96, "gemm"))
FEW = (lab.matmul, ("q4_0", 9, 37, 96, "few"))
ROWS = (lab.matmul, ("q4_0", 9, 6, 96, "rows"))
ODD = (lab.matmul, ("f16", 17, 6, 37, "gemm"))
ODD_FEW = (lab.matmul, ("f16", 9, 6, 37, "few"))

IN_GEMM = "const ushort tile_r = thread_index / 2"
IN_FEW = "inline threadgroup const float* multiply_few"
IN_SPLIT = "threadgroup float* mine = partial + at.simd"

MUTATIONS: dict[str, Mutation] = {
    "gemm_first_loop_barrier": Mutation(BARRIER, "", *GEMM, after=IN_GEMM),
    "gemm_last_loop_barrier": Mutation(BARRIER, "", *GEMM, which=1, after=IN_GEMM),
    "gemm_output_barrier": Mutation(BARRIER, "", *GEMM, which=2, after=IN_GEMM),
    "gemm_barrier_without_memory": Mutation(
        BARRIER, "threadgroup_barrier(mem_flags::mem_none);", *GEMM, sanitizer="tsan", after=IN_GEMM
    ),
    "gemv_split_barrier": Mutation(BARRIER, "", *SPLIT, after=IN_SPLIT),
    "gemv_split_barrier_without_memory": Mutation(
        BARRIER, "threadgroup_barrier(mem_flags::mem_none);", *SPLIT, sanitizer="tsan", after=IN_SPLIT
    ),
    "gemv_split_misses_a_part": Mutation("s = 1; s < K_SPLIT", "s = 2; s < K_SPLIT", *SPLIT),
    "gemv_squares_of_one_part": Mutation(
        "squares += mine[kMaxRows];", "", lab.norm_qkv, ("q4_0", 5, 3, 544)
    ),
    "gemv_reads_past_the_weights": Mutation(
        "i % ROWS_PER_SIMD, n - 1)", "i % ROWS_PER_SIMD, n)", *SPLIT, sanitizer="asan"
    ),
    "gemv_writes_past_the_output": Mutation("&& base_row() + lane < n", "", *SPLIT),
    "norm_of_the_wrong_bias": Mutation(
        "bias + first, n", "bias, n", lab.norm_qkv, ("q4_0", 5, 3, 96), which=1
    ),
    "rows_reads_past_the_input": Mutation(
        "if (t >= tokens) continue;", "if (t > tokens) continue;", *ROWS, sanitizer="asan"
    ),
    "rows_writes_past_the_output": Mutation("if (row < p.n && token < p.rows)", "if (row < p.n)", *ROWS),
    "few_first_loop_barrier": Mutation(BARRIER, "", *FEW, after=IN_FEW),
    "few_last_loop_barrier": Mutation(BARRIER, "", *FEW, which=1, after=IN_FEW),
    "few_output_barrier": Mutation("simdgroup_barrier(mem_flags::mem_threadgroup);", "", *FEW, after=IN_FEW),
    "few_barrier_without_memory": Mutation(
        BARRIER, "threadgroup_barrier(mem_flags::mem_none);", *FEW, sanitizer="tsan", after=IN_FEW
    ),
    "few_reads_past_the_input": Mutation(
        "if (token < tokens) v", "if (token <= tokens) v", *FEW, sanitizer="asan", after=IN_FEW
    ),
    "few_writes_past_the_output": Mutation(
        "if (token < p.rows && row < p.n)", "if (token < p.rows)", *FEW, after="store_few(threadgroup"
    ),
    "few_drops_the_second_matrix": Mutation("i * 8 >= tokens", "i * 8 >= 8", *FEW, after=IN_FEW),
    "few_ignores_the_end_of_k": Mutation("k > e ? k - e : 0", "4", *ODD_FEW, after=IN_FEW),
    "rows_mixes_tokens": Mutation("t % 8 * kRowsOfW", "t % 4 * kRowsOfW", *ROWS),
    "gemm_reads_past_the_input": Mutation(
        "first_token + token < tokens", "first_token + token <= tokens", *GEMM, sanitizer="asan"
    ),
    "gemm_writes_past_the_output": Mutation("if (token < p.rows && row < p.n)", "if (token < p.rows)", *GEMM),
    "gemm_drops_tiles": Mutation("min(kStrip, groups.y - first)", "kStrip", *GEMM),
    "gemm_ignores_the_end_of_k": Mutation("left > e ? left - e : 0", "4", *ODD),
    "gemm_depth_off_by_one": Mutation("k0 < k; k0", "k0 + kTileDepth < k; k0", *GEMM),
}  # fmt: skip


@cache
def _kernels(dtype: str, name: str = "") -> Library:
    """A type's kernels, with a mutation."""
    text = lab.text(dtype)
    if not name:
        return Library.compile(text, fast_math=True)
    m = MUTATIONS[name]
    assert not m.after or text.count(m.after) == 1, f"{name}: the place is gone, or there are several"
    before, after, behind = text.partition(m.after) if m.after else ("", "", text)
    parts = behind.split(m.old)
    assert len(parts) > m.which + 1, f"{name}: the text to replace is gone"
    text = before + after + m.old.join(parts[: m.which + 1]) + m.new + m.old.join(parts[m.which + 1 :])
    return Library.compile(text, sanitizer=m.sanitizer, fast_math=not m.sanitizer)


def _run(name: str, schedule: Schedule, mutate: bool = True) -> float:
    m = MUTATIONS[name]
    kernels = _kernels(m.args[0], name if mutate else "")
    options: dict[str, Any] = {"schedule": schedule, "kernels": kernels}
    if m.run is lab.norm_qkv:
        options["bias"] = True
    if "gemv" in name:
        options["split"] = 2
    return m.run(*m.args, **options)


def caught(name: str, mutate: bool = True) -> bool:
    """Whether a schedule shows the bug, as an error of the emulator or a wrong result."""
    for schedule in SCHEDULES_DEFAULT:
        try:
            if _run(name, schedule, mutate) > lab.F16_BOUND:
                return True
        except KernelError:
            return True
    return False


def run_mutation(name: str) -> None:
    """For a child process under the mutation's sanitizer."""
    _run(name, Schedule("priority", 1, workers=2))

"""Runs the sampling ops' Metal kernels by the emulator's harness, without the device.

A lab as tests/kernels knows it, but with schedules and sanitizers. Functions here also run in child
processes, so their arguments are plain JSON.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kernels.case import case
from kernels.problem import struct
from kernels.runner import run
from metal.buffer_index import PARAMS, SCRATCH
from metal_emulator.harness import FIFO, Library, Schedule

ROOT = Path(__file__).resolve().parents[2]
KERNELS = ROOT / "metal" / "kernels" / "sampling"
INCLUDE = (ROOT / "metal" / "include", ROOT / "cpp")
POISON = 0xA5  # scratch memory holds anything

SLICE, PREPARE = 2048, 1024
LIST, SPREAD, LOGPROBS = 16, 32 * 8 + 8 + 32 * 4 + 8 + 16, 8 + 20 * 8


def _slices(vocab: int) -> int:
    return -(-vocab // SLICE)


@dataclass(frozen=True)
class Pass:
    """As metal/choose/sampling.cpp has it."""

    file: str
    function: str
    groups: int | tuple[int, int]
    threads: int = 256
    for_sampler: bool | None = None


def passes(op: str, vocab: int, rows: int) -> tuple[list[Pass], int]:
    """An op's dispatches and its bytes of scratch memory."""
    n = _slices(vocab)
    each = (n, rows)  # a threadgroup for each slice of each row
    if op == "argmax":
        return [
            Pass("argmax", "best_slices_f32", each, for_sampler=False), Pass("argmax", "argmax_f32", rows)
        ], 8 * n * rows  # fmt: skip
    if op == "sample_prepare":
        return [Pass("prepare", "sample_prepare_f32", (-(-vocab // PREPARE), rows))], 0
    if op == "sample_select":
        return [
            Pass("argmax", "best_slices_f32", each, for_sampler=True),
            Pass("select", "sample_spread_f32", each),
            Pass("select", "sample_gather_f32", each),
            Pass("select", "sample_select_f32", rows, 512),
        ], (LIST + 8 * n + SPREAD * n + 8 * vocab) * rows  # fmt: skip
    if op == "logprobs":
        return [
            Pass("logprobs", "logprob_slices_f32", each), Pass("logprobs", "logprobs_f32", rows)
        ], LOGPROBS * n * rows  # fmt: skip
    if op == "speech_rules":
        return [Pass("rules", f"rules_{name}_f32", each) for name in ("slices", "words")], 12 * n * rows
    if op in ("accept", "advance"):
        return [Pass("accept", op, 1, 64)], 0
    raise ValueError(op)


DUMMY = np.zeros(16, np.uint8)


class SamplingLab:
    """`mutation`: (file, text, replacement), to see that a test sees it."""

    isa = "apple9"

    def __init__(
        self, schedule: Schedule = FIFO, sanitizer: str = "", mutation: tuple[str, str, str] | None = None
    ) -> None:
        self.schedule = schedule
        self.sanitizer = sanitizer
        self.mutation = mutation
        self.libraries: dict[str, Library] = {}

    def _library(self, name: str) -> Library:
        if name in self.libraries:
            return self.libraries[name]
        source: str | Path = KERNELS / f"{name}.metal"
        include: tuple[Path, ...] = INCLUDE
        if self.mutation and self.mutation[0] == name:
            text = Path(source).read_text()
            if self.mutation[1] not in text:  # no AssertionError, which tests expect of a wrong result
                raise LookupError(f"the text to replace is gone: {self.mutation[1]}")
            source = text.replace(self.mutation[1], self.mutation[2], 1)
        self.libraries[name] = Library.compile(
            source, include=include, fast_math=True, sanitizer=self.sanitizer
        )
        return self.libraries[name]

    def matmul_input(self, dtype: str) -> str:
        """Nothing here has a matmul."""
        return "f16"

    def run(self, op: str, buffers: Sequence[Any], params: bytes, *, kv_dtype: str = "f16") -> None:
        """One command: its passes one after the other."""
        values = np.frombuffer(params, struct(op))[0]
        vocab = int(values["vocab"]) if "vocab" in (values.dtype.names or ()) else 1
        todo, scratch_bytes = passes(op, vocab, int(values["rows"]))
        scratch = np.full(scratch_bytes, POISON, np.uint8)
        for p in todo:
            # As the device does, something stands for a buffer that a command does not have.
            bound: dict[int, Any] = {i: DUMMY if b is None else b for i, b in enumerate(buffers)}
            bound |= {PARAMS: params, SCRATCH: scratch}
            library = self._library(p.file)
            library.run(
                p.function,
                {i: b for i, b in bound.items() if getattr(b, "size", 1)},
                groups=p.groups,
                threads=p.threads,
                constants={} if p.for_sampler is None else {"FOR_SAMPLER": p.for_sampler},
                schedule=self.schedule,
            )


def run_cases(
    rows: Sequence[tuple[str, dict[str, Any]]],
    schedule: str,
    seed: int,
    sanitizer: str,
    mutation: Sequence[str] | None = None,
) -> None:
    """Cases of tests/kernels, (builder, arguments), in this process."""
    text = None if mutation is None else (mutation[0], mutation[1], mutation[2])
    lab = SamplingLab(Schedule(schedule, seed, workers=2), sanitizer, text)
    for builder, args in rows:
        found = run(case(builder, **args).build(lab), lab)  # type: ignore[arg-type]
        assert not found, (builder, args, found)
    print("clean")

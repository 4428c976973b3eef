"""Runs a Problem on a Lab and compares what it left with what it should have."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from akunu import _core

from . import reference as ref
from .problem import Activation, Array, Buffer, Cache, Check, Partials, Problem, Weight, poisoned

F16_MAX = 65504.0


def nmse(actual: npt.NDArray[Any], expected: npt.NDArray[np.float64]) -> float:
    """Σ(a - e)² / Σe²; infinite for a NaN, and for an infinity that differs."""
    finite = np.isfinite(expected)
    if not np.array_equal(actual[~finite], expected[~finite]):
        return float("inf")
    a, e = actual[finite].astype(np.float64), expected[finite]
    scale = float((e * e).sum())
    error = float(((a - e) ** 2).sum()) / (scale or 1.0)
    return error if np.isfinite(error) else float("inf")


def opaque_bytes(lab: _core.Lab, buffer: Activation | Cache | Partials) -> int:
    """Bytes that the device needs for it."""
    if isinstance(buffer, Activation):
        return lab.activation_bytes(buffer.format, buffer.rows, buffer.dim)
    if isinstance(buffer, Cache):
        return buffer.nbytes
    return lab.attention_partial_bytes(buffer.heads, buffer.head_dim, buffer.context)


def device_buffers(problem: Problem, lab: _core.Lab, copies: int = 1) -> dict[str, Any]:
    """What `Lab.run` takes for each buffer."""

    def make(buffer: Buffer) -> Any:
        if isinstance(buffer, Weight):
            shape = (buffer.rows, buffer.cols)
            return lab.weight(
                buffer.dtype,
                buffer.data,
                *shape,
                prepare=buffer.prepared,
                whole=buffer.whole,
                experts=buffer.experts,
                copies=copies,
            )
        return buffer.data.copy() if isinstance(buffer, Array) else poisoned(opaque_bytes(lab, buffer))

    return {name: make(buffer) for name, buffer in problem.buffers.items()}


def _check_q8(raw: npt.NDArray[np.uint8], buffer: Activation, check: Check) -> list[str]:
    """The planes agree with one another, and each value is the nearest that its block's scale allows."""
    planes = _core.lab_q8_planes(raw, buffer.rows, buffer.dim)
    q, d = planes["q"], planes["d"]
    found = []
    for name, run in (("s", 32), ("s16", 16)):
        sums = q.reshape(buffer.rows, -1, run).sum(axis=2, dtype=np.int64)
        if not np.array_equal(planes[name], sums):
            found.append(f"{name} is not the sum of {run} q")
    if check.nmse is None:
        want_q, want_d = ref.quantize_q8(check.expected.astype(np.float32))
        if not (np.array_equal(q, want_q) and np.array_equal(d, want_d)):
            found.append(
                f"{(q != want_q).sum()} of q and {(d != want_d).sum()} of d differ from the definition"
            )
        return found
    blocks = np.abs(check.expected.reshape(buffer.rows, -1, 32))
    top = blocks.max(axis=2)
    slack = 4 * np.sqrt(check.nmse)  # relative, for the value that was rounded
    if not np.allclose(d, top / 127, rtol=slack, atol=1e-35):
        found.append("d is not max|x| / 127")
    values = q.astype(np.float64) * np.repeat(d, 32, axis=1)
    limit = np.repeat(0.5 * d + slack * top, 32, axis=1)
    wrong = ~(np.abs(values - check.expected) <= limit)
    if wrong.any():
        found.append(f"{wrong.sum()} values are not the nearest to x / d")
    return found


def failures(problem: Problem, buffers: dict[str, Any], check: Check) -> list[str]:
    """What is wrong with one buffer; empty when nothing is."""
    buffer, got = problem.buffers[check.buffer], buffers[check.buffer]
    if isinstance(buffer, Activation) and buffer.format == "q8":
        return _check_q8(got, buffer, check)
    raw = np.ascontiguousarray(got).reshape(-1).view(np.uint8)
    if check.nmse is None:
        expected = check.expected
        if isinstance(buffer, Activation):
            if buffer.format == "f16":  # stores saturate
                expected = expected.clip(-F16_MAX, F16_MAX).astype(np.float16)
            else:
                expected = expected.astype(np.float32)
        part = raw[check.offset : check.offset + expected.nbytes]
        wrong = part != np.ascontiguousarray(expected).reshape(-1).view(np.uint8)
        return [f"{wrong.sum()} of {wrong.size} bytes differ"] if wrong.any() else []
    dtype = np.dtype(np.float16 if isinstance(buffer, Activation) and buffer.format == "f16" else np.float32)
    part = raw[check.offset : check.offset + check.expected.size * dtype.itemsize].view(dtype)
    limit = check.nmse + (1e-6 if dtype == np.float16 else 0)
    error = nmse(part, check.expected.reshape(-1).astype(np.float64))
    return [] if error <= limit else [f"NMSE {error:.3g}, at most {limit:.3g}"]


def run(problem: Problem, lab: _core.Lab) -> list[str]:
    """Runs it; returns what is wrong. Raises when a command wrote outside its buffers."""
    buffers = device_buffers(problem, lab)
    for c in problem.commands:
        lab.run(c.op, [None if b is None else buffers[b] for b in c.buffers], c.params, kv_dtype=c.kv_dtype)
    found = [f"{c.buffer}: {text}" for c in problem.checks for text in failures(problem, buffers, c)]
    for name, buffer in problem.buffers.items():
        if isinstance(buffer, Array) and not buffer.out and buffer.data.tobytes() != buffers[name].tobytes():
            found.append(f"{name}: an input was changed")
    return found

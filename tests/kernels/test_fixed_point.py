"""Attention that may multiply 16-bit integers: values far apart, the greatest sums, and what is no number."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from . import reference as ref
from .case import case
from .devices import Target, cpu_targets, lab
from .problem import Array, Problem
from .runner import device_buffers, nmse

F32 = npt.NDArray[np.float32]
ROWS, HEADS, HEAD_DIM = 300, 2, 64
SHAPE = (ROWS, HEADS, HEAD_DIM)

pytestmark = pytest.mark.parametrize("target", cpu_targets(), ids=lambda t: t.id)


def attend(target: Target, change: Callable[[F32, F32, F32], None]) -> tuple[F32, F32, F32, F32]:
    """q, k and v of normal numbers, as `change` leaves them, and what comes out."""
    device = lab(target)
    problem = case(
        "attention",
        rows=ROWS,
        position=0,
        shape=(HEADS, HEADS, HEAD_DIM),
        kv="f32",
        both=True,
        formats=("q8",),
    ).build(device, checking=False)
    rng = np.random.default_rng(1)
    q, k, v = (rng.standard_normal(SHAPE).astype(np.float32) for _ in range(3))
    change(q, k, v)
    for name, values in (("q", q), ("all_k", k), ("all_v", v)):
        buffer = problem.buffers[name]
        assert isinstance(buffer, Array)
        problem.buffers[name] = dataclasses.replace(buffer, data=values)
    return q, k, v, _run(problem, target)


def _run(problem: Problem, target: Target) -> F32:
    device = lab(target)
    buffers = device_buffers(problem, device)
    for c in problem.commands:
        given = [None if b is None else buffers[b] for b in c.buffers]
        device.run(c.op, given, c.params, kv_dtype=c.kv_dtype)
    out: F32 = np.frombuffer(buffers["out_f32"].tobytes(), np.float32).reshape(SHAPE)
    return out


def check(target: Target, change: Callable[[F32, F32, F32], None], bound: float) -> None:
    q, k, v, out = attend(target, change)
    q64, k64, v64 = (a.astype(np.float64) for a in (q, k, v))
    want = ref.attention(q64, k64, v64, 0, HEAD_DIM**-0.5, 0.0, 0, True).reshape(SHAPE)
    error = nmse(out, want)
    assert error <= bound, f"NMSE {error:.3g}"


def test_sums_at_their_limit_do_not_wrap(target: Target) -> None:
    """Rows that are parallel have the greatest sums that their norms allow, of either sign."""

    def change(q: F32, k: F32, v: F32) -> None:
        q[:], k[:], v[:] = 3, 5, 7
        q[::2] *= -1
        k[1::3] *= -0.001
        v[:, :, ::2] *= -1

    check(target, change, 1e-7)


def test_one_element_of_a_row_is_a_thousand_times_the_others(target: Target) -> None:
    """The others lose ten of their bits; those of int8 in blocks of 32 would be nothing."""

    def query(q: F32, k: F32, _v: F32) -> None:
        q[:, :, 7] *= 1000
        k[:, :, 7] = 0

    def key(_q: F32, k: F32, _v: F32) -> None:
        k[::5, :, 9] *= 1000

    def value(_q: F32, _k: F32, v: F32) -> None:
        v[::7, :, 3] *= 1000

    check(target, query, 2e-4)
    check(target, key, 1e-5)
    check(target, value, 2e-7)


def test_rows_of_zeros_and_of_tiny_and_large_numbers(target: Target) -> None:
    def change(q: F32, k: F32, v: F32) -> None:
        q[:50], k[50:100], v[:, :, :8] = 0, 0, 0
        v[:, :, 8:16] *= 1e-20
        q[100:150] *= 1e-12
        q[150:200], k[:] = q[150:200] * 1e9, k * 1e-9
        v[:, :, 16:24] *= 1e8

    check(target, change, 2e-7)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_does_not_become_one(target: Target, bad: float) -> None:
    """It stays in its row of queries, its head, or its column of values."""

    def query(q: F32, _k: F32, _v: F32) -> None:
        q[17, 1, 5] = bad

    def key(_q: F32, k: F32, _v: F32) -> None:
        k[290, 0, 5] = bad

    def value(_q: F32, _k: F32, v: F32) -> None:
        v[3, 1, 40] = bad

    lost = np.zeros(SHAPE, bool)
    lost[17, 1] = True
    out = attend(target, query)[-1]
    assert np.isfinite(out[~lost]).all() and not np.isfinite(out[lost]).any()
    out = attend(target, key)[-1]
    assert np.isfinite(out[:, 1]).all()
    if np.isnan(bad):  # an infinite score may be that of a key that is not seen
        assert np.isnan(out[:, 0]).all()
    out = attend(target, value)[-1]
    lost[:], lost[:, 1, 40] = False, True
    assert np.isfinite(out[~lost]).all() and not np.isfinite(out[lost]).any()

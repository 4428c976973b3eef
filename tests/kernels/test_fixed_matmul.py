"""Matmuls that multiply 16-bit integers: the greatest sums, numbers far apart, and what is no number."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from .builders.common import FIXED
from .devices import TILES, Target, cpu_targets, lab
from .problem import pack
from .runner import nmse

F32 = npt.NDArray[np.float32]
ROWS, N = 40, 37


def block(target: Target) -> int:
    """Activations that share a scale (cpp/cpu/digits.h, cpp/cpu/fixed.h)."""
    return 384 if target.isa == TILES else 128


def columns(target: Target) -> int:
    """Two blocks, and a part of one that is no whole tile."""
    return block(target) * 45 // 16


pytestmark = pytest.mark.parametrize(
    "target", [t for t in cpu_targets() if t.isa in FIXED], ids=lambda t: t.id
)


def multiply(target: Target, x: F32, w: F32) -> F32:
    """x·Wᵀ"""
    device = lab(target)
    (rows, k), n = x.shape, len(w)
    weight = device.weight("f32", w, n, k, whole=True)
    assert weight.whole
    out = np.full((rows, n), np.nan, np.float32)
    shape = dict(rows=rows, n=n, k=k, y_stride=n)
    device.run(
        "matmul",
        [x, weight, out, None],
        pack("matmul", **shape, accumulate=0, has_bias=0, softcap=0, activation=0, format=1),
    )
    return out


def factors(k: int) -> tuple[F32, F32]:
    rng = np.random.default_rng(1)
    return (rng.standard_normal((ROWS, k)).astype(np.float32), rng.standard_normal((N, k)).astype(np.float32))


def product(x: F32, w: F32) -> npt.NDArray[np.float64]:
    return x.astype(np.float64) @ w.astype(np.float64).T


@pytest.mark.parametrize("k", [1, 2, 31, 127, 128, 129, 255, 384, 385, 1536])
def test_sums_at_their_limit_do_not_wrap(target: Target, k: int) -> None:
    """Rows that are parallel have the greatest sums that their norms allow, of either sign."""
    x, w = np.full((ROWS, k), 3, np.float32), np.full((N, k), 5, np.float32)
    x[::2] *= -1
    w[1::3] *= -0.001
    assert nmse(multiply(target, x, w), product(x, w)) < 1e-7
    x[:, 1:] = w[:, 1:] = 0
    assert nmse(multiply(target, x, w), product(x, w)) < 1e-8
    x[:] = w[0] = factors(k)[1][0]
    assert nmse(multiply(target, x, w), product(x, w)) < 1e-7


def test_one_element_of_a_row_is_a_thousand_times_the_others(target: Target) -> None:
    """What it does to the others: they are rounded to a thirtieth, of activations in its block alone."""
    x, w = factors(columns(target))
    want = product(x, w)
    x[:, 7] = 1000
    w[:, 7] = 0
    assert nmse(multiply(target, x, w), product(x, w)) < 5e-5
    assert nmse(multiply(target, x, w), want) > 1e-8
    x, w = factors(columns(target))
    w[:, 200] = 1000
    x[:, 200] = 0
    assert nmse(multiply(target, x, w), product(x, w)) < 1.5e-4
    x, w = factors(columns(target))
    x[:, 7] = 1000
    assert nmse(multiply(target, x, w), product(x, w)) < 5e-8


def test_rows_of_zeros_and_of_tiny_and_huge_numbers(target: Target) -> None:
    x, w = factors(columns(target))
    x[:3] = w[:2] = 0
    for row, size in enumerate((1e-30, 1e-22, 1e-15, 1e15, 1e20, 1e30), 5):
        x[row] *= np.float32(size)
    for row, size in enumerate((1e-6, 1e6), 4):
        w[row] *= np.float32(size)
    x[30, : block(target)] = 0
    x[31, block(target) : 2 * block(target)] *= np.float32(1e-25)
    found, want = multiply(target, x, w), product(x, w)
    assert (found[:3] == 0).all() and (found[:, :2] == 0).all()
    assert np.isfinite(found).all()
    for i in range(3, ROWS):
        assert nmse(found[i, 6:], want[i, 6:]) < 1e-7
        for j in (4, 5):
            assert abs(found[i, j] - want[i, j]) < 1e-3 * np.linalg.norm(
                x[i].astype(np.float64)
            ) * np.linalg.norm(w[j])
    for i in range(2, N):
        assert nmse(found[11:, i], want[11:, i]) < 1e-7


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_does_not_become_one(target: Target, bad: float) -> None:
    """It stays in its row, or its column."""
    x, w = factors(columns(target))
    clean = multiply(target, x, w)
    x[17, 300] = w[5, 2] = bad
    found = multiply(target, x, w)
    lost = np.zeros(found.shape, bool)
    lost[17], lost[:, 5] = True, True
    assert not np.isfinite(found[lost]).any()
    np.testing.assert_array_equal(found[~lost], clean[~lost])

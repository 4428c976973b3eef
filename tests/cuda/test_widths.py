"""Rows of weights that end within a unit of a tile, on the emulated GPU: zeros follow."""

from __future__ import annotations

import pytest

from order import Draw

from .kernel_cases import Run, check
from .test_decode import equal

#: Inputs: more than a unit and no whole units; fewer and more steps than a block has warps, and parts of 64.
WIDTHS = (160, 288, 704, 1856)


TURNS = [pytest.param(dtype, marks=pytest.mark.in_turn) for dtype in ("q4_1", "q5_0", "q5_1", "iq4_nl")]


@pytest.mark.parametrize("dtype", ["q4_0", pytest.param("q8_0", marks=pytest.mark.long), "mxfp4", *TURNS])
def test_matmuls(run: Run, draw: Draw, dtype: str) -> None:
    rows = (1, 2, 7, 16, 17, 33, 64, 65, 130)
    cases = []
    for k in WIDTHS:
        cases += [f"'matmul', dtype='{dtype}', rows={m}, n={33 if m < 100 else 70}, k={k}" for m in rows]
        cases += [
            f"'gate_up', dtype='{dtype}', rows={m}, n=40, k={k}, activation='silu', formats=('f32', 'f16')"
            for m in (1, 5, 70)
        ]
        cases += [
            f"'norm_gate_up', dtype='{dtype}', n=40, k={k}, activation='gelu', formats=('f16',)",
            f"'norm_qkv', dtype='{dtype}', n_q=48, n_kv=16, k={k}, bias=True",
            f"'embed', dtype='{dtype}', rows=3, dim={k}, vocab=37, prepared=False",
        ]
    check(run, *draw(cases), blocks=3)


def test_tokens_of_a_row_are_the_cpus(run: Run, draw: Draw) -> None:
    """Commands take the words of the one before: those behind a row's end are the last ones again."""
    cases = [
        {"keys": 9, "dim": dim, "head_dim": 32, "kv": "f16", "weights": dtype}
        for dim in (160, 352)  # whose tokens are not so near to others that int8 inputs choose
        for dtype in ("q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "iq4_nl", "mxfp4")
    ]
    done = run(equal(*draw(cases)))
    assert done.stdout == "equal\n", done.stderr or done.stdout

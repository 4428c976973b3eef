"""Prompts: tiles that warps of their own load ahead, and attention of runs of rows, on the emulated GPU.

The emulator has two blocks. Copies come no earlier than they are waited for; until then their places
hold NaNs.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from order import Draw

from .kernel_cases import Run, check


def test_a_tile_is_the_product_of_what_was_brought(run: Run, draw: Draw) -> None:
    cases = [
        # 128 rows by 128 columns, twice for each block; 128 by 64; 64 by 32, several for each block.
        "'matmul', dtype='q4_0', rows=129, n=256, k=128, accumulate=True",
        "'matmul', dtype='f16', rows=100, n=128, k=192",
        # 256 by 128, of which the last rows are missing; rows that a warp of a small tile has none of.
        "'matmul', dtype='f16', rows=300, n=250, k=256, accumulate=True",
        "'gate_up', dtype='q4_0', rows=257, n=130, k=128, activation='silu', formats=('q8',)",
        "'matmul', dtype='q4_0', rows=270, n=256, k=128, bias=True, cap=2.0",
        # F32 in two parts: tiles of 32 rows, and of 128; rows that no load of 16 bytes takes.
        "'matmul', dtype='f32', rows=40, n=43, k=192, accumulate=True",
        "'matmul', dtype='f32', rows=140, n=130, k=97, bias=True, cap=3.0",
        "'gate_up', dtype='f32', rows=129, n=43, k=130, activation='silu', formats=('f32', 'q8')",
        # Weights that are copied from tiles as they lie, columns that end within one, matrices in turn.
        "'matmul', dtype='f16', rows=129, n=250, k=256, accumulate=True",
        "'matmul', dtype='f16', rows=20, n=41, k=384, bias=True, cap=3.0",
        "'gate_up', dtype='f16', rows=70, n=75, k=128, activation='silu', formats=('f32', 'q8')",
        "'matmul', dtype='q6_k', rows=17, n=90, k=256, bias=True, accumulate=True, cap=1.5",
        # Rows of inputs that no copy of 16 bytes takes, and columns that end within a tile.
        "'matmul', dtype='f16', rows=70, n=75, k=100, bias=True",
        "'gate_up', dtype='q4_0', rows=100, n=200, k=128, activation='silu', formats=('q8',)",
        "'gate_up', dtype='q4_0', rows=40, n=43, k=64, activation='gelu', formats=('f32', 'q8')",
    ]
    check(run, *draw(cases))


@pytest.mark.parametrize(
    ("blocks", "cases"),
    [
        # A tile of 256 by 128 in two parts; three tiles for two blocks: the last one in parts.
        (
            2,
            [
                "'matmul', dtype='f16', rows=250, n=128, k=2816, accumulate=True",
                "'matmul', dtype='f16', rows=250, n=384, k=1408, bias=True, cap=3.0",
            ],
        ),
        # One of 128 by 64 in four that are not equally long.
        (
            8,
            [
                "'matmul', dtype='q4_0', rows=20, n=64, k=1632, bias=True, cap=2.0",
                "'gate_up', dtype='f16', rows=70, n=24, k=1280, activation='silu', formats=('q8',)",
            ],
        ),
        (4, ["'gate_up', dtype='q4_0', rows=20, n=72, k=1280, activation='silu', formats=('q8',)"]),
    ],
    ids=["2", "8", "4"],
)
def test_the_last_block_of_a_tile_adds_its_parts(run: Run, blocks: int, cases: list[str]) -> None:
    check(run, *cases, blocks=blocks)


@pytest.mark.long
@pytest.mark.in_turn("small")
def test_parts_are_the_same_without_products_of_warpgroups(run_small: Run) -> None:
    check(run_small, "'matmul', dtype='q4_0', rows=129, n=64, k=1280, accumulate=True", blocks=4)


@pytest.mark.long
@pytest.mark.in_turn("small")
def test_a_tile_is_the_same_without_products_of_warpgroups(run_small: Run) -> None:
    check(
        run_small,
        "'matmul', dtype='q4_0', rows=129, n=256, k=128, accumulate=True",
        "'matmul', dtype='f16', rows=140, n=140, k=256, bias=True",
        "'matmul', dtype='f16', rows=70, n=75, k=100, bias=True",
        "'gate_up', dtype='f16', rows=40, n=43, k=128, activation='silu', formats=('q8',)",
    )


def test_a_run_of_rows_sees_what_its_rows_see(run: Run, draw: Draw) -> None:
    cases = [
        # Long runs that begin and end within tiles, beside single rows.
        "rows=40, position=30, shape=(4, 2, 40), kv='f16', others=((1, 9), (17, 0), (3, 50))",
        "rows=33, position=40, shape=(3, 3, 72), kv='f16', window=20, cap=5.0",
        "rows=33, position=0, shape=(2, 1, 48), kv='f16', both=True, others=((20, 0),), window=9",
        "rows=20, position=70, shape=(16, 1, 64), kv='q8_0'",
        "rows=18, position=50, shape=(2, 1, 96), kv='q8_0'",
        "rows=33, position=0, shape=(3, 1, 56), kv='f32', both=True, others=((20, 0), (3, 0)), window=9",
        "rows=19, position=90, shape=(2, 2, 128), kv='f32', cap=5.0",
    ]
    check(run, *(f"'attention', {case}" for case in draw(cases)))


@pytest.mark.long
def test_more_rows_than_runs_are_found_of_at_once(run: Run) -> None:
    many = "both=True, others=((36, 0),) * 200"
    check(run, f"'attention', rows=36, position=0, shape=(1, 1, 8), kv='f32', {many}")


@pytest.mark.long
@pytest.mark.in_turn
def test_a_model_is_the_same_in_parts_and_row_by_row(passes: Callable[..., None]) -> None:
    passes("models/test_engine.py", "phases_agree_to_the_bit[gemma3-q8_0]")

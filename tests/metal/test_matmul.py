"""The matmul kernels against float64 on the dequantised weights, in order and under adversarial schedules."""

from __future__ import annotations

import numpy as np
import pytest

from kernels.cases import MIXED_QKV
from kernels.weights import dtype_row, has_levels, is_float, is_planar, recoded, weight_dtypes
from metal import matmul_lab as lab
from metal import mlx_lab as mlx
from metal.matmul_mutations import MUTATIONS, caught
from metal_emulator.harness import FIFO, SCHEDULES_DEFAULT, Library, Schedule, in_sanitizer, lint

#: mlx_lab.py has the others; those with codebooks have no kernels here.
DTYPES = [d for d in weight_dtypes() if recoded(d) == d and not is_planar(d) and not has_levels(d)]
FEW = ["f16", "q4_0", "q6_k"]  # one of each family, where all would take long
LAB = lab.__file__


def block(dtype: str) -> int:
    return 5 if is_float(dtype) else int(dtype_row(dtype)["block_elems"])


def check(error: float, limit: float = lab.F32_BOUND) -> None:
    assert error <= limit, f"NMSE {error:.3g}, at most {limit:.3g}"


@pytest.mark.parametrize("dtype", DTYPES)
def test_one_row(dtype: str) -> None:
    few = 7 * block(dtype)
    check(lab.matmul(dtype, 1, 1, block(dtype), "gemv"))
    check(lab.matmul(dtype, 1, 37, few, "gemv", bias=True, accumulate=True, cap=1.5))
    check(lab.matmul(dtype, 1, 37, few, "gemv", rows_per_simd=8, simds=4))
    check(lab.matmul(dtype, 1, 6, 2304, "gemv", split=4, simds=4))
    check(lab.gate_up(dtype, 1, 37, few, "gemv", activation="gelu", formats=1))
    check(lab.gate_up(dtype, 1, 5, 2304, "gemv", split=2, formats=5))
    check(lab.embed(dtype, 3, few, 7))


@pytest.mark.parametrize("dtype", DTYPES)
def test_fused_norm(dtype: str) -> None:
    few = 7 * block(dtype)
    check(lab.norm_qkv(dtype, 37, 9, few, bias=True))
    check(lab.norm_qkv(dtype, 6, 1, 2304, split=4, simds=8))
    check(lab.norm_gate_up(dtype, 37, few))
    check(lab.norm_gate_up(dtype, 5, 2304, split=2, activation="gelu", formats=1))


@pytest.mark.parametrize(("dtype", "v"), MIXED_QKV, ids="-".join)
def test_fused_norm_where_v_has_another_type(dtype: str, v: str) -> None:
    few = 3 * max(block(dtype), block(v))
    check(lab.norm_qkv(dtype, 37, 9, few, v_dtype=v, bias=True))
    for schedule in SCHEDULES_DEFAULT:
        check(lab.norm_qkv(dtype, 6, 5, 2304, v_dtype=v, split=4, simds=8, schedule=schedule))


def test_every_pair_of_types_has_a_kernel() -> None:
    """The header's list, of which the host's traits are made too, and the kernels' text."""
    assert lab.functions("norm_qkv_mixed") == sorted(f"norm_qkv_{dtype}_{v}" for dtype, v in MIXED_QKV)


@pytest.mark.parametrize("dtype", DTYPES)
def test_several_rows(dtype: str) -> None:
    few = 3 * block(dtype)
    check(lab.matmul(dtype, 2, 1, block(dtype), "rows"))
    check(lab.matmul(dtype, 9, 37, few, "rows", bias=True, accumulate=True, cap=1.5))
    check(lab.matmul(dtype, 16, 6, 2304, "rows"))
    check(lab.gate_up(dtype, 2, 1, block(dtype), "rows", activation="gelu"))
    check(lab.gate_up(dtype, 16, 37, few, "rows", formats=5))
    check(lab.matmul(dtype, 5, 1, block(dtype), "few"))
    check(lab.matmul(dtype, 9, 37, few, "few", bias=True, accumulate=True, cap=1.5))
    check(lab.matmul(dtype, 16, 6, 768, "few"))
    check(lab.gate_up(dtype, 8, 1, block(dtype), "few", activation="gelu"))
    check(lab.gate_up(dtype, 16, 37, few, "few", formats=5))


@pytest.mark.parametrize("dtype", DTYPES)
def test_many_rows(dtype: str) -> None:
    few, limit = 3 * block(dtype), lab.bound(dtype, "gemm")
    check(lab.matmul(dtype, 17, 1, block(dtype), "gemm"), limit)
    check(lab.matmul(dtype, 33, 70, few, "gemm", bias=True, accumulate=True), limit)
    check(lab.matmul(dtype, 17, 70, 512, "gemm_small", cap=1.5), limit)
    check(lab.gate_up(dtype, 33, 37, few, "gemm", formats=1), 3 * limit)


@pytest.mark.parametrize(
    ("rows", "kind"), [(1, "gemv"), (5, "rows"), (5, "few"), (17, "gemm_small"), (33, "gemm")]
)
def test_exponents_keep_their_range(rows: int, kind: str) -> None:
    """MXFP4's are those of a float: a prompt must see the weights that a single token sees."""
    check(lab.extreme_exponents(rows, kind))


@pytest.mark.parametrize("rows", [*range(1, 18), 33, 65])
def test_any_number_of_rows(rows: int) -> None:
    check(lab.matmul("q8_0", rows, 5, 96, "gemm"), lab.F16_BOUND)
    check(lab.matmul("q8_0", rows, 5, 96, "gemm_small"), lab.F16_BOUND)
    if rows <= 16:
        check(lab.matmul("q8_0", rows, 5, 96, "rows"))
        check(lab.matmul("q8_0", rows, 5, 96, "few"))


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
@pytest.mark.parametrize("k", [1, 2, 3, 4, 15, 16, 17, 36, 97, 513])
def test_rows_of_any_length(dtype: str, k: int) -> None:
    check(lab.matmul(dtype, 1, 6, k, "gemv"))
    check(lab.matmul(dtype, 3, 6, k, "rows"))
    check(lab.matmul(dtype, 7, 6, k, "few"))
    check(lab.matmul(dtype, 17, 6, k, "gemm"))
    check(lab.norm_qkv(dtype, 6, 2, k))
    check(lab.embed(dtype, 2, k, 3))


@pytest.mark.long
@pytest.mark.in_turn
@pytest.mark.parametrize("dtype", FEW)
@pytest.mark.parametrize("schedule", SCHEDULES_DEFAULT[1:], ids=str)
def test_results_do_not_depend_on_the_order_of_threads(dtype: str, schedule: Schedule) -> None:
    deep = 40 if dtype == "f16" else 9 * block(dtype)
    for options in (dict(split=1), dict(split=2), dict(split=4, simds=8)):
        for function, args in (
            (lab.matmul, (1, 37, deep, "gemv")),
            (lab.gate_up, (1, 37, deep, "gemv")),
            (lab.norm_qkv, (37, 9, deep)),
            (lab.norm_gate_up, (37, deep)),
        ):
            error = [function(dtype, *args, schedule=s, **options) for s in (FIFO, schedule)]
            assert error[0] == error[1] <= lab.F32_BOUND, function.__name__
    for kind in ("rows", "few", "gemm", "gemm_small"):
        error = [lab.matmul(dtype, 13, 70, 3 * block(dtype), kind, schedule=s) for s in (FIFO, schedule)]
        assert error[0] == error[1] <= lab.F16_BOUND, kind
    for kind in ("rows", "few", "gemm"):
        error = [lab.gate_up(dtype, 13, 37, 3 * block(dtype), kind, schedule=s) for s in (FIFO, schedule)]
        assert error[0] == error[1] <= 3 * lab.F16_BOUND, kind


def test_many_weights() -> None:
    check(lab.matmul("q4_0", 1, 1000, 32, "gemv", simds=4))
    check(lab.matmul("q4_0", 1, 1000, 32, "gemv", rows_per_simd=8, simds=8))
    check(lab.matmul("q4_0", 3, 1000, 32, "rows", simds=4))
    check(lab.matmul("q4_0", 17, 1000, 32, "gemm"), lab.F16_BOUND)


def test_compact_outputs_saturate() -> None:
    assert lab.saturated_gate_up() == [65504, -65504]


VISIT = """
#include "dequant_legacy.h"
#include "matmul_gemm.h"
kernel void visit(device atomic_uint* seen [[buffer(0)]], uint2 group [[threadgroup_position_in_grid]],
                  uint2 groups [[threadgroups_per_grid]]) {
    const uint2 tile = tile_of(group, groups);
    atomic_fetch_add_explicit(seen + tile.y * groups.x + tile.x, 1, memory_order_relaxed);
}
"""


@pytest.mark.parametrize("groups", [(1, 1), (14, 1), (1, 9), (3, 8), (76, 7), (7, 17), (5, 16), (11, 33)])
def test_every_tile_is_computed_once(groups: tuple[int, int]) -> None:
    seen = np.zeros(groups, np.uint32)
    Library.compile(VISIT, include=lab.INCLUDE).run("visit", [seen], groups=groups, threads=1)
    assert (seen == 1).all()


@pytest.mark.parametrize("bits", mlx.BITS)
@pytest.mark.parametrize(("group", "scales"), [(32, "f16"), (64, "bf16"), (128, "f32")])
def test_mlx(bits: int, group: int, scales: str) -> None:
    weight = (bits, group, scales)
    check(mlx.matmul(*weight, 1, 13, 5 * group, "gemv"))
    check(mlx.matmul(*weight, 1, 3, 9 * 128, "gemv", split=2))
    check(mlx.matmul(*weight, 5, 13, 3 * group, "rows"))
    check(mlx.matmul(*weight, 9, 37, 3 * group, "few"))
    check(mlx.matmul(*weight, 33, 70, group, "gemm"), lab.F16_BOUND)
    check(mlx.matmul(*weight, 17, 13, 2 * group, "gemm_small"), lab.F16_BOUND)
    check(mlx.embed(*weight, 3, 2 * group, 5))


def test_mlx_codes_are_mlx_s() -> None:
    """As in MLX's `quantize`: 3 bits are eight codes in three bytes, the first in the lowest bits."""
    codes = np.array([[1, 2, 3, 4, 5, 6, 7, 0]], np.uint8)
    assert mlx.pack_codes(codes, 3).tolist() == [[0b11_010_001, 0b0_101_100_0, 0b000_111_11]]
    assert mlx.pack_codes(codes, 4).tolist() == [[0x21, 0x43, 0x65, 0x07]]


@pytest.mark.parametrize("dtype", ["f32", "bf16", "q5_0", "q8_0", "q3_k", "q5_k", "iq4_xs", "mlx_q3"])
def test_lint_finds_nothing_in_any_template(dtype: str) -> None:
    assert lint(lab.instantiated(dtype)) == []


def test_lint_finds_nothing_where_v_has_another_type() -> None:
    kernels = "".join(f"    (void)&norm_qkv<{q.upper()}, {v.upper()}>;\n" for q, v in MIXED_QKV)
    assert lint(lab.text("norm_qkv_mixed") + "void instantiate() {\n" + kernels + "}\n") == []


def test_lint_looks_into_templates() -> None:
    text = lab.instantiated("q4_0").replace("threadgroup Tile* w_to =", "thread Tile* w_to =")
    assert any("threadgroup Tile" in line for line in lint(text))


@pytest.mark.long
@pytest.mark.in_turn
@pytest.mark.parametrize("sanitizer", ["tsan", "asan"])
@pytest.mark.parametrize("dtype", ["f16", "q6_k", "mxfp4", "mlx_q3", "mixed"])
def test_sanitizers_find_nothing(sanitizer: str, dtype: str) -> None:
    done = in_sanitizer(sanitizer, LAB, "run_small", dtype, sanitizer)
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.mutation
@pytest.mark.long
@pytest.mark.parametrize("name", MUTATIONS)
def test_mutations_are_caught(name: str) -> None:
    sanitizer = MUTATIONS[name].sanitizer
    if not sanitizer:
        assert caught(name), name
        return
    done = in_sanitizer(sanitizer, caught.__code__.co_filename, "run_mutation", name)
    report = {"tsan": "ThreadSanitizer: data race", "asan": "AddressSanitizer"}[sanitizer]
    assert done.returncode != 0 and report in done.stderr, done.stderr[-3000:]


@pytest.mark.long
def test_unmutated_text_passes() -> None:
    assert not any(caught(name, mutate=False) for name in MUTATIONS if not MUTATIONS[name].sanitizer)

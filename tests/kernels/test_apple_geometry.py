"""Threadgroups on Apple chips of 8 to 80 GPU cores: each row of a result is computed once, and no core idles
for want of threadgroups where the shape has enough of them. What chooses is in every build.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from akunu import _core

from .problem import pack

#: A chip for each number of GPU cores.
CHIPS = {
    8: "M1",
    10: "M4",
    16: "M5 Pro 16",
    20: "M4 Pro",
    32: "M4 Max 32",
    40: "M5 Max",
    60: "M3 Ultra 60",
    80: "M3 Ultra",
}
SIMDS_PER_CORE = 16  # metal/choose/matmul.cpp: enough to hide the latency of memory
#: (rows of the weight, columns): of models of 0.1 to 70 billion weights, and odd ones.
SIZES = [
    *[(576, 576), (896, 4864), (1024, 3072), (2048, 2048), (4096, 4096), (4096, 14336), (14336, 4096)],
    *[(8192, 28672), (49152, 576), (151936, 1024), (1, 256), (5, 512), (33, 768), (4097, 11008)],
]
TYPES = ("q4_0", "q4_k", "f16", "iq4_xs", "mxfp4")
MOST_SPLITS, SHORT_SPLITS, UNSPLIT_KEYS, SPLIT_KEYS = 32, 16, 128, 32


def up(a: int, b: int) -> int:
    return -(-a // b)


def split_count(blocks: int, most: int) -> int:
    return min(blocks, max(SHORT_SPLITS, up(blocks, 4)), most)


def passes(cores: int, op: str, *, keys: int = 0, **options: Any) -> list[_core.ApplePass]:
    """`options`: those of the command, and the parameters; those that are left out are 0."""
    command = {name: options.pop(name) for name in ("weight", "without") if name in options}
    names = _core.lab_structs()[op].names or ()
    assert options.keys() <= set(names), options.keys() - set(names)
    params = pack(op, **(dict.fromkeys(names, 0) | options))
    return _core.lab_apple_passes(CHIPS[cores], op, params, keys=keys, **command)


def one(found: list[_core.ApplePass]) -> _core.ApplePass:
    assert len(found) == 1
    return found[0]


def simds(found: _core.ApplePass) -> int:
    """SIMD-groups of the whole grid."""
    x, y, z = found["groups"]
    assert found["threads"] % 32 == 0 and found["threads"] <= 1024
    return x * y * z * found["threads"] // 32


def per_group(found: _core.ApplePass) -> int:
    """Rows of each matrix that a threadgroup of a GEMV computes: function constants 1 and 2."""
    rows, split = found["constants"][1], found["constants"][2]
    assert found["threads"] // 32 % split == 0 and rows in (1, 2, 4, 8)
    return found["threads"] // 32 // split * rows


def check_gemv(found: _core.ApplePass, cores: int, rows: int, k: int, matrices: int, weight: str) -> None:
    """`rows` are those of each matrix."""
    x, y, z = found["groups"]
    assert (y, z) == (1, 1) and x == up(rows, per_group(found))
    rows_of_simd, split = found["constants"][1] * matrices, found["constants"][2]
    steps = up(k, 32 * (32 if weight in ("q4_k", "iq4_xs") else 16))
    assert rows_of_simd <= 8 and split <= max(1, steps)
    enough = up(rows * matrices, rows_of_simd) * split >= cores * SIMDS_PER_CORE
    assert enough or split == 8 or 2 * split > steps  # else k could be split further


@pytest.mark.parametrize("cores", CHIPS)
def test_a_row_s_matmul_covers_the_weight_and_fills_the_chip(cores: int) -> None:
    for (n, k), weight in product(SIZES, TYPES):
        found = one(passes(cores, "matmul", weight=weight, rows=1, n=n, k=k, y_stride=n))
        check_gemv(found, cores, n, k, 1, weight)
        found = one(passes(cores, "gate_up", weight=weight, rows=1, n=n, k=k))
        check_gemv(found, cores, n, k, 2, weight)
        found = one(passes(cores, "norm_gate_up", weight=weight, n=n, k=k))
        check_gemv(found, cores, n, k, 2, weight)


@pytest.mark.parametrize("cores", CHIPS)
def test_q_k_and_v_have_threadgroups_of_their_own(cores: int) -> None:
    shapes = [(2048, 512, 2048), (4096, 1024, 4096), (896, 128, 896), (8192, 1024, 8192), (33, 7, 256)]
    for (n_q, n_kv, k), weight in product(shapes, TYPES):
        found = one(passes(cores, "norm_qkv", weight=weight, n_q=n_q, n_kv=n_kv, k=k))
        per = per_group(found)
        assert found["groups"] == (up(n_q, per) + 2 * up(n_kv, per), 1, 1)
        without_v = one(passes(cores, "norm_qkv", weight=weight, n_q=n_q, n_kv=n_kv, k=k, without=[4]))
        per = per_group(without_v)
        assert without_v["groups"] == (up(n_q, per) + up(n_kv, per), 1, 1)


@pytest.mark.parametrize("cores", CHIPS)
def test_rows_and_tiles_cover_the_result(cores: int) -> None:
    for (n, k), rows in product(SIZES, (2, 3, 4, 5, 8, 15, 16, 17, 31, 32, 33, 200, 512)):
        for matrices, op in ((1, "matmul"), (2, "gate_up")):
            extra = {"y_stride": n} if op == "matmul" else {}
            chosen = passes(cores, op, weight="q4_0", rows=rows, n=n, k=k, **extra)
            found = one([each for each in chosen if all(each["groups"])])
            name = found["function"]
            x, y, z = found["groups"]
            assert z == 1
            if rows <= 16:
                # Matrices of SIMD-groups from five rows on, where there are twelve for each core.
                matrix = rows >= 5 and up(n * matrices, 8) >= 12 * cores
                per = found["threads"] // 32 * (8 if matrix else 4) // matrices
                assert (x, y) == (up(n, per), 1) and ("_few_" if matrix else "_rows_") in name, name
                continue
            tokens = 16 if "_small_" in name else 32
            assert (x, y) == (up(n, 64 // matrices), up(rows, tokens)), name
            # Small tiles where large ones are fewer than cores, and never else.
            assert ("_small_" in name) == (matrices == 1 and x * up(rows, 32) < cores)


@pytest.mark.parametrize("cores", CHIPS)
def test_decode_attention_sees_every_key_once_and_uses_the_cores(cores: int) -> None:
    most = max(MOST_SPLITS, up(cores, 2))
    common = dict(rows=1, n_heads=32, n_kv_heads=8, head_dim=128, max_pages=4096)
    for keys in [*range(1, 300, 7), 128, 129, 1023, 1024, 1025, 4096, 32768, 131072]:
        split = one(passes(cores, "attention_split", keys=keys, **common))
        merge = one(passes(cores, "attention_merge", keys=keys, **common))
        assert split["constants"][3] == merge["constants"][3] == most
        splits, groups, _ = split["groups"]
        assert groups == 8
        assert splits == (1 if keys <= UNSPLIT_KEYS else split_count(up(keys, SPLIT_KEYS), most))
        assert merge["groups"] == (0 if splits == 1 else 32, 1, 1)
        blocks = up(keys, SPLIT_KEYS)  # of which split i has those from floor(i·blocks / splits) on
        begins = [i * blocks // splits for i in range(splits + 1)]
        assert begins[0] == 0 and begins[-1] == blocks and begins == sorted(set(begins))
        if keys >= 128 * most:  # two KV heads give every core a threadgroup
            assert 2 * splits >= cores


@pytest.mark.parametrize("cores", CHIPS)
@pytest.mark.parametrize("window", [1, 96, 128, 129, 512, 1024])
def test_decode_attention_with_a_window_has_a_split_for_each_block(cores: int, window: int) -> None:
    common = dict(rows=1, n_heads=8, n_kv_heads=4, head_dim=64, max_pages=512, window=window)
    for keys in range(1, 2 * window + 300, 13):
        split = one(passes(cores, "attention_split", keys=keys, **common))
        merge = one(passes(cores, "attention_merge", keys=keys, **common))
        first = max(keys - window, 0)
        blocks = (keys - 1) // SPLIT_KEYS - first // SPLIT_KEYS + 1
        if min(keys, window) <= UNSPLIT_KEYS:
            assert split["groups"][0] == 1 and merge["groups"][0] == 0
        else:
            most = max(MOST_SPLITS, up(cores, 2))
            enough, one_more = (split_count(n, most) for n in (blocks, blocks + 1))
            assert enough <= split["groups"][0] <= one_more
            assert merge["groups"][0] == 8


@pytest.mark.parametrize("cores", CHIPS)
def test_experts_have_a_threadgroup_for_each_choice_and_column(cores: int) -> None:
    for n, k, chosen in [(768, 2048, 8), (2880, 2880, 4), (1408, 2048, 6)]:
        common = dict(rows=1, experts=128, chosen=chosen, n=n, k=k)
        found = one(passes(cores, "experts_gate_up", weight="q4_k" if k % 256 == 0 else "mxfp4", **common))
        assert found["groups"] == (up(n, per_group(found)), chosen, 1)
        found = one(passes(cores, "experts_down", weight="q4_0", **(common | {"n": k, "k": n})))
        assert found["groups"] == (up(k, per_group(found)), 1, 1)

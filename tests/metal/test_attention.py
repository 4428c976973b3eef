"""RoPE with the cache write, and attention, of metal/kernels/attention against NumPy float64."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from metal import attention_lab as lab
from metal.attention_lab import Case, Mutation, Rope, Weights, run_case
from metal_emulator.harness import SCHEDULES_DEFAULT, KernelError, Schedule, in_sanitizer, lint

KV = ("f16", "f32", "q8_0")

ROPE = [
    Rope(rows=1, position=0),
    Rope(rows=5, position=13, heads=6, head_dim=72, half=False),
    Rope(rows=33, position=31, heads=3, kv_heads=1, head_dim=80, rope_dim=20),
    Rope(rows=2, heads=7, kv_heads=1, head_dim=96, qk_norm=True),
    Rope(rows=2, heads=2, kv_heads=1, head_dim=128, half=False, rope_dim=64, qk_norm=True),
    Rope(rows=3, position=30, heads=4, kv_heads=1, head_dim=256, qk_norm=True),
    Rope(rows=2, heads=3, kv_heads=2, head_dim=72, rope_dim=40, qk_norm=2),
    Rope(rows=2, heads=2, kv_heads=1, head_dim=128, half=False, qk_norm=2),
    Rope(rows=3, position=1, heads=2, kv_heads=1, head_dim=6, rope_dim=4),
    Rope(rows=2, position=31, heads=3, kv_heads=3, head_dim=40, others=((1, 0), (33, 60), (1, 7))),
]
SPLIT = [
    Case(position=300, heads=8, sinks=True, window=200),
    Case(position=0, heads=1, kv_heads=1),
    Case(position=127, heads=2, kv_heads=1, head_dim=80),
    Case(position=128, heads=5, kv_heads=5, head_dim=6, slack=200),
    Case(position=300, heads=6, head_dim=96, formats=lab.F16_FORMAT),
    Case(position=200, heads=16, kv_heads=1, head_dim=256),
    Case(position=150, heads=9, kv_heads=1, head_dim=30),
    Case(position=300, heads=7, kv_heads=1, window=1),
    # Not split: up to 128 keys, also of a window that touches five blocks, in two parts. Then five splits.
    Case(position=31, heads=6, head_dim=72, sinks=True),
    Case(position=90, heads=6, kv_heads=3, head_dim=24, formats=lab.F16_FORMAT, sinks=True),
    Case(position=383, window=128, slack=0),
    Case(position=400, window=128, heads=3, kv_heads=1, cap=5.0, sinks=True),
    Case(position=383, window=160, slack=0),  # blocks exactly, and one more in the grid
    Case(position=300, window=129, cap=5.0),
    Case(position=520, heads=3, kv_heads=3, head_dim=40, window=300, cap=20.0, spread=30.0),
    Case(position=60, head_dim=128, spread=100.0),
    Case(position=170, heads=8, head_dim=16, window=100),
    # As many blocks as splits, one more, the last one of a key, and several for each.
    Case(position=159, most_splits=5),
    Case(position=160, most_splits=5, heads=5, kv_heads=1, head_dim=40),
    Case(position=900, most_splits=3, heads=6, head_dim=96, spread=30.0),
    Case(position=700, most_splits=1, heads=9, kv_heads=1, head_dim=136, sinks=True),
    Case(position=150, most_splits=4, window=140, cap=5.0),  # blocks 0 to 4: the last split has two
    Case(position=640, most_splits=13, window=385, slack=0),  # blocks 8 to 20, the grid's thirteen
    Case(position=511, head_dim=16),  # sixteen splits of a block
    Case(position=700, head_dim=16, window=513),  # seventeen blocks in sixteen splits
    Case(position=2100, heads=2, kv_heads=1, head_dim=8),  # seventeen of four blocks, the last of two
    Case(position=639, most_splits=9, window=256, slack=0),  # blocks 12 to 19, nine in the grid
    Case(position=500, most_splits=3, head_dim=16),
]
MANY = [
    Case(rows=1, position=0, heads=1, kv_heads=1),
    Case(rows=2, position=31, heads=2, kv_heads=1, head_dim=80),
    Case(rows=33, position=0, heads=14),
    Case(rows=9, position=37, heads=16, kv_heads=1, head_dim=96),
    Case(rows=18, position=70, heads=3, kv_heads=1, head_dim=256),
    Case(rows=3, position=20, heads=16, kv_heads=1, head_dim=200),
    Case(rows=5, position=10, heads=5, kv_heads=5, head_dim=6),
    Case(rows=40, position=100, window=1),
    Case(rows=40, position=200, window=33, cap=5.0),  # whole tiles of keys before the window
    Case(rows=70, position=3, window=64, head_dim=32),
    Case(rows=7, position=90, heads=3, kv_heads=3, head_dim=40, cap=20.0, spread=30.0),
    Case(rows=6, position=60, head_dim=128, spread=100.0),
    Case(rows=10, position=60, head_dim=16, heads=8),
    # Of several sequences: in a tile, in several, and a sequence in several tiles.
    Case(rows=1, position=40, heads=8, others=((1, 0), (1, 99), (1, 31))),
    Case(rows=1, position=0, heads=4, kv_heads=4, head_dim=40, others=tuple((1, 5 * i) for i in range(20))),
    Case(rows=3, position=50, heads=6, head_dim=72, others=((9, 0), (30, 17), (1, 120)), window=33),
    Case(rows=2, position=9, heads=3, kv_heads=1, head_dim=136, others=((1, 70), (6, 31), (2, 0)), cap=5.0),
    Case(rows=40, position=9, heads=6, kv_heads=3, sinks=True, window=33, others=((1, 0), (6, 31))),
    # Rows of images that see all of theirs.
    Case(rows=50, position=30, images=((3, 21), (25, 50))),
    Case(
        rows=70,
        position=3,
        heads=3,
        kv_heads=1,
        window=20,
        head_dim=72,
        others=((5, 9),),
        images=((0, 60), (71, 74)),
    ),
]
# Sequences whose rows see all of it: in a tile, in several, and several in a tile.
BOTH = [
    Case(rows=1, position=0, heads=1, kv_heads=1),
    Case(rows=40, position=0, heads=6, head_dim=40, others=((1, 0), (33, 0), (70, 0))),
    Case(rows=70, position=0, heads=3, kv_heads=1, head_dim=136, window=7, others=((3, 0),)),
    Case(rows=100, position=0, window=33, others=((1, 0), (64, 0))),
    Case(rows=5, position=0, heads=4, kv_heads=4, others=((5, 0),) * 6, cap=5.0),
]
# Rows of sequences that see so many keys of a sound.
FIXED = [
    Case(rows=3, position=90, fixed=1, heads=3, kv_heads=3, head_dim=16),
    Case(rows=5, position=2, fixed=33, others=((1, 900), (40, 0))),
    Case(rows=2, position=400, fixed=130, heads=6, head_dim=136, others=((1, 0), (1, 7))),
]
FIXED_SPLIT = [
    Case(position=900, fixed=1, heads=1, kv_heads=1),
    Case(position=3, fixed=128, heads=3, kv_heads=3, head_dim=40),
    Case(position=0, fixed=301, heads=6, head_dim=24, formats=lab.F16_FORMAT),
    Case(position=5, fixed=400, most_splits=3),
]
FIXED_BATCHED = [
    Case(rows=2, position=4, fixed=300, heads=6, others=((1, 0), (3, 77)), slack=500),
    Case(rows=7, position=900, fixed=129, heads=3, kv_heads=3, head_dim=136),
]
WEIGHTS = [
    Weights(fixed=1, chosen=(1,)),
    Weights(
        rows=3, position=40, others=((9, 0),), fixed=301, heads=6, kv_heads=3, head_dim=24, chosen=(5, 0, 2)
    ),
    Weights(rows=2, fixed=130, heads=3, kv_heads=3, head_dim=30, chosen=(2,)),
]
BATCHED = [
    Case(rows=1, position=0, heads=1, kv_heads=1),
    Case(rows=3, position=400, heads=6, slack=500),
    Case(rows=16, position=250, heads=4, kv_heads=1),  # four tiles, whose last rows alone see a third split
    Case(rows=4, position=130, heads=3, kv_heads=1, head_dim=256),
    Case(rows=16, position=367, window=128, slack=0),  # three runs of keys for two splits
    Case(rows=9, position=300, heads=3, kv_heads=1, head_dim=40, window=20, cap=5.0),
    Case(rows=2, position=4110, heads=2, kv_heads=1, head_dim=16),  # runs of 256
    Case(rows=5, position=150, head_dim=8),
    # Sequences that see fewer keys than others have no share in some splits.
    Case(rows=1, position=500, heads=6, others=((1, 3), (1, 260), (1, 127), (1, 128))),
    Case(rows=1, position=5, heads=4, kv_heads=1, others=((5, 380), (2, 250)), window=130, slack=0),
    Case(rows=2, position=200, heads=3, kv_heads=1, head_dim=136, others=((1, 390), (3, 0)), cap=5.0),
    Case(rows=3, position=300, heads=6, kv_heads=3, sinks=True, others=((1, 5),)),
]


def with_a_cache(cases: Sequence[Rope | Case]) -> list[Any]:
    """Each case with one type of cache. Types differ in how values are read: the rest is long, and drawn."""
    return [
        pytest.param(
            case, kv, id=f"{i}-{kv}-{case.id if isinstance(case, Case) else 'rope'}",
            marks=[] if KV[i % len(KV)] == kv else [pytest.mark.long, pytest.mark.table],
        )
        for i, case in enumerate(cases)
        for kv in KV
    ]  # fmt: skip


@pytest.mark.parametrize(("case", "kv"), with_a_cache(ROPE))
def test_prepare_heads(case: Rope, kv: str) -> None:
    assert run_case(replace(case, kv=kv)) <= 1


@pytest.mark.parametrize(("case", "kv"), with_a_cache(SPLIT))
def test_decode_attention(case: Case, kv: str) -> None:
    assert run_case(replace(case, kv=kv, split=True)) <= 1


@pytest.mark.parametrize(("case", "kv"), with_a_cache(MANY))
def test_attention_of_many_rows(case: Case, kv: str) -> None:
    assert run_case(replace(case, kv=kv)) <= 1


@pytest.mark.parametrize(("case", "kv"), with_a_cache(BATCHED))
def test_attention_of_a_few_rows(case: Case, kv: str) -> None:
    assert run_case(replace(case, kv=kv, batched=True)) <= 1


@pytest.mark.parametrize("kv", KV)
def test_rows_that_see_all_of_their_sequence(kv: str) -> None:
    assert all(run_case(replace(case, kv=kv, both=True)) <= 1 for case in BOTH)


@pytest.mark.parametrize("kv", KV)
def test_rows_that_see_the_keys_of_a_sound(kv: str) -> None:
    cases = [
        *FIXED,
        *(replace(case, split=True) for case in FIXED_SPLIT),
        *(replace(case, batched=True) for case in FIXED_BATCHED),
    ]
    assert all(run_case(replace(case, kv=kv)) <= 1 for case in cases)


@pytest.mark.parametrize("kv", KV)
def test_weights_that_heads_give(kv: str) -> None:
    assert all(run_case(replace(case, kv=kv)) <= 1 for case in WEIGHTS)


ORDERS = [
    replace(BOTH[1], both=True),
    replace(FIXED_SPLIT[2], split=True),
    replace(FIXED_BATCHED[0], batched=True),
    WEIGHTS[1],
    Rope(rows=2, heads=3, kv_heads=1, head_dim=72, qk_norm=True),
    Rope(kv="q8_0", head_dim=40, half=False),
    Case(split=True, position=180, heads=7, kv_heads=1, head_dim=72, window=100),
    Case(split=True, position=140, heads=4, kv_heads=1, kv="q8_0"),
    Case(split=True, position=400, heads=6, kv_heads=1, head_dim=24, most_splits=2),
    Case(rows=9, position=40, heads=6, head_dim=72, cap=7.0),
    Case(rows=7, position=20, heads=3, kv_heads=1, head_dim=136, kv="f32", window=20),
    Case(rows=3, position=200, heads=4, batched=True),
    Case(rows=3, position=20, heads=6, head_dim=24, others=((1, 90), (4, 0))),
    Case(rows=1, position=300, heads=4, others=((1, 20), (2, 140)), batched=True),
]


@pytest.mark.long
@pytest.mark.in_turn
@pytest.mark.parametrize("case", ORDERS, ids=str)
def test_any_schedule_gives_the_same(case: Rope | Case) -> None:
    schedules = [*SCHEDULES_DEFAULT, Schedule("priority", 3, workers=1), Schedule("uniform", 4)]
    assert run_case(case, schedules) <= 1


# What each bug below is seen by: a case, and the mutation of its kernels.
BARRIER = "threadgroup_barrier(metal::mem_flags::mem_threadgroup);"
SIMD_BARRIER = "metal::simdgroup_barrier(metal::mem_flags::mem_threadgroup);"
TURN = Rope(rows=2, heads=3, kv_heads=1, head_dim=72, qk_norm=True, rope_dim=40)
DECODE = Case(split=True, position=300, heads=7, kv_heads=1, window=150, cap=4.0)
RUNS = Case(split=True, position=600, heads=6, kv_heads=1, most_splits=2)
ONE = Case(split=True, position=60, heads=6, kv_heads=2, sinks=True)
PREFILL = Case(rows=20, position=50, heads=6, head_dim=136, window=40, cap=4.0)
FEW = Case(rows=7, position=400, heads=6, window=200, batched=True)
SEQUENCES = Case(rows=2, position=50, heads=4, head_dim=40, others=((3, 80), (1, 9)))
FEW_SEQUENCES = replace(SEQUENCES, batched=True, position=290)
ALL_OF_A_SEQUENCE = replace(BOTH[3], both=True)
SOUND = replace(FIXED_SPLIT[2], split=True, formats=lab.F32_FORMAT)
SOUNDS = replace(FIXED_BATCHED[0], batched=True)
# Of the header's barriers in order: the occurrence is counted over the flattened text.
MUTATIONS: dict[str, tuple[Rope | Case, Mutation]] = {
    "rope: staged without a barrier": (TURN, Mutation(SIMD_BARRIER, "", 4)),
    "rope: tail not normed": (TURN, Mutation("out[d] = (x[d] - of.mean) * of.scale", "out[d] = x[d]")),
    "rope: second of the pair": (TURN, Mutation("i + half_dim", "i + half_dim - 1")),
    "rope: one row's angles for all": (TURN, Mutation("table += ulong(row) * (p.rope_dim / 2);", "")),
    "rope: V of the first head": (
        replace(TURN, kv_heads=2, heads=4),
        Mutation("(is_key ? 0 : p.n_kv_heads)", "(is_key ? 0 : p.n_kv_heads - 1)"),
    ),
    "cache: q8_0 scale of the first block": (
        replace(TURN, kv="q8_0"),
        Mutation("kv_row_blocks(kHeadDim) + d0 / kKvBlock] = half", "kv_row_blocks(kHeadDim)] = half"),
    ),
    "cache: pages": (DECODE, Mutation("position % kPagePositions", "position % 16")),
    "window: one key more": (
        DECODE,
        Mutation("position >= window ? position + 1", "position >= window ? position"),
    ),
    "window: one key more, many rows": (
        PREFILL,
        Mutation("position >= window ? position + 1", "position >= window ? position"),
    ),
    "causal: the next key": (PREFILL, Mutation("== 0) return position + 1;", "== 0) return position + 2;")),
    "split: q without a barrier": (DECODE, Mutation(BARRIER, "", 5)),
    "split: scores without a barrier": (DECODE, Mutation(BARRIER, "", 6)),
    "split: exponentials without a barrier": (DECODE, Mutation(BARRIER, "", 7)),
    "split: scores overwritten by the next part's": (RUNS, Mutation(BARRIER, "", 8)),
    "split: sums without a barrier": (DECODE, Mutation(BARRIER, "", 9)),
    "split: sums overwritten": (DECODE, Mutation(BARRIER, "", 10)),
    "split: outputs not rescaled": (RUNS, Mutation("if (g < kGroup) out[g] *= heads[g].keep;", "")),
    "split: sums not rescaled": (RUNS, Mutation("sum * keep + metal", "sum + metal")),
    "split: a run's last block": (
        RUNS,
        Mutation("split_begin(group.x + 1, blocks", "split_begin(group.x + 1, blocks - 1"),
    ),
    "split: a run's first block": (
        RUNS,
        Mutation("split_begin(group.x, blocks", "split_begin(group.x, blocks + 1"),
    ),
    "split: a lane's sum": (DECODE, Mutation("kLanesPerKey / 2; step > 0", "kLanesPerKey / 4; step > 0")),
    "split: a team's keys": (DECODE, Mutation("key += teams", "key += teams + 1")),
    "split: masked keys count": (
        DECODE,
        Mutation("seen[j] ? soft_cap(s, cap) : kMasked", "soft_cap(s, cap)"),
    ),
    "split: the only one leaves a sink out": (
        ONE,
        Mutation("heads[g0 + g].sum + sink_weight(sinks, head, heads[g0 + g].top)", "heads[g0 + g].sum"),
    ),
    "split: scores behind the last key": (
        ONE,
        Mutation(
            "= kMasked;\n            }\n            continue;",
            "= 0.0f;\n            }\n            continue;",
        ),
    ),
    "split: turns of the SIMD-groups": (
        DECODE,
        Mutation("at += kAttentionSimdgroups * kAtOnce", "at += 2 * kAttentionSimdgroups * kAtOnce"),
    ),
    "merge: maximum without a barrier": (
        DECODE,
        Mutation("threadgroup_barrier(mem_flags::mem_threadgroup);", "", 0, True),
    ),
    "merge: sums without a barrier": (
        DECODE,
        Mutation("threadgroup_barrier(mem_flags::mem_threadgroup);", "", 1, True),
    ),
    "merge: not weighted": (DECODE, Mutation("out[i] += weight * outs", "out[i] += outs", 0, True)),
    "merge: a split too few": (
        DECODE,
        Mutation("p.window, kSplitKeys), kMostSplits)", "p.window, kSplitKeys) - 1, kMostSplits)", 0, True),
    ),
    "many: q without a barrier": (PREFILL, Mutation(SIMD_BARRIER, "", 0)),
    "many: q overwritten": (PREFILL, Mutation(SIMD_BARRIER, "", 1)),
    "many: keys without a barrier": (PREFILL, Mutation(BARRIER, "", 0)),
    "many: scores without a barrier": (PREFILL, Mutation(BARRIER, "", 1)),
    "many: values without a barrier": (PREFILL, Mutation(BARRIER, "", 2)),
    "many: tile overwritten": (PREFILL, Mutation(BARRIER, "", 3)),
    "many: last factors without a barrier": (PREFILL, Mutation(BARRIER, "", 4)),
    "many: output without a barrier": (PREFILL, Mutation(SIMD_BARRIER, "", 2)),
    "many: output overwritten": (PREFILL, Mutation(SIMD_BARRIER, "", 3)),
    "many: outputs not rescaled": (PREFILL, Mutation("scale_rows(sums, factors + first_query * 8);", "", 0)),
    "many: one share of the scores": (PREFILL, Mutation("part = 1; part < kParts", "part = 1; part < 1")),
    "many: keys behind the end": (
        PREFILL,
        Mutation("if (begin + key < end && quad", "if (begin + key < end + 3 && quad"),
    ),
    "many: keys of the window's tile dropped": (
        PREFILL,
        Mutation("p.window) / kKeys * kKeys;", "p.window) / kKeys * kKeys + kKeys;"),
    ),
    "few: runs of other splits": (FEW, Mutation("(groups.z - 1) * run", "(groups.z - 2) * run")),
    "few: the first split's run": (FEW, Mutation("begin / run + group.z", "begin / run + group.z + 1")),
    "few: splits that are left out": (
        FEW,
        Mutation("p.window + each - 1) : all", "p.window) : all", 0, True),
    ),
    "few: factors of the last tile": (FEW, Mutation("kBatched ? 1.0f : factor", "factor")),
    "rope: the first row's sequence": (
        replace(TURN, others=((1, 9),)),
        Mutation("key_head<Kv>(pages, p, rows[row].slot, kv)", "key_head<Kv>(pages, p, rows[0].slot, kv)"),
    ),
    "rope: the chain's first step": (TURN, Mutation("rows[row].position + p.step", "rows[row].position")),
    "cache: values where keys are": (
        DECODE,
        Mutation("values = value_head<Kv>", "values = key_head<Kv>", 1),
    ),
    "many: the first sequence's keys": (
        SEQUENCES,
        Mutation("keys = key_head<Kv>(pages, p, slot", "keys = key_head<Kv>(pages, p, rows[0].slot"),
    ),
    "many: earlier sequences see a later one": (
        SEQUENCES,
        Mutation("query_row >= from && query_row < to", "query_row < to"),
    ),
    "many: later sequences see an earlier one": (
        SEQUENCES,
        Mutation("query_row >= from && query_row < to", "query_row >= from"),
    ),
    "many: a sequence's last row": (
        SEQUENCES,
        Mutation("keys_end(p, rows[to - 1].position", "keys_end(p, rows[from].position"),
    ),
    "few: splits of the first sequence": (
        FEW_SEQUENCES,
        Mutation("last = metal::max(last, rows[i].position)", "last = rows[p.rows - 1].position", 0, True),
    ),
    "both: the rows of a tile": (
        ALL_OF_A_SEQUENCE,
        Mutation("sequence_end(rows, from, to, p.rows) - 1", "to - 1"),
    ),
    "both: one key more": (
        ALL_OF_A_SEQUENCE,
        Mutation("position + p.window) : sequence", "position + p.window + 1) : sequence"),
    ),
    "both: the next sequence": (
        ALL_OF_A_SEQUENCE,
        Mutation("rows[middle].slot == slot", "rows[middle].slot <= slot + 9"),
    ),
    "sound: a key too few": (
        SOUNDS,
        Mutation("p.fixed_keys != 0) return p.fixed_keys;", "p.fixed_keys != 0) return p.fixed_keys - 1;"),
    ),
    "sound: one row": (SOUND, Mutation("p.fixed_keys - 1 : row", "p.fixed_keys - 2 : row")),
    "sound: splits that are left out": (
        SOUNDS,
        Mutation("(p.fixed_keys + each - 1) / each", "p.fixed_keys / each", 0, True),
    ),
    "sound: splits of the sequence's own keys": (
        SOUND,
        Mutation("last_key(p, rows[0])", "rows[0].position", 0, True),
    ),
    "weights: q without a barrier": (WEIGHTS[1], Mutation(BARRIER, "", 13)),
    "weights: maximum without a barrier": (WEIGHTS[1], Mutation(f"metal::{BARRIER}", "", 1)),
    "weights: another head's keys": (WEIGHTS[1], Mutation("head / kGroup)", "group.y / kGroup)")),
    "weights: rows close together": (WEIGHTS[1], Mutation("p.out_rows + row", "p.rows + row")),
    "weights: not summed to one": (WEIGHTS[1], Mutation("out[key] *= share", "out[key] *= 1.0f")),
    "many: rows beyond the last": (
        replace(PREFILL, rows=21),
        Mutation("metal::min(tile_rows, p.rows - first_row)", "tile_rows"),
    ),
}


def worst_of(case: Rope | Case, mutation: Mutation | None, schedules: Any = SCHEDULES_DEFAULT) -> float:
    try:
        return run_case(case, schedules, "", mutation)
    except KernelError:
        return np.inf


@pytest.mark.long
@pytest.mark.parametrize(
    "case",
    [
        TURN,
        DECODE,
        RUNS,
        ONE,
        PREFILL,
        FEW,
        SEQUENCES,
        FEW_SEQUENCES,
        ALL_OF_A_SEQUENCE,
        SOUND,
        SOUNDS,
        WEIGHTS[1],
    ],
    ids=[
        "rope",
        "decode",
        "runs",
        "one",
        "prefill",
        "few",
        "sequences",
        "few sequences",
        "both",
        "sound",
        "sounds",
        "weights",
    ],
)
def test_what_is_mutated_is_right(case: Rope | Case) -> None:
    assert worst_of(case, None) <= 1


@pytest.mark.mutation
@pytest.mark.long
@pytest.mark.parametrize("name", MUTATIONS)
def test_mutations_are_seen(name: str) -> None:
    assert worst_of(*MUTATIONS[name]) > 1


@pytest.mark.parametrize("file", lab.FILES)
def test_no_lint(file: str) -> None:
    assert lint(lab.KERNELS / f"attention_{file}.metal", include=lab.INCLUDE) == []


# ---- sanitizers --------------------------------------------------------------------------------

SMALL = [
    Rope(rows=2, heads=3, kv_heads=1, head_dim=24, rope_dim=10, qk_norm=True, others=((1, 33),)),
    Case(split=True, position=140, heads=3, kv_heads=1, head_dim=10, window=20),
    Case(split=True, position=20, heads=5, kv_heads=1, head_dim=24, slack=0),
    Case(split=True, position=300, heads=5, kv_heads=1, head_dim=10, slack=0, most_splits=2),
    Case(rows=9, position=30, heads=3, kv_heads=1, head_dim=20, slack=0),
    Case(rows=3, position=12, heads=2, kv_heads=1, head_dim=136, slack=0),
    Case(rows=2, position=140, heads=3, kv_heads=1, head_dim=10, slack=0, batched=True),
    Case(rows=1, position=40, heads=3, kv_heads=1, head_dim=10, slack=0, others=((2, 60), (1, 0))),
    Case(rows=13, position=0, heads=3, kv_heads=1, head_dim=10, slack=0, others=((4, 0),), both=True),
    Case(position=3, heads=3, kv_heads=1, head_dim=10, slack=0, split=True, fixed=130),
    Case(rows=2, position=3, heads=3, kv_heads=1, head_dim=10, slack=0, batched=True, fixed=130),
    Weights(rows=2, heads=3, kv_heads=1, head_dim=10, slack=0, fixed=130, chosen=(2, 1)),
]


def run_under(sanitizer: str, kv: str, mutation: str = "") -> None:
    """All small cases; the child's exit status tells."""
    if mutation:
        case, m = MUTATIONS[mutation]
        run_case(
            case,
            [Schedule(workers=2)],
            sanitizer,
            replace(m, new=m.old.replace("mem_threadgroup", "mem_none")),
        )
        return
    for case in SMALL:
        for schedule in SCHEDULES_DEFAULT[:2]:
            worst = run_case(replace(case, kv=kv), [replace(schedule, workers=2)], sanitizer)
            assert worst <= 1, (case, worst)
    print("clean")


@pytest.mark.long
@pytest.mark.in_turn
@pytest.mark.parametrize("sanitizer", ["tsan", "asan"])
@pytest.mark.parametrize("kv", KV)
def test_clean_under_sanitizers(kv: str, sanitizer: str) -> None:
    done = in_sanitizer(sanitizer, __file__, "run_under", sanitizer, kv)
    assert done.returncode == 0 and done.stdout == "clean\n", done.stderr[-4000:]


# A barrier of each kind without its memory: plain runs pass.
ORDERED = (
    "rope: staged without a barrier",
    "split: exponentials without a barrier",
    "split: scores overwritten by the next part's",
    "merge: sums without a barrier",
    "many: q without a barrier",
    "many: values without a barrier",
)


@pytest.mark.long
@pytest.mark.parametrize("name", ORDERED)
def test_thread_sanitizer_sees_a_barrier_without_memory(name: str) -> None:
    done = in_sanitizer("tsan", __file__, "run_under", "tsan", "f16", name)
    assert done.returncode == 66 and "data race" in done.stderr, done.stderr[-4000:]

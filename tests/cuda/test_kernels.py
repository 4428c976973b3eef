"""The kernel table's cases on the emulated GPU: every op, the same bounds as on a real one."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest

from kernels import cases
from kernels.builders import BUILDERS
from kernels.case import Case
from kernels.test_delta_rule import OPS as OPS_WITH_A_STATE
from order import Draw

Run = Callable[..., subprocess.CompletedProcess[str]]
Check = Callable[..., None]

KINDS = (
    "FUSED", "ENCODER", "SPEECH", "RECURRENCE", "IMPORTANCE", "DELTA", "MAMBA", "EXPERT", "LATENT", "LORA",
    "SINK", "KV",
)  # fmt: skip
TABLE = [
    case
    for name in ("CHECKS", *(f"{kind}_CHECKS" for kind in KINDS))
    for case in getattr(cases, name)
    if case.runs_on("cuda")
]
CODE = """
from math import inf

from kernels.case import Case
from kernels.devices import Target, lab
from kernels.runner import run

device, n = lab(Target("cuda")), 0
for case in {cases}:
    n += 1
    for text in run(case.build(device), device):
        print(case.id, text)
print(n, "cases")
"""

#: One type of each kind: the others' readers differ in little but their codes.
TYPES = (
    "f32", "f16", "q4_0", "q5_0", "q5_1", "q5_k", "q6_k", "iq4_xs", "mlx_q4_g64_bf16", "mlx_mxfp4",
    "f8_e4m3_g32",
)  # fmt: skip
MATMULS = ("embed", "matmul", "gate_up", "norm_qkv", "norm_gate_up")
ATTENTION = ("prepare_heads", "attention")
SOUNDS = ("cross_attention", "attention_weights")
EXPERTS = ("experts_gate_up", "experts_down")
LATENT = ("latent_attention", "head_matmul")
ROWS = sorted(
    {*BUILDERS} - {*MATMULS, *ATTENTION, *SOUNDS, *EXPERTS, *LATENT, "sample", "all_reduce"}
)  # a new op is one of these


@pytest.fixture
def check(draw: Draw) -> Check:
    """Runs what is drawn of the table's cases that are wanted, of which there are so many at least."""

    def check(run: Run, wanted: Callable[[Case], object], least: int, **settings: str) -> None:
        found = [case for case in TABLE if wanted(case)]
        assert len(found) >= least
        chosen = draw(found)
        done = run(CODE.replace("{cases}", repr(chosen)), **settings)
        assert done.returncode == 0, done.stderr
        assert done.stdout == f"{len(chosen)} cases\n"

    return check


def is_small(case: Case, most: int, *names: str) -> bool:
    """Whether none of its arguments of these names is larger."""
    return all((case.get(name) or 0) <= most for name in names)


def test_rows_and_tokens(run: Run, check: Check) -> None:
    check(run, lambda case: case.builder in ROWS and is_small(case, 32000, "vocab"), 240)


def test_sums_of_several_gpus(run_cards: Run, check: Check) -> None:
    """On one, whose kernels are then those of several."""
    check(run_cards, lambda case: case.builder == "all_reduce", 8)


def test_experts(run: Run, check: Check) -> None:
    """One row, some, and so many that tiles are large and an expert has several."""

    def some(case: Case) -> bool:
        few = case.get("dtype") in (*TYPES, "q4_k", "mxfp4") and case.get("rows") <= 60
        return few or (case.get("dtype") in ("f16", "mxfp4") and case.get("rows") > 60)

    check(run, lambda case: case.builder in EXPERTS and some(case), 130)


def test_latent_attention(run: Run, check: Check) -> None:
    """Heads that share one row of each position, however many and however long."""
    check(run, lambda case: case.builder == "latent_attention" and is_small(case, 300, "position"), 20)
    check(
        run,
        lambda case: (
            case.builder == "head_matmul" and case.get("dtype") in TYPES and is_small(case, 70, "rows")
        ),
        33,
    )


def test_matmuls(run: Run, check: Check) -> None:
    """Of few inputs: long sums differ in nothing but time."""

    def few(case: Case) -> bool:
        return not case.get("v") and is_small(case, 512, "k") and is_small(case, 33, "rows")

    check(run, lambda case: case.builder in MATMULS and case.get("dtype") in TYPES and few(case), 195)


def test_two_types_of_queries_keys_and_values(run: Run, check: Check) -> None:
    """Both stand in one command, whose row is staged once."""
    check(run, lambda case: case.builder == "norm_qkv" and case.get("v"), 33)


def test_what_is_read_before_the_first_barrier_was_copied_by_all_blocks(run: Run, check: Check) -> None:
    """The norm's weights: of so many inputs that another block copies some of them from the host."""

    def wide(case: Case) -> bool:
        return case.get("dtype") == "q4_0" and case.get("k") == 2304

    check(run, lambda case: case.builder == "norm_gate_up" and wide(case), 1)


def test_attention(run: Run, check: Check) -> None:
    """Sequences of few keys, caches of one type, one sequence and several."""

    def few(case: Case) -> bool:
        keys = (case.get("position") or 0) + (case.get("rows") or 1)
        return keys < 40 and not case.get("others") and case not in cases.KV_CHECKS

    check(run, lambda case: case.builder in ATTENTION and few(case), 40)


def test_groups_of_more_query_heads_than_a_block_takes_at_once(run: Run, check: Check) -> None:
    def large(case: Case) -> bool:
        return case.get("shape")[0] > 16 * case.get("shape")[1] and case.get("position") <= 200

    check(run, lambda case: case.builder == "attention" and large(case), 12)


@pytest.mark.long
@pytest.mark.in_turn
def test_any_type_of_keys_beside_any_of_values(run_cache: Run, check: Check) -> None:
    """Sequences of few keys; pages and rows of other sequences are found alike whatever the type."""

    def few(case: Case) -> bool:
        return (case.get("position") or 0) + (case.get("rows") or 1) < 110 and not case.get("others")

    check(run_cache, lambda case: case in cases.KV_CHECKS and few(case), 100)


@pytest.mark.long
@pytest.mark.in_turn("small")
def test_a_block_of_99_kb_is_enough(run_small: Run, check: Check) -> None:
    """Most GPUs have that: prompts with a cache of floats and wide heads, and matmuls of many rows."""

    def wanted(case: Case) -> bool:
        if case.builder == "attention":
            of_kind = case.get("kv") == "f32" and case.get("shape")[2] > 64 and case.get("rows") >= 16
        else:
            floats = case.builder == "matmul" and case.get("dtype") == "f16"
            of_kind = floats and (case.get("rows") or 0) > 16
        return of_kind and is_small(case, 99, "position", "rows") and is_small(case, 512, "k")

    check(run_small, wanted, 3)


@pytest.mark.long
@pytest.mark.in_turn("small")
@pytest.mark.parametrize("dtype", ["f16", "q4_0", "q4_k", "q6_k"])
def test_a_small_block_has_a_ring_for_one_row_and_for_few(run_small: Run, dtype: str) -> None:
    """Rows longer than what is in a block's memory at a time, and more tiles than it adds up at once."""
    code = """
from kernels.case import case
from kernels.devices import Target, lab
from kernels.runner import run

device = lab(Target("cuda"))
for c in [
    case("matmul", dtype="{dtype}", rows=1, n=300, k=2304),
    case("matmul", dtype="{dtype}", rows=2, n=40, k=2560, bias=True, cap=3.0),
    case("matmul", dtype="{dtype}", rows=33, n=170, k=1280, accumulate=True),
    case("matmul", dtype="{dtype}", rows=64, n=170, k=512),
    case("gate_up", dtype="{dtype}", rows=17, n=90, k=1024, activation="silu", formats=("q8",)),
]:
    for text in run(c.build(device), device):
        print(c.id, text)
print("done")
"""
    done = run_small(code.replace("{dtype}", dtype))
    assert done.stdout == "done\n", done.stderr or done.stdout


def test_the_sampler(run: Run, check: Check) -> None:
    check(run, lambda case: case.builder == "sample" and case.get("vocab") <= 1000, 20)


def test_blocks_that_sample_a_row_together(run: Run, check: Check) -> None:
    """Several blocks find the token of a large vocabulary that one block finds, whatever the cuts."""

    def shared(case: Case) -> bool:
        large = case.builder in ("sample", "sample_prepare") and 30_000 <= (case.get("vocab") or 0) < 100_000
        return large and (case.get("rows") or 1) == 1

    check(run, shared, 27, EMULATOR_BLOCKS="5")


def test_attention_to_sounds(run: Run, check: Check) -> None:
    check(run, lambda case: case.builder in SOUNDS and case.get("keys") <= 256, 30)


def test_the_rules_of_transcripts(run: Run) -> None:
    """Of vocabularies that a block has, and that several share."""
    code = """
from kernels.devices import Target, lab
from speech.test_rules_on_device import LIFTS, OPTIONS, check
for options in OPTIONS.values():
    for before in (0, 5408):
        check(lab(Target("cuda")), options, LIFTS[1], before)
print("equal")
"""
    done = run(code)
    assert done.stdout == "equal\n", done.stderr


def test_attention_with_sinks(run: Run, check: Check) -> None:
    def wanted(case: Case) -> bool:
        return bool(case.get("sinks")) and case.get("kv") != "f32" and case.get("window") != 128

    check(run, wanted, 12)


@pytest.mark.long
@pytest.mark.in_turn
def test_attention_of_several_sequences(run: Run, check: Check) -> None:
    def wanted(case: Case) -> bool:
        return case.builder == "attention" and bool(case.get("others")) and case.get("kv") == "q8_0"

    check(run, wanted, 3)


NOT_FINITE = """
import numpy as np
from kernels.devices import Target, lab
from kernels.problem import pack
from kernels.weights import random_weight

device, rng, k, n = lab(Target("cuda")), np.random.default_rng(3), 512, 40
for dtype in ("f16", "q4_0", "q6_k"):
    for rows in (1, 3):
        for bad in (np.nan, np.inf):
            x = rng.standard_normal((rows, k)).astype(np.float16)
            x[rows - 1, 130] = bad
            w = random_weight(rng, dtype, n, k)
            out = np.zeros((rows, n), np.float32)
            device.run(
                "matmul",
                [x, device.weight(dtype, w.data, n, k), out, None],
                pack("matmul", rows=rows, n=n, k=k, y_stride=n, accumulate=0, has_bias=0, softcap=0,
                     activation=0, format=1),
            )
            assert not np.isfinite(out[rows - 1]).any(), (dtype, rows, bad, out[rows - 1])
            assert np.isfinite(out[: rows - 1]).all(), (dtype, rows, bad)
            if np.isnan(bad):
                assert np.isnan(out[rows - 1]).all(), (dtype, rows)
print("spread")
"""


def test_what_is_no_number_spreads_to_its_row_and_to_no_other(run: Run) -> None:
    done = run(NOT_FINITE)
    assert done.stdout == "spread\n", done.stderr or done.stdout


DIVIDED = """
from kernels.devices import Target
from kernels.test_delta_rule import test_a_division_into_steps_changes_no_bit

for op, division in {cases}:
    test_a_division_into_steps_changes_no_bit(op, division, Target("cuda"))
print("equal")
"""


def test_delta_nets_give_the_same_bits_whatever_the_step(run: Run, draw: Draw) -> None:
    cases = [(op, division) for op in OPS_WITH_A_STATE for division in ("row by row", "drafts")]
    done = run(DIVIDED.replace("{cases}", repr(draw(cases))))
    assert done.stdout == "equal\n", done.stderr or done.stdout

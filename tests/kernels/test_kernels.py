"""Every case of the table on every device and instruction set that is present."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest

from akunu import _core
from akunu.errors import UnsupportedError

from .cases import (
    CHECKS,
    CPU_CHECKS,
    ENCODER_CHECKS,
    FUSED_CHECKS,
    MIXED_QKV,
    SPEECH_CHECKS,
    Case,
    case,
)
from .devices import TILES, Target, has_kernel, lab, targets
from .problem import Problem
from .runner import run
from .weights import is_planar, random_weight, weight_dtypes

ALL = [
    (case, target)
    for case in [*CHECKS, *ENCODER_CHECKS]
    for target in targets()
    if case.runs_on(target.device)
]
ALL += [(case, target) for case in FUSED_CHECKS for target in targets() if target.device != "cpu"]
ALL += [(case, target) for case in SPEECH_CHECKS for target in targets() if target.device != "cuda"]
ALL += [(case, target) for case in CPU_CHECKS for target in targets() if target.device == "cpu"]
ALL = [(case, target) for case, target in ALL if has_kernel(target, case)]


@lru_cache(maxsize=4)
def problem(case: Case, block_input: str) -> Problem:
    """Built once for the instruction sets of a device, whose tests follow one another."""
    target = next(t for t in targets() if lab(t).matmul_input("q4_0") == block_input)
    return case.build(lab(target))


@pytest.mark.parametrize(("case", "target"), ALL, ids=[f"{case.id}@{target.id}" for case, target in ALL])
def test_kernel(case: Case, target: Target) -> None:
    device = lab(target)
    found = run(problem(case, device.matmul_input("q4_0")), device)
    assert not found, "\n".join(found)


def test_tiles_take_floats_of_whole_texts_alone() -> None:
    rng = np.random.default_rng(0)
    for target in targets():
        for dtype in weight_dtypes():
            w = random_weight(rng, dtype, 16, 256)
            for whole in (False, True):
                split = lab(target).weight(dtype, w.data, 16, 256, whole=whole).split
                floats = dtype in ("f32", "f16", "bf16")
                assert split == (whole and floats and target.isa == TILES), (target.id, dtype, whole)


def fused_labs() -> list[_core.Lab]:
    return [lab(t) for t in targets() if t.device != "cpu"]


def test_the_table_names_every_pair_of_types_that_a_device_takes() -> None:
    assert all(sorted(device.mixed_qkv) == sorted(MIXED_QKV) for device in fused_labs())
    assert all(lab(t).mixed_qkv == [] for t in targets() if t.device == "cpu")


@pytest.mark.parametrize(("dtype", "v"), [("q6_k", "q4_k"), ("q4_k", "q8_0"), ("f16", "q4_0")])
def test_another_pair_of_types_is_refused(dtype: str, v: str) -> None:
    """The table builder does not ask for it."""
    for device in fused_labs():
        problem = case("norm_qkv", dtype=dtype, v=v, n_q=4, n_kv=4, k=256).build(device)
        with pytest.raises(UnsupportedError, match="norm_qkv"):
            run(problem, device)


def test_the_table_names_every_op_and_every_type() -> None:
    """A new op or weight type without a case fails here."""
    cases = [*CHECKS, *ENCODER_CHECKS, *SPEECH_CHECKS, *CPU_CHECKS, *FUSED_CHECKS]
    one_of_each = {(x.builder, x.get("split")): x for x in cases}.values()
    ops = {c.op for x in one_of_each for c in x.build(lab(targets()[0]), checking=False).commands}
    buffers = {
        "Row",
        "LogitBias",
        "SamplerState",
        "SlotState",
        "LogprobRecord",
        "Control",
        "SpeechRules",
        "StateSpan",
    }
    elsewhere = {"speech_rules"}  # tests/speech/test_rules_on_device.py
    assert ops | elsewhere == set(_core.lab_structs()) - buffers
    weights = set(weight_dtypes())
    for builder in ("embed", "matmul", "gate_up"):
        assert {x.get("dtype") for x in cases if x.builder == builder} == weights
    for builder in ("norm_qkv", "norm_gate_up"):
        assert {x.get("dtype") for x in cases if x.builder == builder} == {
            dtype for dtype in weights if not is_planar(dtype)
        }
    assert len({x.id for x in cases}) == len(cases)

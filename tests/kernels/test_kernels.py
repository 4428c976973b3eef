"""Every case of the table on every device and instruction set that is present."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from akunu import _core
from akunu.base.errors import UnsupportedError
from order import Draw

from .builders.attention import is_fixed
from .builders.common import FIXED
from .case import Case, case
from .cases import (
    CHECKS,
    CPU_CHECKS,
    DELTA_CHECKS,
    ENCODER_CHECKS,
    EXPERT_CHECKS,
    FUSED_CHECKS,
    IMPORTANCE_CHECKS,
    KV_CHECKS,
    LATENT_CHECKS,
    LORA_CHECKS,
    MAMBA_CHECKS,
    MIXED_QKV,
    RECURRENCE_CHECKS,
    SINK_CHECKS,
    SPEECH_CHECKS,
)
from .devices import has_kernel, is_whole, lab, targets
from .problem import Problem
from .runner import run
from .weights import has_levels, is_planar, random_weight, weight_dtypes

#: Cases, and the devices that have their ops.
TABLE = [
    ([*CHECKS, *ENCODER_CHECKS, *SPEECH_CHECKS, *RECURRENCE_CHECKS], ("cpu", "metal", "cuda")),
    (FUSED_CHECKS, ("metal", "cuda")),
    (IMPORTANCE_CHECKS, ("cpu", "cuda")),
    (
        [
            *DELTA_CHECKS,
            *MAMBA_CHECKS,
            *EXPERT_CHECKS,
            *LATENT_CHECKS,
            *LORA_CHECKS,
            *SINK_CHECKS,
            *KV_CHECKS,
        ],
        ("cpu", "metal", "cuda"),
    ),
    (CPU_CHECKS, ("cpu",)),
]
PRESENT = {target.device for target in targets()}
ALL = [
    (case, device)
    for cases, devices in TABLE
    for case in cases
    for device in devices
    if device in PRESENT and case.runs_on(device)
]
EVERY = [case for cases, _ in TABLE for case in cases]


def work(case: Case) -> int:
    """About how many products a case of attention or of a matmul has."""
    rows, n, k = case.get("rows", 1), case.get("n"), case.get("k")
    if case.builder == "attention":
        heads, _, head_dim = case.get("shape")
        sequences = [(rows, case.get("position") or 0), *(case.get("others") or ())]
        return sum(count * (position + count) * heads * head_dim for count, position in sequences)
    return (rows or 1) * n * k if case.builder == "matmul" and n and k else 0


#: Of those that take long on the emulated GPU three of four are long.
LARGE = [case for case in EVERY if work(case) > 3_000_000]
LONG = {case for i, case in enumerate(LARGE) if i % 4}


def rounds(case: Case, isa: str) -> bool:
    """Whether a set rounds what it multiplies for whole sequences, and its errors have another bound."""
    return is_fixed(isa, case.get("shape")[2]) if case.builder == "attention" else isa in FIXED


def groups() -> list[Any]:
    """Cases of an op and a type on a device are one test: most take less time than a test's report."""
    found: dict[tuple[str, str, bool], list[Case]] = {}
    for one, device in ALL:
        kind = one.get("dtype") or one.get("kv")
        name = f"{one.builder}-{kind}" if kind else one.builder
        found.setdefault((name, device, device == "metal" and one in LONG), []).append(one)
    return [
        pytest.param(
            *(cases, device),
            id=f"{name}{'-large' if long else ''}@{device}",
            marks=pytest.mark.long if long else (),
        )
        for (name, device, long), cases in found.items()
    ]


@pytest.mark.parametrize(("cases", "device"), groups())
def test_kernel(cases: list[Case], device: str, draw: Draw) -> None:
    failed = [text for one in draw(cases) for text in failures_of(one, device)]
    assert not failed, "\n".join(failed)


def failures_of(case: Case, device: str) -> list[str]:
    """The reference is computed once for the CPU's instruction sets that round alike."""
    built: dict[tuple[str, bool], Problem] = {}
    failed = []
    for target in targets():
        if target.device != device or not has_kernel(target, case):
            continue
        chosen = lab(target)
        form = chosen.matmul_input("q4_0"), is_whole(case) and rounds(case, target.isa)
        if form not in built:
            built[form] = case.build(chosen)
        try:
            found = run(built[form], chosen)
        except Exception as error:
            error.add_note(f"{case.id} on {target.id}")
            raise
        failed += [f"{case.id} on {target.id}: {text}" for text in found]
    return failed


def test_floats_of_whole_sequences_alone_have_a_format_of_their_own() -> None:
    rng = np.random.default_rng(0)
    for target in targets():
        for dtype in weight_dtypes():
            if target.device != "cpu" and has_levels(dtype):
                continue
            w = random_weight(rng, dtype, 16, 256)
            for whole in (False, True):
                found = lab(target).weight(dtype, w.data, 16, 256, whole=whole).whole
                floats = dtype in ("f32", "f16", "bf16")
                assert found == (whole and floats and target.isa in FIXED), (
                    target.id,
                    dtype,
                    whole,
                )


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
    one_of_each = {(x.builder, x.get("split")): x for x in EVERY}.values()
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
        "ChainRecord",
    }
    elsewhere = {"speech_rules"}  # tests/speech/test_rules_on_device.py
    assert ops | elsewhere == set(_core.lab_structs()) - buffers
    weights = set(weight_dtypes())
    for builder in ("embed", "matmul", "gate_up", "experts_gate_up", "experts_down"):
        assert {x.get("dtype") for x in EVERY if x.builder == builder} == weights
    for builder in ("norm_qkv", "norm_gate_up"):
        assert {x.get("dtype") for x in EVERY if x.builder == builder} == {
            dtype for dtype in weights if not is_planar(dtype)
        }
    assert len({x.id for x in EVERY}) == len(EVERY)

"""The kernel table's cases on the emulated GPU: every op, the same bounds as on a real one."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]

CODE = """
from tests.kernels.cases import CHECKS, ENCODER_CHECKS, FUSED_CHECKS, RECURRENCE_CHECKS, SPEECH_CHECKS
from tests.kernels.devices import Target, lab
from tests.kernels.runner import run

def wanted(case):
    return {wanted}

device, n = lab(Target("cuda")), 0
for case in [*CHECKS, *FUSED_CHECKS, *ENCODER_CHECKS, *SPEECH_CHECKS, *RECURRENCE_CHECKS]:
    if not wanted(case) or not case.runs_on("cuda"):
        continue
    n += 1
    for text in run(case.build(device), device):
        print(case.id, text)
print(n, "cases")
"""

#: Types with readers in the emulator, see conftest.py; a mixed pair's second type has none.
TYPES = ("f32", "f16", "q4_0", "q6_k", "mlx_q4_g64_bf16", "mlx_mxfp4", "f8_e4m3_g32")
MATMULS = ("embed", "matmul", "gate_up", "norm_qkv", "norm_gate_up")
ROWS = [
    "norm",
    "norm_add",
    "layer_norm",
    "quantize",
    "gate_act",
    "rope_table",
    "embed_position",
    "unfold",
    "recur",
    "pool",
    "kv_copy",
    "argmax",
    "sample_prepare",
    "logprobs",
    "accept",
]


def check(run: Run, wanted: str, least: int) -> None:
    done = run(CODE.replace("{wanted}", wanted))
    assert done.returncode == 0, done.stderr
    *failed, cases = done.stdout.splitlines()
    assert not failed
    assert int(cases.split()[0]) >= least


def test_rows_and_tokens(run: Run) -> None:
    small = "not case.get('vocab') or case.get('vocab') <= 32000"
    check(run, f"case.builder in {ROWS} and ({small})", 140)


def test_matmuls(run: Run) -> None:
    """Of few inputs: long sums differ in nothing but time."""
    check(
        run,
        f"case.builder in {MATMULS} and case.get('dtype') in {TYPES} and not case.get('v') "
        "and (case.get('k') or 0) <= 512 and (case.get('rows') or 0) <= 33",
        85,
    )


def test_what_is_read_before_the_first_barrier_was_copied_by_all_blocks(run: Run) -> None:
    """The norm's weights: of so many inputs that another block copies some of them from the host."""
    check(run, "case.builder == 'norm_gate_up' and case.get('dtype') == 'q4_0' and case.get('k') == 2304", 1)


def test_attention(run: Run) -> None:
    """Texts of few keys, every type of cache, one text and several."""
    few = "(case.get('position') or 0) + (case.get('rows') or 1) < 40 and not case.get('others')"
    check(run, f"case.builder in ('rope_kv', 'attention') and ({few})", 40)


def test_the_sampler(run: Run) -> None:
    check(run, "case.builder == 'sample' and case.get('vocab') <= 1000", 20)


def test_attention_to_sounds(run: Run) -> None:
    check(run, "case.builder in ('cross_attention', 'attention_weights') and case.get('keys') <= 256", 30)


def test_the_rules_of_transcripts(run: Run) -> None:
    """Of vocabularies that a block has, and that several share."""
    code = """
from tests.kernels.devices import Target, lab
from tests.speech.test_rules_on_device import LIFTS, OPTIONS, check
for options in OPTIONS.values():
    for before in (0, 5408):
        check(lab(Target("cuda")), options, LIFTS[1], before)
print("equal")
"""
    done = run(code)
    assert done.stdout == "equal\n", done.stderr


@pytest.mark.long
def test_attention_of_several_texts(run: Run) -> None:
    check(run, "case.builder == 'attention' and case.get('others') and case.get('kv') == 'q8_0'", 3)

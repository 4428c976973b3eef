"""Kernels of AKUNU_CUDA_RACECHECK, whose order of shared memory racecheck follows, give the same bits."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from .kernel_cases import check
from .test_batches import check as check_batch
from .test_device import QUANTIZE, lost_words

Run = Callable[..., subprocess.CompletedProcess[str]]
pytestmark = [pytest.mark.long, pytest.mark.in_turn("races")]  # they have an emulator of their own

MODEL = """
import hashlib
import numpy as np
from sampling import engines

engines.DEVICE = "cuda"
ids = (np.arange({rows}) * 7 % 61).astype(np.uint32)
engine = engines.synthetic(64, 256, layers=2, group=2, context=160, weights="{weights}", chunk=128)
engine.begin(ids, temperature=0.0, end_ids=())
while engine.prefill()[0]:
    pass
print(list(engine.decode(5).ids), hashlib.sha256(engine.logits(ids).tobytes()).hexdigest())
"""


@pytest.mark.parametrize(("rows", "weights"), [(100, "q4_0"), (9, "f32")])
def test_a_prompt_and_what_follows_it_have_the_same_bits(
    run: Run, run_checked: Run, rows: int, weights: str
) -> None:
    code = MODEL.format(rows=rows, weights=weights)
    expected = run(code)
    assert expected.returncode == 0, expected.stderr
    done = run_checked(code)
    assert done.stdout == expected.stdout, done.stderr or done.stdout


@pytest.mark.parametrize(("texts", "weights"), [(20, "f16")])
def test_a_batch(run_checked: Run, texts: int, weights: str) -> None:
    check_batch(
        run_checked, dim=128, lengths=[1 + 5 * i % 7 for i in range(texts)], weights=weights, head_dim=32,
        group=2, kv="f16", alone=[1, 2], bound=0.02,
    )  # fmt: skip


def test_tiles_in_parts_and_tall_ones(run_checked: Run) -> None:
    check(
        run_checked,
        "'matmul', dtype='f16', rows=300, n=250, k=256, accumulate=True",
        "'matmul', dtype='f16', rows=250, n=128, k=2816, accumulate=True",
        "'gate_up', dtype='q4_0', rows=257, n=130, k=128, activation='silu', formats=('q8',)",
        "'experts_down', dtype='q4_0', rows=40, experts=4, chosen=2, n=40, k=64",
    )


def test_a_word_that_does_not_come_is_an_error(run_checked: Run) -> None:
    lost_words(run_checked)


def test_their_machine_code_is_kept_beside_the_others(run: Run, run_checked: Run, tmp_path: Path) -> None:
    for each in (run, run_checked):
        assert each(QUANTIZE).stdout == "equal\n"
    assert len(list((tmp_path / "cache" / "cuda").iterdir())) == 2

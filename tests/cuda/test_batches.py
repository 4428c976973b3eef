"""Many sequences in a step: each is what it is alone, as far as sums of other shapes let it be."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]

CODE = """
import numpy as np
from sampling import engines

engines.DEVICE = "cuda"
rng = np.random.default_rng(5)
lengths = {lengths}
prompts = [rng.integers(0, 96, n).astype(np.uint32) for n in lengths]
STEPS, LOGPROBS = 2, 3

def generated(sequences):
    engine = engines.synthetic(
        96, {dim}, layers=2, head_dim={head_dim}, group={group}, weights="{weights}", kv_dtype="{kv}",
        context=max(lengths) + 16, chunk=512, parallel=max(len(sequences), 2),
    )
    slots = [engine.open() for _ in sequences]
    for slot, i in zip(slots, sequences, strict=True):
        # One of four is greedy, one samples, one has penalties, one is told how likely its tokens are.
        sampling = {{"temperature": 0.8, "seed": i, "top_p": 0.9}} if i % 4 == 1 else {{"temperature": 0.0}}
        penalties = {{"repeat_penalty": 1.3, "presence_penalty": 0.2}} if i % 4 == 2 else {{}}
        logprobs = {{"logprobs": LOGPROBS}} if i % 4 == 3 else {{}}
        engine.begin(prompts[i], slot=slot, reuse=False, **sampling, **penalties, **logprobs)
        assert engine.reserve(slot, lengths[i])
    for slot, i in zip(slots, sequences, strict=True):
        engine.step([(slot, lengths[i], True, 1, [])])
    for slot in slots:
        assert engine.reserve(slot, 1, STEPS)
    chunks, _ = engine.step([(slot, 1, True, STEPS, []) for slot in slots], STEPS)
    engine.close()
    return chunks

together = generated(range(len(lengths)))
for i in {alone}:
    (lone,) = generated([i])
    assert list(lone.ids) == list(together[i].ids), (i, lone.ids, together[i].ids)
    if i % 4 == 3:
        a, b = (np.array(c.logprobs) for c in (lone, together[i]))
        assert np.abs(a - b).max() < {bound}, (i, a - b)
print("equal")
"""


def check(run: Run, blocks: int = 2, **values: object) -> None:
    done = run(CODE.format(**values), EMULATOR_BLOCKS=str(blocks))
    assert done.stdout == "equal\n", done.stderr or done.stdout


@pytest.mark.table
@pytest.mark.parametrize(
    ("sequences", "weights"),
    [(20, "f16"), (33, "q4_0"), pytest.param(64, "f16", marks=[pytest.mark.long, pytest.mark.in_turn])],
)
def test_sequences_of_a_step_are_those_of_lone_runs(run: Run, sequences: int, weights: str) -> None:
    """Teams of warps for matmuls and attention, by the number of sequences."""
    check(
        run, dim=128, lengths=[1 + 5 * i % 7 for i in range(sequences)], weights=weights, head_dim=32,
        group=2, kv="f16", alone=[1, 2, sequences - 1], bound=0.02,
    )  # fmt: skip


@pytest.mark.long
@pytest.mark.in_turn
@pytest.mark.parametrize(("kv", "group"), [("f16", 4), ("q8_0", 2), ("f32", 1)])
def test_long_sequences_share_the_blocks_that_a_few_sequences_leave(run: Run, kv: str, group: int) -> None:
    """Keys in splits, of sequences that have more and fewer; F32 weights, whose sums are those of one row."""
    check(
        run, blocks=8, dim=32 * group, lengths=[150, 5, 20], weights="f32", head_dim=32, group=group, kv=kv,
        alone=[0, 1], bound=1e-4,
    )  # fmt: skip

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


RUNS = """
import numpy as np
from sampling import engines

engines.DEVICE = "cuda"
lengths, DRAFTS, RIGHT = {lengths}, {drafts}, {right}
rng = np.random.default_rng(3)
prompts = [rng.integers(0, 96, n).astype(np.uint32) for n in lengths]

def opened():
    engine = engines.synthetic(
        96, {dim}, layers=2, head_dim={head_dim}, group={group}, weights="{weights}", kv_dtype="{kv}",
        context=max(lengths) + 40, chunk=512, parallel=len(lengths),
    )
    slots = [engine.open() for _ in lengths]
    for slot, prompt in zip(slots, prompts, strict=True):
        engine.begin(prompt, slot=slot, reuse=False, temperature=0.0, end_ids=(), logprobs=3)
        assert engine.reserve(slot, len(prompt))
        engine.step([(slot, len(prompt), True, 1, [])])
    return engine, slots

engine, slots = opened()
plain = []
for slot in slots:
    assert engine.reserve(slot, 1, DRAFTS + 1)
    plain += engine.step([(slot, 1, True, DRAFTS + 1, [])], DRAFTS + 1)[0]
engine.close()
engine, slots = opened()
drafts = [[int(t) for t in chunk.ids[:DRAFTS]] for chunk in plain]
drafts[0][RIGHT] = (drafts[0][RIGHT] + 1) % 96
for slot in slots:
    assert engine.reserve(slot, 1, 1, DRAFTS)
chunks, _ = engine.step([(slot, 1, True, 0, d) for slot, d in zip(slots, drafts, strict=True)])
for i, (a, b) in enumerate(zip(plain, chunks, strict=True)):
    n = RIGHT + 1 if i == 0 else DRAFTS + 1
    assert list(a.ids)[:n] == list(b.ids), (i, a.ids, b.ids)
    difference = np.abs(np.array(a.logprobs[:n]) - np.array(b.logprobs)).max()
    assert difference < {bound}, (i, difference)
engine.close()
print("equal")
"""


@pytest.mark.parametrize(
    ("lengths", "drafts", "shape", "kv", "bound"),
    [
        ((30,), 5, (64, 32, 2), "f16", 2e-3),  # keys on two pages
        pytest.param((3, 64, 1), 3, (64, 32, 1), "q8_0", 2e-2, marks=[pytest.mark.long, pytest.mark.in_turn]),
        pytest.param(
            (270,), 7, (64, 32, 1), "f32", 2e-3, marks=[pytest.mark.long, pytest.mark.in_turn]
        ),  # splits
        pytest.param((31, 5), 4, (128, 64, 2), "f16", 2e-3, marks=[pytest.mark.long, pytest.mark.in_turn]),
        ((9,), 2, (160, 80, 2), "q4_0", 2e-2),
    ],
)
def test_rows_of_a_sequence_are_those_of_steps_of_one(
    run: Run, lengths: tuple[int, ...], drafts: int, shape: tuple[int, int, int], kv: str, bound: float
) -> None:
    """Drafts, which attention in decoding takes where their keys of the step have room."""
    dim, head_dim, group = shape
    code = RUNS.format(
        lengths=lengths, drafts=drafts, right=1, dim=dim, head_dim=head_dim, group=group, weights="f32",
        kv=kv, bound=bound,
    )  # fmt: skip
    # As few as there have to be, or for splits of many keys twice as many.
    blocks = len(lengths) * (1 + drafts) * (dim // head_dim // group) << (max(lengths) > 256)
    done = run(code, EMULATOR_BLOCKS=str(blocks))
    assert done.stdout == "equal\n", done.stderr or done.stdout

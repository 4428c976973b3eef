"""Many sequences in a step on the Metal device: each one is what it is alone."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from akunu import _core
from metal.on_metal import require_metal
from metal.steps import part, step
from metal.tiny_model import open_metal
from models import llama2c


@pytest.fixture(scope="module", autouse=True)
def metal() -> None:
    require_metal()


STORY = llama2c.expected().story_ids
#: Beginnings of the story, whose continuations are known: in a page, at its end, and over several.
LENGTHS = (5, 32, 33, 50)


def started(engine: _core.Engine, lengths: Sequence[int] = LENGTHS, **settings: object) -> list[int]:
    """Slots with beginnings of the story, none of which has run."""
    slots = []
    for n in lengths:
        slot = engine.open()
        engine.begin(STORY[:n], slot=slot, reuse=False, **settings)
        slots.append(slot)
    return slots


def test_prompts_run_together_and_go_on_together(path: Path) -> None:
    engine = open_metal(path)
    slots = started(engine)
    outputs = step(engine, [part(s, n) for s, n in zip(slots, LENGTHS, strict=True)])
    for _ in range(2):
        for output, ids in zip(outputs, step(engine, [part(s, limit=9) for s in slots], 9), strict=True):
            output += ids
    assert outputs == [STORY[n : n + 19] for n in LENGTHS]


def test_one_writes_while_another_reads(path: Path) -> None:
    """A token of one sequence in the same command as chunks of another's prompt."""
    engine = open_metal(path)
    one, other = started(engine, (33, 70))
    ids = step(engine, [part(one, 33)])[0]
    for rows in (11, 40):
        ids += step(engine, [part(one), part(other, rows, sample=False)])[0]
    last = step(engine, [part(one), part(other, 19)])
    assert ids + last[0] == STORY[33:37] and last[1] == STORY[70:71]


@pytest.mark.parametrize(
    "settings", [{}, {"temperature": 0.8, "top_p": 0.9, "seed": 5, "repeat_penalty": 1.1}]
)
def test_a_sequence_does_not_depend_on_the_others(path: Path, settings: dict[str, float]) -> None:
    def output(lengths: Sequence[int]) -> list[int]:
        engine = open_metal(path)
        slots = started(engine, lengths, **settings)
        ids = step(engine, [part(s, n) for s, n in zip(slots, lengths, strict=True)])[-1]
        return ids + step(engine, [part(s, limit=12) for s in slots], 12)[-1]

    assert output((33,)) == output((70, 5, 33))


@pytest.mark.parametrize("right", [0, 2, 5])
def test_drafts_are_kept_as_far_as_they_are_drawn(path: Path, right: int) -> None:
    engine = open_metal(path)
    slots = started(engine, (5, 40))
    step(engine, [part(slots[0], 5), part(slots[1], 40)])
    drafts = STORY[41 : 41 + right] + [(i + 1) % 512 for i in STORY[41 + right : 46]]
    found = step(engine, [part(slots[0]), part(slots[1], limit=10, drafts=drafts)])
    assert found == [STORY[6:7], STORY[41 : 42 + right]]
    found = step(engine, [part(s, limit=8) for s in slots], 8)
    assert found == [STORY[7:15], STORY[42 + right : 50 + right]]


def test_each_sequence_has_its_own_limit_and_end(path: Path) -> None:
    engine = open_metal(path)
    slots = started(engine, (5, 32))
    slots += started(engine, (70,), end_ids=[STORY[74]])
    step(engine, [part(s, n) for s, n in zip(slots, (5, 32, 70), strict=True)])
    found = step(engine, [part(slots[0], limit=3), part(slots[1], limit=20), part(slots[2], limit=20)], 20)
    assert found == [STORY[6:9], STORY[33:53], STORY[71:75]]
    # Those that stopped go on as if nothing had been run behind their ends.
    found = step(engine, [part(s, limit=4) for s in (slots[0], slots[2])], 4)
    assert found == [STORY[9:13], STORY[75:79]]


def test_logprobs_are_of_their_own_rows(path: Path) -> None:
    engine, vocab = open_metal(path), 512
    slots = [*started(engine, (5,)), *started(engine, (33,), logprobs=2), *started(engine, (32,))]
    parts = [part(s, n) for s, n in zip(slots, (5, 33, 32), strict=True)]
    for slot, rows, *_ in parts:
        assert engine.reserve(slot, rows)
    chunks = [engine.step(parts)[0][1]]
    for s in slots:
        assert engine.reserve(s, 1, 6)
    chunks += [engine.step([part(s, limit=6) for s in slots], 6)[0][1]]
    ids = [i for chunk in chunks for i in chunk.ids]
    assert ids == STORY[33:40]
    for s in slots:
        engine.close_slot(s)
    logits = engine.logits(STORY[:39])[32:].astype(np.float64)
    assert logits.shape[1] == vocab
    expected = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    found = [value for chunk in chunks for value in chunk.logprobs]
    # One row's kernels and many rows' sum in other orders, after which activations and keys are rounded to
    # F16: each is up to 4e-3 away from what the CPU computes in F32.
    np.testing.assert_allclose(found, expected[np.arange(7), ids], atol=4e-3)


def test_only_allowed_tokens_are_drawn(path: Path) -> None:
    engine = open_metal(path)
    free, bound = started(engine, (33, 33))
    allowed = [9, 77, 400]
    mask = np.zeros(16, np.uint32)
    for i in allowed:
        mask[i // 32] |= np.uint32(1 << i % 32)
    logits = open_metal(path).logits(STORY[:33])[-1]
    parts = [part(free, 33), part(bound, 33)]
    for slot, rows, *_ in parts:
        assert engine.reserve(slot, rows)
    chunks, _ = engine.step(parts, 1, lambda: engine.set_mask(bound, mask))
    assert [chunk.ids for chunk in chunks] == [STORY[33:34], [max(allowed, key=lambda i: logits[i])]]


def test_a_page_that_two_share_is_copied_before_one_writes(path: Path) -> None:
    engine = open_metal(path)
    first = started(engine, (40,))[0]
    step(engine, [part(first, 40)])
    engine.close_slot(first)
    one, other = engine.open(), engine.open()
    # Both go on from the same 39 tokens: a whole page, and seven tokens of the next one.
    held = [engine.begin(STORY[:n], slot=s) for s, n in ((one, 41), (other, 44))]
    assert min(held) > 32
    rows = [41 - held[0], 44 - held[1]]
    found = step(engine, [part(one, rows[0]), part(other, rows[1])])
    assert found == [STORY[41:42], STORY[44:45]]
    assert step(engine, [part(s, limit=6) for s in (one, other)], 6) == [STORY[42:48], STORY[45:51]]


def test_a_chain_ends_after_its_step_when_it_is_asked_to(path: Path) -> None:
    from metal_emulator.control import Control

    engine = open_metal(path)
    slots = started(engine, (5, 33))
    step(engine, [part(slots[0], 5), part(slots[1], 33)])
    control = Control()
    with control.settings(delay_us=30_000):
        timer = threading.Timer(0.1, engine.stop_after_step)
        timer.start()
        found = step(engine, [part(s, limit=80) for s in slots], 80)
        timer.join()
    assert 0 < len(found[0]) == len(found[1]) < 80
    assert found == [STORY[n + 1 : n + 1 + len(found[0])] for n in (5, 33)]
    n = len(found[0])
    assert step(engine, [part(s, limit=2) for s in slots], 2) == [
        STORY[i + 1 + n : i + 3 + n] for i in (5, 33)
    ]

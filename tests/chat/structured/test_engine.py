"""Tokens that are appended without being drawn."""

from __future__ import annotations

import numpy as np
import pytest

from akunu.base.errors import ContextLengthError, InvalidArgumentError
from sampling.engines import synthetic

PROMPT = [3, 1, 4, 1, 5]


def drawn(engine, slot: int, rows: int) -> list[int]:
    assert engine.reserve(slot, rows)
    return engine.step([(slot, rows, True, 1, [])])[0][0].ids


def test_a_text_goes_on_after_tokens_that_were_appended_as_if_they_had_been_in_the_prompt() -> None:
    more = [9, 2, 6, 5, 3, 5]
    engine = synthetic(100, 33, context=64)
    slot, other = engine.open(), engine.open()
    engine.begin(PROMPT, slot=slot, temperature=1.0, seed=5, reuse=False)
    first = drawn(engine, slot, len(PROMPT))
    engine.extend(slot, more)
    second = drawn(engine, slot, 1 + len(more))
    engine.begin([*PROMPT, *first, *more], slot=other, temperature=1.0, seed=5, reuse=False)
    assert drawn(engine, other, len(PROMPT) + 1 + len(more)) == second
    assert engine.length(slot) == len(PROMPT) + 1 + len(more)


def test_they_may_run_in_several_steps() -> None:
    engine = synthetic(100, 33, context=64)
    slot, other = engine.open(), engine.open()
    for where in (slot, other):
        engine.begin(PROMPT, slot=where, reuse=False)
        drawn(engine, where, len(PROMPT))
        engine.extend(where, [7, 8, 9])
    assert engine.reserve(slot, 2)
    assert engine.step([(slot, 2, False, 1, [])])[0][0].ids == []
    assert drawn(engine, slot, 2) == drawn(engine, other, 4)


def test_what_does_not_fit_or_is_no_token_is_refused() -> None:
    engine = synthetic(100, 33, context=16)
    slot = engine.open()
    with pytest.raises(InvalidArgumentError, match="no sequence to extend"):
        engine.extend(slot, [1])
    engine.begin(PROMPT, slot=slot)
    with pytest.raises(InvalidArgumentError, match="100"):
        engine.extend(slot, [100])
    with pytest.raises(ContextLengthError, match="5 tokens and 12 more; the context holds 16"):
        engine.extend(slot, [1] * 12)
    engine.extend(slot, [1] * 11)
    with pytest.raises(InvalidArgumentError, match="slot 9 holds no sequence"):
        engine.extend(9, [1])


def mask_of(vocab: int, *allowed: int) -> np.ndarray:
    bits = np.zeros((vocab + 31) // 32 * 32, bool)
    bits[list(allowed)] = True
    return np.packbits(bits, bitorder="little").view(np.uint32)


def test_what_may_come_next_is_asked_for_within_the_step() -> None:
    engine = synthetic(100, 33, context=64)
    bound, free = engine.open(), engine.open()
    for slot in (bound, free):
        engine.begin(PROMPT, slot=slot, reuse=False)
        assert engine.reserve(slot, len(PROMPT))
    asked = []

    def masks() -> None:
        asked.append(True)
        engine.set_mask(bound, mask_of(100, 17))

    parts = [(slot, len(PROMPT), True, 1, []) for slot in (bound, free)]
    (first, second), raised = engine.step(parts, 1, masks)
    assert asked == [True] and raised is None
    other = engine.open()
    engine.begin(PROMPT, slot=other, reuse=False)
    assert first.ids == [17] and second.ids == drawn(engine, other, len(PROMPT)) != [17]
    # For that step alone.
    known = [*PROMPT, 17]
    engine.begin(known, slot=other, reuse=False)
    assert drawn(engine, bound, 1) == drawn(engine, other, len(known)) != [17]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ValueError("not now")], ids=repr)
def test_a_step_whose_masks_are_not_known_draws_nothing(error: BaseException) -> None:
    engine = synthetic(100, 33, context=64)
    slot = engine.open()
    engine.begin(PROMPT, slot=slot, reuse=False)
    assert engine.reserve(slot, len(PROMPT))

    def masks() -> None:
        raise error

    (chunk,), raised = engine.step([(slot, len(PROMPT), True, 1, [])], 1, masks)
    assert raised is error and chunk.ids == [] and engine.length(slot) == 0
    (chunk,), raised = engine.step(
        [(slot, len(PROMPT), True, 1, [])], 1, lambda: engine.set_mask(slot, mask_of(100, 40))
    )
    assert raised is None and chunk.ids == [40]


def test_masks_are_checked() -> None:
    engine = synthetic(100, 33, context=64)
    slot = engine.open()
    engine.begin(PROMPT, slot=slot, reuse=False)
    assert engine.reserve(slot, len(PROMPT), drafts=2)
    with pytest.raises(InvalidArgumentError, match="when a step asks for them"):
        engine.set_mask(slot, mask_of(100, 1))
    part = (slot, len(PROMPT), True, 0, [1, 2])
    for masks, said in [
        (mask_of(100, 1), "masks for 3 tokens have 4 words each, not 4 in all"),
        (np.stack([mask_of(100, 1), mask_of(100), mask_of(100, 1)]), f"slot {slot} allows no token"),
        # Tokens that the vocabulary does not have are none.
        (np.stack([mask_of(100, 1), mask_of(100, 1), mask_of(100, 101)]), f"slot {slot} allows no token"),
    ]:
        (chunk,), raised = engine.step([part], 1, lambda masks=masks: engine.set_mask(slot, masks))
        assert isinstance(raised, InvalidArgumentError) and said in str(raised)
        assert chunk.ids == []


@pytest.mark.parametrize("settings", [{}, {"temperature": 1.5, "seed": 3}], ids=["greedy", "sampled"])
def test_a_draft_is_verified_under_a_mask_of_its_own(settings: dict[str, float]) -> None:
    engine = synthetic(100, 33, context=64)
    rng = np.random.default_rng(5)
    masks = np.stack([mask_of(100, *rng.choice(100, 9, replace=False)) for _ in range(5)])
    plain, slot = engine.open(), engine.open()
    for where in (plain, slot):
        engine.begin(PROMPT, slot=where, reuse=False, **settings)
    expected, rows = [], len(PROMPT)
    for mask in masks:
        assert engine.reserve(plain, rows)
        (chunk,), _ = engine.step(
            [(plain, rows, True, 1, [])], 1, lambda mask=mask: engine.set_mask(plain, mask)
        )
        expected += chunk.ids
        rows = 1
    for right in range(5):
        drafts = [*expected[:right], *((t + 1) % 100 for t in expected[right:4])]
        assert engine.reserve(slot, len(PROMPT), drafts=len(drafts))
        (chunk,), _ = engine.step(
            [(slot, len(PROMPT), True, 0, drafts)], 1, lambda: engine.set_mask(slot, masks)
        )
        assert chunk.ids == expected[: right + 1]
        engine.begin(PROMPT, slot=slot, reuse=False, **settings)

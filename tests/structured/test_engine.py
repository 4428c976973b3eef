"""Tokens that are appended without being drawn."""

from __future__ import annotations

import pytest

from akunu.errors import ContextLengthError, InvalidArgumentError
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
    with pytest.raises(InvalidArgumentError, match="no text to extend"):
        engine.extend(slot, [1])
    engine.begin(PROMPT, slot=slot)
    with pytest.raises(InvalidArgumentError, match="100"):
        engine.extend(slot, [100])
    with pytest.raises(ContextLengthError, match="5 tokens and 12 more; the context holds 16"):
        engine.extend(slot, [1] * 12)
    engine.extend(slot, [1] * 11)
    with pytest.raises(InvalidArgumentError, match="slot 9 holds no text"):
        engine.extend(9, [1])

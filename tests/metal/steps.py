"""Steps of an engine, as tests write them."""

from __future__ import annotations

from collections.abc import Sequence

from akunu import _core

StepRows = tuple[int, int, bool, int, list[int]]


def part(
    slot: int, rows: int = 1, sample: bool = True, limit: int = 1, drafts: Sequence[int] = ()
) -> StepRows:
    return slot, rows, sample, limit, list(drafts)


def step(engine: _core.Engine, parts: Sequence[StepRows], steps: int = 1) -> list[list[int]]:
    for slot, rows, _, _, drafts in parts:
        assert engine.reserve(slot, rows, steps, len(drafts))
    return [chunk.ids for chunk in engine.step(list(parts), steps)[0]]

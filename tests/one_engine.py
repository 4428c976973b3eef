"""An engine for tests that run one sequence after the other."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from akunu.cli.bench.one_sequence import OneSequence


class OneEngine(OneSequence):
    """A sequence, and whatever else its engine can do: calls that name a slot are the engine's.

    It takes a slot when it is used as a sequence.
    """

    def __init__(self, engine: Any) -> None:
        self.engine = engine
        self._prompt = self._known = 0

    @cached_property
    def slot(self) -> int:
        """Its own slot."""
        slot = self.engine.open()
        assert slot is not None
        return slot

    def begin(self, ids: Any, *, slot: int | None = None, **settings: Any) -> int:
        """Give its own sequence a prompt, or that of a slot."""
        if slot is None:
            return super().begin(ids, **settings)
        return self.engine.begin(ids, slot=slot, **settings)

    def truncate(self, n: int, slot: int | None = None) -> int:
        """Go back in its own sequence, or in that of a slot."""
        return super().truncate(n) if slot is None else self.engine.truncate(n, slot)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)

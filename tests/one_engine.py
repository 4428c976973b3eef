"""An engine for tests that run one sequence after the other."""

from __future__ import annotations

from typing import Any

from akunu.bench.one_sequence import OneSequence


class OneEngine(OneSequence):
    """A sequence, and whatever else its engine can do."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)

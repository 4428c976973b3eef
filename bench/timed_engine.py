"""How long steps take, beside what their caller does itself."""

from __future__ import annotations

import time
from typing import Any

from akunu._core import Engine

__all__ = ["TimedEngine"]


class TimedEngine:
    """An engine whose steps' processor time, of the thread that asks for them, is summed up."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.seconds = 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def step(self, *arguments: Any) -> Any:
        """A step of the engine."""
        before = time.thread_time()
        try:
            return self._engine.step(*arguments)
        finally:
            self.seconds += time.thread_time() - before

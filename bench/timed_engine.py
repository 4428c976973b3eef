"""How long steps take, beside what their caller does itself."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from akunu._core import Engine

__all__ = ["TimedEngine"]


class TimedEngine:
    """An engine whose steps' processor time, of the thread that asks for them, is summed up."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.seconds = 0.0

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._engine, name)
        if callable(found):  # looked up once, as in an engine
            setattr(self, name, found)
        return found

    def step(self, parts: Any, steps: int = 1, masks: Callable[[], object] | None = None) -> Any:
        """A step of the engine; what `masks` takes is the caller's own."""

        def timed_masks() -> None:
            assert masks is not None
            start = time.thread_time()
            masks()
            self.seconds -= time.thread_time() - start

        before = time.thread_time()
        try:
            return self._engine.step(parts, steps, timed_masks if masks else None)
        finally:
            self.seconds += time.thread_time() - before

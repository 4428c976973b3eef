"""An engine that computes nothing but keeps the books of the KV cache, and checks how it is called."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

CPU = {"id": "cpu", "name": "Test CPU", "backend": "CPU", "isa": "generic", "threads": 2, "memory": 1 << 30,
       "prompt_rows": 512}  # fmt: skip
GPU = {
    "id": "metal",
    "name": "Test GPU",
    "backend": "Metal",
    "isa": "apple9",
    "threads": 2,
    "memory": 1 << 30,
    "prompt_rows": 512,
}


class FakeEngine:
    """`calls` records (name, tokens processed or kept); `chunk` rows of a prompt go in one prefill.

    As the engine does, it finds again what any earlier text began with, until it is told to forget.
    """

    def __init__(self, context: int, chunk: int = 4) -> None:
        self.context = context
        self.chunk = chunk
        self.cache: list[int] = []
        self.calls: list[tuple[str, int]] = []
        self.closed = False
        self._earlier: list[list[int]] = []
        self._prompt: list[int] = []

    @property
    def position(self) -> int:
        return len(self.cache)

    def open(self) -> int:
        return 3

    def length(self, slot: int) -> int:
        assert slot == 3
        return self.position

    def begin(self, ids: Any, *, slot: int, temperature: float, end_ids: tuple[int, ...], reuse: bool) -> int:
        assert not self.closed
        assert slot == 3
        assert (temperature, end_ids, reuse) == (0.0, (), True)
        self._prompt = [int(i) for i in ids]
        assert len(self._prompt) <= self.context
        self._earlier.append(self.cache)
        shared = max(self._shared(text) for text in self._earlier)
        self.cache = self._prompt[:shared]
        return shared

    def _shared(self, text: list[int]) -> int:
        most = min(len(text), len(self._prompt) - 1)
        return next((i for i in range(most) if text[i] != self._prompt[i]), most)

    def reserve(self, slot: int, rows: int, steps: int) -> bool:
        assert slot == 3
        return self.position + rows + steps - 1 <= self.context

    def step(self, parts: Any, steps: int) -> tuple[list[Any], None]:
        ((slot, rows, sample, limit, drafts),) = parts
        assert (slot, limit, drafts) == (3, steps, [])
        new = self._prompt[self.position : self.position + rows]
        if new:
            assert len(new) == rows <= self.chunk and steps == 1
            self.cache += new
            self.calls.append(("prefill", rows))
            ids = [1] if sample else []
        else:
            assert rows == 1 and sample
            ids = [10**9] * steps  # no id of a prompt, so it is never reused
            self.cache += ids
            self.calls.append(("decode", steps))
        return [SimpleNamespace(ids=ids, length=self.position)], None

    def truncate(self, n: int, slot: int) -> None:
        assert slot == 3
        assert 0 <= n <= self.position
        self._earlier.append(list(self.cache))
        del self.cache[n:]
        self.calls.append(("truncate", n))

    def forget(self) -> None:
        # A page that is partly used stays whole.
        self._earlier = [
            text[: self.position + 3] for text in self._earlier if text[: self.position] == self.cache
        ]

    def close(self) -> None:
        self.closed = True

    def tokens(self, slot: int) -> Any:
        assert slot == 3
        return np.array(self.cache, np.uint32)

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

    def begin(self, ids: Any, *, temperature: float, end_ids: tuple[int, ...], reuse: bool) -> int:
        assert not self.closed
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

    def prefill(self) -> tuple[int, Any]:
        new = self._prompt[self.position : self.position + self.chunk]
        assert new
        self.cache += new
        self.calls.append(("prefill", len(new)))
        return len(self._prompt) - self.position, SimpleNamespace(ids=[1])

    def decode(self, n: int) -> Any:
        made = [10**9] * min(n, self.context - self.position)  # no id of a prompt, so it is never reused
        self.cache += made
        self.calls.append(("decode", len(made)))
        return SimpleNamespace(ids=made)

    def truncate(self, n: int) -> None:
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

    @property
    def tokens(self) -> Any:
        return np.array(self.cache, np.uint32)

"""One sequence of an engine that runs by itself: what benchmarks time, without a scheduler.

It knows nothing of tokenizers, constraints or other sequences; `akunu.api.scheduling` does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from akunu import _core
from akunu.base.errors import AkunuError, InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import numpy.typing as npt

    from akunu._core import Chunk, Engine

__all__ = ["OneSequence"]


class OneSequence:
    """A sequence of `engine`, in a slot of its own, whose steps no other sequence shares.

    Parameters
    ----------
    engine
        The engine; one of its slots must be free.

    Raises
    ------
    AkunuError
        All slots are taken.
    """

    def __init__(self, engine: Engine) -> None:
        slot = engine.open()
        if slot is None:
            raise AkunuError(f"all {engine.parallel} slots of the engine are taken: close one first")
        self.engine = engine
        self.slot = slot
        self._prompt = self._known = 0

    @property
    def position(self) -> int:
        """Tokens in the KV cache."""
        return self.engine.length(self.slot)

    @property
    def tokens(self) -> npt.NDArray[np.uint32]:
        """The ids of the tokens (a copy)."""
        return self.engine.tokens(self.slot)

    def begin(self, ids: Sequence[int] | npt.NDArray[np.uint32], **settings: Any) -> int:
        """Give it a prompt and settings, which are those of `Engine.begin`; returns what the cache holds."""
        held = self.engine.begin(ids, slot=self.slot, **settings)
        self._prompt = self._known = len(ids)
        return held

    def truncate(self, n: int) -> int:
        """Keep the first `n` tokens; returns how many of them the cache holds."""
        held = self.engine.truncate(n, self.slot)
        self._prompt = self._known = n
        return held

    def prefill(self, sample: bool = True) -> tuple[int, Chunk]:
        """Run one chunk of the prompt; returns (prompt tokens still to run, chunk).

        When none remain, the chunk holds the first sampled token (unless `sample` is False). An interrupt and
        `Engine.cancel` stop it between two commands; the cache then ends at the last whole chunk.
        """
        left = self._prompt - self.position
        if left <= 0:
            raise InvalidArgumentError("prefill without a prompt: call begin first")
        rows = min(left, self.engine.chunk)
        chunk = self._step(rows, sample=sample and rows == left, steps=1)
        return self._prompt - min(chunk.length, self._prompt), chunk

    def decode(self, n: int) -> Chunk | None:
        """Run a chain of up to `n` tokens; fewer when it ended or was cancelled, None where nothing fits."""
        position = self.position
        if self._known <= max(position, self._prompt):
            raise InvalidArgumentError("decode without a sampled token: call begin and prefill first")
        steps = min(n, self.engine.context - position, _core.MAX_CHAIN)
        return self._step(1, sample=True, steps=steps) if steps > 0 else None

    def _step(self, rows: int, *, sample: bool, steps: int) -> Chunk:
        if not self.engine.reserve(self.slot, rows, steps):
            raise AkunuError("no page of the KV cache is left: load the model with a larger kv_memory")
        (chunk,), raised = self.engine.step([(self.slot, rows, sample, steps, [])], steps)
        if chunk.ids:
            self._known = chunk.length + 1
        if raised is not None:
            raise raised
        return chunk

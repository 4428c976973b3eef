"""A deterministic stand-in for the compiled engine, which keeps the contract of `akunu/_core.pyi`.

What it computes is simple; when it computes, what its cache holds and how a call ends early are exactly as
the contract says, so every rule of the generation loop can be tested without weights and timing.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from akunu.errors import ContextLengthError, InvalidArgumentError

NextToken = Callable[[list[int]], int]
"""The next token, from all tokens so far."""


def hashed(vocab: int, first: int = 0) -> NextToken:
    """A model whose next token depends on every token before it: a wrong cache shows at once."""

    def next_token(tokens: list[int]) -> int:
        state = 2166136261
        for token in tokens:
            state = (state ^ (token + 1)) * 16777619 % (1 << 32)
            state ^= state >> 13
        return first + state % (vocab - first)

    return next_token


def scripted(prompt_length: int, continuation: Sequence[int]) -> NextToken:
    """A model that answers a prompt of known length with `continuation`, then repeats its last token."""
    return lambda tokens: continuation[min(len(tokens) - prompt_length, len(continuation) - 1)]


@dataclass
class FakeChunk:
    ids: list[int] = field(default_factory=list)
    ended: bool = False
    logprobs: list[float] = field(default_factory=list)
    top_logprobs: list[list[tuple[int, float]]] = field(default_factory=list)


class FakeEngine:
    """An `akunu._core.Engine` over a `NextToken`.

    `before_decode` and `before_prefill` are called inside each call, with the engine: the place for a cancel,
    a KeyboardInterrupt, or a pause. `calls` records what was asked for.
    """

    def __init__(
        self,
        next_token: NextToken,
        *,
        vocab: int = 300,
        context: int = 256,
        chunk: int = 4,
        seconds: float = 0.0,
    ) -> None:
        self.next_token = next_token
        self.vocab = vocab
        self.context = context
        self.chunk = chunk
        self.threads, self.device, self.isa, self.kv_dtype = 1, "cpu", "generic", "f16"
        self.memory = {"weights": 1, "weights_mapped": 2, "kv_cache": 3, "scratch": 4}
        self.cache: list[int] = []
        self.calls: list[tuple[str, Any]] = []
        self.before_decode: Callable[[FakeEngine], None] = lambda engine: None
        self.before_prefill: Callable[[FakeEngine], None] = lambda engine: None
        self.settings: dict[str, Any] = {}
        self.clock: Callable[[float], None] = lambda seconds: None
        self._prompt: list[int] = []
        self._pending: int | None = None
        self._cancelled = threading.Event()
        self._busy = threading.Lock()
        self.closed = False

    @property
    def position(self) -> int:
        return len(self.cache)

    @property
    def tokens(self) -> np.ndarray:
        return np.array(self.cache, np.uint32)

    def begin(self, ids: Sequence[int], *, reuse: bool = True, **settings: Any) -> int:
        with self._exclusive():
            ids = [int(i) for i in ids]
            self.calls.append(("begin", ids))
            if not ids:
                raise InvalidArgumentError("prompt: no tokens")
            if len(ids) > self.context:
                raise ContextLengthError(f"the prompt has {len(ids)} tokens, the context {self.context}")
            shared = 0
            if reuse:
                limit = min(len(ids) - 1, len(self.cache))
                while shared < limit and ids[shared] == self.cache[shared]:
                    shared += 1
            del self.cache[shared:]
            self._prompt, self._pending = ids, None
            self.settings = settings
            self._cancelled.clear()
            return shared

    def prefill(self, sample: bool = True) -> tuple[int, FakeChunk]:
        with self._exclusive():
            self.calls.append(("prefill", sample))
            self.before_prefill(self)
            if self._cancelled.is_set():
                return len(self._prompt) - self.position, FakeChunk()
            self.cache += self._prompt[self.position : self.position + self.chunk]
            left = len(self._prompt) - self.position
            return left, self._sample(1) if sample and left == 0 else FakeChunk()

    def decode(self, n: int) -> FakeChunk:
        assert n >= 1
        with self._exclusive():
            self.calls.append(("decode", n))
            self.before_decode(self)
            if self._cancelled.is_set():
                return FakeChunk()
            return self._sample(n, decode=True)

    def _sample(self, n: int, decode: bool = False) -> FakeChunk:
        chunk = FakeChunk()
        while len(chunk.ids) < n and not chunk.ended:
            if decode:
                if self.position == self.context:
                    break
                assert self._pending is not None
                self.cache.append(self._pending)
            token = self.next_token(list(self.cache))
            self._pending = token
            chunk.ids.append(token)
            chunk.ended = token in self.settings.get("end_ids", ())
            logprobs = self.settings.get("logprobs", -1)
            if logprobs >= 0:
                chunk.logprobs.append(-token / 1000)
            if logprobs > 0:
                chunk.top_logprobs.append([(token + i, -(token + i) / 1000) for i in range(logprobs)])
        return chunk

    def cancel(self) -> None:
        self._cancelled.set()

    def truncate(self, n: int) -> None:
        with self._exclusive():
            self.calls.append(("truncate", n))
            assert 0 <= n <= self.position
            del self.cache[n:]
            self._pending = None

    def logits(self, ids: Sequence[int]) -> np.ndarray:
        with self._exclusive():
            self.cache = [int(i) for i in ids]
            rows = [self.next_token(self.cache[: i + 1]) for i in range(len(self.cache))]
            return np.eye(self.vocab, dtype=np.float32)[rows]

    def nll(self, ids: Sequence[int], first: int = 1) -> np.ndarray:
        with self._exclusive():
            assert 1 <= first <= len(ids) <= self.context
            self.calls.append(("nll", ([int(i) for i in ids], first)))
            return np.full(len(ids) - first, math.log(self.vocab), np.float32)

    def close(self) -> None:
        self.closed = True

    def _exclusive(self) -> _Exclusive:
        return _Exclusive(self)


class _Exclusive:
    """Fails when two calls overlap, or come after close: the contract forbids both."""

    def __init__(self, engine: FakeEngine) -> None:
        self._engine = engine

    def __enter__(self) -> None:
        assert not self._engine.closed, "the engine is closed"
        assert self._engine._busy.acquire(blocking=False), "two calls overlap"

    def __exit__(self, *_: object) -> None:
        self._engine._busy.release()

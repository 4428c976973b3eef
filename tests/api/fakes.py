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
import pytest

from akunu.api.scheduling.drafts import Proposal, StepCosts
from akunu.base.errors import ContextLengthError, InvalidArgumentError

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


def decide_drafts(patch: pytest.MonkeyPatch, worth: Callable[..., tuple[float, list[int]]]) -> None:
    """Have `worth` decide what is drafted, whatever steps cost; in chains its average for each sequence."""

    def worth_in_chain(
        costs: StepCosts, trusts: Sequence[float], room: int, most: int, writing: float
    ) -> tuple[float, int]:
        proposals = [Proposal(trust, room, True) for trust in trusts]
        speed, lengths = worth(costs, len(trusts), proposals, most, writing)
        drafts = min(sum(lengths) // len(trusts), room)
        return (speed if drafts else 0.0), drafts

    patch.setattr(StepCosts, "may_pay", lambda self, rows, most: True)
    patch.setattr(StepCosts, "worth", worth)
    patch.setattr(StepCosts, "worth_in_chain", worth_in_chain)


@dataclass
class FakeChunk:
    ids: list[int] = field(default_factory=list)
    length: int = 0
    ended: bool = False
    drafts: int = 0
    of_steps: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    top_logprobs: list[list[tuple[int, float]]] = field(default_factory=list)


@dataclass
class FakeSequence:
    """What a slot holds."""

    cache: list[int] = field(default_factory=list)
    prompt: list[int] = field(default_factory=list)
    pending: int | None = None
    forced: list[int] = field(default_factory=list)
    masks: list[np.ndarray] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)
    root: int = 0


class FakeEngine:
    """An `akunu._core.Engine` over a `NextToken`.

    `before_decode` and `before_prefill` are called inside each step, with the engine: the place for a
    cancel, a KeyboardInterrupt (which is given back as the real one does), or a pause. `calls` records what
    was asked for. `cache` is what the sequence of the latest call holds; the next sequence finds it.
    """

    def __init__(
        self,
        next_token: NextToken,
        *,
        vocab: int = 300,
        context: int = 256,
        chunk: int = 4,
        parallel: int = 4,
        pages: int = 10_000,
    ) -> None:
        self.max_logits = max(16, parallel)
        self.next_token = next_token
        self.vocab = vocab
        self.context = context
        self.chunk = chunk
        self.parallel = parallel
        self.threads, self.device, self.isa, self.kv_dtype = 1, "cpu", "generic", "f16"
        self.whole_images = False
        self.paged_experts = {"bytes": 0, "hits": 0, "misses": 0, "read_bytes": 0, "seconds": 0.0}
        self.memory = {"weights": 1, "weights_mapped": 2, "kv_cache": 3, "scratch": 4}
        self.memory_left: int | None = None
        self.cache: list[int] = []
        self.cache_root = 0
        self.calls: list[tuple[str, Any]] = []
        self.steps: list[tuple[int, int]] = []  # (parts, tokens) of each
        self.before_decode: Callable[[FakeEngine], None] = lambda engine: None
        self.before_prefill: Callable[[FakeEngine], None] = lambda engine: None
        self.settings: dict[str, Any] = {}
        self.sequences: dict[int, FakeSequence] = {}
        self.tokens_left = pages * 32
        self.head: NextToken | None = None
        """What the model's own head drafts, where it has one."""
        self.common_tokens = 0
        self.chains: list[tuple[int, int, int]] = []  # sequences, drafts and steps that were asked for
        self._cancelled = threading.Event()
        self._yield = threading.Event()
        self._busy = threading.Lock()
        self.closed = False

    @property
    def position(self) -> int:
        return len(self.cache)

    @property
    def pages(self) -> dict[str, Any]:
        with self._exclusive():
            held = sum(-(-len(sequence.cache) // 32) for sequence in self.sequences.values())
            counts = {"pages": self.tokens_left // 32, "held": held, "pinned": 0, "cached": 0}
            return counts | {"page_bytes": 64, "windows": []}

    def open(self) -> int | None:
        with self._exclusive():
            free = [slot for slot in range(self.parallel) if slot not in self.sequences]
            if not free:
                return None
            self.sequences[free[0]] = FakeSequence()
            return free[0]

    def close_slot(self, slot: int) -> None:
        with self._exclusive():
            sequence = self.sequences.pop(slot)
            self.cache, self.cache_root = list(sequence.cache), sequence.root

    def begin(
        self, ids: Sequence[int], *, slot: int, reuse: bool = True, root: int = 0, **settings: Any
    ) -> int:
        with self._exclusive():
            ids = [int(i) for i in ids]
            self.calls.append(("begin", ids))
            if not ids:
                raise InvalidArgumentError("prompt: no tokens")
            if len(ids) > self.context:
                raise ContextLengthError(f"the prompt has {len(ids)} tokens, the context {self.context}")
            shared = 0
            if reuse and root == self.cache_root:
                limit = min(len(ids) - 1, len(self.cache))
                while shared < limit and ids[shared] == self.cache[shared]:
                    shared += 1
            self.settings = settings
            sequence = self.sequences[slot] = FakeSequence(ids[:shared], ids, settings=settings, root=root)
            self.cache, self.cache_root = sequence.cache, root
            return shared

    def extend(self, slot: int, ids: Sequence[int]) -> None:
        with self._exclusive():
            sequence = self.sequences[slot]
            known = sequence.prompt if sequence.pending is None else sequence.forced
            known += ids
            assert len(sequence.cache) + 1 + len(sequence.forced) <= self.context
            self.calls.append(("extend", list(ids)))

    def set_mask(self, slot: int, masks: np.ndarray) -> None:
        assert self._busy.locked()
        rows = masks.reshape(-1, (self.vocab + 31) // 32).view(np.uint8)
        allowed = np.unpackbits(rows, axis=1, bitorder="little")[:, : self.vocab].astype(bool)
        if not allowed.any(axis=1).all():
            raise InvalidArgumentError(f"the mask of slot {slot} allows no token")
        self.sequences[slot].masks = list(allowed)

    def length(self, slot: int) -> int:
        return len(self.sequences[slot].cache)

    def reserve(self, slot: int, rows: int, steps: int = 1, drafts: int = 0) -> bool:
        held = sum(len(sequence.cache) for sequence in self.sequences.values())
        assert len(self.sequences[slot].cache) + rows - 1 + (1 + drafts) * steps <= self.context
        return held + rows + steps <= self.tokens_left

    def step(
        self,
        parts: Sequence[tuple[int, int, bool, int, Sequence[int]]],
        steps: int = 1,
        masks: Callable[[], object] | None = None,
    ) -> tuple[list[FakeChunk], BaseException | None]:
        assert steps >= 1 and parts and len({slot for slot, *_ in parts}) == len(parts)
        assert sum(rows for _, rows, *_ in parts) <= max(self.chunk, self.parallel)
        assert sum(1 + len(drafts) for _, _, samples, _, drafts in parts if samples) <= self.max_logits
        assert steps == 1 or not any(drafts for *_, drafts in parts)
        with self._exclusive():
            self.steps.append((len(parts), steps))
            decoding = all(self.sequences[slot].pending is not None for slot, *_ in parts)
            self.cache, self.cache_root = self.sequences[parts[0][0]].cache, self.sequences[parts[0][0]].root
            self.calls.append(("decode", steps) if decoding else ("prefill", parts[0][2]))
            for slot, *_ in parts:
                self.sequences[slot].masks = []
            try:
                (self.before_decode if decoding else self.before_prefill)(self)
                if masks is not None:
                    masks()
            except KeyboardInterrupt as error:
                return [FakeChunk(length=len(self.sequences[slot].cache)) for slot, *_ in parts], error
            if self._cancelled.is_set():
                self._cancelled.clear()
                return [FakeChunk(length=len(self.sequences[slot].cache)) for slot, *_ in parts], None
            chunks = [
                self._run(self.sequences[slot], rows, samples, limit, steps, list(drafts))
                for slot, rows, samples, limit, drafts in parts
            ]
            self._yield.clear()  # what was asked for before the step holds for it
            return chunks, None

    def draft(
        self, sequences: Sequence[tuple[int, int]], common: bool = False
    ) -> tuple[list[list[int]], None]:
        return [self._guess(slot, n) for slot, n in sequences], None

    def draft_and_verify(
        self, sequences: Sequence[tuple[int, int]], drafts: int, steps: int, common: bool = False
    ) -> tuple[list[FakeChunk], BaseException | None]:
        self.chains.append((len(sequences), drafts, steps))
        limits = {slot: limit or 1 << 30 for slot, limit in sequences}
        chunks = {slot: FakeChunk(length=self.length(slot), drafts=drafts) for slot in limits}
        for n in range(steps):
            going = [s for s, chunk in chunks.items() if not chunk.ended and len(chunk.ids) < limits[s]]
            if not going or (n > 0 and (self._yield.is_set() or self._cancelled.is_set())):
                break
            parts = [
                (slot, 1, True, limits[slot] - len(chunks[slot].ids), self._guess(slot, drafts))
                for slot in going
            ]
            made, interrupt = self.step(parts)
            for slot, chunk in zip(going, made, strict=True):
                whole = chunks[slot]
                whole.ids += chunk.ids
                whole.of_steps += [len(chunk.ids)] * bool(chunk.ids)
                whole.length, whole.ended = chunk.length, chunk.ended
            if interrupt is not None or not any(chunk.ids for chunk in made):
                return list(chunks.values()), interrupt
        return list(chunks.values()), None

    def _guess(self, slot: int, n: int) -> list[int]:
        assert self.head is not None
        sequence, found = self.sequences[slot], list[int]()
        assert sequence.pending is not None
        for _ in range(n):
            found.append(self.head([*sequence.cache, sequence.pending, *found]))
        return found

    def _run(
        self, sequence: FakeSequence, rows: int, samples: bool, limit: int, steps: int, drafts: list[int]
    ) -> FakeChunk:
        known = (
            sequence.prompt
            if sequence.pending is None
            else [*sequence.cache, sequence.pending, *sequence.forced]
        )
        at = len(sequence.cache)
        sequence.cache += known[at : at + rows]
        assert len(sequence.cache) == at + rows and (not samples or len(sequence.cache) == len(known))
        chunk = FakeChunk(length=len(sequence.cache))
        if not samples:
            sequence.prompt, sequence.pending = known, None
            sequence.forced.clear()
        while samples:
            token = sequence.pending = self._sample(sequence, len(chunk.ids))
            sequence.forced.clear()
            chunk.ids.append(token)
            chunk.length = len(sequence.cache)
            chunk.ended = token in sequence.settings.get("end_ids", ())
            logprobs = sequence.settings.get("logprobs", -1)
            if logprobs >= 0:
                chunk.logprobs.append(-token / 1000)
            if logprobs > 0:
                chunk.top_logprobs.append([(token + i, -(token + i) / 1000) for i in range(logprobs)])
            held = drafts[: len(chunk.ids)] == chunk.ids  # the draft for this token, if it had one
            goes_on = held if drafts else len(chunk.ids) < steps and not self._yield.is_set()
            if chunk.ended or len(chunk.ids) == limit or not goes_on:
                break
            sequence.cache.append(token)
        return chunk

    def _sample(self, sequence: FakeSequence, n: int) -> int:
        """The n-th token of a step; of those that are allowed, the first from there on."""
        token = self.next_token(list(sequence.cache))
        if not sequence.masks:
            return token
        allowed = sequence.masks[min(n, len(sequence.masks) - 1)]
        return int((token + np.argmax(np.roll(allowed, -token))) % self.vocab)

    def cancel(self) -> None:
        self._cancelled.set()

    def stop_after_step(self) -> None:
        self._yield.set()

    def truncate(self, n: int, slot: int) -> int:
        with self._exclusive():
            sequence = self.sequences[slot]
            self.calls.append(("truncate", n))
            assert 0 <= n <= len(sequence.cache)
            del sequence.cache[n:]
            sequence.prompt, sequence.pending = list(sequence.cache), None
            sequence.forced.clear()
            return n

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

"""The generations of one request: started, measured, merged, and ended when nobody wants them."""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final, Self

from starlette.datastructures import FormData
from starlette.requests import Request

from akunu.api.model import Model
from akunu.api.results import Completion, Piece, Stats
from akunu.api.streams import AsyncStream
from akunu.base.errors import AkunuError
from akunu.chat.structured.structure import ARGUMENTS
from akunu.server.adapter_names import with_adapter
from akunu.server.auth import ANYONE, Holder
from akunu.server.foreign_fields import IGNORE_EOS, PROGRESS
from akunu.server.kinds import TEXT
from akunu.server.limits import queue_place, too_long
from akunu.server.metrics import GenerationMeter, Meters
from akunu.server.models import Entry, Registry
from akunu.server.prompt_progress import ProgressWatch
from akunu.server.settings import Settings
from akunu.server.stored import ResponseStore
from akunu.server.workers import Workers

__all__ = ["MAX_GENERATIONS", "Generation", "RequestRecord", "Server", "generations", "together"]

MAX_GENERATIONS: Final = 16
"""Most generations for one request."""

_WHOLE_SECONDS: Final = 0.25
"""Time for which the pieces of an answer that is no stream are collected before the loop sees them."""

_CONSTRAINED: Final = (*ARGUMENTS, "tools")
"""Options that constrain an output, which takes time to compile."""


@dataclass(frozen=True, slots=True)
class Server:
    """The state that the routes share."""

    settings: Settings
    models: Registry
    meters: Meters
    stored: ResponseStore
    workers: Workers
    started_at: float


@dataclass(slots=True)
class RequestRecord:
    """The log's record of a request, filled in on the way; it never has any text of it."""

    id: str
    at: float
    holder: Holder = ANYONE
    """The holder of the key that the request brought."""
    bytes: int = 0
    """Size of its body, as far as it has arrived."""
    files: list[FormData] = field(default_factory=list)
    """Forms whose files are closed when it has been answered."""
    model: str = "-"
    stream: bool = False
    prompt_tokens: int = 0
    cached_tokens: int = 0
    generated_tokens: int = 0
    first_token_seconds: float | None = None
    reasons: list[str] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)
    """The fields that were left out of the request (`Settings.lenient`)."""

    @classmethod
    def of(cls, request: Request) -> RequestRecord:
        """Return what the gate has begun for a request."""
        record: RequestRecord = request.scope["akunu.record"]
        return record


class Generation:
    """One generation that runs: its pieces as they come, within `async with`. Then `completion` is all of it.

    Raises
    ------
    ApiError
        504: the request takes too long.
    """

    def __init__(
        self,
        server: Server,
        entry: Entry,
        stream: AsyncStream,
        record: RequestRecord,
        watched: bool = False,
        whole: bool = False,
    ) -> None:
        self._entry = entry
        self._stream = stream
        self._record = record
        self._deadline = record.at + server.settings.max_seconds
        self._limit = server.settings.max_seconds
        self._late = False
        self._failed = False
        self._watch = ProgressWatch(stream) if watched else None
        self._meter = GenerationMeter(server.meters, entry.spec.name, record.at)
        self._timer: asyncio.TimerHandle | None = None
        self._seconds = _WHOLE_SECONDS if whole else 0.0
        self._taken: deque[Piece] = deque()
        self._prompt_tokens, self._cached_tokens, self._tokens = stream.stats.prompt_tokens, 0, 0

    @property
    def model(self) -> Model:
        """The model that writes the output."""
        model: Model = self._entry.loaded
        return model

    @property
    def completion(self) -> Completion:
        """The result, so far."""
        return self._stream.completion

    @property
    def stats(self) -> Stats:
        """The counts and times, so far."""
        return self._stream.stats

    async def __aenter__(self) -> Self:
        self._entry.generations.append(self)
        left = self._deadline - time.monotonic()
        self._timer = asyncio.get_running_loop().call_later(left, self._give_up)
        return self

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Piece:
        if not self._taken:
            with self._entry.wanted():
                if self._watch is not None and not self._watch.over:
                    first = await self._watch.next()
                    self._taken.extend(() if first is None else (first,))
                    if self._watch.over and first is not None:
                        self._note(first)
                else:
                    self._taken.extend(await self._stream.several(self._seconds, self._note))
        if self._late:
            raise too_long(self._limit)
        if not self._taken:
            raise StopAsyncIteration
        return self._taken.popleft()

    def _note(self, piece: Piece) -> None:
        """A piece came; in the stream's thread."""
        self._meter.piece(piece)
        self._tokens += len(piece.ids)
        if self._tokens == len(piece.ids):
            self._cached_tokens = self.stats.cached_tokens

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._failed = kind is not None and issubclass(kind, AkunuError)
        try:
            if self._watch is not None:
                await self._watch.close()
            await self._stream.aclose()
        finally:
            if self._timer is not None:
                self._timer.cancel()
            self._entry.generations.remove(self)
            self._count()

    def state(self) -> dict[str, Any]:
        """Return whether it waits, reads its prompt or decodes, with its counts, for the engine view."""
        running = "decoding" if self._tokens else "prompt"
        return {
            "state": running if self._stream.running else "waiting",
            "prompt_tokens": self._prompt_tokens,
            "cached_tokens": self._cached_tokens,
            "tokens": self._tokens,
            "seconds": round(time.monotonic() - self._record.at, 3),
        }

    def _give_up(self) -> None:
        self._late = True
        self._stream.cancel()

    def _count(self) -> None:
        completion, record = self.completion, self._record
        reason = "error" if self._failed else completion.finish_reason
        self._meter.end(completion, reason)
        if record.first_token_seconds is None:
            record.first_token_seconds = self._meter.first_token_seconds
        record.prompt_tokens += completion.stats.prompt_tokens
        record.cached_tokens += completion.stats.cached_tokens
        record.generated_tokens += completion.stats.generated_tokens
        record.reasons.append(reason)


@asynccontextmanager
async def generations(
    server: Server,
    record: RequestRecord,
    name: str,
    starts: Sequence[Callable[[Model, dict[str, Any]], AsyncStream]],
    options: dict[str, Any],
    *,
    ends_early: bool = False,
) -> AsyncIterator[list[Generation]]:
    """Generations of the model `name`, which differ by their seeds: the one given, and those that follow it.

    Parameters
    ----------
    starts
        Each makes a stream of a model and the arguments of a generation. They are called in a thread: a long
        prompt takes time to put into tokens.
    ends_early
        The caller may end them at any piece. Else only streams have each as soon as it is there.

    Raises
    ------
    ApiError, AkunuError
        There is no such model, no room in its queue, or an argument is wrong.
    """
    options = {**options, "priority": _priority(server, record, options.get("priority"))}
    own, given = record.holder.salt, options.get("cache_salt")
    options["cache_salt"] = own if given is None else f"{own or ''} {given}"
    endless = options.pop(IGNORE_EOS, False)
    watched = options.pop(PROGRESS, False) and record.stream
    whole = not (record.stream or ends_early)
    options = with_adapter(server.models, name, options)
    async with server.models.use(name, TEXT) as entry:
        record.model = entry.spec.name
        with queue_place(entry, len(starts), server.settings, record.holder):

            def streams() -> list[AsyncStream]:
                given = _endless(entry.loaded, options) if endless else options
                begun = [
                    start(entry.loaded, _seeded(given, i)).run_in(server.workers.streams)
                    for i, start in enumerate(starts)
                ]
                return [stream.patient() for stream in begun] if whole else begun

            if any(options.get(name) for name in _CONSTRAINED):
                begun = await server.workers.compiled(streams)
            else:
                begun = await server.workers.prompt(record.bytes, streams)
            yield [Generation(server, entry, stream, record, watched, whole) for stream in begun]


def _endless(model: Model, options: dict[str, Any]) -> dict[str, Any]:
    """The arguments, with no token that ends an output."""
    ends = dict.fromkeys(model.tokenizer.end_of_generation_ids, -math.inf)
    return {**options, "logit_bias": {**(options.get("logit_bias") or {}), **ends}}


def _seeded(options: dict[str, Any], i: int) -> dict[str, Any]:
    """The arguments of generation number `i`: each has the next seed, and 0 follows the highest."""
    seed = options.get("seed")
    return options if seed is None or i == 0 else {**options, "seed": (seed + i) % (1 << 64)}


def _priority(server: Server, record: RequestRecord, wanted: int | None) -> int | None:
    """Return the priority that a request gets: what it wants, but not more than its key has."""
    if not server.settings.keys:
        return wanted
    most = record.holder.priority
    return most if wanted is None else min(wanted, most)


async def together(found: Sequence[Generation]) -> AsyncGenerator[tuple[int, Piece | None], None]:
    """The pieces of all generations as they come, each with its generation's number; None is the end of one.

    Each generation is at most a piece ahead.
    """
    if len(found) == 1:
        async with found[0] as generation:
            async for piece in generation:
                yield 0, piece
        yield 0, None
        return
    queue: asyncio.Queue[tuple[int, Piece | None] | Exception] = asyncio.Queue(1)

    async def run(index: int) -> None:
        try:
            async with found[index] as generation:
                async for piece in generation:
                    await queue.put((index, piece))
        except Exception as error:
            await queue.put(error)
        else:
            await queue.put((index, None))

    tasks = [asyncio.create_task(run(index)) for index in range(len(found))]
    running = len(found)
    try:
        while running:
            item = await queue.get()
            if isinstance(item, Exception):
                raise item
            running -= item[1] is None
            yield item
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

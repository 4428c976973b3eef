"""The models of a server: loaded when they are asked for, unloaded when they idle or others need the room."""

from __future__ import annotations

import asyncio
import contextlib
import fnmatch
import gc
import logging
import math
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Protocol

from akunu.base.errors import AkunuError, DeviceError, InvalidArgumentError
from akunu.loading.finding import FoundModel
from akunu.server.catalog import ModelSpec
from akunu.server.errors import ApiError
from akunu.server.fitting import check_shared
from akunu.server.kinds import TEXT, Kind, ServedModel, kind_of
from akunu.server.preloading import Preload, find_model, load_model
from akunu.server.workers import Workers

__all__ = ["Entry", "Registry", "shutting_down"]

_log = logging.getLogger("akunu.server")


_LONGEST: Final = 1e9
"""Seconds: asyncio waits for no infinity."""
_MODELS: Final = 4
"""Models in memory, where nobody says how many."""


class Watched(Protocol):
    """A generation, as the view of the engine shows it."""

    def state(self) -> dict[str, Any]:
        """Return whether it waits, reads its prompt or decodes, with its counts."""


@dataclass(eq=False)
class Entry:
    """A model that may be asked for, loaded or not."""

    spec: ModelSpec
    model: ServedModel | None = None
    users: int = 0
    """Requests that use it; it is not unloaded under them."""
    queue: Counter[str] = field(default_factory=Counter)
    """Generations that run or wait, by the ids of those who asked."""
    wanting: int = 0
    """The number of them whose readers wait for more."""
    used_at: float = 0.0
    progress_at: float = 0.0
    """`time.monotonic()` when the engine was last seen to get on, or was first asked to."""
    steps: int = 0
    """The steps that the engine had done at that time."""
    bytes: int = 0
    keep_seconds: float | None = None
    """Seconds that the model stays after its last request, by a client's wish; None: as the settings say."""
    kind: Kind | None = None
    """The kind that the model had when it was last loaded; None: it has not been yet."""
    was_loaded: bool = False
    """Whether it was loaded since the server began; if it was unloaded, a request loads it again."""
    constraints_prepared: bool = False
    unfit: Mapping[str, str] = field(default_factory=dict)
    """Settings for all models that it was loaded without, and why."""
    generations: list[Watched] = field(default_factory=list)
    """The generations that have begun."""
    tokens_per_second: float = 0.0
    """Speed of all sequences together, in the last second or so."""
    earlier: Counter[str] = field(default_factory=Counter)
    """The counts (`ModelStats`) until the model was unloaded."""
    generated: int = 0
    measured_at: float = 0.0
    adapter: tuple[str, float] | None = None
    """The adapter of requests that name none, and its scale."""
    changing: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while it is loaded or unloaded."""
    loading: asyncio.Task[None] | None = None
    """Loads it, for all who wait for it."""
    fetching: bool = False
    """Whether that task waits for the model's files."""
    calls: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held by the call that runs, of those that come one at a time."""

    @property
    def adapters(self) -> Mapping[str, str]:
        """The paths of its adapters, by name."""
        return self.spec.adapters or {}

    @property
    def queued(self) -> int:
        """Generations that run or wait."""
        return self.queue.total()

    @contextmanager
    def wanted(self) -> Iterator[None]:
        """A reader waits for more of an output."""
        if not self.wanting:
            self.progress_at = time.monotonic()
        self.wanting += 1
        try:
            yield
        finally:
            self.wanting -= 1
            self.progress_at = time.monotonic()

    def stalled_for(self) -> float:
        """Seconds for which readers have waited and the engine has not made a step."""
        if self.model is None or not self.wanting:
            return 0.0
        now, steps = time.monotonic(), self.model.stats.steps
        if steps != self.steps:
            self.steps, self.progress_at = steps, now
        return now - self.progress_at

    def totals(self) -> Counter[str]:
        """Counts since the server began, whether or not the model was unloaded meanwhile."""
        now = {} if self.model is None else asdict(self.model.stats)
        return self.earlier + Counter(now)

    def measure(self) -> None:
        """Look how far the engine got; called about once a second."""
        self.stalled_for()
        now = time.monotonic()
        generated = self.model.stats.generated_tokens if self.model is not None else 0
        self.tokens_per_second = max(0, generated - self.generated) / (now - self.measured_at)
        self.generated, self.measured_at = generated, now

    def check_unused(self) -> None:
        """Raises an `ApiError` (409) while requests use it."""
        if self.users:
            message = f"model: {self.spec.name} is in use by {self.users} requests"
            raise ApiError(409, message, param="model", code="model_in_use")

    @property
    def loaded(self) -> Any:
        """The model, for one who uses the entry: of the kind that `Registry.use` was asked for."""
        assert self.model is not None
        return self.model


class Registry:
    """The models of a server, by name and alias.

    Parameters
    ----------
    specs
        The models there are.
    max_models, max_memory
        How many may be loaded at a time (None: four, or as many as are loaded at the start), and the bytes
        of their files together.
    workers
        Where models are fetched, loaded and unloaded; its owner closes it.
    preload
        The first that is to be loaded, which has begun already.
    max_seconds
        Most time that a request waits for a model, downloads included.
    """

    def __init__(
        self,
        specs: Iterable[ModelSpec],
        max_models: int | None,
        max_memory: int | None,
        workers: Workers,
        preload: Preload | None = None,
        max_seconds: float = math.inf,
    ) -> None:
        self._entries: dict[str, Entry] = {}
        for spec in specs:
            if spec.name in self._entries:
                raise InvalidArgumentError(f"models: two have the name {spec.name!r}")
            self._entries[spec.name] = Entry(spec)
        if max_models is None:
            max_models = max(_MODELS, sum(entry.spec.preload for entry in self._entries.values()))
        self._max_models = max_models
        self._max_memory = max_memory
        self._preload = preload
        self._workers = workers
        self._max_seconds = max_seconds
        self._room = asyncio.Lock()
        self._closed = False
        self.ending = False
        """Whether what runs was told to end."""

    def entries(self) -> list[Entry]:
        """Return all models, in the order of the settings."""
        return list(self._entries.values())

    def add(self, spec: ModelSpec) -> Entry:
        """Offer one more model, which is loaded when it is asked for."""
        return self._entries.setdefault(spec.name, Entry(spec))

    def find(self, name: str) -> Entry:
        """The model of a name or alias.

        Raises
        ------
        ApiError
            404: there is none.
        """
        return self.named(name)[0]

    def meant(self, name: str | None) -> Entry:
        """The model of a name, as `find` has it; without one the first that writes text, or that may."""
        return self.find(name) if name else self.first()

    def first(self, kind: Kind = TEXT) -> Entry:
        """The first model of a kind, or that may be of it.

        Raises
        ------
        ApiError
            400: there is no model at all.
        """
        entries = self.entries()
        if not entries:
            raise ApiError(400, "model: it is missing", param="model", code="missing_field")
        # Of one that has not been loaded yet the kind is not known.
        return next((entry for of in (kind, None) for entry in entries if entry.kind is of), entries[0])

    def named(self, name: str) -> tuple[Entry, str | None]:
        """The model of a name or alias, and the adapter that the name says: ADAPTER, or MODEL:ADAPTER.

        Raises
        ------
        ApiError
            404: there is none.
        """
        if entry := self._entries.get(name):
            return entry, None
        base, _, adapter = name.rpartition(":")
        for entry in self._entries.values():
            if base and adapter in entry.adapters and base in (entry.spec.name, *entry.spec.aliases):
                return entry, adapter
        for entry in self._entries.values():
            if name in entry.adapters:
                return entry, name
        return self._by_alias(name), None

    def _by_alias(self, name: str) -> Entry:
        for entry in self._entries.values():
            if any(fnmatch.fnmatchcase(name, alias) for alias in entry.spec.aliases):
                return entry
        known = ", ".join(self._entries)
        raise ApiError(
            404, f"model: no {name!r} here; there is {known}", param="model", code="model_not_found"
        )

    @asynccontextmanager
    async def use(self, name: str, *kinds: Kind) -> AsyncIterator[Entry]:
        """A model for one request: loaded, and kept while the request lasts.

        Parameters
        ----------
        name
            Its name, or an alias.
        kinds
            What it may be; none: anything.

        Raises
        ------
        ApiError
            404: there is no such model; 503: no room for it now; 500 or 503: it cannot be loaded; 504: that
            takes too long; 400: it is of another kind.
        """
        entry = self.find(name)
        entry.users += 1
        try:
            try:
                async with asyncio.timeout(min(self._max_seconds, _LONGEST)):
                    await self.load(entry)
            except TimeoutError as error:
                doing = "fetched" if entry.fetching else "loaded"
                raise ApiError(
                    504, f"model: {entry.spec.name} is being {doing}, which takes longer than "
                    f"{self._max_seconds:g} s, the limit of this server; it goes on",
                    param="model", code="timeout", retry_after=30,
                ) from error  # fmt: skip
            except (AkunuError, OSError) as error:
                raise _not_loaded(entry.spec, error) from error
            found = kind_of(entry.loaded)
            if kinds and found not in kinds:
                raise ApiError(
                    400, f"model: {entry.spec.name} is {found.name}, for {found.routes}; expected "
                    + " or ".join(kind.name for kind in kinds), param="model", code="wrong_model",
                )  # fmt: skip
            yield entry
        finally:
            entry.users -= 1
            entry.used_at = time.monotonic()

    async def preload(self) -> None:
        """Load what is to be loaded at the start, once: those that gave way since have been seen to load.

        Raises
        ------
        AkunuError
            A model cannot be loaded, or a setting for all models fits none.
        ApiError
            There is no room for a model.
        """
        for entry in self._entries.values():
            if entry.spec.preload and not entry.was_loaded:
                try:
                    await self.load(entry)
                except (AkunuError, OSError) as error:
                    raise AkunuError(_why(entry.spec, error)) from error
        if all(entry.model is not None for entry in self._entries.values()):
            check_shared({entry.spec: entry.unfit for entry in self._entries.values()})

    async def load(self, entry: Entry) -> None:
        """Load a model, if it is not. Who waits for it may go away: it is then there for the next one.

        Raises
        ------
        AkunuError, OSError
            It cannot be loaded.
        ApiError
            503: there is no room for it, or the server ends.
        """
        if entry.model is not None and not entry.changing.locked():
            return
        if entry.loading is None or entry.loading.done():
            entry.loading = asyncio.create_task(self._load(entry))
            entry.loading.add_done_callback(lambda task: task.cancelled() or task.exception())  # it is known
        await asyncio.shield(entry.loading)

    async def _load(self, entry: Entry) -> None:
        async with entry.changing:
            if entry.model is not None:
                return
            if self._closed:
                raise shutting_down()
            preload = self._take_preload(entry)
            began = time.monotonic() if preload is None else preload.began
            if preload is not None:
                loaded = await asyncio.wrap_future(preload.loaded)
            else:
                found = await self._fetched(entry)  # others may be loaded meanwhile
                async with self._room:
                    await self._make_room(entry)
                    loaded = await self._workers.change(load_model, entry.spec, found)
            if self._closed:
                await self._workers.change(loaded.model.close)
                raise shutting_down()
            entry.model, entry.unfit, entry.bytes = loaded.model, loaded.unfit, loaded.bytes
            entry.was_loaded, entry.constraints_prepared = True, False
            entry.kind = kind_of(loaded.model)
            entry.used_at = time.monotonic()
            seconds, memory = time.monotonic() - began, entry.loaded.memory
            _log.info("loaded %s in %.1f s: %s", entry.spec.name, seconds, memory)

    async def _fetched(self, entry: Entry) -> FoundModel:
        """The files of a model, here."""

        def fetch() -> tuple[FoundModel, int]:
            found = find_model(entry.spec)
            return found, found.bytes  # which fetches them

        entry.fetching = True
        try:
            found, entry.bytes = await self._workers.fetch(fetch)
        finally:
            entry.fetching = False
        return found

    def _take_preload(self, entry: Entry) -> Preload | None:
        """Take what has begun of a load, once."""
        preload = self._preload
        if preload is None or preload.spec is not entry.spec:
            return None
        self._preload = None
        return preload

    async def prepare_constraints(self) -> None:
        """While no request is there, do what the first one with a constraint would wait for.

        Others would wait too, a good part of a second: see `akunu.chat.structured.compiler`.
        """
        for entry in self._entries.values():
            if any(e.users for e in self._entries.values()):
                return
            if entry.model is not None and not entry.constraints_prepared:
                entry.constraints_prepared = True
                if kind_of(entry.model) is TEXT:
                    with contextlib.suppress(Exception):  # a request with a constraint is told
                        await asyncio.to_thread(entry.loaded.prepare_constraints)

    async def _make_room(self, entry: Entry) -> None:
        """Unload the models that were not used for the longest time, as many as need be."""
        while True:
            others = [e for e in self._entries.values() if e.model is not None and e is not entry]
            full = len(others) >= self._max_models
            if self._max_memory is not None and others:
                full = full or sum(e.bytes for e in others) + entry.bytes > self._max_memory
            if not full:
                return
            idle = [e for e in others if e.users == 0]
            if not idle:
                busy = ", ".join(e.spec.name for e in others) + (" are" if len(others) > 1 else " is")
                raise ApiError(
                    503, f"model: no room for {entry.spec.name} while {busy} in use", param="model",
                    code="no_room", retry_after=10,
                )  # fmt: skip
            with contextlib.suppress(ApiError):  # it is in use again
                await self.unload(min(idle, key=lambda e: e.used_at))

    async def unload(self, entry: Entry) -> bool:
        """Free a model's memory; False when it was not loaded. What runs on it ends first.

        Raises
        ------
        ApiError
            409: requests use it.
        """
        entry.check_unused()
        async with entry.changing:
            entry.check_unused()
            if entry.model is None:
                return False
            entry.earlier = entry.totals()
            model, entry.model = entry.model, None
            await self._workers.change(model.close)
            gc.unfreeze()  # what `run.serve` keeps from the collector may be garbage now
            _log.info("unloaded %s", entry.spec.name)
            return True

    async def unload_idle(self, seconds: float) -> None:
        """Unload what was not used for so long, or for as long as a client has said."""
        for entry in list(self._entries.values()):
            limit = seconds if entry.keep_seconds is None else entry.keep_seconds
            if entry.model is not None and not entry.users and time.monotonic() - entry.used_at > limit:
                with contextlib.suppress(ApiError):  # it is in use again
                    await self.unload(entry)

    def cancel(self) -> None:
        """End all generations that run; their requests get what there is. Other calls are refused."""
        self.ending = True
        for entry in self._entries.values():
            if entry.model is not None:
                entry.model.cancel()

    async def close(self) -> None:
        """Free everything; nothing can be loaded any more."""
        self._closed = True
        for entry in self._entries.values():
            if entry.loading is not None and not entry.loading.done():
                if entry.fetching:
                    entry.loading.cancel()
                await asyncio.wait([entry.loading])
            async with entry.changing:
                model, entry.model = entry.model, None
                if model is not None:
                    await self._workers.change(model.close)


def _why(spec: ModelSpec, error: Exception) -> str:
    return f"model: {spec.name} cannot be loaded: {error}"


def _not_loaded(spec: ModelSpec, error: Exception) -> ApiError:
    """Return what requests for a model are told that cannot be loaded; the log says it too.

    That lasts where the fault is in its files or settings. Memory may become free, and the network come back.
    """
    why = _why(spec, error)
    _log.error("%s", why)
    cause = error.__cause__  # of the Hub's client or the system
    ours = isinstance(error, AkunuError) and not isinstance(error, DeviceError)
    lasting = ours and (cause is None or isinstance(cause, AkunuError | ValueError))
    return ApiError(500 if lasting else 503, why, param="model", code="model_not_loaded", lasting=lasting)


def shutting_down() -> ApiError:
    """Return the error for a request that comes too late."""
    return ApiError(503, "the server is shutting down", code="shutting_down", retry_after=5)

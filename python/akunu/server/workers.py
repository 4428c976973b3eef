"""Work beside the event loop, so that what takes long for one request delays no other.

Threads share Python's lock, so there are few of them for each kind of work. Where more is waiting than they
can do, clients take turns: who asks for a hundred things at once waits for them, and nobody else does.
"""

from __future__ import annotations

import asyncio
import functools
import os
import sys
import threading
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import ContextVar, copy_context
from typing import Any, Final, NamedTuple, ParamSpec, TypeVar

from akunu.api.item_streams import StreamThreads
from akunu.base.memory import give_back
from akunu.server.errors import ApiError

__all__ = ["CLIENT", "COMPILE_SECONDS", "LARGE", "Workers"]

LARGE: Final = 1 << 16
"""Bytes from which on a request, or an answer, is not dealt with in the loop."""

COMPILE_SECONDS: Final = 30.0
"""Most time until a constraint is compiled, those before it included."""

CLIENT: Final[ContextVar[str]] = ContextVar("akunu.client", default="")
"""The client for whose request work is done."""

_SMALL_THREADS: Final = 2
_LARGE_THREADS: Final = 2
_COMPILE_THREADS: Final = 2
_COMPILE_NICE: Final = 5
"""The priority of these threads is lower by this: they compute for long without Python's lock, and where all
processors have to do, a step of the engine would wait 4 ms and more for the end of their slices. A third of
an engine thread's share of a processor is left for them: who waits for a constraint, waits for them."""
_CHANGES: Final = 2

P = ParamSpec("P")
T = TypeVar("T")


class _Job(NamedTuple):
    """Work that waits, where its result goes, and the loop that waits for it."""

    run: Callable[[], None]
    result: Future[Any]
    loop: asyncio.AbstractEventLoop


class _Turns:
    """Threads that take the work of each client in turn.

    Parameters
    ----------
    threads
        How many.
    name
        What their names begin with.
    spare
        How many of them a client leaves for others, so that who comes next need not wait for what takes long.
    begin
        What each thread does first.
    rests
        Whether a client's next work waits for as long as this took.
    """

    def __init__(
        self,
        threads: int,
        name: str,
        spare: int = 0,
        begin: Callable[[], None] | None = None,
        rests: Callable[[str], bool] = lambda client: False,
    ) -> None:
        self._pool = ThreadPoolExecutor(threads, name, begin)
        self._most = threads - spare
        self._rests = rests
        self._lock = threading.Lock()
        self._waiting: OrderedDict[str, deque[_Job]] = OrderedDict()
        self._running = Counter[str]()

    async def run(self, work: Callable[[], T]) -> T:
        """Return the result of `work`."""
        result: Future[T] = Future()
        context = copy_context()

        def job() -> None:
            if not result.set_running_or_notify_cancel():
                return
            try:
                result.set_result(context.run(work))
            except BaseException as error:
                result.set_exception(error)

        with self._lock:
            self._waiting.setdefault(CLIENT.get(), deque()).append(
                _Job(job, result, asyncio.get_running_loop())
            )
        self._pool.submit(self._some)
        return await asyncio.wrap_future(result)

    def _some(self) -> None:
        """Do what may be done now, which can be the work of another, or none."""
        while (taken := self._take()) is not None:
            client, job = taken
            began = time.monotonic()
            job.run()
            if self._rests(client):
                with suppress(RuntimeError):  # the loop has ended
                    rest = time.monotonic() - began
                    job.loop.call_soon_threadsafe(job.loop.call_later, rest, self._rested, client)
            else:
                self._leave(client)

    def _leave(self, client: str) -> None:
        with self._lock:
            self._running[client] -= 1
            if not self._running[client]:
                del self._running[client]

    def _rested(self, client: str) -> None:
        self._leave(client)
        with suppress(RuntimeError):  # the threads have ended
            self._pool.submit(self._some)

    def _take(self) -> tuple[str, _Job] | None:
        with self._lock:
            client = next((each for each in self._waiting if self._running[each] < self._most), None)
            if client is None:
                return None
            self._running[client] += 1
            jobs = self._waiting[client]
            job = jobs.popleft()
            if jobs:
                self._waiting.move_to_end(client)
            else:
                del self._waiting[client]
            return client, job

    def close(self) -> None:
        """End the threads, once what they do is done; what waits is cancelled."""
        with self._lock:
            left = [job for jobs in self._waiting.values() for job in jobs]
            self._waiting.clear()
        for job in left:
            job.result.cancel()
        self._pool.shutdown(cancel_futures=True)


def _give_way() -> None:
    """Lower this thread's priority (Linux; elsewhere a thread has none of its own)."""
    if sys.platform == "linux":
        own = os.getpriority(os.PRIO_PROCESS, 0)
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), own + _COMPILE_NICE)


class Workers:
    """The threads of a server.

    Parameters
    ----------
    others
        Whether others than a client have had requests lately. A client's large requests are dealt with, and
        its constraints compiled, for half of the time then.
    """

    def __init__(self, others: Callable[[str], bool] = lambda client: False) -> None:
        self._small = _Turns(_SMALL_THREADS, "akunu-small")
        self._large = _Turns(_LARGE_THREADS, "akunu-large", spare=1, rests=others)
        self._compiling = _Turns(_COMPILE_THREADS, "akunu-compile", spare=1, begin=_give_way, rests=others)
        self.streams = StreamThreads()
        """The threads that wait for what models make."""
        self._changes = ThreadPoolExecutor(_CHANGES, "akunu-models")

    async def sized(self, size: int, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The result of `work` on so many bytes; small work is done at once."""
        if size < LARGE:
            return work(*args, **kwargs)
        return await self._large.run(functools.partial(work, *args, **kwargs))

    async def prompt(self, size: int, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The result of `work`, which puts a prompt of so many bytes into tokens."""
        pool = self._small if size < LARGE else self._large
        return await pool.run(functools.partial(work, *args, **kwargs))

    async def compiled(self, work: Callable[[], T]) -> T:
        """Return the result of `work`, which compiles a constraint. Who waits for too long does not wait on.

        Raises
        ------
        ApiError
            503: it took too long.
        """
        try:
            async with asyncio.timeout(COMPILE_SECONDS):
                return await self._compiling.run(work)
        except TimeoutError as error:
            raise ApiError(
                503, f"the constraint was not compiled within {COMPILE_SECONDS:g} s, with others before it",
                code="busy", retry_after=5,
            ) from error  # fmt: skip

    async def change(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The result of `work`, which loads or unloads a model. What it has freed goes back to the system."""

        def change() -> T:
            try:
                return work(*args, **kwargs)
            finally:
                give_back()

        return await asyncio.get_running_loop().run_in_executor(self._changes, change)

    async def fetch(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The result of `work`, which may fetch a model: for hours, in a thread that no end waits for."""
        result: Future[T] = Future()

        def run() -> None:
            try:
                result.set_result(work(*args, **kwargs))
            except BaseException as error:
                result.set_exception(error)

        result.set_running_or_notify_cancel()  # it goes on when nobody waits for it any more
        threading.Thread(target=run, name="akunu-fetch", daemon=True).start()
        return await asyncio.wrap_future(result)

    def close(self) -> None:
        """End the threads, once what they do is done."""
        for pool in (self._small, self._large, self._compiling):
            pool.close()
        self.streams.close()
        self._changes.shutdown(cancel_futures=True)

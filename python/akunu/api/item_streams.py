"""Streams of what a model makes, text or speech: `ItemStream` for threads, `AsyncItems` for asyncio.

The model works in threads. A server's streams share theirs, `StreamThreads`.
"""

from __future__ import annotations

import asyncio
import threading
import time
from abc import abstractmethod
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Any, Final, Generic, NamedTuple, Self, TypeVar

__all__ = ["AsyncItems", "ItemStream", "StreamThreads"]

Item = TypeVar("Item")
T = TypeVar("T")

_SPARE: Final = 4
"""Threads that are there before they are needed, so that who comes alone does not wait behind many."""
_IDLE_SECONDS: Final = 10.0
"""The time after which a thread ends that nobody needs."""


class ItemStream(Iterator[Item], Generic[Item]):
    """Items that a model makes one after the other; `cancel` and `close` end it from any thread.

    Parameters
    ----------
    steps
        Makes the items. It runs in the thread that reads.
    """

    def __init__(self, steps: Generator[Item, None, None]) -> None:
        self._steps = steps
        self._mutex = threading.RLock()  # close() from another thread waits for the item that is being made
        self._busy = False

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Item:
        with self._mutex:
            self._busy = True
            try:
                return next(self._steps)
            finally:
                self._busy = False

    @abstractmethod
    def cancel(self) -> None:
        """End it, from any thread: what runs stops within a step."""

    def _finish(self) -> None:
        """Let a cancelled stream free what it holds, unless an item is being made: then its reader does."""
        if self._mutex.acquire(blocking=False):
            try:
                if not self._busy:  # busy here: a signal's handler, in the thread that makes an item
                    self._wind_up()
            finally:
                self._mutex.release()

    def _wind_up(self) -> None:
        self._steps.close()

    def close(self) -> None:
        """End it now; the model holds nothing of it any more, and no more items can be read."""
        self.cancel()
        with self._mutex:
            self._finish()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _Call(NamedTuple):
    """Work that waits for a thread, and where its result goes."""

    work: Callable[[], Any]
    result: Future[Any]

    def run(self, done: Callable[[], None]) -> None:
        """Do it, unless it was cancelled. `done` is called before the result is there."""
        if not self.result.set_running_or_notify_cancel():
            done()
            return
        try:
            found = self.work()
        except BaseException as error:
            done()
            self.result.set_exception(error)
        else:
            done()
            self.result.set_result(found)


class StreamThreads:
    """Threads for calls that may take long: there are as many as there are calls at a time.

    A pool of so many threads could be full of streams that wait for the one that has none. To start a thread
    is to wait until it runs, for milliseconds where others have Python's lock: a thread does that which does
    nothing else, so that callers, event loops, need not.

    Parameters
    ----------
    idle_seconds
        The time after which a thread ends that nobody needs.
    """

    def __init__(self, idle_seconds: float = _IDLE_SECONDS) -> None:
        self._seconds = idle_seconds
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()
        self._wanted: SimpleQueue[bool] = SimpleQueue()  # threads; False is the end
        self._lock = threading.Lock()
        self._idle = 0  # threads, those that are being started among them, without calls
        # The threads are daemons, so that a program ends that has not called `close`.
        self._starter = threading.Thread(target=self._start_threads, name="akunu-starter", daemon=True)

    def submit(self, work: Callable[[], T]) -> Future[T]:
        """Begin `work` in a thread; its result."""
        result: Future[T] = Future()
        with self._lock:
            self._idle -= 1
            if self._starter.ident is None:
                self._starter.start()
        self._calls.put(_Call(work, result))
        self._start_spare()
        return result

    def _start_spare(self) -> None:
        with self._lock:
            missing = max(_SPARE - self._idle, 0)
            self._idle += missing
        for _ in range(missing):
            self._wanted.put(True)

    def close(self) -> None:
        """End the threads, once what they do is done."""
        self._wanted.put(False)
        if self._starter.ident is not None:
            self._starter.join()

    def _start_threads(self) -> None:
        threads = list[threading.Thread]()
        while self._wanted.get():
            threads = [each for each in threads if each.is_alive()]
            thread = threading.Thread(target=self._run_calls, name="akunu-stream", daemon=True)
            thread.start()
            threads.append(thread)
        for _ in threads:
            self._calls.put(None)
        for thread in threads:
            thread.join()

    def _run_calls(self) -> None:
        while True:
            try:
                call = self._calls.get(timeout=self._seconds)
            except Empty:
                with self._lock:
                    if self._idle <= _SPARE:
                        continue
                    self._idle -= 1
                return
            if call is None:
                return
            call.run(self._count)
            del call  # not while it waits for the next one

    def _count(self) -> None:
        """One thread more is idle: before its caller, who has the result, asks for another."""
        with self._lock:
            self._idle += 1


class AsyncItems(AsyncIterator[Item], Generic[Item]):
    """The items of a stream, for `async for`.

    When the task that reads is cancelled, the work ends, and the model is free before the task goes on.
    """

    def __init__(self, stream: ItemStream[Item]) -> None:
        self._items = stream
        # A pool that streams share could be full of those that wait for the one that has no thread left.
        self._own = ThreadPoolExecutor(2, "akunu-stream")  # one that waits for an item, and one that ends it
        self._threads: StreamThreads | ThreadPoolExecutor = self._own
        self._ended = False

    def run_in(self, threads: StreamThreads) -> Self:
        """Return these items, made in threads that others use, too. Before the first one."""
        self._threads = threads
        return self

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Item:
        for item in await self.several(0.0):
            return item
        raise StopAsyncIteration

    async def several(self, seconds: float, each: Callable[[Item], None] | None = None) -> list[Item]:
        """Return all items that come within so many seconds, one at least; none where there are no more.

        Their thread and the loop wake up once for all of them.

        Parameters
        ----------
        each
            Called with each item when it is there, in that thread.
        """
        if self._ended:
            return []
        until = time.monotonic() + seconds

        def take() -> tuple[list[Item], bool]:
            items = list[Item]()
            while (item := next(self._items, None)) is not None:
                items.append(item)
                if each is not None:
                    each(item)
                if time.monotonic() >= until:
                    return items, False
            return items, True

        try:
            items, over = await self._run(take)
        except BaseException:  # a cancelled task above all
            await self.aclose()
            raise
        if over:
            self._end()
        return items

    async def _run(self, function: Callable[[], T]) -> T:
        return await asyncio.wrap_future(self._threads.submit(function))

    def _end(self) -> None:
        self._ended = True
        self._own.shutdown(wait=False)

    def cancel(self) -> None:
        """End it: what runs stops within a step, and no more is begun."""
        self._items.cancel()

    async def aclose(self) -> None:
        """End it now, and wait until the model is free. No more can be read."""
        if not self._ended:
            closing = self._run(self._items.close)  # waits for locks, which the loop must not
            self._ended = True
            try:
                await asyncio.shield(closing)
            finally:
                self._end()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

"""Streams of what a model makes, text or speech: `ItemStream` for threads, `AsyncItems` for asyncio."""

from __future__ import annotations

import asyncio
import threading
import time
from abc import abstractmethod
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from types import TracebackType
from typing import Generic, Self, TypeVar

from akunu.api.stream_threads import stream_threads

__all__ = ["AsyncItems", "ItemStream"]

Item = TypeVar("Item")
T = TypeVar("T")


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


class AsyncItems(AsyncIterator[Item], Generic[Item]):
    """The items of a stream, for `async for`.

    When the task that reads is cancelled, the work ends, and the model is free before the task goes on.
    """

    def __init__(self, stream: ItemStream[Item]) -> None:
        self._items = stream
        self._ended = False

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
        self._ended = over
        return items

    async def _run(self, function: Callable[[], T]) -> T:
        return await asyncio.wrap_future(stream_threads().submit(function))

    def cancel(self) -> None:
        """End it: what runs stops within a step, and no more is begun."""
        self._items.cancel()

    async def aclose(self) -> None:
        """End it now, and wait until the model is free. No more can be read."""
        if not self._ended:
            closing = self._run(self._items.close)  # waits for locks, which the loop must not
            self._ended = True
            await asyncio.shield(closing)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

"""What a stream gives, for asyncio: a thread of its own reads the stream."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, Protocol, Self, TypeVar

__all__ = ["AsyncItems"]

Item = TypeVar("Item")
Item_co = TypeVar("Item_co", covariant=True)
T = TypeVar("T")


class _Source(Iterator[Item_co], Protocol[Item_co]):
    """A stream for threads, which `cancel` and `close` end from any of them."""

    def cancel(self) -> None: ...
    def close(self) -> None: ...


class AsyncItems(AsyncIterator[Item], Generic[Item]):
    """The items of a stream, for `async for`.

    When the task that reads is cancelled, the work ends, and the model is free before the task goes on.
    """

    def __init__(self, stream: _Source[Item]) -> None:
        self._source = stream
        # A pool that streams share could be full of those that wait for the one that has no thread left.
        self._thread = ThreadPoolExecutor(1, "akunu-stream")
        self._ended = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Item:
        if self._ended:
            raise StopAsyncIteration
        try:
            item = await self._run(lambda: next(self._source, None))
        except BaseException:  # a cancelled task above all
            await self.aclose()
            raise
        if item is None:
            self._end()
            raise StopAsyncIteration
        return item

    async def _run(self, function: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, function)

    def _end(self) -> None:
        self._ended = True
        self._thread.shutdown(wait=False)

    def cancel(self) -> None:
        """End it: what runs stops within a step, and no more is begun."""
        self._source.cancel()

    async def aclose(self) -> None:
        """End it now, and wait until the model is free. No more can be read."""
        if not self._ended:
            self._source.cancel()
            closing = self._run(self._source.close)
            self._ended = True
            try:
                await asyncio.shield(closing)
            finally:
                self._end()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

"""Work beside the event loop, so that what takes long for one request delays no other.

Threads share Python's lock, so there are few of them for each kind of work, and others wait their turn.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, ParamSpec, TypeVar

__all__ = ["LARGE", "Beside"]

LARGE: Final = 1 << 16
"""Bytes from which on a request, or an answer, is not dealt with in the loop."""

_LARGE_THREADS: Final = 2
_CHANGES: Final = 4

P = ParamSpec("P")
T = TypeVar("T")


class Beside:
    """The threads of a server."""

    def __init__(self) -> None:
        self._large = ThreadPoolExecutor(_LARGE_THREADS, "akunu-large")
        self._changes = ThreadPoolExecutor(_CHANGES, "akunu-models")

    async def sized(self, size: int, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The result of `work` on so many bytes; small work is done at once."""
        if size < LARGE:
            return work(*args, **kwargs)
        return await self._run(self._large, functools.partial(work, *args, **kwargs))

    async def prompt(self, size: int, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The result of `work`, which puts a prompt of so many bytes into tokens."""
        if size < LARGE:
            return await asyncio.to_thread(work, *args, **kwargs)
        return await self._run(self._large, functools.partial(work, *args, **kwargs))

    async def change(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The result of `work`, which loads, fetches or unloads a model."""
        return await self._run(self._changes, functools.partial(work, *args, **kwargs))

    async def _run(self, pool: ThreadPoolExecutor, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(pool, work)

    def close(self) -> None:
        """End the threads, once what they do is done."""
        self._large.shutdown(cancel_futures=True)
        self._changes.shutdown(cancel_futures=True)

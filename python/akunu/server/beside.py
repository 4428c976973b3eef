"""Work beside the event loop, so that what takes long for one request delays no other.

Threads share Python's lock, so there are few of them for each kind of work, and others wait their turn.
"""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final, ParamSpec, TypeVar

from akunu.server.errors import ApiError

__all__ = ["COMPILE_SECONDS", "LARGE", "Beside"]

LARGE: Final = 1 << 16
"""Bytes from which on a request, or an answer, is not dealt with in the loop."""

COMPILE_SECONDS: Final = 30.0
"""Most time until a constraint is compiled, those before it included."""

_LARGE_THREADS: Final = 2
_COMPILE_THREADS: Final = 2
_CHANGES: Final = 2

P = ParamSpec("P")
T = TypeVar("T")


class Beside:
    """The threads of a server."""

    def __init__(self) -> None:
        self._large = ThreadPoolExecutor(_LARGE_THREADS, "akunu-large")
        self._compiling = ThreadPoolExecutor(_COMPILE_THREADS, "akunu-compile")
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

    async def compiled(self, work: Callable[[], T]) -> T:
        """Return the result of `work`, which compiles a constraint. Who waits for too long does not wait on.

        Raises
        ------
        ApiError
            503: it took too long.
        """
        try:
            async with asyncio.timeout(COMPILE_SECONDS):
                return await self._run(self._compiling, work)
        except TimeoutError as error:
            raise ApiError(
                503, f"the constraint was not compiled within {COMPILE_SECONDS:g} s, with others before it",
                code="busy", retry_after=5,
            ) from error  # fmt: skip

    async def change(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The result of `work`, which loads or unloads a model."""
        return await self._run(self._changes, functools.partial(work, *args, **kwargs))

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

    async def _run(self, pool: ThreadPoolExecutor, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(pool, work)

    def close(self) -> None:
        """End the threads, once what they do is done."""
        self._large.shutdown(cancel_futures=True)
        self._compiling.shutdown(cancel_futures=True)
        self._changes.shutdown(cancel_futures=True)

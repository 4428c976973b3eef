"""Threads in which streams wait for what a model makes, used again by the streams that come later."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final, TypeVar

__all__ = ["StreamThreads", "stream_threads"]

T = TypeVar("T")

_MOST: Final = 1 << 20
"""Threads of a pool that is never full: of streams that wait, one may have to be read for another to go on."""


class StreamThreads:
    """As many threads as there are calls at a time, each of which may take long.

    To start a thread is to wait until it runs, for milliseconds where others have Python's lock. The caller,
    an event loop, never does: where no thread is idle, one more thread starts those that are missing.
    """

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(_MOST, "akunu-stream")
        self._starter = ThreadPoolExecutor(1, "akunu-starter")
        self._lock = threading.Lock()
        self._idle = 0

    def submit(self, work: Callable[[], T]) -> Future[T]:
        """Begin `work` in a thread; its result."""
        result: Future[T] = Future()

        def run() -> None:
            if not result.set_running_or_notify_cancel():
                self._count(1)
                return
            try:
                found = work()
            except BaseException as error:
                self._count(1)
                result.set_exception(error)
            else:
                self._count(1)  # before its caller asks for more
                result.set_result(found)

        if self._take():
            self._pool.submit(run)
        else:
            self._starter.submit(self._pool.submit, run)
        return result

    def _take(self) -> bool:
        with self._lock:
            found = self._idle > 0
            self._idle -= found
            return found

    def _count(self, threads: int) -> None:
        with self._lock:
            self._idle += threads


_threads: StreamThreads | None = None


def stream_threads() -> StreamThreads:
    """The threads of this process."""
    global _threads
    if _threads is None:
        _threads = StreamThreads()
    return _threads


def _forget() -> None:
    """Forget the threads in a new process, which has none of them."""
    global _threads
    _threads = None


os.register_at_fork(after_in_child=_forget)

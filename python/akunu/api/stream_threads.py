"""Threads in which streams wait for what a model makes, used again by the streams that come later."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import Any, Final, NamedTuple, TypeVar

__all__ = ["StreamThreads", "stream_threads"]

T = TypeVar("T")

_SPARE: Final = 4
"""Threads that are there before they are needed: who comes alone need not wait behind many who come at once."""
_IDLE_SECONDS: Final = 60.0
"""The time after which a thread ends that nobody needs."""


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
    """As many threads as there are calls at a time, each of which may take long.

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
        threading.Thread(target=self._start_threads, name="akunu-starter").start()
        self._start_spare()

    def submit(self, work: Callable[[], T]) -> Future[T]:
        """Begin `work` in a thread; its result."""
        result: Future[T] = Future()
        with self._lock:
            self._idle -= 1
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
        """Let threads end once they have done what they do."""
        self._wanted.put(False)

    def _start_threads(self) -> None:
        threads = list[threading.Thread]()
        while self._wanted.get():
            threads = [each for each in threads if each.is_alive()]
            thread = threading.Thread(target=self._run_calls, name="akunu-stream")
            thread.start()
            threads.append(thread)
        for _ in threads:
            self._calls.put(None)

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


_threads: StreamThreads | None = None


def stream_threads() -> StreamThreads:
    """The threads of this process."""
    global _threads
    if _threads is None:
        _threads = StreamThreads()
    return _threads


def _close() -> None:
    if _threads is not None:
        _threads.close()


def _forget() -> None:
    """Forget the threads in a new process, which has none of them."""
    global _threads
    _threads = None


threading._register_atexit(_close)  # type: ignore[attr-defined]  # before Python waits for threads
os.register_at_fork(after_in_child=_forget)

"""A lock that serves its waiters in arrival order and knows the thread that holds it."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from akunu.errors import AkunuError

__all__ = ["FairLock"]

_local = threading.local()


def _this_thread() -> object:
    """Something that only the calling thread has: the number of a thread that ended is given to another."""
    if not hasattr(_local, "identity"):
        _local.identity = object()
    return _local.identity


class FairLock:
    """Mutual exclusion, first come first served.

    `threading.Lock` makes no promise about order, so a thread that generates in a loop could starve the
    others. Here a release hands the lock to the thread that has waited longest. Any thread may release it,
    because a suspended generator that holds it may be finalized anywhere.
    """

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._waiters: deque[threading.Lock] = deque()
        self._held = False
        self._owner: object = None

    def acquire(self) -> None:
        """Wait for the lock.

        Raises
        ------
        AkunuError
            If the calling thread already holds it: waiting would never end.
        """
        me = _this_thread()
        turn = threading.Lock()
        turn.acquire()
        with self._mutex:
            if not self._held:
                self._held, self._owner = True, me
                return
            if self._owner is me:
                raise AkunuError(
                    "this thread has an open stream on the model, which serves one generation at a time; "
                    "read that stream to its end or call its close() first"
                )
            self._waiters.append(turn)
        try:
            turn.acquire()
            self._owner = me
        except BaseException:  # KeyboardInterrupt while waiting
            with self._mutex:
                granted = turn not in self._waiters
                if not granted:
                    self._waiters.remove(turn)
            if granted:
                self.release()
            raise

    def adopt(self) -> None:
        """Make the calling thread the holder: a stream may be read by one thread after another."""
        self._owner = _this_thread()

    def release(self) -> None:
        """Hand the lock to the thread that has waited longest, if any."""
        with self._mutex:
            self._owner = None
            if self._waiters:
                self._waiters.popleft().release()
            else:
                self._held = False

    @contextmanager
    def hold(self) -> Iterator[None]:
        """The lock, for a `with` statement."""
        self.acquire()
        try:
            yield
        finally:
            self.release()

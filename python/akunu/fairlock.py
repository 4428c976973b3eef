"""A lock that serves its waiters in arrival order and knows who holds it."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from akunu.errors import AkunuError, BusyError

__all__ = ["FairLock", "Turn", "act_as"]

_local = threading.local()


def _this_thread() -> object:
    """Something that only the calling thread has: the number of a thread that ended is given to another."""
    if not hasattr(_local, "identity"):
        _local.identity = object()
    return _local.identity


def act_as(identity: object) -> None:
    """Let the calling thread hold locks in the name of `identity`, such as the task that it works for."""
    _local.identity = identity


class Turn:
    """A place in the queue of a `FairLock`, for one use."""

    def __init__(self) -> None:
        self._called = threading.Lock()
        self._called.acquire()
        self._granted = self._withdrawn = False


class FairLock:
    """Mutual exclusion, first come first served.

    `threading.Lock` makes no promise about order, so a thread that generates in a loop could starve the
    others. Here a release hands the lock to the thread that has waited longest. Any thread may release it,
    because a suspended generator that holds it may be finalized anywhere.
    """

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._waiters: deque[Turn] = deque()
        self._held = False
        self._owner: object = None

    def acquire(self, turn: Turn | None = None, *, timeout: float | None = None) -> bool:
        """Wait for the lock.

        Parameters
        ----------
        turn
            The place in the queue, for `withdraw`.
        timeout
            Most seconds to wait; None: as long as it takes.

        Returns
        -------
        bool
            Whether the lock is held now; False when the turn was withdrawn.

        Raises
        ------
        BusyError
            If the lock did not become free in time.
        AkunuError
            If the calling thread already holds it: waiting would never end.
        """
        me = _this_thread()
        turn = turn or Turn()
        with self._mutex:
            if turn._withdrawn:
                return False
            if not self._held:
                self._held, self._owner, turn._granted = True, me, True
                return True
            if self._owner is me:
                raise AkunuError(
                    "this thread has an open stream on the model, which serves one generation at a time; "
                    "read that stream to its end or call its close() first"
                )
            self._waiters.append(turn)
        try:
            turn._called.acquire(timeout=-1 if timeout is None else min(timeout, threading.TIMEOUT_MAX))
        except BaseException:  # KeyboardInterrupt while waiting
            if self._left(turn):
                self.release()
            raise
        if self._left(turn):
            self._owner = me
            return True
        if not turn._withdrawn:
            raise BusyError(
                f"the model is still busy after {timeout:g} s (wait_timeout); wait longer, close streams "
                "that are not read on, or end what runs by Model.cancel()"
            )
        return False

    def _left(self, turn: Turn) -> bool:
        """Leave the queue; returns whether the lock was granted, as may happen at the last moment."""
        with self._mutex:
            if turn in self._waiters:
                self._waiters.remove(turn)
            return turn._granted

    def withdraw(self, turn: Turn) -> None:
        """Give up a place in the queue, from any thread; without effect on a lock that is held."""
        with self._mutex:
            if not turn._granted:
                turn._withdrawn = True
                if turn in self._waiters:
                    self._waiters.remove(turn)
                    turn._called.release()

    def adopt(self) -> None:
        """Make the calling thread the holder: a stream may be read by one thread after another."""
        self._owner = _this_thread()

    def release(self) -> None:
        """Hand the lock to the thread that has waited longest, if any."""
        with self._mutex:
            self._owner = None
            if self._waiters:
                turn = self._waiters.popleft()
                turn._granted = True
                turn._called.release()
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

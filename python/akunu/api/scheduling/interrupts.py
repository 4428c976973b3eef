"""Signals wait while what threads share is changed.

Python runs the handlers of signals in the main thread, between any two of its instructions, and most raise. A
KeyboardInterrupt from the middle of a plan would leave a sequence that nobody ends, or a step that all others
wait for. So handlers wait (`held`) until the books are in order (`check`), and run during what takes long
(`allowed`), where only what they raise waits. In other threads all of this does nothing.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # of `signal`, without its enumerations: a tenth of the time
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final

__all__ = ["allowed", "check", "held", "wait"]

NUMBERS: Final[list[int]] = [
    getattr(_signal, name)
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGALRM", "SIGUSR1", "SIGUSR2")
]
"""Signals whose handlers may raise."""
WAIT_SECONDS: Final = 0.1
"""Seconds for which a signal goes unnoticed in `wait`."""


class _HeldSignals:
    """The handlers that were there, and the signals that came since. Of the main thread alone."""

    def __init__(self) -> None:
        self._depth = 0
        self._before: dict[int, Callable[[int, FrameType | None], Any]] = {}
        self._came: list[int] = []
        self._raised: BaseException | None = None
        self._noting = self._note  # one object, to be known again
        self.stop: Callable[[], object] | None = None

    def __enter__(self) -> None:
        if not _in_main_thread():
            return
        if self._depth == 0:
            self._came.clear()  # of an end that was interrupted itself
            self._raised = None
            try:
                self._replace()
            except BaseException:
                self._restore()
                raise
        self._depth += 1

    def __exit__(self, *_: object) -> None:
        if not self._depth or not _in_main_thread():
            return
        self._depth -= 1
        if self._depth == 0:
            before = dict(self._before)
            self._restore()
            self._deliver(before)

    def check(self) -> None:
        """Run the handlers that wait; they may raise."""
        if (self._came or self._raised) and self._depth and _in_main_thread():
            self._deliver(self._before)

    def patience(self, seconds: float | None) -> float | None:
        """Return how long to wait before `check`."""
        if not (self._depth and _in_main_thread()):
            return seconds
        return WAIT_SECONDS if seconds is None else min(seconds, WAIT_SECONDS)

    def forked(self) -> None:
        """Forget the signals in a new process, whose main thread is the one that forked."""
        if self._depth:
            self._depth, self._raised, self.stop = 0, None, None
            self._came.clear()
            self._restore()

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.stop is None:
            self._came.append(number)
            return
        try:
            self._before[number](number, frame)
        except BaseException as error:
            self._raised = error
            self.stop()

    def _replace(self) -> None:
        for number in NUMBERS:
            handler = _signal.getsignal(number)
            if callable(handler):
                self._before[number] = handler
                _signal.signal(number, self._noting)

    def _restore(self) -> None:
        """Put the handlers back. An interrupt in the middle is raised when that is done."""
        try:
            while self._before:
                number, handler = next(iter(self._before.items()))
                if _signal.getsignal(number) == self._noting:  # else a handler has set another one
                    _signal.signal(number, handler)
                self._before.pop(number, None)
        except BaseException:
            self._restore()
            raise

    def _deliver(self, handlers: dict[int, Callable[[int, FrameType | None], Any]]) -> None:
        while self._came:
            number = self._came.pop(0)
            handlers[number](number, None)
        if self._raised is not None:
            error, self._raised = self._raised, None
            raise error


def _in_main_thread() -> bool:
    return threading.get_ident() == threading.main_thread().ident


held: Final = _HeldSignals()
"""Handlers wait until the end of `with held:`, or the next `check`."""
check: Final = held.check
os.register_at_fork(after_in_child=held.forked)


@contextmanager
def allowed(stop: Callable[[], object]) -> Iterator[None]:
    """Within `held`: handlers run at once. When one raises, `stop` is called, and `check` raises that."""
    if not _in_main_thread():
        yield
        return
    held.stop = stop
    try:
        yield
    finally:
        held.stop = None


def wait(condition: threading.Condition, seconds: float | None = None) -> None:
    """Wait for a change, so long at most, or for a signal, which the next `check` finds."""
    condition.wait(held.patience(seconds))

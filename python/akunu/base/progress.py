"""Reporting how far a load, a download or a measurement is."""

from __future__ import annotations

import inspect
import math
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Literal, Protocol

from akunu.base.errors import InvalidArgumentError
from akunu.base.memory import bytes_text

if TYPE_CHECKING:
    import rich.progress

__all__ = ["Progress", "Report", "check_callback", "check_progress", "reporter"]

Progress = Callable[[int, int], None] | Callable[[int, int, str], None]
"""Called as `progress(done, total)`; an exception that it raises abandons the work.

A function that needs a third argument is also told what is being done, where that is something else than what
`done` and `total` count, such as "compiling kernels for NVIDIA H100 (once)"; else that is empty.
"""

Report = Callable[..., None]
"""The function that `reporter` gives: called as `report(done, total)` or `report(done, total, what)`."""

_BAR_AFTER_SECONDS: Final = 0.3
"""Work that is over before this shows no bar, and does not pay for the import of `rich`."""

_LINE_EVERY_SECONDS: Final = 0.5
"""Seconds between two changes of a line in a notebook."""


def check_progress(progress: object) -> None:
    """Refuse what `reporter` cannot call.

    Raises
    ------
    InvalidArgumentError
        It is neither True, False nor a function.
    """
    if not (isinstance(progress, bool) or callable(progress)):
        raise InvalidArgumentError(f"progress: expected True, False or a function, got {progress!r}")


def check_callback(progress: object) -> None:
    """Refuse what is no function, where nothing is shown without one.

    Raises
    ------
    InvalidArgumentError
        It is neither None nor a function.
    """
    if progress is not None and not callable(progress):
        raise InvalidArgumentError(f"progress: expected a function or None, got {progress!r}")


@contextmanager
def reporter(
    progress: bool | Progress, title: str, *, unit: Literal["bytes", "count"] = "bytes"
) -> Iterator[Report | None]:
    """Yield the function to call as work is done: the caller's, one that draws a bar, or nothing.

    Parameters
    ----------
    progress
        True: a bar on standard error if that is a terminal, or a line in a notebook; False: nothing; or the
        function to call.
    title
        The text before the bar.
    unit
        What `done` and `total` count: the bar shows bytes a second, or the time that is left.
    """
    if callable(progress):
        yield _told_what(progress) if _wants_what(progress) else _not_told(progress)
    elif progress and (_in_notebook() or (_is_terminal() and os.environ.get("TERM") != "dumb")):
        bar = _Bar(title, unit)
        try:
            yield bar.update
        finally:
            bar.close()
    else:
        yield None


def _wants_what(progress: Callable[..., None]) -> bool:
    """Whether a function needs a third argument; one that has a default is not ours to set."""
    try:
        parameters = inspect.signature(progress).parameters.values()
    except (TypeError, ValueError):  # of C
        return False
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(p.kind in positional and p.default is p.empty for p in parameters) == 3


def _told_what(progress: Callable[..., None]) -> Report:
    def report(done: int, total: int, what: str = "") -> None:
        progress(done, total, what)

    return report


def _not_told(progress: Callable[..., None]) -> Report:
    def report(done: int, total: int, what: str = "") -> None:
        progress(done, total)

    return report


class _Bar:
    """A bar on standard error, cleared at its end; without one while what is done has no end in sight."""

    def __init__(self, title: str, unit: str) -> None:
        self._title = title
        self._unit = unit
        self._start = time.monotonic()
        self._what = ""
        self._bar: _Shown | None = None

    def update(self, done: int, total: int, what: str = "") -> None:
        if what != self._what:
            self.close()
            self._what = what
        if self._bar is None:
            is_over = done >= total and not what
            if is_over or time.monotonic() - self._start < _BAR_AFTER_SECONDS:
                return
            title = what[:1].upper() + what[1:] if what else self._title
            self._bar = _open_bar(title, "" if what else self._unit, None if what else total)
        if not what:
            self._bar.update(done, total)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


class _Shown(Protocol):
    """A bar that is there."""

    def update(self, done: int, total: int) -> None: ...
    def stop(self) -> None: ...


def _is_terminal() -> bool | None:
    """Whether standard error is a terminal; None where there is none, or it is closed."""
    try:
        return sys.stderr.isatty()
    except (AttributeError, ValueError):
        return None


def _in_notebook() -> bool:
    """Whether what is written to standard error appears under a cell."""
    return "ipykernel" in sys.modules and _is_terminal() is False


class _NotebookLine:
    """A line of text that is written over: all that a notebook shows without further packages."""

    def __init__(self, title: str, unit: str) -> None:
        self._title = title
        self._unit = unit
        self._written = -math.inf
        self._width = 0
        self._write(f"{title} …")

    def update(self, done: int, total: int) -> None:
        now = time.monotonic()
        if now - self._written < _LINE_EVERY_SECONDS:
            return
        self._written = now
        amount = (
            f"{done / max(total, 1):.0%} of {bytes_text(total)}"
            if self._unit == "bytes"
            else f"{done} of {total}"
        )
        self._write(f"{self._title}: {amount}")

    def stop(self) -> None:
        self._write("")
        sys.stderr.write("\r")

    def _write(self, text: str) -> None:
        sys.stderr.write("\r" + text.ljust(self._width))
        sys.stderr.flush()
        self._width = len(text)


class _TerminalBar:
    """One of `rich`."""

    def __init__(self, bar: rich.progress.Progress, task: rich.progress.TaskID) -> None:
        self._bar = bar
        self._task = task
        self.stop = bar.stop

    def update(self, done: int, total: int) -> None:
        self._bar.update(self._task, completed=done, total=total)


def _open_bar(title: str, unit: str, total: int | None) -> _Shown:
    if _in_notebook():
        return _NotebookLine(title, unit)
    from rich import progress as columns
    from rich.console import Console

    measures: tuple[columns.ProgressColumn, ...] = (columns.TimeElapsedColumn(),)
    if unit == "bytes":
        measures = (columns.DownloadColumn(), columns.TransferSpeedColumn())
    elif unit == "count":
        measures = (columns.MofNCompleteColumn(), columns.TimeRemainingColumn())
    bar = columns.Progress(
        columns.TextColumn("{task.description}"),
        columns.BarColumn(),
        *measures,
        console=Console(stderr=True),
        transient=True,
    )
    task = bar.add_task(title, total=total)
    bar.start()
    return _TerminalBar(bar, task)

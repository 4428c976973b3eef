"""Reporting how far a load, a download or a measurement is."""

from __future__ import annotations

import inspect
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Literal

from akunu.errors import InvalidArgumentError

if TYPE_CHECKING:
    import rich.progress

__all__ = ["Progress", "Report", "check_progress", "reporter"]

Progress = Callable[[int, int], None] | Callable[[int, int, str], None]
"""Called as `progress(done, total)`; an exception that it raises abandons the work.

A function that needs a third argument is also told what is being done, where that is something else than what
`done` and `total` count, such as "compiling kernels for NVIDIA H100 (once)"; else that is empty.
"""

Report = Callable[..., None]
"""What `reporter` gives: called as `report(done, total)` or `report(done, total, what)`."""

_BAR_AFTER_SECONDS: Final = 0.3
"""Work that is over before this shows no bar, and does not pay for the import of `rich`."""


def check_progress(progress: object) -> None:
    """Refuse what `reporter` cannot call.

    Raises
    ------
    InvalidArgumentError
        It is neither True, False nor a function.
    """
    if not (isinstance(progress, bool) or callable(progress)):
        raise InvalidArgumentError(f"progress: expected True, False or a function, got {progress!r}")


@contextmanager
def reporter(
    progress: bool | Progress, title: str, *, unit: Literal["bytes", "count"] = "bytes"
) -> Iterator[Report | None]:
    """What to call as work is done: the caller's function, a bar on a terminal, or nothing.

    Parameters
    ----------
    progress
        True: a bar on standard error if that is a terminal; False: nothing; or the function to call.
    title
        The text before the bar.
    unit
        What `done` and `total` count: the bar shows bytes a second, or the time that is left.
    """
    if callable(progress):
        yield _told_what(progress) if _wants_what(progress) else _not_told(progress)
    elif progress and sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
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
        self._bar: tuple[rich.progress.Progress, rich.progress.TaskID] | None = None

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
        bar, task = self._bar
        if not what:
            bar.update(task, completed=done, total=total)

    def close(self) -> None:
        if self._bar is not None:
            self._bar[0].stop()
            self._bar = None


def _open_bar(
    title: str, unit: str, total: int | None
) -> tuple[rich.progress.Progress, rich.progress.TaskID]:
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
    return bar, task

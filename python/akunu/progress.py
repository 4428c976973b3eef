"""Reporting how far a load, a download or a measurement is."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Literal

from akunu.errors import InvalidArgumentError

if TYPE_CHECKING:
    import rich.progress

__all__ = ["Progress", "check_progress", "reporter"]

Progress = Callable[[int, int], None]
"""Called as `progress(done, total)`; an exception that it raises abandons the work."""

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
) -> Iterator[Progress | None]:
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
        yield progress
    elif progress and sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
        bar = _Bar(title, unit)
        try:
            yield bar.update
        finally:
            bar.close()
    else:
        yield None


class _Bar:
    """A bar on standard error, cleared at its end."""

    def __init__(self, title: str, unit: str) -> None:
        self._title = title
        self._unit = unit
        self._start = time.monotonic()
        self._bar: tuple[rich.progress.Progress, rich.progress.TaskID] | None = None

    def update(self, done: int, total: int) -> None:
        if self._bar is None:
            if done >= total or time.monotonic() - self._start < _BAR_AFTER_SECONDS:
                return
            self._bar = _open_bar(self._title, self._unit, total)
        bar, task = self._bar
        bar.update(task, completed=done, total=total)

    def close(self) -> None:
        if self._bar is not None:
            self._bar[0].stop()


def _open_bar(title: str, unit: str, total: int) -> tuple[rich.progress.Progress, rich.progress.TaskID]:
    from rich import progress as columns
    from rich.console import Console

    measures = (
        (columns.DownloadColumn(), columns.TransferSpeedColumn())
        if unit == "bytes"
        else (columns.MofNCompleteColumn(), columns.TimeRemainingColumn())
    )
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

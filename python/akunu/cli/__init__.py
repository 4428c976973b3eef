"""The command `akunu`.

Help must come at once, so this module imports nothing of Akunu's and nothing heavy: a subcommand's module is
loaded when that subcommand runs (`group`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

__all__ = ["main", "start"]

Run = Callable[[Sequence[str] | None], int]
"""Runs a command line, or that of the process; returns the exit status."""


def main(args: Sequence[str] | None = None) -> int:
    """Run the command line `akunu`; returns the exit status.

    Parameters
    ----------
    args
        The arguments; None: those of the process.
    """

    def load() -> Run:
        from akunu.cli.app import run
        from akunu.cli.group import akunu

        return lambda words: run(akunu, "akunu", words)

    return start("akunu", load, args)


def start(prog: str, load: Callable[[], Run], args: Sequence[str] | None) -> int:
    """Run what `load` imports; Ctrl-C ends that quietly too, before anything is there that could say so."""
    before, sys.unraisablehook = sys.unraisablehook, _interrupt_again
    try:
        run = load()
        return run(args)
    except KeyboardInterrupt:
        print(f"{prog}: interrupted", file=sys.stderr)
        return 130
    finally:
        sys.unraisablehook = before


def _interrupt_again(lost: Any) -> None:
    """A Ctrl-C that came in a callback, such as those of imports, of which Python drops what they raise."""
    if not issubclass(lost.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(lost)
        return
    import signal
    import threading

    main_thread = threading.main_thread().ident
    again = threading.Timer(0.01, signal.pthread_kill, (main_thread, signal.SIGINT))  # the callback is over
    again.daemon = True
    again.start()

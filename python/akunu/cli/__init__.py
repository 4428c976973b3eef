"""The command `akunu`.

Help must come at once, so this module imports nothing of Akunu's and nothing heavy: a subcommand's module is
loaded when that subcommand runs (`group`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

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
    try:
        run = load()
    except KeyboardInterrupt:
        print(f"{prog}: interrupted", file=sys.stderr)
        return 130
    return run(args)

"""The command `akunu`.

Help must come at once, so this module imports nothing of Akunu's and nothing heavy: a subcommand's module is
loaded when that subcommand runs (`group`).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(args: Sequence[str] | None = None) -> int:
    """Run the command line `akunu`; returns the exit status.

    Parameters
    ----------
    args
        The arguments; None: those of the process.
    """
    try:
        from akunu.cli.app import run
        from akunu.cli.group import akunu
    except KeyboardInterrupt:  # before anything is there that could say so
        print("akunu: interrupted", file=sys.stderr)
        return 130

    return run(akunu, "akunu", args)

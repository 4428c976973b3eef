"""The command `akunu`.

Help must come at once, so this module imports nothing of Akunu's and nothing heavy: a subcommand's module is
loaded when that subcommand runs (`group`).
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["main"]


def main(args: Sequence[str] | None = None) -> int:
    """Run the command line `akunu`; returns the exit status.

    Parameters
    ----------
    args
        The arguments; None: those of the process.
    """
    from akunu.cli.app import run
    from akunu.cli.group import akunu

    return run(akunu, "akunu", args)

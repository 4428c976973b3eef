"""Options that benches share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

__all__ = ["device_option", "rounds_option", "threads_option"]

threads_option = click.option(
    "-t", "--threads", type=click.IntRange(min=1), default=2, show_default=True, metavar="N", help="Threads."
)
device_option = click.option("--device", default="cpu", show_default=True, metavar="ID", help="Where.")


def rounds_option(default: int) -> Callable[[Any], Any]:
    """Return the option for the number of rounds."""
    return click.option(
        "--rounds",
        type=click.IntRange(min=1),
        default=default,
        show_default=True,
        metavar="N",
        help="Rounds.",
    )

"""Which dispatch table is meant: options that commands about tables share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

__all__ = ["ROWS", "phase_options", "table_options"]

F = TypeVar("F", bound=Callable[..., Any])

ROWS = {"decode": 1, "batch": 8, "prefill": 512}
"""Rows of each phase when none are given."""


def phase_options(function: F) -> F:
    """Options that choose a dispatch table."""
    for option in (
        click.option(
            "--position",
            type=click.IntRange(min=0),
            default=0,
            show_default=True,
            metavar="N",
            help="Tokens of each text in the KV cache before.",
        ),
        click.option(
            "--rows",
            type=click.IntRange(min=1),
            metavar="N",
            help="Tokens at once; of batch, texts. [default: decode 1, batch 8, prefill 512]",
        ),
        click.option(
            "--phase",
            type=click.Choice(list(ROWS)),
            default="decode",
            show_default=True,
            help="decode: a token of one text; batch: one of each of N texts; prefill: a prompt.",
        ),
    ):
        function = option(function)
    return function


def table_options(context: int | None, phase: str, rows: int, position: int) -> dict[str, int]:
    """What an engine needs for a table of `rows` at `position`; `context` is of --context."""
    needed = position + (1 if phase == "batch" else rows)
    if context is None:
        context = needed + 1
    if context < needed:
        raise click.UsageError(
            f"--position {position} and {rows} rows need --context {needed}, found {context}"
        )
    return {"context": context, "parallel": rows} if phase == "batch" else {"context": context}

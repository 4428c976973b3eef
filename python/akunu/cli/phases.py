"""Options that choose a dispatch table, which commands about tables share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from akunu.cli.values import Integer

__all__ = ["PHASE_OPTIONS", "ROWS", "TableOptions", "phase_options", "table_options"]

F = TypeVar("F", bound=Callable[..., Any])

ROWS = {"decode": 1, "batch": 8, "prefill": 512, "encode": 128}
"""Rows of each phase when none are given."""

PHASE_OPTIONS = ("phase", "rows", "texts", "position")
"""The names of these options."""


@dataclass(frozen=True)
class TableOptions:
    """Values of these options; None: what suits the model.

    Attributes
    ----------
    phase
        A name of `ROWS`.
    rows
        Tokens at once; of encode, of each text; of batch, texts.
    texts
        The number of texts of the phase encode.
    position
        Tokens of each text in the KV cache before.
    """

    phase: str | None
    rows: int | None
    texts: int | None
    position: int

    def title(self) -> str:
        """Every option that the phase has."""
        if self.phase != "encode":
            return f"{self.phase}, {self.rows} rows at position {self.position}"
        if self.texts is None:
            return f"encode, {self.rows} rows"
        return f"encode, {'a text' if self.texts == 1 else f'{self.texts} texts'} of {self.rows} tokens"


def phase_options(function: F) -> F:
    """Options that choose a dispatch table."""
    for option in (
        click.option(
            "--position",
            type=Integer(min=0),
            default=0,
            show_default=True,
            metavar="N",
            help="Tokens of each sequence in the KV cache before the step.",
        ),
        click.option(
            "--texts",
            type=Integer(min=1),
            metavar="N",
            help="With --phase encode: the number of inputs in a step, each of --rows tokens. [default: 1]",
        ),
        click.option(
            "--rows",
            type=Integer(min=1),
            metavar="N",
            help="Rows of the step. With --phase batch: sequences; with encode: tokens of each input. "
            "[default: decode 1, batch 8, prefill 512, encode 128]",
        ),
        click.option(
            "--phase",
            type=click.Choice(list(ROWS)),
            help="decode: one token of one sequence; batch: one token of each of N sequences; prefill: a "
            "prompt; encode: inputs of an embedding model, or a window of speech. [default: encode if the "
            "model has it, else decode]",
        ),
    ):
        function = option(function)
    return function


def table_options(context: int | None, phase: str, rows: int, position: int) -> dict[str, int]:
    """Return the options of an engine for a table of `rows` at `position`; `context` is that of --context."""
    needed = position + (1 if phase == "batch" else rows)
    if context is None:
        context = needed + 1
    if context < needed:
        raise click.UsageError(
            f"--position {position} and {rows} rows need --context {needed}, found {context}"
        )
    return {"context": context, "parallel": rows} if phase == "batch" else {"context": context}

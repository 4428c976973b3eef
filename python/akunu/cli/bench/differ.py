"""The first command in which two devices disagree: how a backend or an instruction set is brought up.

    python -m akunu.cli.bench.differ model.gguf --device metal
    python -m akunu.cli.bench.differ model.gguf --isa generic --rows 1 --position 40

A text of random tokens is run on the CPU, and on another device or with another instruction set, one command
further each time, and what the last command wrote is compared. Tables differ too: what one device has as one
command may be several on another. Commands of the same name are compared, and where two disagree those before
it that the other has not are named as well.

What a device keeps in a form of its own (the cache, quantised activations, partial results) is not compared,
but what is made of it is.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

import click
import numpy as np

from akunu.base.errors import InvalidArgumentError
from akunu.cli.app import CONTEXT_SETTINGS
from akunu.cli.app import run as run_command
from akunu.cli.values import Integer
from akunu.loading.engines import open_engine

if TYPE_CHECKING:
    import numpy.typing as npt

    from akunu._core import CommandInfo, Engine

__all__ = ["Difference", "first_difference"]

COMPARED: Final = ("hidden", "table", "q", "y", "out", "out_f32")
"""Buffers of floats, of the same form on every device. Keys are not: when they are in the cache, what is left
of them is the device's business."""
TOLERANCE: Final = 1e-3
"""Squared error over squared values. Rounding gives 1e-14 in F32, 1e-6 in F16, 1e-5 with int8 activations."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A place where two engines disagree.

    Attributes
    ----------
    command, op, buffer
        The command, in the first engine's table, and what it wrote.
    error
        Squared error over squared values; infinite where one is not a number.
    element
        The element of the buffer that is furthest off.
    found, expected
        It, in the second engine and in the first.
    since
        Commands of the first engine after the last one on which both agree, up to this one.
    """

    command: str
    op: str
    buffer: str
    error: float
    element: int
    found: float
    expected: float
    since: tuple[str, ...]


class Steps:
    """A step of an engine, command by command.

    Parameters
    ----------
    engine
        It was opened with `activations_apart`, and is used by nobody else meanwhile.
    ids
        A text; the last `rows` of it are the step.
    rows
        Rows of the step.
    """

    def __init__(self, engine: Engine, ids: npt.NDArray[np.uint32], rows: int) -> None:
        self._engine = engine
        before = len(ids) - rows
        slot = engine.open()
        assert slot is not None
        self._slot = slot
        engine.begin(ids, slot=slot, reuse=False)
        while (length := engine.length(slot)) < before:
            part = min(before - length, engine.chunk)
            engine.reserve(slot, part)
            engine.step([(slot, part, False, 0, [])])
        self.commands = [(command["label"], command["op"]) for command in _plan(engine, rows, before)]

    def written(self, command: int) -> dict[str, npt.NDArray[np.float32]]:
        """The floats that a command wrote, by the buffer's name."""
        found = self._engine.run_prefix(self._slot, command + 1)
        return {name: data.view(np.float32) for name, data in found.items() if name in COMPARED}

    def close(self) -> None:
        """Give the text's place back."""
        self._engine.close_slot(self._slot)


def _plan(engine: Engine, rows: int, position: int) -> list[CommandInfo]:
    """The commands of a step of so many rows: a device may have a table of its own for a few."""
    if rows == 1:
        return engine.plan("decode", rows, position)
    try:
        return engine.plan("batch", rows, position)
    except InvalidArgumentError:
        return engine.plan("prefill", rows, position)


def first_difference(
    expected: Engine,
    found: Engine,
    ids: npt.NDArray[np.uint32],
    *,
    rows: int,
    tolerance: float = TOLERANCE,
) -> Difference | None:
    """Compare two engines of one model, command by command.

    Parameters
    ----------
    expected, found
        The engine that is right, and another one. Both must be new, as what no command has written is zero,
        and opened with `activations_apart`.
    ids
        Token ids [n].
    rows
        How many of them, the last ones, are the step that is compared.
    tolerance
        Greatest squared error, over squared values.

    Returns
    -------
    Difference or None
        The first in the table, or None when the engines agree.
    """
    first, second = Steps(expected, ids, rows), Steps(found, ids, rows)
    try:
        places = {label: i for i, (label, _) in enumerate(second.commands)}
        since: list[str] = []
        for i, (label, op) in enumerate(first.commands):
            since.append(label)
            if label not in places:
                continue
            right, other = first.written(i), second.written(places[label])
            for buffer in right.keys() & other.keys():
                difference = _compare(right[buffer], other[buffer])
                if difference is not None and difference[0] > tolerance:
                    return Difference(label, op, buffer, *difference, tuple(since))
            if right.keys() & other.keys():
                since.clear()
    finally:
        first.close()
        second.close()
    return None


def _compare(
    right: npt.NDArray[np.float32], other: npt.NDArray[np.float32]
) -> tuple[float, int, float, float] | None:
    """Error, the element that is furthest off, and its values; buffers may have different numbers of rows."""
    n = min(len(right), len(other))
    a, b = right[:n].astype(np.float64), other[:n].astype(np.float64)
    distance = np.where(np.isfinite(b), np.abs(a - b), np.inf)
    worst = int(np.argmax(distance))
    if distance[worst] == 0:
        return None
    size = float((a**2).sum())
    error = float((distance**2).sum()) / size if size else np.inf
    return error, worst, float(b[worst]), float(a[worst])


@contextmanager
def _isa(name: str | None) -> Iterator[None]:
    """Engines that are opened meanwhile use this instruction set."""
    before = os.environ.get("AKUNU_CPU_ISA")
    if name is not None:
        os.environ["AKUNU_CPU_ISA"] = name
    try:
        yield
    finally:
        if before is None:
            os.environ.pop("AKUNU_CPU_ISA", None)
        else:
            os.environ["AKUNU_CPU_ISA"] = before


@click.command(context_settings=CONTEXT_SETTINGS)
@click.argument("model")
@click.option("--device", default="cpu", show_default=True, metavar="ID", help="The device to compare with.")
@click.option("--isa", metavar="NAME", help="The instruction set of the CPU to compare with.")
@click.option(
    "--rows", type=Integer(min=1), default=1, show_default=True, metavar="N", help="Rows of the step."
)
@click.option(
    "--position",
    type=Integer(min=0),
    default=40,
    show_default=True,
    metavar="N",
    help="Position of the first row.",
)
@click.option(
    "--tolerance",
    default=TOLERANCE,
    show_default=True,
    metavar="X",
    help="The greatest error that counts as equal.",
)
def command(model: str, device: str, isa: str | None, rows: int, position: int, tolerance: float) -> None:
    """Name the first command of MODEL in which another device, or instruction set, disagrees with the CPU."""
    if device == "cpu" and isa is None:
        raise InvalidArgumentError("--device: found cpu, expected another device, or --isa")
    opened = partial(
        open_engine,
        model,
        context=position + rows + 1,
        chunk=max(rows, 16),
        parallel=1,
        activations_apart=True,
    )
    with (
        opened(device="cpu") as right,
        _isa(isa),
        opened(device=device) as other,
    ):
        vocab = right.config.vocab_size
        ids = np.random.default_rng(0).integers(0, vocab, position + rows).astype(np.uint32)
        names = [f"{e.device} ({e.isa})" for e in (right.engine, other.engine)]
        found = first_difference(right.engine, other.engine, ids, rows=rows, tolerance=tolerance)
    if found is None:
        click.echo(f"{names[0]} and {names[1]} agree in every command")
        return
    click.echo(
        f"{found.command} ({found.op}): {names[1]} is the first to disagree\n"
        f"  {found.buffer}[{found.element}] is {found.found:g}, expected {found.expected:g}; "
        f"error {found.error:.2g}\n"
        f"  commands since both agreed: {', '.join(found.since)}"
    )
    sys.exit(1)


if __name__ == "__main__":
    sys.exit(run_command(command, "differ"))

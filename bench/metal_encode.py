"""Host time per token of the Metal backend: encoding and submitting, while a GPU that does nothing takes it.

    PYTHONPATH=tests python -m bench.metal_encode                  # a build with -DAKUNU_METAL=EMULATED
    PYTHONPATH=tests python -m bench.metal_encode --layers 32 --limit 30

The emulator's no-op mode leaves the host's own cost. A chain of 256 tokens is run again and again; the least
of the calling thread's CPU times counts, since other load only adds. On a Mac a message costs more than the
emulator's 3 ns: the figure is of Akunu's own code.
"""

from __future__ import annotations

import sys
import time

import click

from metal_emulator.control import Control
from sampling.engines import synthetic

CHAIN = 256


def microseconds_per_token(layers: int, rounds: int = 20) -> tuple[float, int]:
    """(CPU time of the calling thread per token, dispatches per token)."""
    engine = synthetic(512, 64, layers=layers, context=CHAIN + 8, device="metal")
    engine.begin([1, 2, 3])
    engine.prefill()
    control = Control()
    best = float("inf")
    with control.settings(noop=1):
        for _ in range(rounds):
            start = time.thread_time_ns()
            engine.decode(CHAIN)
            best = min(best, (time.thread_time_ns() - start) / 1e3 / CHAIN)
    return best, sum(c["dispatches"] for c in engine.plan())


@click.command()
@click.option(
    "--layers", default=16, show_default=True, type=click.IntRange(min=1), help="Of the Llama model."
)
@click.option("--limit", default=0.0, metavar="US", help="Fail above this; 0: only print.")
def command(layers: int, limit: float) -> None:
    """Print the host's time per token."""
    each, dispatches = microseconds_per_token(layers)
    per_dispatch = 1e3 * each / dispatches
    click.echo(
        f"{layers} layers, {dispatches} dispatches: {each:.1f} us per token, {per_dispatch:.0f} ns each"
    )
    if limit and each > limit:
        sys.exit(f"more than {limit} us")


if __name__ == "__main__":
    command()

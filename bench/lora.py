"""Adapters (LoRA): tokens a second with them and without, of one sequence and of four in a batch.

    python -m bench.lora qwen3-0.6b:q4_0 -t 2
    python -m bench.lora model.gguf --device cuda --rank 64

A model is a file, or SHAPE:TYPE with random weights. Adapters of random values change all of its linear
layers (without the output matrix). Each case is timed without adapters and with them in turn, in random
order, round after round; figures are medians, and a ratio is that of neighbours in time. `bytes` is what the
ratio would be if only the bytes counted that a step reads of weights and adapters.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Sequence as SequenceOf
from pathlib import Path
from statistics import median
from typing import Any, Final

import click
import numpy as np

from akunu._core import Engine
from akunu.api.scheduling import Scheduler, Sequence
from akunu.api.scheduling.sequence import Adapter
from akunu.cli.app import CONTEXT_SETTINGS
from akunu.cli.app import run as run_command
from akunu.cli.console import print_table
from akunu.loading.engines import open_engine
from bench.json_file import json_option, write_json
from bench.options import rounds_option

PROMPT: Final = 32
TEXTS: Final = 4

CASES: Final[dict[str, tuple[int | None, ...]]] = {
    "one": (0,),
    "four, one adapter": (0, 0, 0, 0),
    "four adapters": (0, 1, 2, 3),
    "one of four": (0, None, None, None),
}
"""The adapter of each sequence, by its number."""


def add_adapters(scheduler: Scheduler, engine: Engine, rank: int) -> list[Adapter]:
    """Give the engine as many as there are sequences."""
    rng = np.random.default_rng(1)
    found = []
    for i in range(TEXTS):
        tensors = {
            name: (
                np.float32(rng.normal(size=(rank, columns)) * 0.01),
                np.float32(rng.normal(size=(rows, rank)) * 0.01),
                1.0,
            )
            for name, (rows, columns) in engine.linears.items()
            if name.startswith("layers.")
        }
        found.append(scheduler.add_adapter(tensors, str(i)))
    return found


def written(scheduler: Scheduler, sequences: SequenceOf[Sequence]) -> float:
    """Run sequences to their ends; returns seconds from the first token of the last one."""
    for sequence in sequences:
        scheduler.submit(sequence)
    for sequence in sequences:
        scheduler.next(sequence)
    start = time.perf_counter()
    for sequence in sequences:
        while scheduler.next(sequence) is not None:
            pass
    seconds = time.perf_counter() - start
    for sequence in sequences:
        scheduler.end(sequence, 0)
    return seconds


def adapter_bytes(engine: Engine, rank: int) -> int:
    """Bytes of an adapter that a step reads, in 16 bits."""
    layers = [shape for name, shape in engine.linears.items() if name.startswith("layers.")]
    return sum(2 * rank * (rows + columns) for rows, columns in layers)


def compare(
    scheduler: Scheduler, case: str, adapters: SequenceOf[Adapter], tokens: int, rounds: int, vocab: int
) -> tuple[float, float, float]:
    """Tokens a second without adapters, with them, and the ratio."""
    of, order = CASES[case], random.Random(0)
    seconds: dict[bool, list[float]] = {False: [], True: []}
    rng = np.random.default_rng(2)
    for turn in range(rounds + 1):
        for adapted in order.sample([False, True], 2):
            sequences = [
                Sequence(
                    rng.integers(0, vocab, PROMPT).astype(np.uint32),
                    {"temperature": 0.0},
                    tokens,
                    speculative=False,
                    adapter=adapters[i] if adapted and i is not None else None,
                )
                for i in of
            ]
            taken = written(scheduler, sequences)
            if turn:
                seconds[adapted].append(taken)
    ratios = [plain / own for plain, own in zip(seconds[False], seconds[True], strict=True)]
    all_tokens = len(of) * (tokens - 1)
    return all_tokens / median(seconds[False]), all_tokens / median(seconds[True]), median(ratios)


@click.command(context_settings=CONTEXT_SETTINGS)
@click.argument("models", nargs=-1, required=True)
@click.option("-t", "--threads", type=click.IntRange(min=1), metavar="N", help="CPU threads.")
@click.option("--device", default="cpu", show_default=True, metavar="NAME", help="The device.")
@click.option("--rank", type=click.IntRange(1, 512), default=16, show_default=True, help="Of all matrices.")
@click.option(
    "--tokens",
    type=click.IntRange(min=2),
    default=64,
    show_default=True,
    metavar="N",
    help="Of each sequence.",
)
@rounds_option(7)
@json_option
def command(
    models: tuple[str, ...],
    threads: int | None,
    device: str,
    rank: int,
    tokens: int,
    rounds: int,
    json_path: Path | None,
) -> None:
    """Time adapters beside each of MODELS."""
    figures: list[dict[str, Any]] = []
    for name in models:
        context = PROMPT + tokens + 2
        with open_engine(name, device=device, context=context, threads=threads, parallel=TEXTS) as opened:
            engine = opened.engine
            scheduler = Scheduler(engine)
            weights = engine.memory["weights"] + engine.memory["weights_mapped"]
            own = adapter_bytes(engine, rank)
            adapters = add_adapters(scheduler, engine, rank)
            for case, of in CASES.items():
                plain, adapted, ratio = compare(
                    scheduler, case, adapters, tokens, rounds, opened.config.vocab_size
                )
                read = len({i for i in of if i is not None}) * own
                figures.append(
                    {
                        "model": name,
                        "case": case,
                        "plain": plain,
                        "adapted": adapted,
                        "ratio": ratio,
                        "bytes": weights / (weights + read),
                    }
                )
    rows = [
        [
            found["model"],
            found["case"],
            f"{found['plain']:.1f}",
            f"{found['adapted']:.1f}",
            f"{found['ratio']:.2f}",
            f"{found['bytes']:.2f}",
        ]
        for found in figures
    ]
    print_table(
        ["model", "adapters", "plain tokens/s", "with adapters", "ratio", "bytes"], rows, right="  rrrr"
    )
    if json_path:
        write_json(json_path, figures)


if __name__ == "__main__":
    sys.exit(run_command(command, "python -m bench.lora"))

"""Many texts on one model: tokens a second by streams, gaps while a long prompt runs, cached prefixes.

    python bench/many.py qwen3-0.6b:q4_0 llama3.2-1b:q4_k_m -t 2
    python bench/many.py model.gguf --streams 1,4,8,16 --tokens 64

A model is a file or SHAPE:TYPE with random weights. The numbers of streams are timed in turn, round after
round, in random order; figures are medians of the rounds, and ratios are to the first number in the same run.
The gaps are those between the tokens of four running texts while a prompt of `--prompt` tokens is being run.
"""

from __future__ import annotations

import random
import sys
import threading
import time
from collections.abc import Sequence as Seq
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, Final

import click
import numpy as np

from akunu._core import Engine
from akunu.bench.loader import open_engine
from akunu.bench.params import parse_ints
from akunu.cli.app import CONTEXT_SETTINGS
from akunu.cli.app import run as run_command
from akunu.cli.console import print_table
from akunu.scheduling import Scheduler, Sequence
from json_file import write_json

START: Final = 32
"""Tokens of each stream's prompt."""
CHAIN: Final = 8
"""Tokens of a call."""
GREEDY: Final[dict[str, Any]] = {"temperature": 0.0}


def ids(engine_vocab: int, n: int, seed: int) -> np.ndarray[Any, np.dtype[np.uint32]]:
    """A prompt of its own for every seed."""
    return np.random.default_rng(seed).integers(0, engine_vocab, n).astype(np.uint32)


def decode_rate(engine: Engine, vocab: int, streams: int, tokens: int) -> float:
    """Tokens a second of `streams` texts together, their prompts not counted."""
    slots = [engine.open() for _ in range(streams)]
    taken = [slot for slot in slots if slot is not None]
    for slot in taken:
        engine.begin(ids(vocab, START, slot), slot=slot, reuse=False)
        assert engine.reserve(slot, START)
        engine.step([(slot, START, True, 0, [])])
    start = time.perf_counter()
    for _ in range(0, tokens, CHAIN):
        for slot in taken:
            assert engine.reserve(slot, 1, CHAIN)
        engine.step([(slot, 1, True, 0, []) for slot in taken], CHAIN)
    seconds = time.perf_counter() - start
    for slot in taken:
        engine.close_slot(slot)
    engine.forget()
    return streams * (-(-tokens // CHAIN) * CHAIN) / seconds


def read(scheduler: Scheduler, sequence: Sequence, times: list[float]) -> None:
    """Take a text to its end, noting when each of its tokens came."""
    scheduler.submit(sequence)
    while (chunk := scheduler.next(sequence)) is not None:
        times += [time.perf_counter()] * len(chunk.ids)
    scheduler.end(sequence, sequence.known)


def gaps(engine: Engine, vocab: int, prompt: int, streams: int = 4, tokens: int = 200) -> list[float]:
    """Seconds between tokens of running texts while a long prompt is run beside them."""
    scheduler = Scheduler(engine)
    times: list[list[float]] = [[] for _ in range(streams)]
    # Random weights soon repeat themselves, which drafts would make much of.
    running = [
        Sequence(ids(vocab, START, 90 + i), GREEDY, limit=tokens, speculative=False) for i in range(streams)
    ]
    threads = [
        threading.Thread(target=read, args=(scheduler, s, t)) for s, t in zip(running, times, strict=True)
    ]
    for thread in threads:
        thread.start()
    while min(map(len, times)) < 8:
        time.sleep(0.001)
    began = time.perf_counter()
    first: list[float] = []
    read(scheduler, Sequence(ids(vocab, prompt, 7), GREEDY, limit=1), first)
    for sequence in running:
        scheduler.cancel(sequence)
    for thread in threads:
        thread.join()
    engine.forget()
    found = []
    for text in times:
        at = [t for t in text if began <= t <= first[0]]
        found += [b - a for a, b in pairwise(at) if b > a]
    return found


def first_token(engine: Engine, prompt: Seq[int] | np.ndarray[Any, Any]) -> float:
    """Seconds to the first token of a prompt."""
    scheduler, times = Scheduler(engine), list[float]()
    start = time.perf_counter()
    read(scheduler, Sequence(np.asarray(prompt, np.uint32), GREEDY, limit=1), times)
    return times[0] - start


@click.command(context_settings=CONTEXT_SETTINGS)
@click.argument("models", nargs=-1, required=True)
@click.option(
    "-t", "--threads", type=click.IntRange(min=1), default=2, show_default=True, metavar="N", help="Threads."
)
@click.option("--streams", default="1,4,8,16", show_default=True, metavar="LIST", help="Texts at a time.")
@click.option(
    "--tokens", type=click.IntRange(min=1), default=48, show_default=True, metavar="N", help="Of each text."
)
@click.option("--prompt", type=click.IntRange(min=2), default=2000, show_default=True, metavar="N",
              help="Tokens of the long prompt.")  # fmt: skip
@click.option(
    "--rounds", type=click.IntRange(min=1), default=3, show_default=True, metavar="N", help="Rounds."
)
@click.option(
    "--json", "json_path", type=click.Path(path_type=Path), metavar="FILE", help="Write the figures here."
)
def command(
    models: tuple[str, ...],
    threads: int,
    streams: str,
    tokens: int,
    prompt: int,
    rounds: int,
    json_path: Path | None,
) -> None:
    """Time many texts on each of MODELS."""
    counts = parse_ints(streams)
    rows, figures, order = [], [], random.Random(0)
    for name in models:
        context = max(prompt + 2, START + tokens + CHAIN)
        with open_engine(name, context=context, threads=threads, parallel=max(*counts, 5)) as opened:
            engine, vocab = opened.engine, opened.config.vocab_size
            rates: dict[int, list[float]] = {n: [] for n in counts}
            for _ in range(rounds):
                for n in order.sample(counts, len(counts)):
                    rates[n].append(decode_rate(engine, vocab, n, tokens))
            speed = {n: median(r) for n, r in rates.items()}
            beside = sorted(gaps(engine, vocab, prompt))
            long = ids(vocab, prompt, 5)
            cold = first_token(engine, long)
            warm = median(first_token(engine, long) for _ in range(rounds))
        p99 = beside[int(len(beside) * 0.99)] if beside else 0.0
        figures.append(
            {"model": name, "tokens_per_second": speed, "gaps": beside, "cold": cold, "warm": warm}
        )
        one = speed[counts[0]]
        rows.append(
            [
                name,
                *(f"{speed[n]:.1f} ({speed[n] / one:.2f})" for n in counts),
                f"{1e3 * median(beside):.0f} / {1e3 * p99:.0f}" if beside else "-",
                f"{cold:.2f} / {warm:.3f}",
            ]
        )
    print_table(
        ["model", *(f"{n} streams" for n in counts), "gap ms, median / p99", "first token s, cold / cached"],
        rows,
    )
    if json_path:
        write_json(json_path, figures)


if __name__ == "__main__":
    sys.exit(run_command(command, "many.py"))

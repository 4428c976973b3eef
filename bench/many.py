"""Many sequences on one model: tokens a second by streams, gaps while a long prompt runs, cached prefixes.

    python -m bench.many qwen3-0.6b:q4_0 llama3.2-1b:q4_k_m -t 2
    python -m bench.many model.gguf --streams 1,4,8,16 --tokens 64 --peer path/to/llama-batched-bench

A model is a file or SHAPE:TYPE with random weights. The numbers of streams are timed in turn, round after
round, in random order; figures are medians of the rounds, and ratios are to the first number in the same run.
With --peer, llama.cpp's batched-bench times the same numbers of the same file in between.

gaps        between the tokens of four running sequences while a prompt of `--prompt` tokens is being run
first token of such a prompt: cold, and as shares of that with its beginning in memory, or in files that the
            system has to read from the disk
scheduling  of one thread that reads all sequences, with the most streams: its time outside the engine,
            as a share of all of it
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import time
from itertools import pairwise
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, Final, cast

import click
import numpy as np

from akunu._core import Engine
from akunu.api.scheduling import Scheduler, Sequence
from akunu.api.scheduling.page_files import PageFiles
from akunu.base.errors import AkunuError
from akunu.cli.app import CONTEXT_SETTINGS
from akunu.cli.app import run as run_command
from akunu.cli.bench.params import parse_ints
from akunu.cli.console import print_table
from akunu.loading.engines import is_synthetic, open_engine
from akunu.loading.finding import find_model
from bench.json_file import json_option, write_json
from bench.options import rounds_option, threads_option
from bench.timed_engine import TimedEngine

START: Final = 32
"""Tokens of each stream's prompt."""
CHAIN: Final = 8
"""Tokens of a call."""
GREEDY: Final[dict[str, Any]] = {"temperature": 0.0}


def ids(engine_vocab: int, n: int, seed: int) -> np.ndarray[Any, np.dtype[np.uint32]]:
    """A prompt of its own for every seed."""
    return np.random.default_rng(seed).integers(0, engine_vocab, n).astype(np.uint32)


def decode_rate(engine: Engine, vocab: int, streams: int, tokens: int) -> float:
    """Tokens a second of `streams` sequences together, their prompts not counted."""
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
    """Take a sequence to its end, noting when each of its tokens came."""
    scheduler.submit(sequence)
    while (chunk := scheduler.next(sequence)) is not None:
        times += [time.perf_counter()] * len(chunk.ids)
    scheduler.end(sequence, sequence.known)


def gaps(engine: Engine, vocab: int, prompt: int, streams: int = 4, tokens: int = 200) -> list[float]:
    """Seconds between tokens of running sequences while a long prompt is run beside them."""
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
    for own in times:
        at = [t for t in own if began <= t <= first[0]]
        found += [b - a for a, b in pairwise(at) if b > a]
    return found


def first_token(scheduler: Scheduler, prompt: np.ndarray[Any, np.dtype[np.uint32]]) -> float:
    """Seconds to the first token of a prompt."""
    times = list[float]()
    start = time.perf_counter()
    read(scheduler, Sequence(prompt, GREEDY, limit=1), times)
    return times[0] - start


def first_tokens(engine: Engine, vocab: int, prompt: int, rounds: int) -> dict[str, float]:
    """Seconds to the first token of a prompt that is new, in memory, and in files."""
    prefix = ids(vocab, prompt, 5)
    with TemporaryDirectory() as folder:
        scheduler = Scheduler(engine, PageFiles(Path(folder), 1 << 40, b"", engine.part_bytes))
        cold = first_token(scheduler, prefix)
        scheduler.flush()
        memory = median(first_token(scheduler, prefix) for _ in range(rounds))
        disk = []
        for _ in range(rounds):
            engine.forget()
            for file in Path(folder).rglob("*.page"):
                with file.open("rb") as opened:  # out of the system's memory
                    os.fsync(opened.fileno())
                    os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            disk.append(first_token(scheduler, prefix))
            scheduler.flush()
    engine.forget()
    return {"cold": cold, "memory": memory, "disk": median(disk)}


def scheduling_share(engine: Engine, vocab: int, streams: int, tokens: int) -> float:
    """The share of its processor time that a thread that reads all sequences spends outside the engine."""
    timed = TimedEngine(engine)
    scheduler = Scheduler(cast(Engine, timed))
    sequences = [Sequence(ids(vocab, START, 50 + i), GREEDY, limit=tokens) for i in range(streams)]
    for sequence in sequences:
        scheduler.submit(sequence)
    for sequence in sequences:
        scheduler.next(sequence)
    timed.seconds = 0.0
    began = time.thread_time()
    going = list(sequences)
    while going:
        going = [each for each in going if scheduler.next(each) is not None]
    seconds = time.thread_time() - began
    for sequence in sequences:
        scheduler.end(sequence, 0)
    engine.forget()
    return 1 - timed.seconds / seconds


def peer_rate(program: Path, model: str, streams: int, tokens: int, threads: int, layers: int) -> float:
    """Tokens a second of llama.cpp's batched-bench."""
    context = streams * (START + tokens) + START
    run = subprocess.run(
        [program, "-m", model, "-c", str(context), "-b", "2048", "-ub", "512", "-t", str(threads),
         "-tb", str(threads), "-ngl", str(layers), "-npp", str(START), "-ntg", str(tokens),
         "-npl", str(streams)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return table_rate(run.stdout + run.stderr, streams)


def table_rate(output: str, streams: int) -> float:
    """`S_TG t/s` of a number of streams, in the table that batched-bench prints."""
    header: list[str] = []
    for line in output.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if "S_TG t/s" in cells:
            header = cells
        elif len(cells) == len(header) and cells[header.index("B")] == str(streams):
            return float(cells[header.index("S_TG t/s")])
    raise AkunuError(f"llama-batched-bench: no row of {streams} streams in what it printed: {output[-400:]}")


@click.command(context_settings=CONTEXT_SETTINGS)
@click.argument("models", nargs=-1, required=True)
@click.option("--device", default="cpu", show_default=True, metavar="ID", help="Where; a peer's layers too.")
@threads_option
@click.option("--streams", default="1,4,8,16", show_default=True, metavar="LIST", help="Sequences at a time.")
@click.option(
    "--tokens",
    type=click.IntRange(min=1),
    default=48,
    show_default=True,
    metavar="N",
    help="Of each sequence.",
)
@click.option("--prompt", type=click.IntRange(min=2), default=4000, show_default=True, metavar="N",
              help="Tokens of the long prompt.")  # fmt: skip
@rounds_option(3)
@click.option(
    "--peer",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="PATH",
    help="llama-batched-bench, timed in between; for models that are files.",
)
@json_option
def command(
    models: tuple[str, ...],
    device: str,
    threads: int,
    streams: str,
    tokens: int,
    prompt: int,
    rounds: int,
    peer: Path | None,
    json_path: Path | None,
) -> None:
    """Time many sequences on each of MODELS."""
    counts = parse_ints(streams)
    rows, figures, order = [], [], random.Random(0)
    for name in models:
        context = max(prompt + 2, START + tokens + CHAIN)
        with open_engine(
            name, device=device, context=context, threads=threads, parallel=max(*counts, 5)
        ) as opened:
            engine, vocab = opened.engine, opened.config.vocab_size
            rates: dict[int, list[float]] = {n: [] for n in counts}
            others: dict[int, list[float]] = {n: [] for n in counts}
            for _ in range(rounds):
                for n in order.sample(counts, len(counts)):
                    rates[n].append(decode_rate(engine, vocab, n, tokens))
                    if peer is not None and not is_synthetic(name):
                        path = str(find_model(name))
                        others[n].append(
                            peer_rate(peer, path, n, tokens, threads, 0 if device == "cpu" else 999)
                        )
            speed = {n: median(r) for n, r in rates.items()}
            theirs = {n: median(r) for n, r in others.items() if r}
            beside = sorted(gaps(engine, vocab, prompt))
            first = first_tokens(engine, vocab, prompt, rounds)
            share = median(scheduling_share(engine, vocab, max(counts), tokens) for _ in range(rounds))
        p99 = beside[int(len(beside) * 0.99)] if beside else 0.0
        figures.append(
            {
                "model": name,
                "tokens_per_second": speed,
                "peer_tokens_per_second": theirs,
                "gaps": beside,
                "first_token": first,
                "scheduling": share,
            }
        )
        one, cold, usual = speed[counts[0]], first["cold"], median(beside) if beside else 0.0
        gap = f"{1e3 * usual:.0f} / {1e3 * p99:.0f} ({p99 / usual:.2f})" if beside else "-"
        rows.append(
            [
                name,
                *(f"{speed[n]:.1f} ({speed[n] / one:.2f})" for n in counts),
                *([] if peer is None else [" ".join(f"{theirs[n]:.1f}" for n in counts if n in theirs)]),
                gap,
                f"{cold:.2f} s, {first['memory'] / cold:.1%}, {first['disk'] / cold:.1%}",
                f"{share:.2%}",
            ]
        )
    headers = ["model", *(f"{n} streams" for n in counts), *([] if peer is None else ["llama.cpp"])]
    headers += ["gap ms, median / p99", "first token, from memory, files", "scheduling"]
    print_table(headers, rows)
    if json_path:
        write_json(json_path, figures)


if __name__ == "__main__":
    sys.exit(run_command(command, "python -m bench.many"))

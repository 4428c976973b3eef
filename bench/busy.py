"""Decode speed on a machine that is not one's own: beside busy processes, in pairs, and under a quota.

    python bench/busy.py ember
    python bench/busy.py ember --synthetic qwen3-0.6b:q4_0,llama3.2-1b:q4_0 --folder /tmp/models \\
        --peer llama.cpp=/path/to/llama-bench

For each model and each condition it compares thread counts: the default, one, two, and twice the cores. The
default should come within 0.9 of the best of them, and never below 0.8 of one thread. All cells run in random
order, once in each round; the table gives medians. What else runs on the machine is part of no condition:
measure on a quiet one.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Final

import click

from akunu.bench.params import parse_ints
from akunu.cli.app import CONTEXT_SETTINGS
from akunu.cli.app import run as run_command
from akunu.cli.console import note, print_table
from json_file import write_json
from measure import run
from peers import AKUNU, parse_peers, write_synthetic

GROUPS: Final = Path("/sys/fs/cgroup")
QUOTA_PERIOD_US: Final = 100_000
READ_BYTES: Final = 16_000_000_000
LEAST_TOKENS: Final = 32

# Decodes in as many threads as there are rates to print, each with a model of its own.
SEVERAL: Final = """
import json, sys, threading, time
from akunu.bench.loader import open_engine
model, threads, tokens, count = sys.argv[1], int(sys.argv[2]) or None, int(sys.argv[3]), int(sys.argv[4])
opened = [open_engine(model, context=tokens + 64, threads=threads) for _ in range(count)]
rates, ready = [], threading.Barrier(count)
def work(engine):
    engine.begin([5] * 8, temperature=0.0, reuse=False)
    engine.prefill()
    ready.wait()
    began, done = time.perf_counter(), 0
    while done < tokens and (more := len(engine.decode(min(64, tokens - done)).ids)):
        done += more
    rates.append(done / (time.perf_counter() - began))
workers = [threading.Thread(target=work, args=(each.__enter__().engine,)) for each in opened]
for worker in workers: worker.start()
for worker in workers: worker.join()
print(json.dumps(rates))
"""


@dataclass(frozen=True)
class Condition:
    """What else happens while a program runs."""

    name: str
    busy: int = 0
    """Processes that compute."""
    quota: float = 0.0
    """Processors that the program's control group may use; 0: all."""
    models: int = 1
    """In the same process."""
    processes: int = 1


@dataclass(frozen=True)
class Cell:
    """One program, one model, one condition, one number of threads."""

    engine: str
    model: str
    condition: Condition
    threads: int
    """0: the program's default."""


@contextlib.contextmanager
def burners(count: int) -> Iterator[None]:
    """As many processes that only compute."""
    running = [subprocess.Popen([sys.executable, "-I", "-S", "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in running:
            process.send_signal(signal.SIGKILL)
            process.wait()


@contextlib.contextmanager
def quota(cpus: float) -> Iterator[list[str]]:
    """A control group with that quota; yields what to put before a command so that it runs there.

    Raises
    ------
    OSError
        Where no group can be made, as without the rights to.
    """
    if not cpus:
        yield []
        return
    second = (GROUPS / "cgroup.controllers").exists()
    folder = (GROUPS if second else GROUPS / "cpu") / f"akunu-busy-{os.getpid()}"
    folder.mkdir()
    try:
        allowed = int(cpus * QUOTA_PERIOD_US)
        if second:
            (folder / "cpu.max").write_text(f"{allowed} {QUOTA_PERIOD_US}")
        else:
            (folder / "cpu.cfs_period_us").write_text(str(QUOTA_PERIOD_US))
            (folder / "cpu.cfs_quota_us").write_text(str(allowed))
        yield ["sh", "-c", f'echo $$ > {folder}/cgroup.procs && exec "$@"', "sh"]
    finally:
        folder.rmdir()


def command_of(cell: Cell, tokens: int, peers: Mapping[str, Sequence[str]]) -> list[str]:
    """The program of a cell."""
    if cell.engine in peers:
        threads = ["-t", str(cell.threads)] if cell.threads else []
        return [
            *peers[cell.engine],
            "-m",
            cell.model,
            "-p",
            "0",
            "-n",
            str(tokens),
            "-r",
            "1",
            "-o",
            "json",
            *threads,
        ]
    arguments = [cell.model, str(cell.threads), str(tokens), str(cell.condition.models)]
    return [sys.executable, "-c", SEVERAL, *arguments]


def tokens_for(model: str, most: int) -> int:
    """How many tokens a run generates: large models get fewer, so that each cell takes seconds."""
    return min(most, max(LEAST_TOKENS, READ_BYTES // Path(model).stat().st_size))


def rate_of(output: bytes) -> float:
    """Tokens a second, of all models together."""
    results = json.loads(output)
    return sum(each if isinstance(each, float) else median(each["samples_ts"]) for each in results)


def measure(cell: Cell, tokens: int, peers: Mapping[str, Sequence[str]]) -> float:
    """Tokens a second of one cell, of all its models and processes together."""
    command = command_of(cell, tokens, peers)
    with burners(cell.condition.busy), quota(cell.condition.quota) as prefix:
        others = [
            subprocess.Popen([*prefix, *command], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            for _ in range(cell.condition.processes - 1)
        ]
        rate = rate_of(run([*prefix, *command]).output)
        return rate + sum(rate_of(other.communicate()[0]) for other in others)


def conditions(busy: Sequence[int], cpus: float) -> list[Condition]:
    """The rows of the grid."""
    rows = [Condition(f"{count} busy" if count else "idle", busy=count) for count in busy]
    rows += [Condition("two models", models=2), Condition("two processes", processes=2)]
    if cpus:
        rows.append(Condition(f"{cpus:g} CPUs", quota=cpus))
    return rows


def table(rates: dict[Cell, list[float]], counts: Sequence[int]) -> tuple[list[str], list[list[str]]]:
    """Headings and cells: a line for each program, model and condition."""
    headers = ["model", "condition", "program", *("default" if n == 0 else f"{n} threads" for n in counts)]
    headers += ["default/best", "default/one"]
    lines = []
    for key in dict.fromkeys((cell.model, cell.condition, cell.engine) for cell in rates):
        found = {c.threads: median(r) for c, r in rates.items() if (c.model, c.condition, c.engine) == key}
        line = [Path(key[0]).stem, key[1].name, key[2]]
        line += [f"{found[n]:.1f}" if n in found else "-" for n in counts]
        line += [f"{found[0] / max(found.values()):.2f}", f"{found[0] / found[1]:.2f}"]
        lines.append(line)
    return headers, lines


@click.command(context_settings=CONTEXT_SETTINGS)
@click.argument("models", nargs=-1)
@click.option("--synthetic", default="", metavar="SHAPE:TYPE,…", help="Also files of random weights.")
@click.option("--folder", type=click.Path(path_type=Path), metavar="DIR", help="Where these files are or go.")
@click.option("--peer", "peers", multiple=True, metavar="NAME=PATH",
              help="A program like llama-bench beside it, as bench/peers.py takes them.")  # fmt: skip
@click.option(
    "--busy", default="0,1,2,4", show_default=True, metavar="LIST", help="Busy processes beside it."
)
@click.option("--quota", "cpus", default=1.5, show_default=True, metavar="CPUS",
              help="Quota of a control group, which only root may make; 0: leave it out.")  # fmt: skip
@click.option("-n", "tokens", default=512, show_default=True, metavar="N",
              help="Tokens to generate, at most: files beyond 31 MB get fewer.")  # fmt: skip
@click.option(
    "--rounds", type=click.IntRange(min=1), default=5, show_default=True, metavar="N", help="Rounds."
)
@click.option("--seed", default=0, show_default=True, metavar="N", help="Of the random order.")
@click.option(
    "--json", "json_path", type=click.Path(path_type=Path), metavar="FILE", help="Write every run here."
)
def command(
    models: tuple[str, ...],
    synthetic: str,
    folder: Path | None,
    peers: tuple[str, ...],
    busy: str,
    cpus: float,
    tokens: int,
    rounds: int,
    seed: int,
    json_path: Path | None,
) -> None:
    """Compare thread counts on MODELS (GGUF files or installed names) while other things run."""
    from akunu import _core
    from akunu.loading import find_model

    programs = parse_peers(peers)
    cores = _core.devices()[0]["threads"]
    counts = [0, *sorted({1, 2, 2 * cores})]
    paths = [str(find_model(name)) for name in models]
    paths += map(str, write_synthetic([name for name in synthetic.split(",") if name], folder))
    if not paths:
        raise click.UsageError("give a model, or --synthetic")
    cells = [
        Cell(engine, model, condition, threads)
        for engine in (AKUNU, *programs)
        for model in paths
        for condition in conditions(parse_ints(busy), cpus)
        if engine == AKUNU or condition.models == 1
        for threads in counts
    ]
    rates: dict[Cell, list[float]] = {cell: [] for cell in cells}
    order = random.Random(seed)
    for round_ in range(rounds):
        for cell in order.sample(cells, len(cells)):
            rates[cell].append(measure(cell, tokens_for(cell.model, tokens), programs))
            note(
                f"round {round_ + 1}: {Path(cell.model).stem}, {cell.condition.name}, {cell.engine}, "
                f"{cell.threads or 'default'} threads: {rates[cell][-1]:.1f}"
            )
    headers, lines = table(rates, counts)
    print_table(headers, lines, right="   " + "r" * (len(headers) - 3))
    if json_path is not None:
        write_json(json_path, [asdict(cell) | {"rates": found} for cell, found in rates.items()])


if __name__ == "__main__":
    sys.exit(run_command(command, "busy.py"))

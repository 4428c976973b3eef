"""Decode speed on a machine that is not one's own: beside busy processes, in pairs, and under a quota.

    python -m bench.busy ember
    python -m bench.busy ember --synthetic qwen3-0.6b:q4_0,llama3.2-1b:q4_0 --folder /tmp/models \\
        --peer llama.cpp=/path/to/llama-bench

For each model and each condition it compares thread counts: the default, one, two, and twice the cores. The
default should come within 0.9 of the best of them, and never below 0.8 of one thread. A peer, a program like
llama-bench, runs with its own default and with one thread.

All counts are loaded at once, each in a process of its own, and take short turns; the others wait meanwhile,
a peer's because it is stopped. A peer's tokens are the first of an output, ours up to its 264th: that is in
its favour. A round is a turn of each in random order, so that what the machine does in the long run is the
same for all of them. Ratios are of one round; the table gives their medians and, in brackets, their
quartiles. "Best" is the count that is fastest in the other rounds: the fastest of the round itself would be
one that was lucky. Where the default is one of the counts, their ratio shows how far noise goes. What else
runs on the machine is part of no condition: measure on a quiet one.
"""

from __future__ import annotations

import contextlib
import os
import random
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median, quantiles
from typing import Final, TypeAlias

import click

from akunu.base.errors import AkunuError
from akunu.cli.app import CONTEXT_SETTINGS
from akunu.cli.app import run as run_command
from akunu.cli.bench.params import parse_ints
from akunu.cli.console import note, print_table
from bench.json_file import write_json
from bench.peers import AKUNU, parse_peers, write_synthetic

GROUPS: Final = Path("/sys/fs/cgroup")
QUOTA_PERIOD_US: Final = 100_000
PEER_THREADS: Final = (0, 1)
PEER_READ_BYTES: Final = 250_000_000
PEER_REPETITIONS: Final = 1_000_000_000

# Takes a turn for each line that it reads: decodes for so many seconds, each model on a thread of its own,
# and prints the tokens a second of all together. Chains are as long as those of an output that is streamed.
WORKER: Final = """
import sys, threading, time
from concurrent.futures import ThreadPoolExecutor
from akunu._core import MAX_CHAIN
from akunu.cli.bench.one_sequence import OneSequence
from akunu.loading.engines import open_engine
from akunu.api.scheduling.planning import fitting
LENGTH = 256
model, threads, count, seconds = sys.argv[1], int(sys.argv[2]) or None, int(sys.argv[3]), float(sys.argv[4])
opened = [open_engine(model, context=LENGTH + 64, threads=threads) for _ in range(count)]
engines = [OneSequence(each.__enter__().engine) for each in opened]
together = threading.Barrier(count)
def rate(engine):
    done, spent, left, chain = 0, 0.0, 0, 1
    together.wait()
    while spent < seconds:
        if left == 0:
            engine.begin([5] * 8, temperature=0.0, reuse=False)
            engine.prefill()
            left = LENGTH
        began = time.perf_counter()
        new = len(engine.decode(min(chain, left)).ids)
        took = time.perf_counter() - began
        done, spent, left, chain = done + new, spent + took, left - new, fitting(new, took, MAX_CHAIN)
    return done / spent
with ThreadPoolExecutor(count) as pool:
    print("ready", flush=True)
    for line in sys.stdin:
        print(sum(pool.map(rate, engines)), flush=True)
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


Turn: TypeAlias = Callable[[], float]
"""Gives a cell a turn: its tokens a second, of all models and processes together."""


@contextlib.contextmanager
def burners(count: int) -> Iterator[None]:
    """As many processes that only compute."""
    running = [subprocess.Popen([sys.executable, "-I", "-S", "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in running:
            process.kill()
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


@contextlib.contextmanager
def workers(cell: Cell, prefix: Sequence[str], seconds: float) -> Iterator[Turn]:
    """The processes of a cell of ours, with their models loaded, and what gives them a turn together."""
    arguments = [cell.model, str(cell.threads), str(cell.condition.models), str(seconds)]
    with contextlib.ExitStack() as stack:
        running = [
            stack.enter_context(
                subprocess.Popen(
                    [*prefix, sys.executable, "-c", WORKER, *arguments],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                    bufsize=1,
                )
            )
            for _ in range(cell.condition.processes)
        ]

        def answers() -> list[str]:
            lines = [process.stdout.readline() for process in running if process.stdout]
            if not all(lines):
                raise AkunuError(f"{cell.model}, {cell.condition.name}: a process ended before its turn did")
            return lines

        def turn() -> float:
            for process in running:
                assert process.stdin is not None
                process.stdin.write("\n")
            return sum(map(float, answers()))

        answers()
        yield turn


def peer_command(program: Sequence[str], cell: Cell) -> list[str]:
    """A peer's endless run of a cell; it tells of each repetition. The default threads are its own."""
    threads = ["-t", str(cell.threads)] if cell.threads else []
    options = ["-p", "0", "-n", str(tokens_for(cell.model)), "-r", str(PEER_REPETITIONS), "--progress"]
    return [*program, "-m", cell.model, *options, *threads]


def tokens_for(model: str) -> int:
    """How many tokens a peer's repetition generates: so few that the end of a turn is not long in coming."""
    return max(1, PEER_READ_BYTES // Path(model).stat().st_size)


class Peer:
    """A peer's process, which is stopped but for its turns."""

    def __init__(self, command: Sequence[str], tokens: int) -> None:
        self.tokens = tokens
        self._name = command[0]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        assert self.process.stderr is not None
        self._progress = self.process.stderr.fileno()

    def __enter__(self) -> Peer:
        try:
            while b"generation run" not in self._read():
                pass
            self._stop()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()

    def rate(self, seconds: float) -> float:
        """Tokens a second of a turn, which begins and ends with a repetition."""
        self.process.send_signal(signal.SIGCONT)
        self._read()  # the end of the repetition that it was stopped in
        began = time.perf_counter()
        done, spent = 0, 0.0
        while spent < seconds:
            done += self._read().count(b"\n")
            spent = time.perf_counter() - began
        self._stop()
        return done * self.tokens / spent

    def _read(self) -> bytes:
        """What it says next: a line for each repetition that begins."""
        said = os.read(self._progress, 1 << 16)
        if not said:
            raise AkunuError(f"{self._name}: ended before its turn did")
        return said

    def _stop(self) -> None:
        """Stop it, and forget what it still said."""
        self.process.send_signal(signal.SIGSTOP)
        os.waitpid(self.process.pid, os.WUNTRACED)
        while select.select([self._progress], [], [], 0)[0]:
            self._read()


@contextlib.contextmanager
def peer_workers(cell: Cell, program: Sequence[str], prefix: Sequence[str], seconds: float) -> Iterator[Turn]:
    """The processes of a peer's cell, with their models loaded, and what gives them a turn together."""
    command = [*prefix, *peer_command(program, cell)]
    count = cell.condition.processes
    with contextlib.ExitStack() as stack:
        running = [stack.enter_context(Peer(command, tokens_for(cell.model))) for _ in range(count)]
        pool = stack.enter_context(ThreadPoolExecutor(count))
        yield lambda: sum(pool.map(lambda peer: peer.rate(seconds), running))


def measure(
    cells: Sequence[Cell],
    peers: Mapping[str, Sequence[str]],
    *,
    rounds: int,
    seconds: float,
    order: random.Random,
) -> dict[Cell, list[float]]:
    """Tokens a second of each cell in each round: cells of one model in one condition."""
    condition = cells[0].condition
    turns: dict[Cell, Turn] = {}
    rates: dict[Cell, list[float]] = {cell: [] for cell in cells}
    with quota(condition.quota) as prefix, contextlib.ExitStack() as stack:
        for cell in cells:
            if cell.engine == AKUNU:
                turns[cell] = stack.enter_context(workers(cell, prefix, seconds))
            else:
                turns[cell] = stack.enter_context(peer_workers(cell, peers[cell.engine], prefix, seconds))
        stack.enter_context(burners(condition.busy))
        for _ in range(rounds):
            for cell in order.sample(cells, len(cells)):
                rates[cell].append(turns[cell]())
    return rates


def conditions(busy: Sequence[int], pairs: bool, cpus: float) -> list[Condition]:
    """The rows of the grid."""
    rows = [Condition(f"{count} busy" if count else "idle", busy=count) for count in busy]
    if pairs:
        rows += [Condition("two models", models=2), Condition("two processes", processes=2)]
    if cpus:
        rows.append(Condition(f"{cpus:g} CPUs", quota=cpus))
    return rows


def against_best(default: Sequence[float], counts: Sequence[Sequence[float]]) -> list[float]:
    """In each round: the default's rate over that of the count that is fastest in the other rounds."""
    ratios = []
    for i, rate in enumerate(default):
        best = max(counts, key=lambda rates: median([*rates[:i], *rates[i + 1 :]] or rates))
        ratios.append(rate / best[i])
    return ratios


def spread(ratios: Sequence[float]) -> str:
    """Median and quartiles."""
    low, middle, high = quantiles(ratios, n=4, method="inclusive") if len(ratios) > 1 else ratios * 3
    return f"{middle:.2f} ({low:.2f}-{high:.2f})"


def table(rates: dict[Cell, list[float]]) -> tuple[list[str], list[list[str]]]:
    """Headings and cells: a line for each program, model and condition, the ratios to peers in ours."""
    counts = list(dict.fromkeys(cell.threads for cell in rates))
    peers = list(dict.fromkeys(cell.engine for cell in rates if cell.engine != AKUNU))
    headers = ["model", "condition", "program", *("default" if n == 0 else f"{n} threads" for n in counts)]
    headers += [f"default/{n}" for n in counts[1:]] + ["default/best"]
    headers += [f"/{peer}{' 1' if n else ''}" for peer in peers for n in PEER_THREADS]
    lines = []
    for key in dict.fromkeys((cell.model, cell.condition, cell.engine) for cell in rates):
        model, condition, engine = key
        found = {c.threads: r for c, r in rates.items() if (c.model, c.condition, c.engine) == key}
        default = found[0]

        def ratio(other: list[float] | None, default: list[float] = default) -> str:
            return spread([a / b for a, b in zip(default, other, strict=True)]) if other else "-"

        line = [Path(model).stem, condition.name, engine]
        line += [f"{median(found[n]):.1f}" if n in found else "-" for n in counts]
        line += [ratio(found.get(n)) for n in counts[1:]]
        line += [spread(against_best(default, [found[n] for n in counts[1:] if n in found]))]
        for peer in peers:
            theirs = [rates.get(Cell(peer, model, condition, n)) for n in PEER_THREADS]
            line += [ratio(each) if engine == AKUNU else "-" for each in theirs]
        lines.append(line)
    return headers, lines


@click.command(context_settings=CONTEXT_SETTINGS)
@click.argument("models", nargs=-1)
@click.option("--synthetic", default="", metavar="SHAPE:TYPE,…", help="Also files of random weights.")
@click.option("--folder", type=click.Path(path_type=Path), metavar="DIR", help="Where these files are or go.")
@click.option("--peer", "peers", multiple=True, metavar="NAME=PATH",
              help="A program like llama-bench beside it, as bench/peers.py takes them.")  # fmt: skip
@click.option(
    "--busy",
    default="0,1,2,4",
    show_default=True,
    metavar="LIST",
    help="Busy processes beside it; '': none of these.",
)
@click.option("--pairs/--no-pairs", default=True, show_default=True,
              help="Two models in a process, and two processes.")  # fmt: skip
@click.option("--quota", "cpus", default=1.5, show_default=True, metavar="CPUS",
              help="Quota of a control group, which only root may make; 0: leave it out.")  # fmt: skip
@click.option("--seconds", default=0.7, show_default=True, metavar="S", help="How long a turn decodes.")
@click.option(
    "--rounds", type=click.IntRange(min=1), default=15, show_default=True, metavar="N", help="Turns of each."
)
@click.option("--seed", default=0, show_default=True, metavar="N", help="Of the random order.")
@click.option(
    "--json", "json_path", type=click.Path(path_type=Path), metavar="FILE", help="Write every turn here."
)
def command(
    models: tuple[str, ...],
    synthetic: str,
    folder: Path | None,
    peers: tuple[str, ...],
    busy: str,
    pairs: bool,
    cpus: float,
    seconds: float,
    rounds: int,
    seed: int,
    json_path: Path | None,
) -> None:
    """Compare thread counts on MODELS (GGUF files or installed names) while other things run."""
    from akunu import _core
    from akunu.loading.finding import find_model

    programs = parse_peers(peers)
    cores = _core.devices()[0]["threads"]
    counts = [0, *sorted({1, 2, 2 * cores})]
    paths = [str(find_model(name)) for name in models]
    paths += map(str, write_synthetic([name for name in synthetic.split(",") if name], folder))
    if not paths:
        raise click.UsageError("give a model, or --synthetic")
    rates: dict[Cell, list[float]] = {}
    order = random.Random(seed)
    for model in paths:
        for condition in conditions(parse_ints(busy) if busy else [], pairs, cpus):
            cells = [Cell(AKUNU, model, condition, threads) for threads in counts]
            if condition.models == 1:
                cells += [Cell(peer, model, condition, n) for peer in programs for n in PEER_THREADS]
            rates |= measure(cells, programs, rounds=rounds, seconds=seconds, order=order)
            note(f"{Path(model).stem}, {condition.name}: done")
    headers, lines = table(rates)
    print_table(headers, lines, right="   " + "r" * (len(headers) - 3))
    if json_path is not None:
        write_json(json_path, [asdict(cell) | {"rates": found} for cell, found in rates.items()])


if __name__ == "__main__":
    sys.exit(run_command(command, "python -m bench.busy"))

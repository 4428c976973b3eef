"""What a constraint costs: tokens of a sequence under masks beside tokens without, in turns.

    python -m bench.structured qwen3-0.6b:q4_0 -t 2 --vocabulary vocab.gguf
    python -m bench.structured model.gguf --sequences 1,4

A model is a file or SHAPE:TYPE with random weights, whose vocabulary is then that of the file `--vocabulary`.
Sequences that are free, JSON strings (almost every token is allowed) and digits (few are) take turns, a token
each, in random order: what else the machine does meets them alike. Figures are medians of the turns, and
ratios medians of the ratios of turns that follow each other. Constraints that leave no choice are not timed:
their tokens cost less than free ones. The last column is the CPU time that the leading thread spends outside
the engine, masks included, for each token.
"""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any, Final

import click
import numpy as np

from akunu._core import Engine
from akunu.api.scheduling import Scheduler, Sequence
from akunu.chat.structured.compiler import Compiler
from akunu.chat.structured.structure import Structure, structure_of
from akunu.cli.app import CONTEXT_SETTINGS
from akunu.cli.app import run as run_command
from akunu.cli.bench.params import parse_ints
from akunu.cli.console import print_table
from akunu.loading.engines import is_synthetic, open_engine
from akunu.tokenizer import Tokenizer
from bench.json_file import write_json
from bench.timed_engine import TimedEngine

PROMPT: Final = 32
ENDLESS: Final[dict[str, Structure | None]] = {
    "free": None,
    "string": structure_of({"schema": {"type": "string", "minLength": 100_000}}),
    "digits": structure_of({"regex": "[0-9]{100000}"}),
}
"""Constraints of sequences that do not end."""


class Sequences:
    """Sequences of one constraint, with a scheduler of their own; all share an engine."""

    def __init__(self, engine: Engine, compiler: Compiler, name: str, count: int) -> None:
        self._engine = TimedEngine(engine)
        self._scheduler = Scheduler(self._engine)  # type: ignore[arg-type]
        structure = ENDLESS[name]
        self._sequences = [
            Sequence(
                np.random.default_rng(i).integers(300, 2000, PROMPT).astype(np.uint32),
                {"temperature": 1.0, "top_k": 40, "seed": i},
                speculative=False,
                constraint=None if structure is None else compiler.constraint(structure),
            )
            for i in range(count)
        ]
        for sequence in self._sequences:
            self._scheduler.submit(sequence)
        self.turn()

    def turn(self) -> tuple[float, float]:
        """Seconds for a token of each sequence; those of the leading thread beside the engine's steps."""
        before = self._written
        start, used = time.perf_counter(), time.thread_time() - self._engine.seconds
        for sequence in self._sequences:
            self._scheduler.next(sequence)
        seconds, used = time.perf_counter() - start, time.thread_time() - self._engine.seconds - used
        tokens = (self._written - before) / len(self._sequences)
        return seconds / tokens, used / tokens

    @property
    def _written(self) -> int:
        return sum(len(sequence.tokens) for sequence in self._sequences)

    def end(self) -> None:
        """Free their places."""
        for sequence in self._sequences:
            self._scheduler.end(sequence, 0)


def measure(
    model: str, vocabulary: Path, counts: list[int], tokens: int, rounds: int, threads: int
) -> dict[str, Any]:
    """Times of every constraint, each number of sequences."""
    parallel = max(counts) * len(ENDLESS)
    with open_engine(model, context=PROMPT + 2 * tokens + 512, threads=threads, parallel=parallel) as opened:
        compiler = Compiler(Tokenizer.from_gguf(vocabulary), opened.config.vocab_size)
        start = time.process_time()
        for structure in filter(None, ENDLESS.values()):
            compiler.constraint(structure)
        report: dict[str, Any] = {"model": model, "compile_cpu_seconds": time.process_time() - start}
        times: dict[tuple[int, str], list[tuple[float, float]]] = {
            (n, name): [] for n in counts for name in ENDLESS
        }
        for n in counts * rounds:
            running = {name: Sequences(opened.engine, compiler, name, n) for name in ENDLESS}
            for _ in range(tokens):
                for name in random.sample(list(running), len(running)):
                    times[n, name].append(running[name].turn())
            for each in running.values():
                each.end()
            opened.engine.forget()
    report["rows"] = [
        {
            "sequences": n,
            "constraint": name,
            "milliseconds": 1e3 * median(wall for wall, _ in found),
            "to_free": median(own[0] / free[0] for own, free in zip(found, times[n, "free"], strict=True)),
            "host_milliseconds": 1e3 * median(used for _, used in found),
        }
        for (n, name), found in times.items()
    ]
    return report


@click.command(context_settings=CONTEXT_SETTINGS)
@click.argument("model")
@click.option(
    "--vocabulary", type=click.Path(path_type=Path), metavar="FILE", help="Of a model with random weights."
)
@click.option("--sequences", default="1,4", show_default=True, metavar="LIST", help="Sequences together.")
@click.option("--tokens", default=48, show_default=True, help="Tokens of each sequence.")
@click.option("--rounds", default=5, show_default=True)
@click.option("-t", "--threads", default=0, help="0: one for each core.")
@click.option("--json", "json_path", type=click.Path(path_type=Path), metavar="FILE")
def command(
    model: str,
    vocabulary: Path | None,
    sequences: str,
    tokens: int,
    rounds: int,
    threads: int,
    json_path: Path | None,
) -> None:
    """Time sequences that have a constraint beside free ones."""
    if vocabulary is None and is_synthetic(model):
        raise click.UsageError("random weights have no vocabulary; give the file of one with --vocabulary")
    report = measure(model, vocabulary or Path(model), parse_ints(sequences), tokens, rounds, threads)
    print(f"vocabulary and forms: {report['compile_cpu_seconds']:.2f} s of CPU, once")
    print_table(
        ["sequences", "constraint", "ms a token", "to free", "host ms"],
        [
            [
                str(row["sequences"]),
                row["constraint"],
                f"{row['milliseconds']:.2f}",
                f"{row['to_free']:.3f}",
                f"{row['host_milliseconds']:.3f}",
            ]
            for row in report["rows"]
        ],
    )
    if json_path is not None:
        write_json(json_path, report)


if __name__ == "__main__":
    sys.exit(run_command(command, "python -m bench.structured"))

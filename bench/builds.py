"""This build of Akunu beside another one, by turns: what a change did to its speed.

    git worktree add ../before COMMIT        and build its extension, as CONTRIBUTING.md says
    python -m bench.builds ../before qwen3-0.6b:q4_0 ember -t 2
    python -m bench.builds ../before --vectors minilm --speech whisper-tiny.bin -t 2 --seconds 120

MODELS are language models: files, names or SHAPE:TYPE with random weights. Each build is a process with the
package of its folder, and both have the model open. In each round they take turns on every test, in random
order. A round's ratio is this build's speed over the other's; the table has the median of the rounds' ratios,
the range of the middle half of them, and whether both computed the same. Rounds of all tests follow one
another until there are `--rounds` of them or `--seconds` have passed.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles
from typing import Any, Final

import click

import akunu
from akunu.base.errors import AkunuError
from akunu.cli.app import CONTEXT_SETTINGS
from akunu.cli.app import run as run_command
from akunu.cli.bench.params import parse_ints
from akunu.cli.console import print_table
from bench.json_file import json_option, write_json
from bench.options import device_option

WORKER: Final = Path(__file__).with_name("one_build.py")
HERE: Final = Path(akunu.__file__).parents[1]


@dataclass
class Row:
    """A test of a model: seconds of each round, here and there, and whether both computed the same."""

    model: str
    test: str
    here: list[float] = field(default_factory=list)
    other: list[float] = field(default_factory=list)
    equal: bool = True

    @property
    def ratios(self) -> list[float]:
        """This build's speed over the other's, in each round."""
        return [theirs / ours for ours, theirs in zip(self.here, self.other, strict=True)]

    def cells(self) -> list[str]:
        """A line of the table."""
        ratios = self.ratios
        low, _, high = quantiles(ratios, n=4) if len(ratios) > 1 else (ratios[0],) * 3
        return [
            self.model, self.test, f"{1e3 * median(self.here):.2f}", f"{1e3 * median(self.other):.2f}",
            f"{median(ratios):.3f}", f"{low:.3f}-{high:.3f}", str(len(ratios)), "yes" if self.equal else "no",
        ]  # fmt: skip


class Build:
    """A process with the package of one folder."""

    def __init__(self, package: Path) -> None:
        self.package = package
        # What this process found beside its own package, the other finds, too; -P: nothing beside the script.
        others = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(package), *others])}
        self._process = subprocess.Popen(
            [sys.executable, "-P", str(WORKER)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment,
        )  # fmt: skip

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """The answer to a request.

        Raises
        ------
        AkunuError
            The process ended; what it said stands on standard error.
        """
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise AkunuError(f"the build in {self.package} ended at {request}")
        found: dict[str, Any] = json.loads(line)
        return found

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


@contextmanager
def two_builds(other: Path) -> Iterator[tuple[Build, Build]]:
    """The processes of this build and of the other."""
    here = Build(HERE)
    try:
        there = Build(other)
        try:
            yield here, there
        finally:
            there.close()
    finally:
        here.close()


def compare(
    other: Path, asked: dict[str, Any], *, rounds: int, seconds: float, order: random.Random
) -> list[Row]:
    """The tests of one model, after a run of each that does not count."""
    until = time.monotonic() + seconds
    with two_builds(other) as builds:
        found = [build.ask({"open": asked})["tests"] for build in builds]
        rows = [Row(str(asked["model"]), test) for test in found[0] if test in found[1]]
        for row in rows:
            hashes = {build.ask({"run": row.test})["hash"] for build in builds}
            row.equal = len(hashes) == 1
        for round_ in range(rounds):
            if round_ and time.monotonic() > until:
                break
            for row in order.sample(rows, len(rows)):
                for index in order.sample([0, 1], 2):
                    taken = (row.here, row.other)[index]
                    taken.append(builds[index].ask({"run": row.test})["seconds"])
    return rows


@click.command(context_settings=CONTEXT_SETTINGS)
@click.argument("other", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("models", nargs=-1)
@click.option("--vectors", multiple=True, metavar="MODEL", help="An embedding model; repeatable.")
@click.option("--speech", multiple=True, metavar="MODEL", help="A Whisper model; repeatable.")
@device_option
@click.option("-t", "--threads", type=click.IntRange(min=1), default=2, show_default=True, metavar="N",
              help="Threads of each build.")  # fmt: skip
@click.option("-p", "prompts", default="512", show_default=True, metavar="LIST", help="Lengths of prompts.")
@click.option("-n", "tokens", type=click.IntRange(min=1), default=64, show_default=True, metavar="N",
              help="Tokens of each sequence.")  # fmt: skip
@click.option("--streams", default="1,4,8,16", show_default=True, metavar="LIST", help="Sequences at a time.")
@click.option("--vector-tokens", type=click.IntRange(min=1), default=8192, show_default=True, metavar="N",
              help="Of all sequences of a length.")  # fmt: skip
@click.option("--rounds", type=click.IntRange(min=1), default=9, show_default=True, metavar="N",
              help="Rounds, at most.")  # fmt: skip
@click.option("--seconds", type=click.FloatRange(min=0), default=3600.0, show_default=True, metavar="S",
              help="Of each model, after which no round begins.")  # fmt: skip
@json_option
def command(
    other: Path,
    models: Sequence[str],
    vectors: Sequence[str],
    speech: Sequence[str],
    device: str,
    threads: int,
    prompts: str,
    tokens: int,
    streams: str,
    vector_tokens: int,
    rounds: int,
    seconds: float,
    json_path: Path | None,
) -> None:
    """Compare this build with that of OTHER, a folder of the repository at another commit, on MODELS."""
    package = other.resolve() / "python"
    if not (package / "akunu").is_dir():
        raise AkunuError(f"{other}: found no folder python/akunu, expected another checkout of Akunu")
    kinds = [("text", models), ("vectors", vectors), ("speech", speech)]
    common = {
        "device": device, "threads": threads, "prompts": parse_ints(prompts), "tokens": tokens,
        "streams": parse_ints(streams), "vector_tokens": vector_tokens,
    }  # fmt: skip
    rows, order = list[Row](), random.Random(0)
    for kind, names in kinds:
        for name in names:
            asked = {**common, "kind": kind, "model": name}
            rows += compare(package, asked, rounds=rounds, seconds=seconds, order=order)
    if not rows:
        raise click.UsageError("no model to compare: name MODELS, --vectors or --speech")
    headers = ["model", "test", "ms", "other's ms", "ratio", "middle half", "rounds", "equal"]
    print_table(headers, [row.cells() for row in rows])
    if json_path:
        write_json(json_path, [row.__dict__ for row in rows])


if __name__ == "__main__":
    sys.exit(run_command(command, "python -m bench.builds"))

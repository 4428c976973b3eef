"""Time from launch to the first token, and peak memory, of `akunu complete` and of a peer's program.

    python -m bench.startup model.gguf
    python -m bench.startup model.gguf --peer /path/to/llama-completion -t 2

Each program writes one token, in turn and in random order. The first byte on standard output is the
first token: neither program prints the prompt. The file should be in the page cache; one untimed run of each
sees to that.
"""

from __future__ import annotations

import random
import shlex
import sys
from pathlib import Path
from statistics import median
from typing import Final

import click

from akunu.cli.app import CONTEXT_SETTINGS
from akunu.cli.app import run as run_command
from akunu.cli.console import bytes_text, note, print_table, seconds_text
from bench.json_file import write_json
from bench.measure import LIMITS, Rule, Usage, probe, run
from bench.options import threads_option

PROMPT: Final = "Once upon a time"
PEER_ARGUMENTS: Final = (
    "-m {model} -p {prompt} -n 1 -c 4096 -t {threads} --temp 0 -no-cnv --no-display-prompt --no-warmup"
)


@click.command(context_settings=CONTEXT_SETTINGS)
@click.argument("model", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--peer", metavar="PATH", help="Another program, such as llama.cpp's llama-completion.")
@click.option("--peer-arguments", default=PEER_ARGUMENTS, show_default=True, metavar="TEXT",
              help="Its arguments, with {model}, {prompt} and {threads}.")  # fmt: skip
@threads_option
@click.option(
    "--rounds", type=click.IntRange(min=1), default=7, show_default=True, metavar="N", help="Timed runs each."
)
@click.option("--limits", default=LIMITS, show_default=True, metavar="A,B,C",
              help="Discard a run beyond these shares: steal, other processes, drift.")  # fmt: skip
@click.option("--seed", default=0, show_default=True, metavar="N", help="Of the random order.")
@click.option(
    "--json", "json_path", type=click.Path(path_type=Path), metavar="FILE", help="Write every run here."
)
def command(
    model: Path,
    peer: str | None,
    peer_arguments: str,
    threads: int,
    rounds: int,
    limits: str,
    seed: int,
    json_path: Path | None,
) -> None:
    """Measure how soon after the launch MODEL writes its first token, and in how much memory."""
    ours = f"complete {shlex.quote(PROMPT)} -m {shlex.quote(str(model))} -n 1 -t {threads} --temperature 0"
    commands = {"akunu": [sys.executable, "-m", "akunu", *shlex.split(ours)]}
    if peer is not None:
        values = {"model": str(model), "prompt": PROMPT, "threads": str(threads)}
        commands[Path(peer).name] = [peer, *(word.format(**values) for word in shlex.split(peer_arguments))]
    rule = Rule.parse(limits)
    order = random.Random(seed)
    runs: dict[str, list[Usage]] = {name: [] for name in commands}
    discarded = 0
    for round_ in range(rounds + 1):
        for name in order.sample(list(commands), len(commands)):
            before = probe(threads)
            usage = run(commands[name])
            objection = rule.objection(usage, before, probe(threads))
            if round_ and not objection:
                runs[name].append(usage)
            elif round_:
                discarded += 1
                note(f"round {round_}: {name} discarded: {objection}")
    rows = [
        [
            name,
            seconds_text(median(usage.first_output for usage in found)),
            seconds_text(median(usage.seconds for usage in found)),
            seconds_text(median(usage.cpu_seconds for usage in found)),
            bytes_text(median(usage.max_rss for usage in found)),
            str(len(found)),
        ]
        for name, found in runs.items()
        if found
    ]
    print_table(
        ["program", "first token", "to exit", "processor", "peak memory", "runs"], rows, right=" rrrrr"
    )
    note(f"[{discarded} runs discarded by {rule}]")
    if json_path is not None:
        report = {
            name: [
                {
                    "first_token": u.first_output,
                    "seconds": u.seconds,
                    "cpu_seconds": u.cpu_seconds,
                    "max_rss": u.max_rss,
                }
                for u in found
            ]
            for name, found in runs.items()
        }
        write_json(json_path, report)


if __name__ == "__main__":
    sys.exit(run_command(command, "python -m bench.startup"))

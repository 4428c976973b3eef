"""Every kernel's time against its floor: what the machine's peaks allow, measured in the same run.

    python -m bench.roofline model.gguf
    python -m bench.roofline qwen3-0.6b:q4_0 llama3.2-1b:q4_k_m --phase decode,prefill --json roofline.json

The rows are ordered by the time that is lost above the floor, so the first is where work pays most.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from akunu.cli.app import CONTEXT_SETTINGS
from akunu.cli.app import run as run_command
from akunu.cli.console import bar, note, print_table, seconds_text
from akunu.cli.costs import Cost, costs, mean_peaks
from akunu.cli.phases import ROWS
from akunu.loading.engines import open_engine
from bench.json_file import write_json


def measure(
    model: str, phase: str, rows: int, position: int, threads: int | None, repeats: int
) -> dict[str, Any]:
    """Kernels of one dispatch table, most lost time first, with the peaks before and after."""
    from akunu import _core

    with open_engine(model, context=position + rows + 1, threads=threads) as opened:
        engine = opened.engine
        before = _core.measure_peaks(engine.threads)
        commands = engine.profile(phase, rows, position, repeats)
        after = _core.measure_peaks(engine.threads)
        found = costs(commands, mean_peaks(before, after), "kernel")
        return {
            "model": opened.facts.type,
            "phase": phase,
            "rows": rows,
            "position": position,
            "threads": engine.threads,
            "isa": engine.isa,
            "peaks": [before, after],
            "kernels": sorted(found, key=lambda cost: cost.floor - cost.seconds),
        }


def print_report(report: dict[str, Any]) -> None:
    """The table of one dispatch table."""
    kernels: Sequence[Cost] = report["kernels"]
    total = sum(cost.seconds for cost in kernels)
    floor = sum(cost.floor for cost in kernels)
    lines = [
        [
            cost.name, cost.shape, str(cost.count), seconds_text(cost.seconds), seconds_text(cost.floor),
            f"{cost.share:.0%}", seconds_text(max(0.0, cost.seconds - cost.floor)),
            f"{cost.bytes_per_second / 1e9:.1f}", f"{cost.flops_per_second / 1e9:.1f}", bar(cost.share),
        ]
        for cost in kernels
    ]  # fmt: skip
    title = f"{report['model']}: {report['phase']}, {report['rows']} rows at {report['position']}, "
    title += f"{report['isa']}, {report['threads']} threads"
    headers = ["kernel", "shape", "count", "time", "floor", "reached", "lost", "GB/s", "GFLOP/s", ""]
    print_table(headers, lines, title=title, right="  rrrrrrr ")
    reached = floor / total if total else 0.0
    click.echo(f"all: {seconds_text(total)} against {seconds_text(floor)}, {reached:.0%} of the machine")
    for when, peaks in zip(("before", "after"), report["peaks"], strict=True):
        note(
            f"[{when}: {peaks['read_bytes_per_second'] / 1e9:.1f} GB/s, "
            f"{peaks['f32_flops'] / 1e9:.0f} GFLOP/s, {peaks['int8_ops'] / 1e9:.0f} int8 GOP/s]"
        )


@click.command(context_settings=CONTEXT_SETTINGS)
@click.argument("models", nargs=-1, required=True)
@click.option(
    "--phase", "phases", default="decode", show_default=True, metavar="LIST", help="decode, batch, prefill."
)
@click.option(
    "--rows", type=click.IntRange(min=1), metavar="N", help="Tokens at once. [default: 1, 8, 512 by phase]"
)
@click.option("--position", type=click.IntRange(min=0), default=0, show_default=True, metavar="N",
              help="Tokens in the KV cache before.")  # fmt: skip
@click.option("-t", "--threads", type=click.IntRange(min=1), metavar="N", help="CPU threads.")
@click.option(
    "--repeats", type=click.IntRange(min=1), default=16, show_default=True, metavar="N", help="Runs."
)
@click.option(
    "--json", "json_path", type=click.Path(path_type=Path), metavar="FILE", help="Write all figures here."
)
def command(
    models: tuple[str, ...],
    phases: str,
    rows: int | None,
    position: int,
    threads: int | None,
    repeats: int,
    json_path: Path | None,
) -> None:
    """Compare each kernel's time with the least that this machine needs for its bytes and operations.

    MODELS are GGUF files, or SHAPE:TYPE for random weights.
    """
    names = phases.split(",")
    for phase in names:
        if phase not in ROWS:
            raise click.BadParameter(f"found {phase!r}, expected {', '.join(ROWS)}", param_hint="--phase")
    reports = []
    for model in models:
        for phase in names:
            report = measure(model, phase, rows or ROWS[phase], position, threads, repeats)
            print_report(report)
            reports.append(report | {"kernels": [asdict(cost) for cost in report["kernels"]]})
    if json_path is not None:
        write_json(json_path, reports)


if __name__ == "__main__":
    sys.exit(run_command(command, "python -m bench.roofline"))

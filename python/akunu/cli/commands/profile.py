"""`akunu profile`: the time of every command of a dispatch table, against what the machine can do."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from akunu.base.memory import bytes_text
from akunu.cli.app import CONTEXT_SETTINGS, Command
from akunu.cli.console import bar, note, print_table, seconds_text
from akunu.cli.cost_model import known_chip
from akunu.cli.costs import GROUPINGS, Cost, Grouping, costs, mean_peaks
from akunu.cli.options import loading_options
from akunu.cli.phases import TableOptions, phase_options
from akunu.cli.tables import OpenTable, open_table
from akunu.cli.values import MODEL, Integer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from akunu._core import CommandInfo, Peaks

__all__ = ["command"]


@click.command("profile", cls=Command, context_settings=CONTEXT_SETTINGS)
@click.argument("model", type=MODEL, default="ember")
@phase_options
@click.option(
    "--group",
    type=click.Choice(GROUPINGS),
    default="tensor",
    show_default=True,
    help="Rows of the table: tensor adds up the layers, command adds up nothing.",
)
@click.option(
    "--repeats",
    type=Integer(1, 10_000),
    default=16,
    show_default=True,
    metavar="N",
    help="Number of runs; the median is shown.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON: the peaks, the groups, and every command.")
@loading_options
def command(
    model: str,
    phase: str | None,
    rows: int | None,
    texts: int | None,
    position: int,
    group: Grouping,
    repeats: int,
    as_json: bool,
    **values: Any,
) -> None:
    """Time every command of a step: a token, a prompt, inputs to encode, or a window of speech.

    MODEL is as for the other commands, or SHAPE:TYPE for random weights of a published shape ("akunu-bench
    --help" lists them). "peak" is the time that the machine needs at least, for the bytes to be read or the
    operations to be done, over the time measured. The peaks of a CPU are measured right before and after;
    those of a GPU are from its data sheet. --phase batch is a step of N sequences with --position tokens
    each. An embedding model has --phase encode alone: --texts inputs of --rows tokens each. For a speech
    model, encode is a window of 30 seconds, and its decoder has the other phases.

    \b
    Examples:
      akunu profile model.gguf
      akunu profile qwen3-0.6b:q4_0 --group op
      akunu profile model.gguf --phase prefill --rows 128
      akunu profile model.gguf --phase batch --rows 16 --position 500
      akunu profile model.gguf --position 4000 --json > profile.json
      akunu profile minilm/ --rows 16 --texts 16
      akunu profile ember-speech --phase decode
    """
    from akunu import _core
    from akunu.loading.engines import find_device

    asked = TableOptions(phase, rows, texts, position)
    is_cpu = find_device(values["device"])["backend"] == "CPU"
    with open_table(model, asked, values) as table:
        runner = table.runner
        before = _core.measure_peaks(runner.threads) if is_cpu else None
        commands = table.profile(repeats)
        if before is not None:
            peaks: Peaks | None = mean_peaks(before, _core.measure_peaks(runner.threads))
        else:
            peaks = _data_sheet(runner.device)
        engine_name = runner.device
        where = f"{runner.device} ({runner.isa}), {runner.threads} threads"
    found = costs(commands, peaks, group)
    if as_json:
        click.echo(json.dumps(_report(table, peaks, found, commands)))
        return
    _print(f"{table.name}: {table.asked.title()}, {where}", found, table)
    if peaks is None:
        note(f"[no peaks are known of {engine_name}]")
        return
    read, floats = peaks["read_bytes_per_second"] / 1e9, peaks["f32_flops"] / 1e9
    if not is_cpu:
        note(f"[peaks of the data sheet: {read:.0f} GB/s read, {floats:.0f} GFLOP/s in half precision]")
        return
    note(
        f"[peaks measured in this run: {read:.1f} GB/s read, {floats:.0f} GFLOP/s in F32, "
        f"{peaks['int8_ops'] / 1e9:.0f} GOP/s in int8]"
    )


def _data_sheet(device: str) -> Peaks | None:
    """Return the maker's figures of a GPU; matmuls are in half precision whatever the weights are."""
    chip = known_chip(device)
    if chip is None:
        return None
    flops = chip["flops"]
    return {"read_bytes_per_second": chip["bytes_per_second"], "f32_flops": flops, "int8_ops": flops}


def _print(title: str, found: Sequence[Cost], table: OpenTable) -> None:
    total = sum(cost.seconds for cost in found)
    lines = [_line(cost, total) for cost in found]
    whole = Cost(
        "total",
        "",
        "",
        "",
        sum(cost.count for cost in found),
        total,
        sum(cost.bytes for cost in found),
        sum(cost.flops for cost in found),
        sum(cost.floor for cost in found),
    )
    lines.append(_line(whole, total))
    headers = [
        "what",
        "type",
        "kernel",
        "shape",
        "count",
        "time",
        "share",
        "bytes",
        "GB/s",
        "GFLOP/s",
        "peak",
        "",
    ]
    print_table(headers, lines, title=title, right="    rrrrrrr ")
    rate = f"{table.count / total:.1f} {table.unit}/s if nothing but these commands ran" if total else ""
    click.echo(rate)


def _line(cost: Cost, total: float) -> list[str]:
    share = cost.seconds / total if total else 0.0
    return [
        cost.name,
        cost.dtype,
        cost.kernel,
        cost.shape,
        str(cost.count),
        seconds_text(cost.seconds),
        f"{share:.1%}",
        bytes_text(cost.bytes),
        f"{cost.bytes_per_second / 1e9:.1f}",
        f"{cost.flops_per_second / 1e9:.1f}",
        f"{cost.share:.0%}",
        "" if cost.name == "total" else bar(share),
    ]


def _report(
    table: OpenTable, peaks: Peaks | None, found: Sequence[Cost], commands: Sequence[CommandInfo]
) -> dict[str, Any]:
    return {
        "model": table.name,
        **{name: value for name, value in asdict(table.asked).items() if value is not None},
        "peaks": peaks,
        "seconds": sum(cost.seconds for cost in found),
        "groups": [asdict(cost) | {"share_of_peak": cost.share} for cost in found],
        "commands": list(commands),
    }

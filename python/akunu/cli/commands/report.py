"""`akunu report`: what this machine does with Akunu, in one file to send."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from akunu.cli.app import CONTEXT_SETTINGS, Command
from akunu.cli.console import note
from akunu.cli.values import MODELS, Integer, PathName

if TYPE_CHECKING:
    from akunu.cli.bench.machine_report import Report

__all__ = ["command"]


@click.command("report", cls=Command, context_settings=CONTEXT_SETTINGS)
@click.argument("models", nargs=-1, type=MODELS, metavar="[MODEL]...")
@click.option(
    "--device",
    default="auto",
    show_default=True,
    metavar="DEVICE",
    help='Where to measure, as "akunu devices" names it.',
)
@click.option(
    "-o",
    "--output",
    type=PathName(dir_okay=False),
    default="akunu-report.md",
    show_default=True,
    metavar="FILE",
    help="The report: Markdown, with the same as JSON at its end.",
)
@click.option(
    "--repeats",
    type=Integer(1, 1000),
    default=5,
    show_default=True,
    metavar="N",
    help="Runs of each measurement.",
)
@click.option("-f", "--force", is_flag=True, help="Replace the file.")
def command(models: tuple[str, ...], device: str, output: Path, repeats: int, force: bool) -> None:
    """Check every kernel on this machine, measure it and some models, and write a report to send.

    It takes some minutes and needs no network. The report holds what is measured, the chip's name and memory,
    the system's version and Akunu's: nothing else of the machine. Kernels' results are compared with NumPy's,
    and a model's first tokens with the CPU's; what is wrong is named. Where the chip is known, speeds stand
    beside what the cost model ("akunu inspect MODEL --plan --chip CHIP") predicts.

    MODEL is a file, or SHAPE:TYPE for random weights of a published shape ("akunu-bench --help" lists them).
    Without one: the built-in model, qwen3-0.6b:q4_0 and llama3.2-1b:q4_k_m.

    The exit status is 1 where a result is wrong. Close other programs first, and plug a notebook in.

    \b
    Examples:
      akunu report
      akunu report --device metal -o m4-max.md
      akunu report llama3.1-8b:q4_k_m --repeats 10
    """
    from akunu.cli.bench.machine_report import MODELS as DEFAULT
    from akunu.cli.bench.machine_report import as_markdown, collect
    from akunu.loading.engines import find_device

    if output.exists() and not force:
        raise click.UsageError(f"{output} is there already; name another file with -o, or replace it with -f")
    found = find_device(device)
    note(f"[{found['name']}, {found['backend']}; the report goes to {output}]")

    def rewrite(report: Report) -> None:
        output.write_text(as_markdown(report), encoding="utf-8")

    report = collect(
        found, models or DEFAULT, repeats=repeats, log=lambda text: note(f"[{text}]"), rewrite=rewrite
    )
    click.echo(as_markdown(report).split("\n## As data", maxsplit=1)[0])
    note(f"[written to {output}: send this file]")
    if report["mistakes"]:
        click.get_current_context().exit(1)

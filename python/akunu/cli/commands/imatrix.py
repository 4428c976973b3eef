"""`akunu imatrix`: how much an error in each column of a model's weights counts."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from akunu.cli.app import CONTEXT_SETTINGS, Command
from akunu.cli.console import note
from akunu.cli.files import read_text
from akunu.cli.options import (
    MODEL_HELP,
    adapter_option,
    device_options,
    only_adapter,
    writing_arguments,
)
from akunu.cli.values import MODEL, PathName

__all__ = ["command"]


@click.command("imatrix", cls=Command, context_settings=CONTEXT_SETTINGS, epilog=f"MODEL: {MODEL_HELP}")
@click.argument("model", type=MODEL)
@click.argument("text", type=PathName(exists=True, dir_okay=False))
@click.argument("out", type=PathName())
@click.option(
    "--parse-special",
    is_flag=True,
    help="Read the special tokens in TEXT as such, as conversations in the model's chat template have them.",
)
@adapter_option
@device_options
def command(
    model: str,
    text: Path,
    out: Path,
    parse_special: bool,
    device: str,
    threads: int | None,
    **values: Any,
) -> None:
    """Measure an importance matrix of MODEL over TEXT and write it to OUT.

    That is what convert --imatrix weighs errors with, and llama.cpp's llama-quantize as well: OUT is a GGUF
    file, or in the older format where its name does not end in .gguf. Some ten thousand tokens of the kind of
    text that the model is for are plenty. Give the weights before they are quantised.

    convert --imatrix takes TEXT itself, too; a file spares the work where several types are made, and may be
    measured on an NVIDIA GPU. Metal does not measure it.

    \b
    Examples:
      akunu imatrix my-folder pages.txt my-imatrix.gguf
      akunu convert my-folder my-q3_k_m.gguf --type q3_k_m --imatrix my-imatrix.gguf
      akunu imatrix my-folder conversations.txt my-imatrix.gguf --parse-special
    """
    import akunu
    from akunu.base.progress import reporter

    adapter = only_adapter(values)
    content = read_text(text)
    start = time.perf_counter()
    options: dict[str, Any] = {"device": device, "parallel": 1, "threads": threads}
    options |= writing_arguments(values)
    with (
        akunu.load(model, **options) as loaded,
        reporter(True, "Measuring", unit="count") as report,
    ):
        matrix = loaded.importance_matrix(
            content, name=text.name, parse_special=parse_special, adapter=adapter, progress=report
        )
    matrix.write(out)
    tokens = max(matrix.tokens.values())
    seconds = time.perf_counter() - start
    note(f"[{out}: {len(matrix.means)} matrices, {tokens} tokens, {seconds:.1f} s]")

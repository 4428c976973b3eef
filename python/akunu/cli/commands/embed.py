"""`akunu embed`: vectors of texts."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from akunu.base.whole_file import whole_file
from akunu.cli.app import CONTEXT_SETTINGS, Command
from akunu.cli.files import placed, read_lines
from akunu.cli.options import MODEL_HELP, encoder_options, load_model
from akunu.cli.values import FILE, MODEL, Integer, PathName

if TYPE_CHECKING:
    from akunu.api.encoders.model import Output

__all__ = ["command"]


@click.command("embed", cls=Command, context_settings=CONTEXT_SETTINGS, epilog=f"MODEL: {MODEL_HELP}")
@click.argument("model", type=MODEL)
@click.argument("files", type=FILE, nargs=-1, required=True, metavar="FILE...")
@click.option(
    "-p",
    "--prompt",
    metavar="NAME|TEXT",
    help='A prompt of the model, such as "query", or a text to put before each line; "": none. [default: the '
    "model's]",
)
@click.option(
    "--normalize/--no-normalize",
    default=None,
    help="Scale vectors to the length 1, or not. [default: yes, unless the model says that lengths count]",
)
@click.option(
    "--dimensions", type=Integer(min=1), metavar="N", help="Keep the first N elements. [default: all]"
)
@click.option("--truncate", is_flag=True, help="Truncate inputs that are too long, instead of an error.")
@click.option(
    "--output-type",
    type=click.Choice(["float32", "int8", "binary"]),
    default="float32",
    show_default=True,
    help="Type of the elements.",
)
@click.option(
    "--format",
    "layout",
    type=click.Choice(["json", "tsv", "npy"]),
    default="json",
    show_default=True,
    help="A JSON array or tab-separated numbers in each line, or one NumPy array.",
)
@click.option(
    "-o",
    "--output",
    type=PathName(dir_okay=False),
    help="Write the vectors to this file. [default: standard output]",
)
@encoder_options
def command(
    model: str,
    files: tuple[str, ...],
    prompt: str | None,
    normalize: bool | None,
    dimensions: int | None,
    truncate: bool,
    output_type: Output,
    layout: str,
    output: Path | None,
    **values: Any,
) -> None:
    """Compute an embedding vector for each line of FILE.

    Vectors have the length 1 by default, so that their dot product is the cosine. FILE is UTF-8; "-" reads
    standard input. A blank line keeps its place: null in JSON, an empty line in TSV, zeros in an array.

    \b
    Examples:
      akunu embed ./minilm texts.txt > vectors.json
      echo "what do cats eat" | akunu embed nomic-ai/nomic-embed-text-v1.5 - --dimensions 256
      akunu embed ./bge docs.txt --format npy -o docs.npy
    """
    if layout == "npy" and output is None and sys.stdout.isatty():
        raise click.BadParameter("npy is not for a terminal: name a file by --output", param_hint="--format")
    from akunu.base.progress import reporter

    lines, places = read_lines(files)
    filled = [i for i, line in enumerate(lines) if line.strip()]
    with (
        load_model({"model": model, **values}) as loaded,
        reporter(True, "Embedding", unit="count") as report,
        placed([places[i] for i in filled]),
    ):
        vectors = loaded.embed(
            [lines[i] for i in filled],
            prompt=loaded.prompts.get(prompt or "", prompt),
            normalize=normalize,
            dimensions=dimensions,
            truncate=truncate,
            output=output_type,
            progress=report,
        )
    if layout == "npy":
        data = io.BytesIO()
        import numpy as np

        whole = np.zeros((len(lines), *vectors.shape[1:]), vectors.dtype)
        whole[filled] = vectors
        np.save(data, whole)
        _write(data.getvalue(), output)
    else:
        rows = dict(zip(filled, vectors.tolist(), strict=True))
        _write("".join(_line(rows.get(i), layout) for i in range(len(lines))).encode(), output)


def _line(vector: list[float] | None, layout: str) -> str:
    if vector is None:
        return "null\n" if layout == "json" else "\n"
    numbers = [round(x, 9) if isinstance(x, float) else x for x in vector]
    return (json.dumps(numbers) if layout == "json" else "\t".join(map(str, numbers))) + "\n"


def _write(data: bytes, output: Path | None) -> None:
    if output is not None:
        with whole_file(output) as file:
            file.write(data)
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(data)

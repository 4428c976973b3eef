"""What each file type costs: time to convert, size, and the perplexity of a text before and after.

    python bench/convert.py model-f16.gguf --text book.txt
    python bench/convert.py ember --text book.txt --types q8_0,q4_k_m --threads 2 --json out.json
    python bench/convert.py ember --text book.txt --imatrix other-pages.txt

Rates are in bytes of F32 weights, whatever the source has, so that types and sources compare. Perplexity is
`akunu perplexity`'s.
"""

from __future__ import annotations

import math
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import click

import akunu
from akunu.cli.app import CONTEXT_SETTINGS
from akunu.cli.app import run as run_command
from akunu.cli.console import print_table
from akunu.conversion.importance import importance_of
from akunu.filetypes import FILE_TYPES
from akunu.loading import find_model
from akunu.model_files import open_model
from json_file import write_json


def measure(
    source: str,
    file_type: str,
    imatrix: akunu.ImportanceMatrix | None,
    text: str,
    threads: int | None,
    folder: Path,
) -> dict[str, Any]:
    """One type's figures; "-" is the source itself."""
    path, seconds = find_model(source), math.nan
    if file_type != "-":
        start = time.perf_counter()
        path = akunu.convert(
            source,
            folder / f"{file_type}.gguf",
            file_type,
            imatrix=imatrix,
            threads=threads,
            progress=False,
        )
        seconds = time.perf_counter() - start
    tensors = open_model(path).files.tensors
    weights = sum(math.prod(tensor.shape) for tensor in tensors)
    with akunu.load(path, threads=threads, parallel=1, progress=False) as model:
        perplexity = model.perplexity(text)
    if file_type != "-":
        path.unlink()
    return {
        "type": file_type + (" imatrix" if imatrix else ""),
        "bits": 8 * sum(tensor.nbytes for tensor in tensors) / weights,
        "seconds": seconds,
        "mb_per_s": 4e-6 * weights / seconds,
        "perplexity": perplexity,
    }


@click.command(context_settings=CONTEXT_SETTINGS)
@click.argument("model")
@click.option("--text", required=True, type=click.Path(exists=True, path_type=Path), help="What to predict.")
@click.option("--types", default=",".join(FILE_TYPES), show_default=True, metavar="A,B", help="File types.")
@click.option("--imatrix", type=click.Path(exists=True, path_type=Path), metavar="FILE",
              help="An importance matrix, or a text for one: each type with and without it.")  # fmt: skip
@click.option("-t", "--threads", type=click.IntRange(min=1), metavar="N", help="CPU threads.")
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the figures here too.")
def main(
    model: str, text: Path, types: str, imatrix: Path | None, threads: int | None, json_path: Path | None
) -> None:
    """Convert MODEL to each of the types, and measure."""
    content = text.read_text(encoding="utf-8")
    matrices = [None]
    if imatrix is not None:
        matrices.append(importance_of(imatrix, find_model(model), threads, False))
    with tempfile.TemporaryDirectory() as folder:
        rows = [measure(model, "-", None, content, threads, Path(folder))]
        for kind in types.lower().split(","):
            rows += [measure(model, kind, matrix, content, threads, Path(folder)) for matrix in matrices]
    cells = [
        [
            row["type"],
            f"{row['bits']:.2f}",
            f"{row['seconds']:.2f}",
            f"{row['mb_per_s']:.0f}",
            f"{row['perplexity']:.4f}",
        ]
        for row in rows
    ]
    print_table(["type", "bits a weight", "s", "MB/s of F32", "perplexity"], cells, right=" rrrr")
    if json_path:
        write_json(json_path, rows)


if __name__ == "__main__":
    sys.exit(run_command(main, "convert.py"))

"""What each file type costs: time to convert, size, and the perplexity of a text before and after.

    python -m bench.convert model-f16.gguf --text book.txt
    python -m bench.convert ember --text book.txt --types q8_0,q4_k_m --threads 2 --json out.json
    python -m bench.convert ember --text book.txt --imatrix other-pages.txt
    python -m bench.convert model-f16.gguf --peer /path/to/llama-quantize --rounds 3

Rates are in bytes of F32 weights, whatever the source has, so that types and sources compare. Perplexity is
`akunu perplexity`'s. With a peer, the two convert by turns, and the shortest time of each counts: here of the
call, there of the program. The error is the root mean square of what the weights differ from the source's,
divided by that of the peer's file; both files' perplexities are taken by Akunu.
"""

from __future__ import annotations

import math
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click
import numpy as np
import numpy.typing as npt

import akunu
from akunu import _core
from akunu.cli.app import CONTEXT_SETTINGS
from akunu.cli.app import run as run_command
from akunu.cli.console import print_table
from akunu.files.describe.filetypes import FILE_TYPES
from akunu.files.model_files import open_model
from akunu.loading.conversion import importance_of
from akunu.loading.finding import find_model
from bench.json_file import write_json
from bench.measure import run

PEER_LACKS: Final = {"mxfp4"}
"""File types that llama-quantize does not make of a dense model."""
ROWS: Final = 256
"""Of each tensor, the rows whose error is taken."""
DTYPES: Final = {row["name"]: row for row in _core.dtypes()}


@dataclass
class Times:
    """Of one program: the shortest of several runs, in seconds of the clock and of processors."""

    wall: float = math.inf
    cpu: float = math.inf

    def add(self, wall: float, cpu: float) -> None:
        self.wall, self.cpu = min(self.wall, wall), min(self.cpu, cpu)


def squared_error(source: Path, made: Path) -> float:
    """The sum over the first rows of all matrices."""
    exact, found = open_model(source).files, open_model(made).files
    types = {tensor.name: tensor.dtype for tensor in found.tensors}
    total = 0.0
    for tensor in exact.tensors:
        if len(tensor.shape) == 2:
            count = min(tensor.shape[0], ROWS) * tensor.shape[1]
            left = first_values(exact, tensor.name, tensor.dtype, count)
            left = left - first_values(found, tensor.name, types[tensor.name], count)
            total += float(np.square(left, dtype=np.float64).sum())
    return total


def first_values(files: _core.TensorFiles, name: str, dtype: str, count: int) -> npt.NDArray[np.float32]:
    """So many values of a tensor."""
    nbytes = count // DTYPES[dtype]["block_elems"] * DTYPES[dtype]["block_bytes"]
    return _core.dequantize(dtype, files.tensor_bytes(name)[:nbytes], count)


@dataclass(frozen=True)
class Job:
    """What is measured of every type."""

    source: Path
    text: str | None
    peer: str | None
    threads: int | None
    rounds: int
    folder: Path

    def measure(self, file_type: str, imatrix: akunu.ImportanceMatrix | None) -> dict[str, Any]:
        """One type's figures; "-" is the source itself."""
        if file_type == "-":
            return {"type": "-", **self.describe(self.source)}
        ours, peers = Times(), Times()
        path, peer_path = self.folder / f"{file_type}.gguf", self.folder / "peer.gguf"
        compared = self.peer is not None and imatrix is None and file_type not in PEER_LACKS
        for _ in range(self.rounds):
            path.unlink(missing_ok=True)
            wall, cpu = time.perf_counter(), time.process_time()
            akunu.convert(self.source, path, file_type, imatrix=imatrix, threads=self.threads, progress=False)
            ours.add(time.perf_counter() - wall, time.process_time() - cpu)
            if compared:
                peer_path.unlink(missing_ok=True)
                threads = [str(self.threads)] if self.threads else []
                files = ["--allow-requantize", str(self.source), str(peer_path)]
                used = run([str(self.peer), *files, file_type.upper(), *threads])
                peers.add(used.seconds, used.cpu_seconds)
        row = {
            "type": file_type + (" imatrix" if imatrix else ""),
            **self.describe(path),
            "seconds": ours.wall,
            "cpu_seconds": ours.cpu,
        }
        row["mb_per_s"] = 4e-6 * row["weights"] / ours.wall
        if compared:
            row |= {"peer_seconds": peers.wall, "peer_cpu_seconds": peers.cpu}
            if peers_error := squared_error(self.source, peer_path):
                row["error"] = math.sqrt(squared_error(self.source, path) / peers_error)
            if self.text is not None:
                row["peer_perplexity"] = self.describe(peer_path)["perplexity"]
            peer_path.unlink()
        path.unlink()
        return row

    def describe(self, path: Path) -> dict[str, Any]:
        """What the file itself says."""
        tensors = open_model(path).files.tensors
        weights = sum(math.prod(tensor.shape) for tensor in tensors)
        row = {"weights": weights, "bits": 8 * sum(tensor.nbytes for tensor in tensors) / weights}
        if self.text is not None:
            with akunu.load(path, threads=self.threads, parallel=1, progress=False) as model:
                row["perplexity"] = model.perplexity(self.text)
        return row


COLUMNS: Final = {
    "type": ("type", "{}"),
    "bits": ("bits a weight", "{:.2f}"),
    "seconds": ("s", "{:.2f}"),
    "cpu_seconds": ("CPU s", "{:.2f}"),
    "mb_per_s": ("MB/s of F32", "{:.0f}"),
    "peer_seconds": ("peer's s", "{:.2f}"),
    "peer_cpu_seconds": ("peer's CPU s", "{:.2f}"),
    "error": ("error", "{:.3f}"),
    "perplexity": ("perplexity", "{:.4f}"),
    "peer_perplexity": ("peer's", "{:.4f}"),
}
"""Headings and formats, by the name of the figure."""


@click.command(context_settings=CONTEXT_SETTINGS)
@click.argument("model")
@click.option("--text", type=click.Path(exists=True, path_type=Path), help="What to predict.")
@click.option("--types", default=",".join(FILE_TYPES), show_default=True, metavar="A,B", help="File types.")
@click.option("--imatrix", type=click.Path(exists=True, path_type=Path), metavar="FILE",
              help="An importance matrix, or a text for one: each type with and without it.")  # fmt: skip
@click.option("--peer", metavar="PATH", help="llama.cpp's llama-quantize.")
@click.option("--rounds", type=click.IntRange(min=1), default=1, show_default=True, metavar="N",
              help="Times that each type is made.")  # fmt: skip
@click.option("-t", "--threads", type=click.IntRange(min=1), metavar="N", help="CPU threads.")
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the figures here too.")
def main(
    model: str,
    text: Path | None,
    types: str,
    imatrix: Path | None,
    peer: str | None,
    rounds: int,
    threads: int | None,
    json_path: Path | None,
) -> None:
    """Convert MODEL to each of the types, and measure."""
    content = text.read_text(encoding="utf-8") if text else None
    source = find_model(model)
    matrices = [None]
    if imatrix is not None:
        matrices.append(importance_of(imatrix, source, threads, False))
    with tempfile.TemporaryDirectory() as folder:
        job = Job(source, content, peer, threads, rounds, Path(folder))
        rows = [job.measure("-", None)]
        for kind in types.lower().split(","):
            rows += [job.measure(kind, matrix) for matrix in matrices]
    shown = [name for name in COLUMNS if any(name in row for row in rows)]
    cells = [[COLUMNS[name][1].format(row[name]) if name in row else "" for name in shown] for row in rows]
    print_table([COLUMNS[name][0] for name in shown], cells, right=" " + "r" * (len(shown) - 1))
    if json_path:
        write_json(json_path, rows)


if __name__ == "__main__":
    sys.exit(run_command(main, "convert.py"))

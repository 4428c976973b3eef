"""Whether an importance matrix is the peer's: sums of `llama-imatrix` and ours, of the same text and model.

    python -m bench.imatrix model-f32.gguf --text pages.txt --peer /path/to/llama-imatrix

Both run windows of 512 tokens. Where a model wants BOS, the peer puts it in the place of a window's first
token and we before it: the windows are then of the same text, but not of the same tokens, and the sums differ
by more.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

import click
import numpy as np

import akunu
from akunu.cli.app import CONTEXT_SETTINGS
from akunu.cli.app import run as run_command
from akunu.cli.console import note, print_table
from akunu.files.importance import WINDOW
from bench.json_file import json_option, write_json

FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)


def whole_windows(model: akunu.Model, text: str, most: int) -> str:
    """The beginning of a text whose tokens fill windows: the peer leaves out what does not."""
    ids = model.tokenize(text, add_special=False)
    for windows in range(min(most, len(ids) // WINDOW), 0, -1):
        cut = model.detokenize(ids[: windows * WINDOW])
        if text.startswith(cut) and len(model.tokenize(cut, add_special=False)) == windows * WINDOW:
            return cut
    raise click.UsageError(f"the text has {len(ids)} tokens, fewer than a window of {WINDOW}")


def peer_matrix(peer: str, model: Path, text: str, folder: Path, threads: int) -> akunu.ImportanceMatrix:
    """What llama-imatrix writes."""
    (folder / "text.txt").write_text(text, encoding="utf-8", newline="")
    out = folder / "peer.gguf"
    files = ["-m", str(model), "-f", str(folder / "text.txt"), "-o", str(out)]
    command = [peer, *files, "-c", str(WINDOW), "-t", str(threads), "--no-ppl"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode or not out.exists():
        raise click.ClickException(f"{peer} failed:\n{done.stdout[-2000:]}")
    return akunu.ImportanceMatrix.read(out)


@click.command(context_settings=CONTEXT_SETTINGS)
@click.argument("model_path", metavar="MODEL", type=FILE)
@click.option("--text", "text_path", required=True, type=FILE, metavar="FILE", help="A UTF-8 text.")
@click.option("--peer", required=True, metavar="PATH", help="llama.cpp's llama-imatrix.")
@click.option("--windows", type=click.IntRange(min=1), default=20, show_default=True, metavar="N",
              help="Windows at most.")  # fmt: skip
@click.option("-t", "--threads", type=click.IntRange(min=1), default=1, show_default=True, metavar="N",
              help="Threads.")  # fmt: skip
@json_option
def command(
    model_path: Path, text_path: Path, peer: str, windows: int, threads: int, json_path: Path | None
) -> None:
    """Compare the importance matrix of MODEL with a peer's."""
    text = text_path.read_text(encoding="utf-8")
    with akunu.load(model_path, device="cpu", threads=threads, parallel=1, progress=False) as model:
        text = whole_windows(model, text, windows)
        ours = model.importance_matrix(text, name=text_path.name)
    with tempfile.TemporaryDirectory() as folder:
        theirs = peer_matrix(peer, model_path, text, Path(folder), threads)
    if ours.means.keys() != theirs.means.keys():
        odd = sorted(ours.means.keys() ^ theirs.means.keys())
        raise click.ClickException(f"{len(odd)} matrices are in one file alone, for example {odd[0]}")
    tokens = [max(matrix.tokens.values()) for matrix in (ours, theirs)]
    note(f"{len(ours.means)} matrices; {tokens[0]} tokens here, {tokens[1]} there")
    rows = []
    for name, mean in ours.means.items():
        wanted = theirs.means[name].astype(np.float64)
        rows.append(
            {
                "tensor": name,
                "sum": float(abs(mean.sum(dtype=np.float64) / wanted.sum() - 1)),
                "column": float(np.max(np.abs(mean - wanted) / wanted)),
            }
        )
    rows.sort(key=lambda row: -row["sum"])
    print_table(
        ["tensor", "sum, relative difference", "worst column"],
        [[row["tensor"], f"{row['sum']:.2e}", f"{row['column']:.2e}"] for row in rows],
        right=" rr",
    )
    if json_path is not None:
        write_json(json_path, rows)


if __name__ == "__main__":
    sys.exit(run_command(command, "python -m bench.imatrix"))

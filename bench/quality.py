"""What integer arithmetic costs: the perplexity of a file, of its weights as F32, and in a peer's program.

    python -m bench.quality model.gguf --text wiki.test.raw
    python -m bench.quality model-*.gguf --text wiki.test.raw --peer /path/to/llama-perplexity

Perplexity as llama.cpp counts it: the text is cut into windows, each begins with the BOS token where the
model wants one, and the second half of each is scored. With its weights dequantised to F32 a model does not
round activations: the difference is what that costs. What quantising the weights has cost is in both.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

import click
import gguf
import numpy as np
from gguf import quants

import akunu
from akunu.cli.app import CONTEXT_SETTINGS
from akunu.cli.app import run as run_command
from akunu.cli.console import note, print_table
from bench.json_file import json_option, write_json

ESTIMATE: Final = re.compile(r"Final estimate: PPL = ([\d.]+)")
PEER_ATTEMPTS: Final = 5


def write_f32(source: Path, target: Path) -> None:
    """A copy of a GGUF file with every weight dequantised."""
    reader = gguf.GGUFReader(source)
    arch = reader.fields[gguf.Keys.General.ARCHITECTURE].contents()
    writer: Any = gguf.GGUFWriter(target, arch)
    for field in reader.fields.values():
        if field.name.startswith("GGUF.") or field.name == gguf.Keys.General.ARCHITECTURE:
            continue
        is_array = field.types[0] == gguf.GGUFValueType.ARRAY
        writer.add_key_value(
            field.name, field.contents(), field.types[0], sub_type=field.types[-1] if is_array else None
        )
    for tensor in reader.tensors:
        shape = tuple(int(n) for n in tensor.shape[::-1])
        values = quants.dequantize(tensor.data, tensor.tensor_type).reshape(shape)
        writer.add_tensor(tensor.name, values.astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def perplexity(path: Path, text: str, context: int, windows: int, threads: int | None) -> float:
    """Of the second halves of the first `windows` windows of `context` tokens."""
    total = 0.0
    with akunu.load(path, context=context, threads=threads, progress=False) as model:
        ids = model.tokenize(text)
        bos = model.tokenizer.bos_id if model.tokenizer.template.before else None
        windows = min(windows, len(ids) // context)
        if windows == 0:
            raise click.UsageError(f"the text has {len(ids)} tokens, fewer than a window of {context}")
        first = context // 2
        for start in range(0, windows * context, context):
            window = ids[start : start + context]
            if bos is not None:
                window = [bos, *window[1:]]
            logits = model.logits(window)[first:-1].astype(np.float64)
            logits -= logits.max(-1, keepdims=True)
            chosen = np.take_along_axis(logits, np.asarray(window[first + 1 :])[:, None], -1)[:, 0]
            total += float((np.log(np.exp(logits).sum(-1)) - chosen).sum())
    return float(np.exp(total / (windows * (context - 1 - first))))


def peer_perplexity(
    peer: str, path: Path, text_path: Path, context: int, windows: int, threads: int | None
) -> float:
    """The same by llama.cpp's llama-perplexity.

    Some versions lose the last lines of their log now and then; they are then run again.
    """
    command = [peer, "-m", str(path), "-f", str(text_path), "-c", str(context), "--chunks", str(windows)]
    if threads is not None:
        command += ["-t", str(threads)]
    for _ in range(PEER_ATTEMPTS):
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
        if found := ESTIMATE.search(done.stdout):
            return float(found[1])
    raise click.ClickException(f"{peer} gave no estimate:\n{done.stdout[-2000:]}")


FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command(context_settings=CONTEXT_SETTINGS)
@click.argument("models", nargs=-1, required=True, type=FILE)
@click.option("--text", "text_path", required=True, type=FILE, metavar="FILE", help="A UTF-8 text.")
@click.option("--folder", type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="DIR",
              help="Where the F32 copy goes, 4 bytes a weight.  [default: for temporary files]")  # fmt: skip
@click.option("--peer", metavar="PATH", help="llama.cpp's llama-perplexity.")
@click.option("-c", "--context", type=click.IntRange(min=8), default=512, show_default=True, metavar="N",
              help="Tokens in a window.")  # fmt: skip
@click.option("--windows", type=click.IntRange(min=1), default=100, show_default=True, metavar="N",
              help="Windows at most.")  # fmt: skip
@click.option("-t", "--threads", type=click.IntRange(min=1), metavar="N", help="Threads.")
@json_option
def command(
    models: tuple[Path, ...],
    text_path: Path,
    folder: Path | None,
    peer: str | None,
    context: int,
    windows: int,
    threads: int | None,
    json_path: Path | None,
) -> None:
    """Compare the perplexity of MODELS with that of their weights as F32, and with a peer's."""
    text = text_path.read_text(encoding="utf-8")
    found: dict[str, dict[str, float]] = {}
    for path in models:
        figures = {"akunu": perplexity(path, text, context, windows, threads)}
        with tempfile.TemporaryDirectory(dir=folder) as made:
            exact = Path(made) / "f32.gguf"
            write_f32(path, exact)
            figures["f32"] = perplexity(exact, text, context, windows, threads)
        if peer is not None:
            figures["peer"] = peer_perplexity(peer, path, text_path, context, windows, threads)
        found[path.name] = figures
        note(f"{path.name}: " + ", ".join(f"{name} {value:.4f}" for name, value in figures.items()))
    rows = []
    for name, figures in found.items():
        row = [name, f"{figures['f32']:.4f}"]
        for who in ("akunu", "peer"):
            value = figures.get(who)
            row += (
                ["", ""]
                if value is None
                else [f"{value:.4f}", f"{100 * (value / figures['f32'] - 1):+.3f} %"]
            )
        rows.append(row)
    print_table(["file", "weights as F32", "akunu", "change", "peer", "change"], rows, right=" rrrrr")
    if json_path is not None:
        write_json(json_path, found)


if __name__ == "__main__":
    sys.exit(run_command(command, "python -m bench.quality"))

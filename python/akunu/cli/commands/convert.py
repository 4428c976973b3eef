"""`akunu convert`: a model with weights of another type."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

import click

from akunu.base.memory import bytes_text
from akunu.cli.app import CONTEXT_SETTINGS, Command
from akunu.cli.console import note, print_table
from akunu.cli.files import read_text
from akunu.cli.options import MODEL_HELP, threads_option
from akunu.cli.values import MODEL, PathName
from akunu.files.describe.filetypes import FILE_TYPES, MLX_TYPES

__all__ = ["command"]


@click.command("convert", cls=Command, context_settings=CONTEXT_SETTINGS, epilog=f"MODEL: {MODEL_HELP}")
@click.argument("model", type=MODEL)
@click.argument("out", type=PathName())
@click.option(
    "--type",
    "file_type",
    required=True,
    type=click.Choice([*FILE_TYPES, *MLX_TYPES], case_sensitive=False),
    metavar="TYPE",
    help=f"Type of the weights: {', '.join((*FILE_TYPES, *MLX_TYPES))}.",
)
@click.option(
    "--imatrix",
    type=PathName(exists=True, dir_okay=False),
    metavar="FILE",
    help="Weigh quantisation errors by an importance matrix: a text to measure it on, or a file of "
    "akunu imatrix.",
)
@click.option(
    "--tensor-type",
    "tensor_types",
    multiple=True,
    metavar="PATTERN=TYPE",
    help="Give matrices whose GGUF names contain PATTERN, a regular expression, this type instead. "
    "Repeatable; the last one that fits counts.",
)
@click.option(
    "--output-tensor-type", metavar="TYPE", help="Type of output.weight. [default: as the mix has it]"
)
@click.option(
    "--token-embedding-type", metavar="TYPE", help="Type of token_embd.weight. [default: as the mix has it]"
)
@click.option(
    "--merge",
    type=PathName(exists=True),
    multiple=True,
    metavar="ADAPTER",
    help="Make an adapter (LoRA) part of the weights: a GGUF file, or a folder of PEFT. Repeatable.",
)
@click.option(
    "--check",
    type=PathName(exists=True, dir_okay=False),
    metavar="TEXT",
    help="Print the perplexity of this text before and after (language models).",
)
@click.option("--overwrite", is_flag=True, help="Replace the file OUT if it exists.")
@threads_option
def command(
    model: str,
    out: Path,
    file_type: str,
    imatrix: Path | None,
    tensor_types: tuple[str, ...],
    output_tensor_type: str | None,
    token_embedding_type: str | None,
    merge: tuple[Path, ...],
    check: Path | None,
    overwrite: bool,
    threads: int | None,
) -> None:
    """Write MODEL as OUT, its weights as TYPE: a GGUF file, or for the types with "mlx" a folder.

    Fewer bits a weight mean a smaller file, faster answers and some loss. A good beginning is q4_k_m; q8_0
    loses next to nothing, q6_k little, and below q3_k_m the output suffers visibly. The mixes ("_s", "_m",
    "_l") give more bits to the weights that matter more. f16, bf16 and f32 do not quantise, nor do mlx-f16,
    mlx-bf16 and mlx-f32, whose folders Transformers loads too.

    Convert from the best weights there are: what an earlier quantisation lost stays lost. Below q5, --imatrix
    with some pages of the kind of text that the model is for makes a file of the same size better.

    OUT appears only once it is complete. A conversion that was stopped continues where it was when you give
    the same command again.

    \b
    Examples:
      akunu convert Qwen/Qwen3-0.6B qwen3-0.6b-q4_k_m.gguf --type q4_k_m
      akunu convert my-folder my.gguf --type q8_0 --check book.txt
      akunu convert my-folder my.gguf --type q3_k_m --imatrix pages.txt
      akunu convert model-f16.gguf model-q5_k_m.gguf --type q5_k_m
      akunu convert my-folder my.gguf --type q4_k_m --output-tensor-type q8_0 --tensor-type "ffn_down=q6_k"
      akunu convert Qwen/Qwen3-0.6B qwen3-mlx --type mlx-4bit
      akunu convert Qwen/Qwen3-0.6B pirate.gguf --type q8_0 --merge pirate-lora
      akunu convert model-f16.gguf my-folder --type mlx-f16
    """
    from akunu import convert
    from akunu.base.errors import InvalidArgumentError, UnsupportedError
    from akunu.loading.finding import FoundModel
    from akunu.speech.recognition import is_speech

    text = None if check is None else read_text(check)
    if text == "":
        raise InvalidArgumentError(f"--check: {check} is empty")
    found = FoundModel(model)
    # What a model of speech cannot is for `convert` to say.
    if text is not None and not is_speech(found.path) and found.files.spec().config.encoder is not None:
        raise UnsupportedError(
            f"--check: {model} makes vectors, and a text has no perplexity; convert without it, "
            "and compare what akunu embed or akunu rerank gives of both models"
        )
    start = time.perf_counter()
    path = convert(
        found,
        out,
        file_type,
        imatrix=imatrix,
        tensor_types=tensor_types or None,
        output_tensor_type=output_tensor_type,
        token_embedding_type=token_embedding_type,
        merge=merge or None,
        threads=threads,
        overwrite=overwrite,
    )
    seconds = time.perf_counter() - start
    size = sum(file.stat().st_size for file in (path.glob("*") if path.is_dir() else [path]))
    note(f"[{path}: {bytes_text(size)} in {seconds:.1f} s, {bytes_text(size / seconds)}/s]")
    if text is not None:
        _print_check({model: str(found.path), path.name: str(path)}, text, threads)


def _print_check(models: Mapping[str, str], text: str, threads: int | None) -> None:
    import akunu
    from akunu.base.progress import reporter

    rows = []
    for name, path in models.items():
        with (
            akunu.load(path, threads=threads, parallel=1) as loaded,
            reporter(True, "Scoring", unit="count") as report,
        ):
            rows.append([name, f"{loaded.perplexity(text, progress=report):.4f}"])
    print_table(["model", "perplexity"], rows, right=" r")

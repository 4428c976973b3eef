"""`akunu rerank`: documents by their relevance for a query."""

from __future__ import annotations

import json
from typing import Any

import click

from akunu.cli.app import CONTEXT_SETTINGS, Command
from akunu.cli.files import placed, read_lines
from akunu.cli.options import MODEL_HELP, encoder_options, load_model
from akunu.cli.values import FILE, MODEL, Integer

__all__ = ["command"]


@click.command("rerank", cls=Command, context_settings=CONTEXT_SETTINGS, epilog=f"MODEL: {MODEL_HELP}")
@click.argument("model", type=MODEL)
@click.argument("query")
@click.argument("files", type=FILE, nargs=-1, required=True, metavar="FILE...")
@click.option("-n", "--top", type=Integer(min=1), metavar="N", help="Print the best N. [default: all]")
@click.option("--truncate", is_flag=True, help="Truncate documents that are too long, instead of an error.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON objects.")
@encoder_options
def command(
    model: str,
    query: str,
    files: tuple[str, ...],
    top: int | None,
    truncate: bool,
    as_json: bool,
    **values: Any,
) -> None:
    """Sort the lines of FILE by how relevant they are for QUERY, the best one first.

    Each line of the output is a score, of 0 to 1 unless the model says otherwise, a tab, and a line of FILE.
    FILE is UTF-8; "-" reads standard input. Blank lines
    are not scored; the index in JSON counts them.

    \b
    Examples:
      akunu rerank ./ms-marco-minilm "what do cats eat" docs.txt
      akunu rerank ./qwen3-reranker "what do cats eat" docs.txt --top 3 --json
    """
    from akunu.base.progress import reporter

    lines, places = read_lines(files)
    filled = [i for i, line in enumerate(lines) if line.strip()]
    loading = {"model": model, "task": "rerank", **values}
    with (
        load_model(loading) as loaded,
        reporter(True, "Scoring", unit="count") as report,
        placed([places[i] for i in filled]),
    ):
        scores = loaded.rerank(query, [lines[i] for i in filled], truncate=truncate, progress=report)
    for i, score in sorted(zip(filled, scores, strict=True), key=lambda pair: -pair[1])[:top]:
        if as_json:
            click.echo(json.dumps({"index": i, "score": score, "document": lines[i]}, ensure_ascii=False))
        else:
            click.echo(f"{score:.6f}\t{lines[i]}")

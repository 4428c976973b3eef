"""`akunu perplexity`: how well a model predicts a text."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import click

from akunu.cli.app import CONTEXT_SETTINGS, Command
from akunu.cli.console import note, rate_text
from akunu.cli.files import read_named
from akunu.cli.options import MODEL_HELP, adapter_option, load_model, loading_options, only_adapter
from akunu.cli.values import MODEL, Integer, PathName

__all__ = ["command"]


@click.command("perplexity", cls=Command, context_settings=CONTEXT_SETTINGS, epilog=f"MODEL: {MODEL_HELP}")
@click.argument("model", type=MODEL)
@click.argument("file", type=PathName(dir_okay=False, allow_dash=True))
@click.option(
    "--window",
    type=Integer(min=2),
    metavar="TOKENS",
    help="Tokens in a window. [default: 512, or the context]",
)
@click.option(
    "--stride",
    type=Integer(min=1),
    metavar="TOKENS",
    help="Slide the window by this many tokens and score each token once. [default: adjacent windows]",
)
@click.option("--limit", type=Integer(min=1), metavar="CHARS", help="Read only the first CHARS characters.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@adapter_option
@loading_options
def command(
    model: str,
    file: Path,
    window: int | None,
    stride: int | None,
    limit: int | None,
    as_json: bool,
    **values: Any,
) -> None:
    """Measure how well MODEL predicts the text in FILE: exp of the mean negative log-likelihood of a token.

    The figure goes to standard output. Lower is better; a model that knows nothing has the size of its
    vocabulary. Only figures of the same tokenizer, text and window can be compared: by default they are those
    of llama-perplexity, which scores the second half of each window of 512 tokens. FILE is UTF-8; "-" reads
    standard input.

    \b
    Examples:
      akunu perplexity model.gguf book.txt
      akunu perplexity model.gguf book.txt --window 2048 --stride 512     each token once
    """
    adapter = only_adapter(values)
    ((_, text),) = read_named([str(file)])
    if limit is not None:
        text = text[:limit]
    from akunu.base.progress import reporter

    with load_model({"model": model, **values}) as loaded:
        if window is not None and window > loaded.context:
            raise click.BadParameter(
                f"{window} is more than the context of {loaded.context} tokens; --context sets it",
                param_hint="--window",
            )
        tokens = len(loaded.tokenize(text, add_special=False))
        start = time.perf_counter()
        with reporter(True, "Scoring", unit="count") as report:
            value = loaded.perplexity(text, context=window, stride=stride, adapter=adapter, progress=report)
        seconds = time.perf_counter() - start
    if as_json:
        click.echo(json.dumps({"perplexity": value, "tokens": tokens, "seconds": seconds}))
    else:
        click.echo(f"{value:.4f}")
        note(f"[{tokens} tokens, {rate_text(tokens, seconds)}]")

"""`akunu tokenize`: the tokens of a text."""

from __future__ import annotations

import json

import click

from akunu.cli.app import CONTEXT_SETTINGS, Command
from akunu.cli.console import print_table, stdin_text, visible
from akunu.cli.files import STDIN
from akunu.cli.options import MODEL_HELP
from akunu.cli.values import MODEL

__all__ = ["command"]


@click.command("tokenize", cls=Command, context_settings=CONTEXT_SETTINGS, epilog=f"MODEL: {MODEL_HELP}")
@click.argument("model", type=MODEL)
@click.argument("text", required=False)
@click.option(
    "--special/--no-special", default=True, help="Add the tokens that the model expects around a text."
)
@click.option("--parse-special", is_flag=True, help="Read control tokens in TEXT as such.")
@click.option("--count", is_flag=True, help="Print the number of tokens alone.")
@click.option("--json", "as_json", is_flag=True, help="Print the token ids as JSON.")
def command(
    model: str, text: str | None, special: bool, parse_special: bool, count: bool, as_json: bool
) -> None:
    """Show the tokens of TEXT: ids and their text. The weights are not loaded; "-" reads standard input.

    \b
    Examples:
      akunu tokenize ember "Once upon a time"
      akunu tokenize qwen3:4b - --count < prompt.txt
      akunu tokenize model.gguf "<|im_start|>user" --parse-special --json
    """
    from akunu.base.errors import UnsupportedError
    from akunu.loading.finding import FoundModel
    from akunu.speech.recognition import is_speech

    if count and as_json:
        raise click.UsageError("--count prints a number alone; it excludes --json")
    if text is None:
        raise click.UsageError(
            'no text; give a model and a text, as in akunu tokenize ember "Once upon a time", or "-" for '
            "standard input"
        )
    found = FoundModel(model)
    if is_speech(found.path):
        raise UnsupportedError(f"{found.name} is a speech model; its tokens are those of its transcripts")
    tokenizer = found.files.tokenizer(found.files.spec().config.vocab_size)
    if tokenizer is None:
        raise UnsupportedError(f"{found.name} has no vocabulary")
    given = stdin_text() if text == STDIN else text
    ids = tokenizer.encode(given, add_special=special, parse_special=parse_special)
    if count:
        click.echo(str(len(ids)))
    elif as_json:
        click.echo(json.dumps(ids))
    else:
        rows = [
            [str(i), visible(repr(tokenizer.id_to_piece(i).decode("utf-8", "backslashreplace"))[1:-1])]
            for i in ids
        ]
        print_table(["id", "text"], rows, right="r ")

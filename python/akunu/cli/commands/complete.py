"""`akunu complete`: continue a text."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any

import click

from akunu.cli.app import CONTEXT_SETTINGS, Command
from akunu.cli.console import TextWriter, is_terminal, note, stats_text, stdin_text
from akunu.cli.constraints import constraint_arguments, constraint_options
from akunu.cli.files import STDIN
from akunu.cli.options import generation_arguments, generation_options, load_model, model_options
from akunu.cli.presets import preset_option

if TYPE_CHECKING:
    from akunu.api.results import Completion

__all__ = ["command"]


_COMMON = ("model", "context", "max_tokens", "temperature", "seed", "stop", "schema", "as_json", "stats")


@click.command("complete", cls=Command, context_settings=CONTEXT_SETTINGS, common=_COMMON)
@click.argument("text")
@model_options
@generation_options
@constraint_options
@preset_option
@click.option("--stats", is_flag=True, help="Show counts and speed on standard error at the end.")
@click.option(
    "--echo/--no-echo", default=None, help="Print TEXT before its continuation. [default: on a terminal]"
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object at the end: text, ids, reason, stats."
)
def command(text: str, stats: bool, echo: bool | None, as_json: bool, **values: Any) -> None:
    """Continue TEXT, and print what the model writes as it writes it.

    TEXT is given to the model as it is, without a chat template; "-" reads it from standard input. For the
    answer to a question use "akunu run", for a conversation "akunu chat".

    \b
    Examples:
      akunu complete "Once upon a time"
      akunu complete "Once upon a time" --temperature 0 --max-tokens 50     the same output every time
      akunu complete "Dear" --seed 7 --top-p 0.9                            repeatable, but not greedy
      akunu complete "Q: What is 2 + 2? A:" --stop "\\n"                    end at the end of the line
      akunu complete - -m model.gguf < letter.txt > rest.txt                in a pipe: only the continuation
      akunu complete "1, 2, 3" -n 4 --json | jq .ids                        for programs
      akunu complete "A person as JSON: " --schema person.json              only what the schema accepts
      akunu complete "Is water wet? " --choice yes --choice no
    """
    if as_json and (echo or stats):
        raise click.UsageError(
            "--json prints text and statistics in one object; it excludes --echo and --stats"
        )
    prompt = _read_stdin() if text == STDIN else text
    arguments = generation_arguments(values) | constraint_arguments(values)
    with load_model(values) as model:
        if as_json:
            _print_json(model.generate(prompt, **arguments))
            return
        with model.stream(prompt, **arguments) as pieces, TextWriter() as writer:
            if is_terminal() if echo is None else echo:
                writer.write(prompt, "bold")
            for piece in pieces:
                writer.write(piece)
        if stats:
            note(stats_text(pieces.completion.stats))


def _read_stdin() -> str:
    """All of standard input; its last line end is the shell's, not the prompt's."""
    data = stdin_text()
    if not data:
        raise click.UsageError("standard input is empty")
    return data[:-1] if data.endswith("\n") else data


def _print_json(completion: Completion) -> None:
    fields = {
        "text": completion.text,
        "ids": completion.ids,
        "finish_reason": completion.finish_reason,
        "seed": completion.seed,
        "stats": dataclasses.asdict(completion.stats),
    }
    click.echo(json.dumps(fields, ensure_ascii=False))

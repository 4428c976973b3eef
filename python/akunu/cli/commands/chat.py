"""`akunu chat`: a conversation, in a terminal or through a pipe."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from akunu.base.errors import AkunuError
from akunu.base.memory import bytes_text
from akunu.cli.app import CONTEXT_SETTINGS, Command, print_error
from akunu.cli.console import note, stdin_lines
from akunu.cli.conversation import OVERFLOWS, Conversation, command_names
from akunu.cli.history import History, history_options
from akunu.cli.images import image_tokens_option
from akunu.cli.options import (
    adapter_option,
    generation_arguments,
    generation_options,
    given,
    load_model,
    model_options,
)
from akunu.cli.presets import preset_option
from akunu.cli.template import template_options, use_template
from akunu.cli.values import DEFAULT_MODEL, MODEL

if TYPE_CHECKING:
    from akunu.api.model import Model

__all__ = ["command"]


_COMMON = (
    "model",
    "context",
    "max_tokens",
    "temperature",
    "system",
    "think",
    "overflow",
    "continued",
    "preset",
    "stats",
)


@click.command("chat", cls=Command, context_settings=CONTEXT_SETTINGS, common=_COMMON)
@click.argument("named", metavar="[MODEL]", required=False, type=MODEL)
@model_options
@template_options
@image_tokens_option
@adapter_option
@generation_options
@click.option(
    "--overflow",
    type=click.Choice(OVERFLOWS),
    default="stop",
    show_default=True,
    help="When the context is full: stop and say so, or drop the oldest turns.",
)
@click.option("--stats", is_flag=True, help="Show counts and speed after each answer; /stats switches.")
@history_options
@preset_option
def command(
    named: str | None,
    system: str | None,
    chat_template: str | None,
    think: bool | None,
    overflow: str,
    stats: bool,
    continued: bool,
    history: bool,
    image_tokens: int | None,
    **values: Any,
) -> None:
    """Talk with a model, which -m names too. Each line is a message.

    Lines that are pasted together are one message, and a line that ends in \\ goes on with the next one.

    Ctrl-C stops an answer, Ctrl-D leaves. The arrow keys edit a line and bring earlier lines back. Lines that
    begin with / are commands; /help lists them, Tab completes them. From a pipe, each line is a message and
    only the answers are printed.

    A model that reads images is shown those whose paths are in a message, typed or dragged into the terminal.

    \b
    Examples:
      akunu chat Qwen/Qwen3-0.6B-GGUF
      akunu chat model.gguf --system "You are a pirate." --temp 0.9
      akunu chat model.gguf --no-think --overflow drop
      akunu chat --continue
      akunu chat old-model.gguf --chat-template chatml
      printf 'My name is Ada.\\nWhat is my name?\\n' | akunu chat model.gguf --temp 0
    """
    if named is not None:
        if given(["model"]):
            raise click.UsageError(f"two models, {named} and that of -m; a conversation has one")
        values["model"] = named
    arguments = generation_arguments(values)
    if image_tokens is not None:
        arguments["image_tokens"] = image_tokens
    log = History(continued=continued, wanted=history)
    if log.model is not None and named is None and not given(["model"]):
        values["model"] = log.model
    used = values["model"]
    built_in = values["model"] == DEFAULT_MODEL
    with load_model(values) as model:
        variables = use_template(model, chat_template, think)
        if variables:
            arguments["template_variables"] = variables
        interactive = sys.stdin.isatty()
        conversation = Conversation(
            model, arguments, system=system, stats=stats, overflow=overflow, interactive=interactive,
            messages=log.messages, on_turn=lambda messages: log.add(used, messages),
        )  # fmt: skip
        if interactive:
            _greet(model, built_in)
            if log.messages:
                note(f"[continues: {conversation.last_question()}]")
            _talk(conversation, history)
            return
        for line in _joined(stdin_lines()):
            if not conversation.take(line):
                return


def _greet(model: Model, built_in: bool) -> None:
    left = "" if model.memory_left is None else f" ({bytes_text(model.memory_left)} of its memory left)"
    note(f"{model.name} on {model.device}{left}, context {model.context}.")
    note("/help lists the commands, Ctrl-D leaves.")
    if built_in:
        note(
            "Ember is the 9 MB model that comes with Akunu: a demonstration, at home in stories, sums and a "
            "few hundred facts. For a real one: akunu chat Qwen/Qwen3-0.6B-GGUF (0.6 GB, fetched once)."
        )


def _talk(conversation: Conversation, history: bool) -> None:
    """Read messages from the terminal until the user leaves."""
    from akunu.cli.line_editor import LineEditor

    editor = LineEditor(command_names(), ("/save", "/load", "/image"), history=history)
    try:
        while True:
            try:
                message = editor.read()
                if message is None:  # Ctrl-D
                    click.echo()
                    return
                if not conversation.take(message):
                    return
            except KeyboardInterrupt:
                note("\n[Ctrl-D or /exit leaves]")
            except AkunuError as error:
                print_error("akunu", "error", error)
    finally:
        editor.close()


def _joined(lines: Iterator[str]) -> Iterator[str]:
    """Lines of a pipe, each joined with the following ones while it ends in a backslash."""
    parts: list[str] = []
    for line in lines:
        line = line.rstrip("\r\n")
        if line.endswith("\\"):
            parts.append(line[:-1])
            continue
        yield "\n".join([*parts, line])
        parts.clear()
    if parts:
        yield "\n".join(parts)

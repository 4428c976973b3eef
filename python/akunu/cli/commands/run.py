"""`akunu run`: one question, one answer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from akunu.base.errors import AkunuError
from akunu.cli.answers import why_cut_off, write_answer
from akunu.cli.app import CONTEXT_SETTINGS, Command
from akunu.cli.console import note, stats_text, stdin_text
from akunu.cli.constraints import constraint_arguments, constraint_options
from akunu.cli.files import STDIN, has_stdin, read_named, with_context
from akunu.cli.history import History, history_options
from akunu.cli.images import content_of, image_tokens_option, is_image, named_as_image, naming
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
from akunu.cli.values import DEFAULT_IMAGE_MODEL, DEFAULT_MODEL, FILE

if TYPE_CHECKING:
    from akunu.api.chatting import Messages
    from akunu.api.model import Model

__all__ = ["command"]

ANSWER_TOKENS = 1024
"""Room for the answer beside a text that is longer than the usual context."""

_MODEL_NAME = re.compile(r"ember|\S+\.gguf|[\w.-]+/[\w.-]+(:\S+)?", re.IGNORECASE)
_FILE_NAME = re.compile(r"[./\\]")
_REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+-gguf(:\S+)?", re.IGNORECASE)
_OTHERS_MODEL_NAME = re.compile(r"[a-z][a-z.-]*\d[\w.-]*(:[\w.-]+)?|[a-z][\w.-]*:[\w.-]+")
"""Names as programs with a registry of their own give models: llama3.2, mistral:7b."""


_COMMON = (
    "model",
    "context",
    "max_tokens",
    "temperature",
    "system",
    "think",
    "schema",
    "continued",
    "preset",
    "stats",
)


@click.command("run", cls=Command, context_settings=CONTEXT_SETTINGS, common=_COMMON)
@click.argument("question", required=False)
@click.argument("files", type=FILE, metavar="[FILE]...", nargs=-1)
@model_options
@template_options
@image_tokens_option
@adapter_option
@generation_options
@constraint_options
@history_options
@preset_option
@click.option("--stats", is_flag=True, help="Show counts and speed on standard error at the end.")
def command(
    question: str | None,
    files: Sequence[str],
    system: str | None,
    chat_template: str | None,
    think: bool | None,
    continued: bool,
    history: bool,
    image_tokens: int | None,
    stats: bool,
    **values: Any,
) -> None:
    """Answer QUESTION, and print the answer as it is written.

    The question is a message of a chat, in the format that the model was trained on. What is in the FILEs,
    and what comes from standard input, is put before it; "-" says where among the files standard input goes.
    FILEs may be images, for a model that reads them; where no model is named, ember-vision does.
    Without QUESTION, or when it is "-", standard input is the question.

    --continue goes on with the last conversation, of run or of chat, and with its model.

    The context grows to hold the files, up to what the model was trained for, unless --context sets it.

    \b
    Examples:
      akunu run "What is the capital of France?"
      akunu run -m Qwen/Qwen3-0.6B-GGUF "Which of these is safer?" old.py new.py
      git diff | akunu run -m model.gguf "Write a commit message for this." --temp 0
      akunu run -m model.gguf --no-think --system "Answer with one word." "Is water wet?"
      akunu run "What does it say?" sign.png
      akunu run -m Qwen/Qwen3-VL-4B-Instruct-GGUF "What is this?" photo.jpg
      akunu run --continue "Say that in one sentence."
      akunu run -m model.gguf < question.txt > answer.txt
      akunu run -m model.gguf "Who wrote this letter, and when?" letter.txt --schema letter.json
    """
    images = [file for file in files if file != STDIN and (is_image(file) or named_as_image(file))]
    message = _message(question, [file for file in files if file not in images])
    arguments = generation_arguments(values) | constraint_arguments(values)
    if image_tokens is not None:
        arguments["image_tokens"] = image_tokens
    log = History(continued=continued, wanted=history)
    if not given(["model"]):
        if log.model is not None:
            values["model"] = log.model
        elif images:
            values["model"] = DEFAULT_IMAGE_MODEL
    messages = [*_with_system(log.messages, system), {"role": "user", "content": content_of(message, images)}]
    named, room = values["model"], arguments.get("max_tokens", ANSWER_TOKENS)
    if _OTHERS_MODEL_NAME.fullmatch(question or "") and not files and values["model"] == DEFAULT_MODEL:
        note(f"[{question} is the question. A model: -m FILE, or -m USER/REPO of the Hugging Face Hub]")
    tokens = {"image_tokens": image_tokens} if images else {}
    with (
        naming(images, len(messages) - 1),
        _fitting(messages, room, chat_template, think, values, tokens) as (model, variables),
    ):
        pieces = model.stream_chat(messages, template_variables=variables, **arguments)
        write_answer(pieces)
        cut_off = why_cut_off(pieces.completion, arguments.get("max_tokens"))
        if cut_off:
            note(f"[the answer was cut off: {cut_off}]")
        if stats:
            note(stats_text(pieces.completion.stats))
        answer = pieces.completion.message or {"role": "assistant", "content": pieces.completion.text}
        log.add(named, [*messages, answer])


def _with_system(messages: list[dict[str, Any]], system: str | None) -> list[dict[str, Any]]:
    """Return the messages, with another system message if there is one."""
    if not system:
        return messages
    others = messages[1:] if messages and messages[0]["role"] == "system" else messages
    return [{"role": "system", "content": system}, *others]


@contextmanager
def _fitting(
    messages: Messages,
    room: int,
    chat_template: str | None,
    think: bool | None,
    values: dict[str, Any],
    of_images: dict[str, Any],
) -> Iterator[tuple[Model, dict[str, Any]]]:
    """The model and its template's variables, with a context for the messages and an answer."""
    with load_model(dict(values)) as model:
        if of_images and not model.reads_images:
            raise click.UsageError(f"{model.name} reads text only, and one of the files is an image")
        variables = use_template(model, chat_template, think)
        most = model.config.context_length
        needed = model.context
        if values["context"] is None and needed < most:
            needed = room + model.count_tokens(messages, template_variables=variables, **of_images)
        if needed <= model.context:
            yield model, variables
            return
    with load_model({**values, "context": min(needed, most)}) as model:
        yield model, use_template(model, chat_template, think)


def _message(question: str | None, files: Sequence[str]) -> str:
    """The question, after what it is about."""
    if question is None and not has_stdin():
        raise click.UsageError(
            'no question; give one, as in akunu run "Why is the sky blue?", or use akunu chat'
        )
    if question is None or question == STDIN:
        if STDIN in files:
            raise click.UsageError("standard input is the question already; it cannot be a file as well")
        question = stdin_text().strip()
        if not question:
            raise click.UsageError("standard input is empty")
        return with_context(question, read_named(files))
    if not question.strip():
        raise click.UsageError("the question is empty")
    for file in files:
        if file != STDIN and not Path(file).exists():
            hint = _perhaps(question, file, files)
            raise click.UsageError(f"no file {file!r}{hint}") if hint else AkunuError(f"no file {file!r}")
    if not files and (question.lower().endswith(".gguf") or _REPOSITORY.fullmatch(question)):
        raise click.UsageError(f"{question!r} is no question{_perhaps(question, '…')}")
    if STDIN not in files and has_stdin():
        files = [*files, STDIN]
    return with_context(question, [(name, text) for name, text in read_named(files) if text.strip()])


def _perhaps(question: str, file: str, words: Sequence[str] = ()) -> str:
    """Return a hint for those who leave out the quotes, or put the model where other programs want it."""
    if not _MODEL_NAME.fullmatch(question):
        sentence = " ".join([question, *words])
        quoted = len(words) > 1 or not _FILE_NAME.search(file)
        return f'; quote the question: akunu run "{sentence}"' if words and quoted else ""
    return f'; if {question} is the model: akunu run -m {question} "{file}"'

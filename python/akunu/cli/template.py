"""The chat template that a command uses: the file's, a common format by name, or a file of the user's."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from akunu.base.errors import InvalidArgumentError, TemplateError
from akunu.base.hub_name import model_name
from akunu.cli.files import read_text
from akunu.cli.values import FULL

if TYPE_CHECKING:
    from akunu.api.model import Model

__all__ = ["template_options", "use_template"]

F = TypeVar("F", bound=Callable[..., Any])

_MARKS: Final[Mapping[str, tuple[str, ...]]] = {
    "chatml": ("<|im_start|>", "<|im_end|>"),
    "llama3": ("<|start_header_id|>", "<|eot_id|>"),
    "gemma": ("<start_of_turn>", "<end_of_turn>"),
    "phi3": ("<|end|>", "<|assistant|>"),
}
"""Control tokens that only a model of this format has."""


def template_options(function: F) -> F:
    """Add the options of a chat: system message, template, reasoning."""
    for option in (
        click.option(
            "--think/--no-think",
            default=None,
            help="Have the model reason before it answers, or not. [default: the template's]",
        ),
        click.option(
            "--chat-template",
            type=FULL,
            metavar="NAME|FILE",
            help="Chat template for a model file that has none: chatml, llama2, llama3, mistral, gemma, "
            "phi3, zephyr, or a file with a Jinja template.",
        ),
        click.option(
            "-s", "--system", metavar="TEXT", help="System message, which says how the model should behave."
        ),
    ):
        function = option(function)
    return function


def use_template(model: Model, wanted: str | None, think: bool | None) -> dict[str, Any]:
    """Give `model` the template that is wanted; returns the variables for it.

    Raises
    ------
    TemplateError
        The model's file has none and none was given, or it does not compile.
    InvalidArgumentError
        There is no such format, or the template has no switch for thinking.
    """
    try:
        template = model.chat_template  # of a model that writes no text: an error, whatever is wanted
    except TemplateError as error:
        if wanted is None:
            raise TemplateError(_advice(model, error)) from error
    if wanted is not None:
        model.chat_template = template = _given(model, wanted)
    from akunu.chat.switches import SWITCHES, thinking_variables

    try:
        return thinking_variables(template.sources.values(), think, None)
    except InvalidArgumentError as error:
        raise InvalidArgumentError(
            f"think: the chat template of {model.name} has no switch for thinking "
            f"(no variable {' or '.join(SWITCHES)})"
        ) from error


def _given(model: Model, wanted: str) -> Any:
    from akunu.chat import FORMATS, ChatTemplate

    if wanted in FORMATS:
        return ChatTemplate.named(wanted, model.tokenizer)
    path = Path(wanted)
    if not path.exists():
        close = difflib.get_close_matches(wanted.lower(), FORMATS, n=1)
        meant = f"did you mean {close[0]}?" if close else f"expected a file, or one of {', '.join(FORMATS)}"
        raise InvalidArgumentError(f"chat_template: no format and no file {wanted!r}; {meant}")
    return ChatTemplate(read_text(path), model.tokenizer)


def _advice(model: Model, error: TemplateError) -> str:
    """Return what to do about a template that is missing or broken."""
    if "no chat template" not in str(error):
        return f"{error}; --chat-template NAME|FILE uses another one"
    likely = _likely(model)
    if likely:
        return (
            f"{model_name(model.path)} has no chat template, but the control tokens of {likely}: "
            f"try --chat-template {likely}"
        )
    return (
        f"{model_name(model.path)} has no chat template, so it may be a base model, which continues texts: "
        f'akunu complete -m {model.path} "…". If it was trained to chat, --chat-template takes the name of '
        "its format (akunu chat --help lists them) or a file with its Jinja template"
    )


def _likely(model: Model) -> str | None:
    texts = set(model.tokenizer.control_texts())
    return next((name for name, marks in _MARKS.items() if texts.issuperset(marks)), None)

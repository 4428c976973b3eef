"""Options that constrain the output."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from akunu.cli.files import read_text
from akunu.cli.values import PathName

__all__ = ["constraint_arguments", "constraint_options", "spoken_constraint_options"]

F = TypeVar("F", bound=Callable[..., Any])

_FILE = PathName()
_JSON_OPTIONS = (
    click.option(
        "--schema", type=_FILE, metavar="FILE", help="Write JSON that the JSON schema in FILE accepts."
    ),
    click.option("--json-object", is_flag=True, help="Write a JSON object."),
)
_TEXT_OPTIONS = (
    click.option("--regex", metavar="REGEX", help="Write an output that matches REGEX as a whole."),
    click.option(
        "--grammar", type=_FILE, metavar="FILE", help="Write an output of the grammar in FILE (Lark or GBNF)."
    ),
    click.option("--choice", multiple=True, metavar="TEXT", help="Write one of these strings. Repeatable."),
)


def constraint_options(function: F) -> F:
    """Add the options; `constraint_arguments` collects them."""
    for option in reversed((*_JSON_OPTIONS, *_TEXT_OPTIONS)):
        function = option(function)
    return function


def spoken_constraint_options(function: F) -> F:
    """Add the options that apply to speech."""
    for option in reversed(_TEXT_OPTIONS):
        function = option(function)
    return function


def constraint_arguments(values: dict[str, Any]) -> dict[str, Any]:
    """Take the options out of a command's values: arguments of `Model.generate` and of `transcribe`.

    Raises
    ------
    AkunuError
        A file cannot be read, or more than one constraint is given: better known before a model is loaded.
    """
    from akunu.chat.structured.structure import structure_of

    files = {name: values.pop(name, None) for name in ("schema", "grammar")}
    found: dict[str, Any] = {
        "json": values.pop("json_object", None) or None,
        "regex": values.pop("regex"),
        "choice": values.pop("choice") or None,
        **{name: None if path is None else read_text(path) for name, path in files.items()},
    }
    found = {name: value for name, value in found.items() if value is not None}
    structure_of(found)
    return found

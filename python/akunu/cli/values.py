"""Types of the values on the command line, whose errors say what was found and what was expected."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final, NoReturn

import click
from click.shell_completion import CompletionItem

from akunu.base.errors import AkunuError
from akunu.cli.app import typed_name

__all__ = [
    "DEFAULT_IMAGE_MODEL",
    "DEFAULT_MODEL",
    "DEFAULT_SPEECH_MODEL",
    "FILE",
    "FULL",
    "MODEL",
    "MODELS",
    "Integer",
    "Number",
    "PathName",
    "as_integer",
    "as_number",
]

DEFAULT_MODEL = "ember"
"""The model that comes with Akunu."""
DEFAULT_SPEECH_MODEL = "ember-speech"
DEFAULT_IMAGE_MODEL = "ember-vision"
"""The speech model that comes with Akunu."""

_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_NUMBER: Final = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def as_integer(text: str) -> int | None:
    """The integer that a text spells in decimal digits, else None: not 1_000 or ٣, which `int` takes."""
    try:
        return int(text) if _INTEGER.fullmatch(text.strip()) else None
    except ValueError:  # thousands of digits
        return None


def as_number(text: str) -> float | None:
    """The finite number that a text spells in decimal digits, else None."""
    number = float(text) if _NUMBER.fullmatch(text.strip()) else math.nan
    return number if math.isfinite(number) else None


class Integer(click.IntRange):
    """An option's integer, from `min` to `max`."""

    name = "integer"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        number: int = _within(self, value, as_integer, lambda text: self.fail(text, param, ctx))
        return number

    def _describe_range(self) -> str:
        return _limits(self)


class Number(click.FloatRange):
    """An option's finite number, from `min` to `max`."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number: float = _within(self, value, as_number, lambda text: self.fail(text, param, ctx))
        return number

    def _describe_range(self) -> str:
        return _limits(self)


class Full(click.types.StringParamType):
    """A text that is not empty, which a variable of the shell that is not set would be."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            self.fail("it is empty", param, ctx)
        return value


FULL: Final = Full()


class FileName(Full):
    """The name of a file as a text; Tab completes it."""

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        return [CompletionItem(incomplete, type="file")]


FILE: Final = FileName()


def _before_colons(names: Iterable[str]) -> list[str]:
    """Names without what follows a colon: shells take that for the beginning of another word."""
    return list(dict.fromkeys(name.partition(":")[0] for name in names))


def _fetched() -> list[str]:
    from akunu.files.hub.cache import cached_models

    return _before_colons(model.name for model in cached_models())


def _families() -> list[str]:
    from akunu.files.hub.short_names import SHORT_NAMES, meaning

    return [family for family in _before_colons(SHORT_NAMES) if meaning(family)]


class HubName(click.types.StringParamType):
    """The name of a model of the Hub; Tab completes it by these names."""

    def __init__(self, names: Callable[[], list[str]]) -> None:
        self._names = names

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        return [CompletionItem(name) for name in self._names() if name.startswith(incomplete)]


FETCHED: Final = HubName(_fetched)
"""Models that are here."""
TO_FETCH: Final = HubName(_families)
"""Families of models that have short names."""


class ModelName(click.types.StringParamType):
    """The name of a model.

    Tab completes those that are here: built-in, fetched from the Hub, and files; and, after a first letter,
    the families of short names.
    """

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        built_in = [DEFAULT_MODEL, DEFAULT_SPEECH_MODEL, DEFAULT_IMAGE_MODEL]
        names = [*built_in, *_fetched(), *(_families() if incomplete else [])]
        known = [CompletionItem(name) for name in names if name.startswith(incomplete)]
        # Files first: click's script for bash empties the list where it is told of them.
        return [*FILE.shell_complete(ctx, param, incomplete), *known]


MODEL: Final = ModelName()


class ModelNames(ModelName):
    """Names of models between commas; Tab completes the last one."""

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        before, comma, last = incomplete.rpartition(",")
        found = super().shell_complete(ctx, param, last)
        if not comma:
            return found
        # A shell looks for files with the name of the whole word, so not for these.
        return [CompletionItem(before + comma + item.value) for item in found if item.type != "file"]


MODELS: Final = ModelNames()


class PathName(click.Path):
    """The name of a file or folder; an empty one is not the folder we are in.

    One that has to exist and does not is an error, as wherever else a file is missing, and not wrong usage.

    Parameters
    ----------
    **kind
        As of `click.Path`.
    """

    def __init__(self, **kind: Any) -> None:
        super().__init__(path_type=Path, **kind)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        given = FULL.convert(value, param, ctx)
        if self.exists and not os.path.exists(given):
            named = "" if param is None or ctx is None else f"{typed_name(ctx, param)}: "
            raise AkunuError(f"{named}no {'file' if self.file_okay else 'folder'} {str(given)!r}")
        return super().convert(given, param, ctx)


def _within(
    kind: Integer | Number,
    value: Any,
    read: Callable[[str], float | None],
    fail: Callable[[str], NoReturn],
) -> Any:
    """The number that `value` is, or spells."""
    number = read(value) if isinstance(value, str) else value
    low, high = kind.min, kind.max
    if number is not None:
        above = low is None or (number > low if kind.min_open else number >= low)
        if above and (high is None or number <= high):
            return number
    limits = _limits(kind)
    article = "an" if kind.name == "integer" else "a"
    fail(f"found {value!r}, expected {article} {kind.name}{limits and f' in the range {limits}'}")


def _limits(kind: Integer | Number) -> str:
    """Return the limits as click's help shows them; nothing where there are none."""
    if kind.min is None:
        return "" if kind.max is None else f"x<={kind.max}"
    if kind.max is None:
        return f"x{'>' if kind.min_open else '>='}{kind.min}"
    return f"{kind.min}{'<' if kind.min_open else '<='}x<={kind.max}"

"""Texts that a command reads: files, standard input, and how they stand in a question."""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import click

from akunu.base.errors import AkunuError
from akunu.cli.console import decoding_text, os_error_text, read_bounded, stdin_text

__all__ = [
    "STDIN", "has_stdin", "own_file", "placed", "read_lines", "read_named", "read_text", "with_context",
]  # fmt: skip

_NUMBER: Final = re.compile(r"(text|(texts|documents): number) (?P<n>\d+)")
STDIN = "-"
"""The name of standard input."""


def own_file(name: str) -> Path:
    """Return the place of a file or folder in the user's configuration folder of Akunu."""
    return Path(click.get_app_dir("akunu")) / name


def read_text(path: Path) -> str:
    """The UTF-8 text in a file.

    Raises
    ------
    AkunuError
        The file cannot be read, is not text, or has no end in sight.
    """
    try:
        with open(path, encoding="utf-8-sig") as file:
            return read_bounded(file, str(path))
    except OSError as error:
        raise AkunuError(os_error_text(error)) from error
    except UnicodeDecodeError as error:
        raise AkunuError(f"{path}: {decoding_text(error)}") from error


def has_stdin() -> bool:
    """Whether somebody sent something to standard input: a pipe or a file, not a terminal or /dev/null."""
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (OSError, ValueError):  # closed, or no file of the system
        return not sys.stdin.isatty()
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode)


def read_named(names: Sequence[str]) -> list[tuple[str, str]]:
    """Name and text of each file; "-" is standard input."""
    return [
        ("standard input", stdin_text()) if name == STDIN else (name, read_text(Path(name))) for name in names
    ]


def read_lines(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the lines of all files, and of each where it stands ("FILE, line N").

    Lines end at line feeds, not where Unicode breaks lines, too. Blank ones keep their places, except for
    what follows the last line feed of a file.
    """
    lines, places = [], []
    for name, text in read_named(names):
        own = text.split("\n")
        own = own[:-1] if not own[-1] else own
        lines += [line.removesuffix("\r") for line in own]
        places += [f"{name}, line {i + 1}" for i in range(len(own))]
    return lines, places


@contextmanager
def placed(places: Sequence[str]) -> Iterator[None]:
    """Say of an error about an input by its number where it stands instead."""
    try:
        yield
    except AkunuError as error:
        found = _NUMBER.match(str(error))
        if found is None or int(found["n"]) >= len(places):
            raise
        text = f"{places[int(found['n'])]}:{str(error)[found.end() :].removeprefix(':')}"
        raise AkunuError(text) from error


def with_context(question: str, texts: Sequence[tuple[str, str]]) -> str:
    """A question about texts, as one message.

    The texts come first and the question last: models attend best to what is asked where they begin to
    answer, and the next question about the same texts finds them in the cache. Each text is fenced as in
    Markdown, which every chat model knows, by a fence that is longer than any in the text, so that a text
    cannot end it.
    """
    parts = []
    for name, text in texts:
        ticks = max((len(run) for run in re.findall("`+", text)), default=0)
        fence = "`" * max(3, ticks + 1)
        end = "" if text.endswith("\n") else "\n"
        parts.append(f"{name}:\n{fence}\n{text}{end}{fence}\n")
    return "\n".join([*parts, question])

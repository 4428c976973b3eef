"""Manual pages of the commands, in roff, from what `--help-all` says.

    python -m akunu.cli.manual FOLDER      writes akunu.1, akunu-run.1, …

Packages of systems install them in share/man/man1.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from akunu.base.version import __version__
from akunu.cli.group import akunu

__all__ = ["main", "pages"]


def pages() -> dict[str, str]:
    """The text of each manual page, by the name of its file."""
    root = click.Context(akunu, info_name="akunu")
    return {f"{name.replace(' ', '-')}.1": _page(name, context) for name, context in _commands("akunu", root)}


def _commands(name: str, context: click.Context) -> Iterator[tuple[str, click.Context]]:
    yield name, context
    if isinstance(context.command, click.Group):
        for each in context.command.list_commands(context):
            command = context.command.get_command(context, each)
            assert command is not None
            yield from _commands(f"{name} {each}", click.Context(command, info_name=each, parent=context))


def _page(name: str, context: click.Context) -> str:
    command = context.command
    blocks = inspect.cleandoc(command.help or "").split("\n\n")
    summary = " ".join(blocks[0].split()).partition(". ")[0].rstrip(".")
    lines = [
        f'.TH "{name.replace(" ", "-").upper()}" 1 "" "akunu {__version__}" "Akunu"',
        ".SH NAME",
        f"{_plain(name.replace(' ', '-'))} \\- {_plain(summary)}",
        ".SH SYNOPSIS",
        f".B {_plain(name)}",
        _plain(" ".join(command.collect_usage_pieces(context))),
        ".SH DESCRIPTION",
    ]
    for block in blocks:
        if not block.startswith("\b"):
            lines += [".PP", *_lines(" ".join(block.split()))]
            continue
        text = block.removeprefix("\b\n").split("\n")
        if text[0] == "Examples:":
            lines.append(".SH EXAMPLES")
            text = [line.removeprefix("  ") for line in text[1:]]
        lines += [".PP", ".nf", *(_plain(line) or "\\&" for line in text), ".fi"]
    options = [
        record for option in command.get_params(context) if (record := option.get_help_record(context))
    ]
    if options:
        lines.append(".SH OPTIONS")
    for option, said in options:
        lines += [".TP", f".B {_plain(option)}", *_lines(said)]
    if isinstance(command, click.Group):
        lines.append(".SH COMMANDS")
        for each in command.list_commands(context):
            found = command.get_command(context, each)
            assert found is not None
            lines += [".TP", f".BR {_plain(f'{name} {each}'.replace(' ', '-'))} (1)"]
            lines += _lines(found.get_short_help_str(200))
    if context.parent is not None:
        parent = name.rpartition(" ")[0].replace(" ", "-")
        lines += [".SH SEE ALSO", f".BR {_plain(parent)} (1)"]
    return "\n".join(lines) + "\n"


def _lines(text: str) -> list[str]:
    """Prose, a sentence a line, as roff wants it."""
    return [_plain(line) for line in re.sub(r"(?<=[.:;]) +(?=[A-Z])", "\n", text.strip()).split("\n") if line]


def _plain(text: str) -> str:
    """Text that roff takes as it is."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{text}" if text.startswith((".", "'")) else text


def main(folder: str) -> None:
    """Write the pages into a folder."""
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (place / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m akunu.cli.manual FOLDER")
    main(sys.argv[1])

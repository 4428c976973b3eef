"""What the page for users of other programs gives as Akunu's commands, methods and arguments exists."""

from __future__ import annotations

import ast
import inspect
import re
import shlex
from pathlib import Path

import click
import pytest

import akunu
from akunu.cli.bench.command import command as bench
from akunu.cli.group import akunu as cli

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "coming-from.md").read_text(encoding="utf-8")
OURS = [line.rsplit("|", 2)[1] for line in PAGE.splitlines() if line.startswith("| ") and "---" not in line]
SPANS = sorted({span for cell in OURS for span in re.findall(r"`([^`]+)`", cell)})
CLASSES = (akunu.Model, akunu.EmbeddingModel, akunu.WhisperModel, akunu.ChatTemplate)


def _options(command: click.Command) -> set[str]:
    return {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}


@pytest.mark.parametrize("line", [span for span in SPANS if span.startswith(("akunu ", "akunu-bench "))])
def test_commands_and_their_options_exist(line: str) -> None:
    program, *words = shlex.split(line)
    command: click.Command = cli if program == "akunu" else bench
    context = click.Context(command)
    while isinstance(command, click.Group) and words:
        found = command.get_command(context, words[0])
        if found is None:
            assert command.name == "models" and words[0].startswith("-"), line
            break
        command, words = found, words[1:]
    words = words[: words.index("--")] if "--" in words else words
    assert {word for word in words if word.startswith("-")} <= _options(command) | {"--help"}


def _calls(text: str) -> list[ast.Call]:
    tree = ast.parse(text.replace("…", "None").replace("(None)", "()"))
    return [node for node in ast.walk(tree) if isinstance(node, ast.Call)]


@pytest.mark.parametrize(
    "text", [span for span in SPANS if re.match(r"(\w+ = )?(akunu\.load|model\.)[^`]*\(", span)]
)
def test_methods_and_their_arguments_exist(text: str) -> None:
    for call in _calls(text):
        assert isinstance(call.func, ast.Attribute)
        name = call.func.attr
        owners = [akunu] if name == "load" else [kind for kind in CLASSES if hasattr(kind, name)]
        assert owners, name
        given = {keyword.arg for keyword in call.keywords}
        taken = [inspect.signature(getattr(owner, name)).parameters.keys() for owner in owners]
        assert any(given <= names for names in taken), (name, given)


def test_the_page_names_something_for_each_program() -> None:
    assert len(SPANS) > 60
    assert len(re.findall(r"^## ", PAGE, re.MULTILINE)) == 8

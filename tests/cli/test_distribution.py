"""What is in the source distribution, and what PyPI and the README show."""

from __future__ import annotations

import importlib.util
import re
import shlex
import sys
import tomllib
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from types import ModuleType

import click
import pytest

from akunu.cli.group import akunu as group

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCUMENTS = ["README.md", *sorted(f"docs/{path.name}" for path in ROOT.glob("docs/*.md"))]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def tool(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def targets(markdown: str) -> list[str]:
    """What its links lead to; code has none."""
    text = re.sub(r"^```.*?^```$", "", markdown, flags=re.MULTILINE | re.DOTALL)
    return re.findall(r"\]\(([^)]+)\)", text)


def test_a_makefile_comes_only_with_the_tests_that_it_runs():
    excluded = PROJECT["tool"]["scikit-build"]["sdist"]["exclude"]
    assert ("/Makefile" in excluded) == ("/tests" in excluded)
    assert "/tools" not in excluded  # the build reads `readme_for_pypi`


@pytest.mark.parametrize("name", DOCUMENTS)
def test_links_between_the_documents_lead_somewhere(name):
    path = ROOT / name
    for target in targets(path.read_text(encoding="utf-8")):
        if not re.match(r"[a-z]+:|#", target):
            assert (path.parent / target.partition("#")[0]).exists(), target


def test_the_metadata_has_the_readme_for_pypi(monkeypatch):
    (entry,) = PROJECT["tool"]["dynamic-metadata"]
    assert entry["provider"] == {"path": "tools", "module": "readme_for_pypi"}
    assert "readme" in PROJECT["project"]["dynamic"]
    monkeypatch.chdir(ROOT)
    readme = tool("readme_for_pypi").dynamic_metadata({}, PROJECT["project"])["readme"]
    assert readme["content-type"] == "text/markdown"
    assert all(target.startswith("https://") for target in targets(readme["text"]))
    assert "# Akunu" in readme["text"]


def test_without_an_address_links_become_their_text_and_pictures_go():
    text = tool("readme_for_pypi").for_pypi("a [b](c.md), [d](https://e).\n\n![f](g.svg)\n\nh", None)
    assert text == "a b, [d](https://e).\n\n\nh"


@pytest.mark.parametrize("label", ["Source", "source_code", "Repository", "GitHub"])
def test_with_an_address_of_the_sources_links_and_pictures_are_absolute(label, monkeypatch):
    monkeypatch.chdir(ROOT)
    project = {"urls": {"Funding": "https://f", label: "https://forge/akunu/"}}
    text = tool("readme_for_pypi").dynamic_metadata({}, project)["readme"]["text"]
    found = targets(text)
    assert len(found) == len(targets(README))
    assert "https://forge/akunu/blob/HEAD/docs/cli.md" in found
    assert "https://forge/akunu/raw/HEAD/docs/first-minute.svg" in found
    assert all(target.startswith("https://") for target in found)


def shown() -> list[str]:
    """The lines of text of the committed picture."""
    root = ElementTree.parse(ROOT / "docs" / "first-minute.svg").getroot()
    name = "{http://www.w3.org/2000/svg}"
    return ["".join(text.text or "" for text in line.iter(f"{name}text")) for line in root.iter(f"{name}g")]


def test_the_picture_shows_commands_that_exist():
    commands = [line.removeprefix("$ ") for line in shown() if line.startswith("$ ")]
    assert len(commands) >= 3
    for text in commands:
        program, name, *arguments = shlex.split(text)
        assert program == "akunu"
        command = group.get_command(click.Context(group), name)
        assert command is not None
        command.make_context(name, arguments)


def test_the_recorder_shows_what_a_terminal_would():
    recorder = tool("record_terminal")
    screen = recorder.Screen()
    screen.write("\x1b[?2004h\x1b[1m> \x1b[0mab\bc\r\nabc\rx\x1b[K<&\n")
    assert [line.text() for line in screen.lines] == ["> ac", "x<&", ""]
    picture = recorder.draw(screen.lines)
    assert "x&lt;&amp;" in picture
    ElementTree.fromstring(picture)

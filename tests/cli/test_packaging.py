"""Manual pages, and the files by which other systems install Akunu."""

from __future__ import annotations

import plistlib
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import click
import pytest

from akunu.cli.group import COMMANDS, akunu
from akunu.cli.manual import main, pages
from missing import missing

ROOT = Path(__file__).parents[2]
PACKAGING = ROOT / "packaging"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_every_command_has_a_manual_page_with_all_its_options(tmp_path: Path) -> None:
    main(str(tmp_path))
    names = {path.name for path in tmp_path.iterdir()}
    assert {"akunu.1", "akunu-models-search.1", *(f"akunu-{name}.1" for name in COMMANDS)} <= names
    run = (tmp_path / "akunu-run.1").read_text(encoding="utf-8").replace("\\-", "-")
    command = akunu.get_command(click.Context(akunu), "run")
    assert command is not None
    options = {name for option in command.params for name in option.opts if name.startswith("--")}
    assert [name for name in sorted(options) if name not in run] == []
    assert ".SH EXAMPLES" in run and "akunu-run - Answer QUESTION" in run


def test_manual_pages_are_roff() -> None:
    if shutil.which("man") is None:
        missing("there is no man here")
    for name, text in pages().items():
        words = ["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-"]
        ran = subprocess.run(words, input=text, capture_output=True, text=True, timeout=60)
        assert (ran.returncode, ran.stderr) == (0, ""), (name, ran.stderr)
        assert "SYNOPSIS" in re.sub(".\b", "", ran.stdout)


def requirements() -> list[str]:
    found = [re.match(r"[\w-]+", line) for line in PROJECT["dependencies"]]
    return sorted(each[0].lower().replace("_", "-") for each in found if each)


def test_nix_has_what_the_package_needs() -> None:
    text = (PACKAGING / "flake.nix").read_text(encoding="utf-8")
    found = re.search(r"dependencies = with [^;]+; \[([^\]]+)\]", text)
    assert found is not None and sorted(found[1].split()) == requirements()
    assert all(text.count(a) == text.count(b) for a, b in ("{}", "[]", "()"))
    if (nix := shutil.which("nix-instantiate")) is not None:
        subprocess.run([nix, "--parse", PACKAGING / "flake.nix"], check=True, capture_output=True)


def test_the_formula_is_ruby_that_runs_commands_that_exist() -> None:
    text = (PACKAGING / "akunu.rb").read_text(encoding="utf-8")
    assert "akunu.cli.manual" in text and PROJECT["description"].split()[0] in text
    for command in re.findall(r'akunu", "(\w+)"', text):
        assert command in COMMANDS
    if (ruby := shutil.which("ruby")) is not None:
        subprocess.run([ruby, "-c", PACKAGING / "akunu.rb"], check=True, capture_output=True)


@pytest.mark.parametrize("name", ["Dockerfile", "Dockerfile.cuda"])
def test_an_image_builds_wheels_and_runs_as_nobody_special(name: str) -> None:
    text = (PACKAGING / name).read_text(encoding="utf-8")
    stages = re.split(r"^FROM ", text, flags=re.MULTILINE)[1:]
    assert len(stages) == 2 and "pip wheel" in stages[0] and "\nUSER akunu" in stages[1]
    assert 'ENTRYPOINT ["akunu"]' in stages[1] and "HEALTHCHECK" in stages[1]
    last = re.findall(r'^CMD \["(\w+)"', stages[1], flags=re.MULTILINE)
    assert last == ["serve"]
    hub = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    assert "build" in hub and ".venv" in hub


def test_units_are_read_by_those_who_read_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    from akunu.cli.commands import service

    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setattr(sys, "platform", "linux")
    path, text = service._file(("qwen3:4b", "--port", "8080"))
    unit = tmp_path / path.name
    unit.write_bytes(text)
    if (analyze := shutil.which("systemd-analyze")) is not None:
        subprocess.run([analyze, "verify", "--man=no", unit], check=True, capture_output=True)
    monkeypatch.setattr(sys, "platform", "darwin")
    agent = plistlib.loads(service._file(("qwen3:4b",))[1])
    assert agent["ProgramArguments"][-2:] == ["serve", "qwen3:4b"]

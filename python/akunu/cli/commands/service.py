"""`akunu service`: the server as a service of the user, by systemd or launchd."""

from __future__ import annotations

import os
import plistlib
import shlex
import subprocess
import sys
from pathlib import Path

import click

from akunu.base.errors import AkunuError
from akunu.base.whole_file import whole_file
from akunu.cli.app import CONTEXT_SETTINGS, Command, Group
from akunu.cli.console import note

__all__ = ["command"]

_UNIT = "akunu.service"
_LABEL = "org.akunu.serve"


@click.group("service", cls=Group, context_settings=CONTEXT_SETTINGS)
def command() -> None:
    """Run "akunu serve" as a service of yours, which starts when you log in and again when it fails.

    On Linux that is a unit of systemd (~/.config/systemd/user), on macOS an agent of launchd
    (~/Library/LaunchAgents). Nothing needs root.

    \b
    Examples:
      akunu service install -- qwen3:4b --port 8080
      akunu service show
      akunu service remove
    """


@command.command("install", cls=Command, short_help="Write the unit or agent, and start it.")
@click.argument("arguments", nargs=-1, metavar="[-- SERVE ARGUMENTS...]")
@click.option(
    "--start/--no-start", default=True, help="Start the server now and at each login, or only write the file."
)
@click.option("--overwrite", is_flag=True, help="Replace a unit or agent that is there.")
def install_command(arguments: tuple[str, ...], start: bool, overwrite: bool) -> None:
    """Write the unit or agent for "akunu serve" with these arguments, and start it.

    What is after "--" is given to "akunu serve" as it is; "akunu serve --help" explains it.

    \b
    Examples:
      akunu service install -- qwen3:4b
      akunu service install --no-start -- --models models.toml --api-key-file keys.txt
    """
    path, text = _file(arguments)
    if path.exists() and not overwrite:
        raise AkunuError(f"{path} exists; --overwrite replaces it, akunu service remove removes it")
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as file:
        file.write(text)
    note(f"[{path} is written]")
    if not start:
        note(f"[start it by: {'; '.join(map(shlex.join, _starting(path)))}]")
        return
    for words in _starting(path):
        _run(words)
    note("[it runs; akunu service show tells how it is]")


@command.command("show", cls=Command, short_help="Show the unit or agent, and whether it runs.")
def show_command() -> None:
    """Show the unit or agent, and what systemd or launchd says of it.

    \b
    Examples:
      akunu service show
    """
    path, _ = _file(())
    if not path.exists():
        raise AkunuError(f"there is no {path}; akunu service install writes it")
    click.echo(path.read_text(encoding="utf-8"), nl=False)
    words = (
        ["launchctl", "list", _LABEL]
        if sys.platform == "darwin"
        else _systemctl("status", "--no-pager", _UNIT)
    )
    _run(words, check=False)


@command.command("remove", cls=Command, short_help="Stop the service, and remove the unit or agent.")
def remove_command() -> None:
    """Stop the service and remove its file. Models and conversations stay.

    \b
    Examples:
      akunu service remove
    """
    path, _ = _file(())
    if not path.exists():
        raise AkunuError(f"there is no {path}")
    if sys.platform == "darwin":
        _run(["launchctl", "unload", "-w", str(path)], check=False)
    else:
        _run(_systemctl("disable", "--now", _UNIT), check=False)
    path.unlink()
    if sys.platform != "darwin":
        _run(_systemctl("daemon-reload"), check=False)
    note(f"[{path} is removed]")


def _systemctl(*words: str) -> list[str]:
    return ["systemctl", "--user", *words]


def _starting(path: Path) -> list[list[str]]:
    """Return the commands that start the service."""
    if sys.platform == "darwin":
        return [["launchctl", "load", "-w", str(path)]]
    return [_systemctl("daemon-reload"), _systemctl("enable", "--now", _UNIT)]


def _run(words: list[str], *, check: bool = True) -> None:
    sys.stdout.flush()
    try:
        done = subprocess.run(words, check=False)
    except FileNotFoundError as error:
        raise AkunuError(f"{words[0]} is not on this machine; run akunu serve another way") from error
    if check and done.returncode != 0:
        raise AkunuError(
            f"{shlex.join(words)} failed with status {done.returncode}, as it does where no session of "
            "yours runs it; akunu serve --background starts the server without it"
        )


def _file(arguments: tuple[str, ...]) -> tuple[Path, bytes]:
    """Return where the unit or agent lies, and what is in it."""
    program = [sys.executable, "-m", "akunu", "serve", *arguments]
    if sys.platform == "darwin":
        logs = Path.home() / "Library" / "Logs" / "akunu.log"
        agent = {
            "Label": _LABEL,
            "ProgramArguments": program,
            "RunAtLoad": True,
            "KeepAlive": {"SuccessfulExit": False},
            "StandardOutPath": str(logs),
            "StandardErrorPath": str(logs),
            "WorkingDirectory": os.getcwd(),
        }
        return Path.home() / "Library" / "LaunchAgents" / f"{_LABEL}.plist", plistlib.dumps(agent)
    folder = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    unit = f"""[Unit]
Description=Akunu, models over HTTP
After=network-online.target

[Service]
ExecStart={" ".join(map(_quoted, program))}
WorkingDirectory={_escaped(os.getcwd())}
Restart=on-failure
RestartSec=5
TimeoutStopSec=60
LimitNOFILE=65536

[Install]
WantedBy=default.target
"""
    return folder / "systemd" / "user" / _UNIT, unit.encode()


def _escaped(text: str) -> str:
    """Keep systemd from reading specifiers in a text."""
    return text.replace("%", "%%")


def _quoted(word: str) -> str:
    """Quote a word as systemd reads command lines."""
    if "\n" in word:
        raise AkunuError(f"{word!r} has a line break, which a unit of systemd cannot have")
    escaped = _escaped(word).replace("\\", "\\\\").replace('"', '\\"').replace("$", "$$")
    return f'"{escaped}"'

"""Servers in the background: `akunu serve --background`, `akunu ps` and `akunu stop`, as processes."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from akunu.cli.running import Running, announced, running

Cli = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def cli(tmp_path) -> Iterator[Cli]:
    """Run `akunu WORDS` with a home of its own, and end what is left there."""
    environment = {**os.environ, "HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path), "NO_COLOR": "1"}

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "akunu", *words],
            env=environment, capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip

    yield run
    run("stop", "--all", "--now")


def servers(cli: Cli) -> list[dict]:
    return json.loads(cli("ps", "--json").stdout)


def test_a_server_in_the_background_is_listed_and_stopped(cli) -> None:
    assert "no server of yours runs here" in cli("ps").stderr
    assert cli("stop").returncode == 1
    begun = cli("serve", "--background", "--port", "0", "-t", "1", "tiny=ember", "--keep-alive", "10m")
    assert begun.returncode == 0, begun.stderr
    (server,) = servers(cli)
    assert server["url"] in begun.stderr
    assert server["models"] == ["tiny"]
    assert httpx.get(f"{server['url']}/health", trust_env=False).status_code == 200
    assert server["loaded"][0]["name"].startswith("tiny")
    assert "10 min more" in cli("ps").stdout
    log = Path(server["log"]).read_text()
    assert "tiny" in log and f"[open {server['url']} in a browser to talk to them]" in log
    assert Path(server["log"]).stat().st_mode & 0o77 == 0

    second = cli("serve", "--background", "--port", "0", "-t", "1", "other=ember")
    assert second.returncode == 0, second.stderr
    assert "several servers run" in cli("stop").stderr
    assert "no server is called 'tin'" in cli("stop", "tin").stderr
    assert cli("stop", "tiny").returncode == 0
    assert [s["models"] for s in servers(cli)] == [["other"]]
    assert "has ended" in cli("stop").stderr
    assert servers(cli) == []


def test_what_hinders_the_start_is_said(cli) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        begun = cli("serve", "--background", "--port", str(taken.getsockname()[1]), "-t", "1")
    assert begun.returncode == 1
    assert "the server ended with status 1: " in begun.stderr
    assert "address already in use; --port takes another" in begun.stderr
    assert "nosuch" in cli("serve", "--background", "nosuch.gguf").stderr
    assert servers(cli) == []


def test_a_killed_server_leaves_no_record(cli) -> None:
    cli("serve", "--background", "--port", "0", "-t", "1")
    (server,) = servers(cli)
    os.kill(server["pid"], signal.SIGKILL)
    while servers(cli):  # its lock goes with it
        pass


def test_a_record_lives_as_long_as_its_block(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    mine = Running(os.getpid(), "http://127.0.0.1:1", 1, ("a", "b"), 12.5)
    with announced(mine):
        assert running() == [mine]
        (path,) = (tmp_path / "akunu" / "servers").glob("*.json")
        (path.parent / "7.json").write_text("{}")  # of a process that is gone
        assert running() == [mine]
        assert not (path.parent / "7.json").exists()
    assert running() == []


@pytest.mark.parametrize(
    ("given", "seconds"), [("600", 600), ("10m", 600), ("-1", 0), ("0", 0), ("1h30m", 5400)]
)
def test_times_of_idle_models(given, seconds) -> None:
    from akunu.cli.commands.serve import _idle

    assert _idle(given) == seconds


def test_a_time_that_is_none(akunu_cli) -> None:
    ran = akunu_cli("serve", "--keep-alive", "soon")
    assert ran.status == 2
    assert "--keep-alive: found 'soon', expected seconds or a duration such as \"5m\"" in ran.err

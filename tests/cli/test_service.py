"""`akunu service`: units of systemd and agents of launchd, which are written, started and removed."""

from __future__ import annotations

import plistlib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from akunu.cli.commands import service


@pytest.fixture
def ran(monkeypatch, tmp_path) -> list[list[str]]:
    commands: list[list[str]] = []
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("HOME", str(tmp_path))
    done = subprocess.CompletedProcess([], 0)
    monkeypatch.setattr(service.subprocess, "run", lambda words, **_: commands.append(words) or done)
    return commands


ARGUMENTS = ("qwen3:4b", "--api-key-file", 'my "keys" $1 100%.txt')


def test_a_unit_of_systemd(ran, akunu_cli, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    assert akunu_cli("service", "install", "--", *ARGUMENTS).status == 0
    assert ran == [
        ["systemctl", "--user", "daemon-reload"],
        ["systemctl", "--user", "enable", "--now", "akunu.service"],
    ]
    path = tmp_path / "config" / "systemd" / "user" / "akunu.service"
    text = path.read_text()
    assert f'ExecStart="{sys.executable}" "-m" "akunu" "serve" "qwen3:4b"' in text
    assert r'"my \"keys\" $$1 100%%.txt"' in text
    assert "exists; --overwrite replaces it" in akunu_cli("service", "install").err
    assert akunu_cli("service", "install", "--overwrite", "--no-start").status == 0
    assert "qwen3:4b" not in path.read_text()
    assert "ExecStart=" in akunu_cli("service", "show").out
    assert akunu_cli("service", "remove").status == 0
    assert not path.exists()
    assert ["systemctl", "--user", "disable", "--now", "akunu.service"] in ran
    assert "there is no " in akunu_cli("service", "show").err


def test_an_agent_of_launchd(ran, akunu_cli, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert akunu_cli("service", "install", "--", *ARGUMENTS).status == 0
    path = tmp_path / "Library" / "LaunchAgents" / "org.akunu.serve.plist"
    assert ran == [["launchctl", "load", "-w", str(path)]]
    agent = plistlib.loads(path.read_bytes())
    assert agent["ProgramArguments"][1:] == ["-m", "akunu", "serve", *ARGUMENTS]
    assert agent["RunAtLoad"] is True
    assert akunu_cli("service", "remove").status == 0
    assert not path.exists()


def test_a_machine_without_systemd_is_told(ran, akunu_cli, monkeypatch) -> None:
    def missing(words, **_):
        raise FileNotFoundError(words[0])

    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(service.subprocess, "run", missing)
    found = akunu_cli("service", "install", "--", "ember")
    assert found.status == 1
    assert "systemctl is not on this machine" in found.err


def test_a_machine_without_a_session_is_told_of_another_way(akunu_cli, monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    failed = subprocess.CompletedProcess([], 1)
    monkeypatch.setattr(service.subprocess, "run", lambda words, **_: failed)
    found = akunu_cli("service", "install", "--", "ember")
    assert found.status == 1
    assert "daemon-reload failed with status 1" in found.err and "akunu serve --background" in found.err


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not here")
def test_systemd_takes_the_unit(tmp_path: Path, akunu_cli, monkeypatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert akunu_cli("service", "install", "--no-start", "--", "ember").status == 0
    path = tmp_path / "systemd" / "user" / "akunu.service"
    done = subprocess.run(["systemd-analyze", "verify", "--user", path], capture_output=True, text=True)
    assert "akunu.service" not in done.stderr

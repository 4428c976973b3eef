"""Conversations that go on (`--continue`) and options under a name (`--preset`)."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest

from akunu.cli import history


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch) -> Path:
    """An empty configuration folder, and a log that takes what goes into a pipe."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setattr(history, "is_terminal", lambda: True)
    return Path(click.get_app_dir("akunu"))


def roles(messages: list[dict]) -> list[tuple[str, str]]:
    return [(message["role"], message["content"]) for message in messages]


SAID = [("user", "one"), ("assistant", "<one>")]


def test_run_continues_the_last_conversation_with_its_model(akunu_cli, model) -> None:
    assert akunu_cli("run", "-m", "mine.gguf", "one").status == 0
    akunu_cli("run", "--continue", "two")
    assert roles(model.prompts[-1]) == [*SAID, ("user", "two")]
    assert model.loaded[-1][0] == "mine.gguf"
    akunu_cli("run", "--continue", "-m", "other.gguf", "--system", "Be brief.", "three")
    assert roles(model.prompts[-1])[:2] == [("system", "Be brief."), SAID[0]]
    assert len(model.prompts[-1]) == 6
    assert model.loaded[-1][0] == "other.gguf"
    akunu_cli("run", "a new one")
    akunu_cli("run", "--continue", "more")
    assert roles(model.prompts[-1])[0] == ("user", "a new one")


def test_a_conversation_goes_on_between_run_and_chat(akunu_cli, model) -> None:
    akunu_cli("chat", "--system", "Be kind.", stdin="one\ntwo\n/undo\nthree\n")
    akunu_cli("run", "--continue", "four")
    assert [text for _, text in roles(model.prompts[-1])] == [
        "Be kind.", "one", "<one>", "three", "<three>", "four",
    ]  # fmt: skip
    akunu_cli("chat", "--continue", stdin="five\n")
    assert roles(model.prompts[-1])[0] == ("system", "Be kind.")
    assert len(model.prompts[-1]) == 8


def test_the_log_is_private_bounded_and_survives_damage(akunu_cli, model, home, monkeypatch) -> None:
    akunu_cli("run", "one")
    log = home / "conversations.jsonl"
    assert log.stat().st_mode & 0o77 == 0
    with log.open("a") as file:
        file.write('{"id": 3}\nnonsense\n[]\n')
    akunu_cli("run", "--continue", "two")
    assert roles(model.prompts[-1])[:2] == SAID
    monkeypatch.setattr(history, "_MOST_BYTES", 200)
    lines = len(log.read_text().splitlines())
    akunu_cli("run", "three")
    left = log.read_text().splitlines()
    assert len(left) == lines - lines // 2 + 1
    assert json.loads(left[-1])["messages"][0]["content"] == "three"
    monkeypatch.setattr(history, "_MOST_OF_TURN", 10)
    akunu_cli("run", "four")
    assert log.read_text().splitlines() == left


def test_what_is_not_remembered(akunu_cli, home, monkeypatch) -> None:
    ran = akunu_cli("run", "--continue", "two")
    assert ran.status == 1
    assert "there is no conversation to continue" in ran.err
    akunu_cli("run", "--no-history", "one")
    monkeypatch.setattr(history, "is_terminal", lambda: False)
    akunu_cli("run", "one")
    assert not (home / "conversations.jsonl").exists()


def test_a_preset_gives_defaults(akunu_cli, model, home) -> None:
    (home / "presets").mkdir(parents=True)
    (home / "presets" / "short.toml").write_text(
        'model = "mine.gguf"\nsystem = "Be brief."\ntemperature = 0\nmax-tokens = 5\nstop = ["a", "b"]\n'
    )
    akunu_cli("run", "-P", "short", "hi", "-n", "7")
    assert model.loaded[-1][0] == "mine.gguf"
    assert roles(model.prompts[-1]) == [("system", "Be brief."), ("user", "hi")]
    assert model.options[-1]["temperature"] == 0
    assert model.options[-1]["max_tokens"] == 7
    assert model.options[-1]["stop"] == ["a", "b"]
    akunu_cli(
        "complete", "--preset", str(home / "presets" / "short.toml"), "hi"
    )  # which knows no system message
    assert model.options[-1]["max_tokens"] == 5
    akunu_cli("chat", "-P", "short", "yours.gguf", stdin="hi\n")
    assert model.loaded[-1][0] == "yours.gguf"


WRONG = [
    ("temperatur = 1", "no option 'temperatur'; did you mean temperature?"),
    ("temperature =", "Invalid value"),
    ('temperature = "warm"', "--temperature: found 'warm', expected a number"),
]


@pytest.mark.parametrize(("text", "error"), WRONG)
def test_a_wrong_preset_is_refused(akunu_cli, home, text, error) -> None:
    (home / "presets").mkdir(parents=True)
    (home / "presets" / "wrong.toml").write_text(text)
    ran = akunu_cli("run", "-P", "wrong", "hi")
    assert (ran.status, error in ran.err) == (2, True), ran.err
    ran = akunu_cli("run", "-P", "wrung", "hi")
    assert ran.status == 2
    assert "no preset 'wrung': write its options" in ran.err and "there is wrong" in ran.err

"""What comes in and goes out: bytes that are no text, closed streams, control characters, Ctrl-C."""

from __future__ import annotations

import io
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from akunu.base import progress
from akunu.cli import console, main
from akunu.cli.answers import write_answer
from akunu.cli.commands import inspect
from akunu.cli.conversation import Conversation

FAKE = Path(__file__).with_name("fake_main.py")
EVIL = "\x1b]0;owned\x07[red]\x9b2J"
SHOWN = "\u241b]0;owned\u2407[red]\ufffd2J"


class Screen(io.StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        return True


def in_shell(text: str) -> subprocess.CompletedProcess[str]:
    """Run `text` in a shell that knows the command as $AKUNU."""
    environment = {**os.environ, "AKUNU": f"{sys.executable} {FAKE} 0"}
    return subprocess.run(["bash", "-c", text], capture_output=True, text=True, env=environment, timeout=60)


@pytest.mark.parametrize("command", [["complete", "-"], ["chat"], ["perplexity", "ember", "-"]])
def test_input_that_is_not_utf8_is_refused(command, akunu_cli, model):
    ran = akunu_cli(*command, stdin=b"caf\xe9\n")
    assert (ran.status, ran.out) == (1, "")
    assert ran.err == "akunu: error: standard input: not UTF-8 text: it has the byte 0xe9\n"
    assert model.prompts == []


@pytest.mark.parametrize("command", [["complete", "-"], ["chat"]])
def test_a_pipe_is_utf8_in_every_locale(command, akunu_cli):
    assert akunu_cli(*command, stdin="café\n".encode()).out == "<café>\n"


def test_an_argument_that_is_no_text_is_wrong_usage(akunu_cli, model):
    ran = akunu_cli("complete", os.fsdecode(b"caf\xe9"))
    assert ran.status == 2
    assert r"argument 'caf\udce9' is not UTF-8 text" in ran.err
    assert model.prompts == []


@pytest.mark.parametrize("name", ["talk.json", "talk\0.json"])
def test_a_conversation_that_cannot_be_saved_leaves_no_file(name, model, tmp_path, capsys):
    chat = Conversation(model, {})
    chat.messages.append({"role": "user", "content": "\udce9" if "\0" not in name else "hi"})
    assert chat.take(f"/save {tmp_path}/{name}")
    assert "not saved" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "status", "out", "err"),
    [
        ("$AKUNU complete hi >&-", 0, "", ""),
        ("$AKUNU complete hi 2>&-", 0, "<hi>\n", ""),
        ("$AKUNU complete - <&-", 2, "", "standard input is empty"),
        ("$AKUNU chat <&-", 0, "", ""),
        ("$AKUNU devices <&- >&- 2>&-", 0, "", ""),
        ("$AKUNU nonsense >&- 2>&-", 2, "", ""),
    ],
)
def test_a_closed_stream_is_an_empty_one(text, status, out, err):
    done = in_shell(text)
    assert (done.returncode, done.stdout) == (status, out), done.stderr
    assert err in done.stderr
    assert "internal error" not in done.stderr


def test_ctrl_c_in_a_pipe_ends_the_conversation():
    process = subprocess.Popen(
        [sys.executable, str(FAKE), "0.05", "chat"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(b"word " * 300 + b"\nnext\n")
        process.stdin.flush()
        assert process.stdout.read(6) == b"<word>"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert b"<next>" not in out
    assert err.splitlines()[-1] == b"akunu: interrupted"


@pytest.mark.parametrize("terminal", [True, False])
def test_a_note_and_a_table_cannot_control_the_terminal(terminal, monkeypatch):
    out, err = (Screen(), Screen()) if terminal else (io.StringIO(), io.StringIO())
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    console.note(EVIL)
    console.print_table(["a"], [[EVIL]], title=EVIL)
    assert SHOWN in err.getvalue()
    assert out.getvalue().count(SHOWN) == 2  # [red] is not markup either
    for text in (out.getvalue(), err.getvalue()):
        assert "\x1b]" not in text
        assert "\x9b" not in text


def test_the_prompt_is_echoed_without_control_characters_on_a_terminal(model, monkeypatch):
    screen = Screen()
    monkeypatch.setattr(sys, "stdout", screen)
    monkeypatch.setenv("TERM", "xterm")
    assert main(["complete", EVIL]) == 0
    assert screen.getvalue() == f"\x1b[1m{SHOWN}\x1b[0m<{SHOWN}>\n"


def test_the_prompt_is_echoed_as_it_is_into_a_pipe(akunu_cli):
    assert akunu_cli("complete", EVIL, "--echo").out == f"{EVIL}<{EVIL}>\n"


def test_why_a_model_cannot_run_is_shown_without_control_characters(monkeypatch, capsys):
    file = SimpleNamespace(paths=[f"x{EVIL}"], version=3, metadata={}, tensors=[])
    monkeypatch.setattr(inspect, "_config", lambda _file, **_: ({}, f"architecture {EVIL}"))
    monkeypatch.setattr("akunu._core.GgufFile", lambda _path: file)
    monkeypatch.setattr("akunu.loading.finding.find_model", lambda name: name)
    assert main(["inspect", "x"]) == 0
    out = capsys.readouterr().out
    assert f"file        x{SHOWN}" in out
    assert f"not a model that Akunu can run: architecture {SHOWN}" in out
    assert "\x1b" not in out


@pytest.mark.parametrize(("unit", "shown"), [("count", "3/10"), ("bytes", "3/10 bytes")])
def test_one_bar_counts_bytes_and_other_things(unit, shown, monkeypatch):
    screen = Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(progress, "_BAR_AFTER_SECONDS", 0.0)
    for name, value in (("TERM", "xterm"), ("COLUMNS", "100")):
        monkeypatch.setenv(name, value)
    with progress.reporter(True, "Working", unit=unit) as report:
        report(3, 10)
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", screen.getvalue())
    assert "Working" in text
    assert shown in text


def test_what_has_no_end_in_sight_has_a_name_and_a_clock(monkeypatch):
    screen = Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(progress, "_BAR_AFTER_SECONDS", 0.0)
    for name, value in (("TERM", "xterm"), ("COLUMNS", "100")):
        monkeypatch.setenv(name, value)
    with progress.reporter(True, "Loading") as report:
        report(3, 10)
        report(10, 10)
        for _ in range(3):
            report(10, 10, "compiling kernels for a GPU (once)")
    loading, compiling = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", screen.getvalue()).split("Compiling", 1)
    assert "Loading" in loading
    assert compiling.startswith(" kernels for a GPU (once)") and "0:00:00" in compiling
    assert "bytes" not in compiling


@pytest.mark.parametrize("variables", [{"TERM": "dumb"}, None])
def test_where_a_bar_cannot_be_drawn_there_is_none(variables, monkeypatch):
    monkeypatch.setattr(sys, "stderr", Screen() if variables else io.StringIO())
    for name, value in (variables or {}).items():
        monkeypatch.setenv(name, value)
    with progress.reporter(True, "Working") as report:
        assert report is None


def test_reasoning_is_dim_on_a_terminal_and_stays_out_of_a_pipe(model, monkeypatch):
    model._answer = lambda text: ["<think>Hm hm.</think>Yes,", " so."]
    for screen, shown in (
        (Screen(), "\x1b[2mHm\x1b[0m\x1b[2m hm.\x1b[0m\n\nYes, so.\n"),
        (io.StringIO(), "Yes, so.\n"),
    ):
        monkeypatch.setattr(sys, "stdout", screen)
        monkeypatch.setenv("TERM", "xterm")
        write_answer(model.stream_chat([{"role": "user", "content": "once"}]))
        assert screen.getvalue() == shown


@pytest.mark.parametrize(("no_color", "bold"), [("1", False), ("", True)])
def test_no_color_holds_for_the_echoed_prompt_too(no_color, bold, model, monkeypatch):
    screen = Screen()
    monkeypatch.setattr(sys, "stdout", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", no_color)
    assert main(["complete", "once"]) == 0
    assert ("\x1b[1m" in screen.getvalue()) == bold

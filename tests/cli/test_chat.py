"""`akunu chat`: the conversation, through a pipe and on a terminal."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

FAKE = Path(__file__).with_name("fake_main.py")


def test_each_line_of_a_pipe_is_a_message(akunu_cli):
    ran = akunu_cli("chat", stdin="hello you\n\nbye\n")
    assert (ran.status, ran.out, ran.err) == (0, "<hello><you>\n<bye>\n", "")


def test_the_conversation_is_kept(akunu_cli, model):
    akunu_cli("chat", "--system", "Be kind.", stdin="one\ntwo\n")
    assert model.prompts[1] == [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "<one>"},
        {"role": "user", "content": "two"},
    ]


def test_a_backslash_joins_lines(akunu_cli, model):
    akunu_cli("chat", stdin="one\\\ntwo\n")
    assert model.prompts[0] == [{"role": "user", "content": "one\ntwo"}]


def test_reset_forgets_the_conversation_but_not_the_system_message(akunu_cli, model):
    akunu_cli("chat", "-s", "Be kind.", stdin="one\n/reset\ntwo\n")
    assert model.prompts[1] == [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "two"}]


def test_system_sets_and_shows_the_message(akunu_cli, model):
    ran = akunu_cli("chat", stdin="/system Be brief.\n/system\nhi\n")
    assert "[system message: Be brief.]" in ran.err
    assert model.prompts[0][0] == {"role": "system", "content": "Be brief."}


def test_stats_switches(akunu_cli):
    ran = akunu_cli("chat", stdin="a\n/stats\nb\n/stats\nc\n")
    assert ran.err.count("tok/s") == 2  # prefill and decode, after one answer
    assert ran.out == "<a>\n<b>\n<c>\n"


def test_exit_ends_the_conversation(akunu_cli):
    assert akunu_cli("chat", stdin="a\n/exit\nb\n").out == "<a>\n"


def test_help_lists_every_command(akunu_cli):
    ran = akunu_cli("chat", stdin="/help\n")
    for name in ("/help", "/reset", "/system", "/stats", "/save", "/exit"):
        assert name in ran.err


def test_an_unknown_command_is_not_a_message(akunu_cli, model):
    ran = akunu_cli("chat", stdin="/nonsense\n//literal\n")
    assert "no command /nonsense" in ran.err
    assert model.prompts == [[{"role": "user", "content": "/literal"}]]


def test_save_writes_the_messages_and_overwrites_nothing(akunu_cli, tmp_path):
    path = tmp_path / "talk.json"
    ran = akunu_cli("chat", "-s", "Be kind.", stdin=f"one\n/save {path}\n/save {path}\n/save\n")
    assert [message["role"] for message in json.loads(path.read_text())] == ["system", "user", "assistant"]
    assert "not saved" in ran.err
    assert "needs the name of a file" in ran.err


def test_an_error_in_a_pipe_ends_it_with_status_1(akunu_cli):
    ran = akunu_cli("chat", stdin="a\ntoo long\nb\n")
    assert ran.status == 1
    assert ran.out == "<a>\n"
    assert ran.err == "akunu: error: the prompt has 99 tokens, the context holds 64\n"


def test_a_model_without_template_is_refused_at_once(akunu_cli, model):
    model.template = False
    ran = akunu_cli("chat", stdin="a\n")
    assert ran.status == 1
    assert "no chat template" in ran.err
    assert model.prompts == []


def test_sampling_options_hold_for_every_answer(akunu_cli, model):
    akunu_cli("chat", "--temperature", "0", "-n", "5", stdin="a\nb\n")
    assert model.options == [{"temperature": 0.0, "max_tokens": 5}] * 2


class Terminal:
    """A process on a pseudo-terminal."""

    def __init__(self, process: subprocess.Popen[bytes], fd: int) -> None:
        self.process = process
        self.fd = fd
        self.seen = ""

    def send(self, text: str) -> None:
        os.write(self.fd, text.encode())

    def expect(self, text: str, seconds: float = 20.0) -> str:
        """Wait for text; returns what came up to its end, without escape sequences."""
        deadline = time.monotonic() + seconds
        while True:
            plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", self.seen)
            if text in plain:
                before, _, self.seen = plain.partition(text)
                return before + text
            ready, _, _ = select.select([self.fd], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise AssertionError(f"{text!r} did not come within {seconds} s; got {plain!r}")
            try:
                self.seen += os.read(self.fd, 4096).decode(errors="replace")
            except OSError as error:
                raise AssertionError(f"the process ended; got {plain!r}") from error

    def wait(self) -> int:
        """Exit status; what is still printed is read, so that the process can end."""
        deadline = time.monotonic() + 20
        while self.process.poll() is None and time.monotonic() < deadline:
            ready, _, _ = select.select([self.fd], [], [], 0.05)
            if ready:
                try:
                    self.seen += os.read(self.fd, 4096).decode(errors="replace")
                except OSError:
                    break
        return self.process.wait(timeout=20)


@contextmanager
def terminal(home: Path, *args: str, delay: float = 0.0):
    main_fd, child_fd = pty.openpty()
    environment = {**os.environ, "HOME": str(home), "XDG_CONFIG_HOME": str(home), "TERM": "xterm"}
    process = subprocess.Popen(
        [sys.executable, str(FAKE), str(delay), "chat", *args],
        stdin=child_fd, stdout=child_fd, stderr=child_fd, env=environment, start_new_session=True,
        preexec_fn=lambda: __import__("fcntl").ioctl(0, __import__("termios").TIOCSCTTY, 0),
    )  # fmt: skip
    os.close(child_fd)
    try:
        yield Terminal(process, main_fd)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        os.close(main_fd)


def test_a_conversation_on_a_terminal(tmp_path):
    with terminal(tmp_path) as tty:
        tty.expect("/help lists the commands")
        tty.expect("> ")
        tty.send("hello you\n")
        tty.expect("<hello><you>")
        tty.expect("> ")
        tty.send("/stats\n")
        tty.expect("[statistics on]")
        tty.expect("> ")
        tty.send("too long\n")
        tty.expect("akunu: error: the prompt has 99 tokens")
        tty.expect("> ")
        tty.send("again\n")
        tty.expect("<again>")
        tty.expect("tok/s")
        tty.expect("> ")
        tty.send("\x04")  # Ctrl-D
        assert tty.wait() == 0


def test_ctrl_c_stops_the_answer_and_returns_to_the_prompt(tmp_path):
    with terminal(tmp_path, delay=0.1) as tty:
        tty.expect("> ")
        tty.send("word " * 200 + "last\n")
        tty.expect("<word><word>")
        tty.send("\x03")
        tty.expect("\n> ")
        tty.send("more\n")
        tty.expect("<more>")
        tty.expect("> ")
        time.sleep(0.3)  # readline shows the prompt a moment before it listens
        tty.send("\x03")  # at the prompt it only says how to leave
        tty.expect("Ctrl-D or /exit leaves")
        tty.expect("> ")
        tty.send("/exit\n")
        assert tty.wait() == 0
        assert "<last>" not in tty.seen


def test_history_is_kept_for_the_next_conversation_and_private(tmp_path):
    pytest.importorskip("readline")
    with terminal(tmp_path) as tty:
        tty.expect("> ")
        tty.send("remember me\n")
        tty.expect("<remember><me>")
        tty.expect("> ")
        tty.send("\x04")
        assert tty.wait() == 0
    history = tmp_path / "akunu" / "chat_history"
    assert "remember me" in history.read_text()
    assert history.stat().st_mode & 0o077 == 0
    with terminal(tmp_path) as tty:
        tty.expect("> ")
        tty.send("\x1b[A\n")  # arrow up
        tty.expect("<remember><me>")


def test_no_history_writes_no_file(tmp_path):
    with terminal(tmp_path, "--no-history") as tty:
        tty.expect("> ")
        tty.send("secret\n")
        tty.expect("<secret>")
        tty.expect("> ")
        tty.send("\x04")
        assert tty.wait() == 0
    assert not (tmp_path / "akunu").exists()


def test_lines_are_edited_without_history_too(tmp_path):
    pytest.importorskip("readline")
    with terminal(tmp_path, "--no-history") as tty:
        prompt = tty.expect("> ")
        assert not {"\x01", "\x02"} & set(prompt)  # marks for readline alone
        time.sleep(0.3)  # readline shows the prompt a moment before it listens
        tty.send("ello\x01h\n")  # Ctrl-A: to the start of the line
        tty.expect("<hello>")


def test_a_typed_byte_that_is_no_text_is_an_error_and_the_conversation_goes_on():
    main_fd, child_fd = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, str(FAKE), "0", "chat"], env={**os.environ, "PYTHONUTF8": "1"},
        stdin=child_fd, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    os.close(child_fd)
    os.write(main_fd, b"caf\xe9\nmore\n\x04")
    out, err = process.communicate(timeout=30)
    os.close(main_fd)
    assert process.returncode == 0
    assert b"akunu: error: standard input: not UTF-8 text" in err
    assert b"<more>" in out

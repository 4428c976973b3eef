"""`akunu chat`: the conversation, through a pipe and on a terminal."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import resource
import select
import subprocess
import sys
import termios
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from akunu.cli import console
from akunu.cli.conversation import Conversation

FAKE = Path(__file__).with_name("fake_main.py")


def test_each_line_of_a_pipe_is_a_message(akunu_cli):
    ran = akunu_cli("chat", stdin="hello you\n\nbye\n")
    assert (ran.status, ran.out, ran.err) == (0, "<hello><you>\n<bye>\n", "")


def test_the_model_may_be_an_argument(akunu_cli, model):
    for words in (("mine.gguf",), ("-m", "mine.gguf")):
        akunu_cli("chat", *words, stdin="one\n")
        assert model.loaded.pop()[0] == "mine.gguf"
    ran = akunu_cli("chat", "mine.gguf", "-m", "yours.gguf", stdin="one\n")
    assert ran.status == 2 and "two models, mine.gguf and that of -m" in ran.err
    assert not model.loaded


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
    names = [line.split()[0] for line in ran.err.splitlines() if line.startswith("  /")]
    assert " ".join(names) == "/help /reset /retry /undo /image /system /save /load /overflow /stats /exit"


def test_a_command_may_be_written_in_any_case(akunu_cli, model):
    akunu_cli("chat", stdin="one\n/RESET\n/System Be kind.\ntwo\n/Exit\nthree\n")
    assert model.prompts[1:] == [
        [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "two"}]
    ]


def test_retry_answers_the_last_message_again_with_another_seed(akunu_cli, model):
    ran = akunu_cli("chat", "--seed", "7", stdin="one\ntwo\n/retry\nthree\n")
    assert ran.out == "<one>\n<two>\n<two>\n<three>\n"
    assert model.prompts[1] == model.prompts[2]
    assert [options["seed"] for options in model.options] == [7, 7, 8, 8]
    assert [message["content"] for message in model.prompts[3]] == ["one", "<one>", "two", "<two>", "three"]


def test_a_retry_that_fails_loses_nothing(model):
    conversation = Conversation(model, {})
    conversation.take("one")
    before = list(conversation.messages)
    model.stream_chat = lambda *_args, **_options: 1 / 0
    with pytest.raises(ZeroDivisionError):
        conversation.take("/retry")
    assert conversation.messages == before


def test_undo_forgets_the_last_turn(akunu_cli, model):
    ran = akunu_cli("chat", stdin="one\ntwo\n/undo\nthree\n/undo\n/undo\n/undo\n/retry\n")
    assert "[forgotten: two]" in ran.err
    assert ran.err.count("[there is no message yet]") == 2
    assert [message["content"] for message in model.prompts[2]] == ["one", "<one>", "three"]


def test_load_goes_on_with_what_save_wrote(akunu_cli, model, tmp_path):
    path = tmp_path / "talk.json"
    akunu_cli("chat", "-s", "Be kind.", stdin=f"one\n/save {path}\n")
    akunu_cli("chat", stdin=f"/load {path}\ntwo\n")
    assert model.prompts[-1] == [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "<one>"},
        {"role": "user", "content": "two"},
    ]


def test_a_file_may_lie_in_the_home_folder(akunu_cli, model, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    ran = akunu_cli("chat", stdin="one\n/save ~/talk.json\n/reset\n/load ~/talk.json\ntwo\n")
    assert (tmp_path / "talk.json").exists()
    assert f"[2 messages loaded from {tmp_path}/talk.json]" in ran.err
    assert len(model.prompts[-1]) == 3


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ("{}", "expected a list of messages"),
        ("[1]", "message 1: expected a role and a content"),
        ('[{"role": "user", "content": ["parts"]}]', "message 1: expected a role and a content"),
        ('[{"role": "user", "content": "a"}]', "the last message has no answer"),
        ('[{"role": "tool", "content": "a"}]', "found the role 'tool', expected 'user'"),
        ("not json", "no conversation that /save wrote, for it is not JSON: Expecting value"),
        ("[" * 100_000, "no conversation that /save wrote, for it is not JSON: maximum recursion"),
        (b"caf\xe9", "not UTF-8 text: it has the byte 0xe9]"),
    ],
)
def test_what_is_no_conversation_is_not_loaded(data, reason, akunu_cli, model, tmp_path):
    path = tmp_path / "talk.json"
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    ran = akunu_cli("chat", stdin=f"one\n/load {path}\ntwo\n")
    assert f"[not loaded: {path}: " in ran.err
    assert reason in ran.err
    assert len(model.prompts[1]) == 3  # the conversation is as it was


def test_what_has_no_end_is_not_loaded(akunu_cli, monkeypatch):
    monkeypatch.setattr(console, "MAX_CHARACTERS", 1000)
    ran = akunu_cli("chat", stdin="/load /dev/zero\none\n")
    assert "[not loaded: /dev/zero: has more than 1000 characters, the most that are read]" in ran.err
    assert ran.out == "<one>\n"
    ran = akunu_cli("chat", stdin="one\n" + "x" * 1001)
    assert ran.out == "<one>\n" and ran.status == 1
    assert "standard input: a line: has more than 1000 characters" in ran.err


def test_a_file_that_is_not_there_is_named_without_an_error_number(akunu_cli, tmp_path):
    ran = akunu_cli("chat", stdin=f"/load {tmp_path}/none.json\n/load\n/save {tmp_path}/no/folder\n")
    assert f"[not loaded: {tmp_path}/none.json: no such file or directory]" in ran.err
    assert f"[not saved: {tmp_path}/no/folder: no such file or directory]" in ran.err
    assert "Errno" not in ran.err


def test_a_full_context_says_so_and_what_can_be_done(akunu_cli, model):
    model.counts = True
    ran = akunu_cli("chat", stdin="word " * 40 + "\n" + "more " * 40 + "\n")
    assert ran.status == 1
    assert "the conversation is full" in ran.err
    for remedy in ("/reset", "/undo", "/overflow drop"):
        assert remedy in ran.err


@pytest.mark.parametrize("overflow", ["stop", "drop"])
def test_a_message_that_never_fits_is_not_blamed_on_the_conversation(overflow, akunu_cli, model):
    model.counts = True
    ran = akunu_cli("chat", "--overflow", overflow, stdin="one\n" + "more " * 70 + "\n")
    assert ran.err == "akunu: error: the prompt has 75 tokens, the context holds 64\n"


@pytest.mark.parametrize("arguments", [["--overflow", "drop"], []])
def test_overflow_drop_forgets_the_oldest_turns_and_keeps_the_system_message(arguments, akunu_cli, model):
    model.counts = True
    first = "" if arguments else "/overflow drop\n"
    turns = "".join(f"turn{n} " + "word " * 12 + "\n" for n in range(4))
    ran = akunu_cli("chat", "-s", "Be kind.", *arguments, stdin=first + turns)
    assert ran.status == 0
    assert "[the context is full: the oldest 2 turns are forgotten]" in ran.err
    system, *messages = model.prompts[-1]
    assert system["content"] == "Be kind."
    assert messages[-1]["content"].startswith("turn3")
    assert not any(message["content"].startswith(("turn0", "turn1")) for message in messages)
    assert messages[0]["role"] == "user"


def test_several_lines_at_once_are_a_message_whatever_they_begin_with(model):
    conversation = Conversation(model, {})
    conversation.take("// a comment\n/reset")
    assert conversation.messages[0]["content"] == "// a comment\n/reset"


def test_an_unknown_command_is_not_a_message(akunu_cli, model):
    ran = akunu_cli("chat", stdin="/nonsense\n//literal\n")
    assert "no command /nonsense; /help lists them" in ran.err
    assert "no command /sav; did you mean /save?" in akunu_cli("chat", stdin="/sav x\n").err
    assert model.prompts == [[{"role": "user", "content": "/literal"}]]


def test_save_writes_the_messages_and_overwrites_nothing(akunu_cli, tmp_path):
    path = tmp_path / "talk.json"
    ran = akunu_cli("chat", "-s", "Be kind.", stdin=f"one\n/save {path}\n/save {path}\n/save\n")
    assert [message["role"] for message in json.loads(path.read_text())] == ["system", "user", "assistant"]
    assert "not saved" in ran.err
    assert "needs the name of a file" in ran.err


def test_a_conversation_that_is_not_saved_leaves_no_file(akunu_cli, tmp_path):
    path = tmp_path / "talk.json"
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, before[1]))  # as a disk that is full
    try:
        ran = akunu_cli("chat", "-s", "Be kind.", stdin=f"one\n/save {path}\n")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert "[not saved: file too large" in ran.err
    assert not path.exists()


def test_an_error_in_a_pipe_ends_it_with_status_1(akunu_cli):
    ran = akunu_cli("chat", stdin="a\ntoo long\nb\n")
    assert ran.status == 1
    assert ran.out == "<a>\n"
    assert ran.err.startswith(
        "akunu: error: the conversation is full: the prompt has 99 tokens, the context "
    )


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
        self.seen = self.raw = ""

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
                raise TimeoutError(f"{text!r} did not come within {seconds} s; got {plain!r}")
            try:
                came = os.read(self.fd, 4096).decode(errors="replace")
                self.seen += came
                self.raw += came
            except OSError as error:
                raise AssertionError(f"the process ended; got {plain!r}") from error

    def expect_keys(self) -> None:
        """Wait until readline has the terminal, which until then hands on whole lines."""
        deadline = time.monotonic() + 20
        while termios.tcgetattr(self.fd)[3] & termios.ICANON:
            assert time.monotonic() < deadline, "the terminal still waits for whole lines"
            time.sleep(0.005)

    def interrupt(self, answer: str) -> None:
        """Press Ctrl-C until it is answered: one between the prompt and the wait for keys is not seen."""
        for _ in range(20):
            self.send("\x03")
            with suppress(TimeoutError):
                self.expect(answer, seconds=1)
                return
        raise AssertionError(f"Ctrl-C was not answered with {answer!r}")

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
def terminal(home: Path, *args: str, delay: float = 0.0, columns: int = 200, **variables: str):
    main_fd, child_fd = pty.openpty()
    termios.tcsetwinsize(main_fd, (24, columns))
    environment = {
        **os.environ,
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home),
        "TERM": "xterm",
        **variables,
    }
    environment.pop("COLUMNS", None)
    process = subprocess.Popen(
        [sys.executable, str(FAKE), str(delay), "chat", *args],
        stdin=child_fd, stdout=child_fd, stderr=child_fd, env=environment, start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
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
        tty.expect("the prompt has 99 tokens")
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
        tty.interrupt("Ctrl-D or /exit leaves")  # at the prompt it only says how
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


def test_a_history_that_is_no_file_is_left_alone(tmp_path):
    history = tmp_path / "akunu" / "chat_history"
    history.parent.mkdir()
    os.mkfifo(history)
    with terminal(tmp_path) as tty:
        tty.expect("> ")
        tty.send("\x04")
        assert tty.wait() == 0
    assert history.is_fifo()


def test_no_history_writes_no_file(tmp_path):
    with terminal(tmp_path, "--no-history") as tty:
        tty.expect("> ")
        tty.send("secret\n")
        tty.expect("<secret>")
        tty.expect("> ")
        tty.send("\x04")
        assert tty.wait() == 0
    assert not (tmp_path / "akunu").exists()


PASTE = "one\nTwo lines\nthree"


def test_pasted_lines_are_one_message(tmp_path):
    pytest.importorskip("readline")
    with terminal(tmp_path) as tty:
        tty.expect("> ")
        assert "\x1b[?2004h" in tty.raw  # the terminal is asked to mark what is pasted
        tty.send(f"\x1b[200~{PASTE}\x1b[201~\n")
        tty.expect("<one><Two><lines><three>")
        tty.expect("> ")
        tty.send("/undo\n")
        tty.expect("[forgotten: one Two lines three]")


def test_pasted_lines_are_one_message_without_readline_too(tmp_path):
    with terminal(tmp_path, FAKE_NO_READLINE="1") as tty:
        tty.expect("> ")
        tty.send(PASTE + "\n")
        tty.expect("<one><Two><lines><three>")
        tty.expect("> ")
        tty.send("a\\\n")
        tty.expect("  ")
        tty.send("b\n")
        tty.expect("<a><b>")


def test_tab_completes_commands_and_their_files(tmp_path):
    pytest.importorskip("readline")
    (tmp_path / "talk.json").write_text("{}")
    with terminal(tmp_path) as tty:
        tty.expect("> ")
        tty.expect_keys()
        tty.send("/ov\tdrop\n")
        tty.expect("[when the context is full: drop]")
        tty.expect("> ")
        tty.expect_keys()
        tty.send(f"/LOAD {tmp_path}/ta\t\n")
        tty.expect(f"{tmp_path}/talk.json: expected a list")


def test_words_are_not_broken_on_a_terminal(tmp_path):
    with terminal(tmp_path, columns=40, FAKE_ANSWER="[{}] ") as tty:
        tty.expect("> ")
        tty.send("abcdefg " * 12 + "\n")
        lines = [line.strip() for line in tty.expect("> ").splitlines() if "[" in line]
        assert max(map(len, lines)) <= 40
        assert " ".join(lines).split() == ["[abcdefg]"] * 12


def test_lines_are_edited_without_history_too(tmp_path):
    pytest.importorskip("readline")
    with terminal(tmp_path, "--no-history") as tty:
        prompt = tty.expect("> ")
        assert not {"\x01", "\x02"} & set(prompt)  # marks for readline alone
        tty.expect_keys()
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

"""What goes wrong is one line on standard error, with a known exit status."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import akunu
from akunu.base.errors import ContextLengthError, ModelFileError, UnsupportedError

from .fake_model import FakeStream

FAKE = Path(__file__).with_name("fake_main.py")


def failing(error: BaseException):
    def load(*_args, **_kwargs):
        raise error

    return load


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ModelFileError("no such file: x.gguf"), "akunu: error: no such file: x.gguf\n"),
        (UnsupportedError("two\nlines"), "akunu: error: two lines\n"),
        (
            ModelFileError("x: not stored: [Errno 28] No space left: 'x'"),
            "akunu: error: x: not stored: No space left: 'x'\n",
        ),
        (PermissionError(13, "Permission denied", "x"), "akunu: error: x: permission denied\n"),
    ],
)
def test_an_error_is_one_line_and_status_1(error, line, akunu_cli, monkeypatch):
    monkeypatch.setattr(akunu, "load", failing(error))
    ran = akunu_cli("complete", "x")
    assert (ran.status, ran.out, ran.err) == (1, "", line)


@pytest.mark.parametrize("args", [("run", "x"), ("complete", "x"), ("complete", "-")])
@pytest.mark.parametrize("written", ["", "one "])
def test_an_error_before_any_text_prints_nothing(written, args, akunu_cli, monkeypatch):
    def pieces(_self):
        yield from [written] * bool(written)
        raise ContextLengthError("too long")

    monkeypatch.setattr(FakeStream, "__iter__", pieces)
    ran = akunu_cli(*args, stdin="y")
    assert (ran.status, ran.err) == (1, "akunu: error: too long\n")
    assert ran.out == (f"{written}\n" if written else "")


def test_a_defect_is_one_line_that_says_how_to_see_more(akunu_cli, monkeypatch):
    monkeypatch.setattr(akunu, "load", failing(ZeroDivisionError("oops")))
    ran = akunu_cli("complete", "x")
    assert ran.status == 1
    assert ran.err.count("\n") == 1
    assert "internal error: ZeroDivisionError: oops" in ran.err
    assert "AKUNU_DEBUG=1" in ran.err


def test_debug_shows_the_traceback(akunu_cli, monkeypatch):
    from akunu.cli import main

    monkeypatch.setattr(akunu, "load", failing(ModelFileError("no such file")))
    monkeypatch.setenv("AKUNU_DEBUG", "1")
    with pytest.raises(ModelFileError):
        main(["complete", "x"])


def test_ctrl_c_has_status_130(akunu_cli, monkeypatch):
    monkeypatch.setattr(akunu, "load", failing(KeyboardInterrupt()))
    ran = akunu_cli("complete", "x")
    assert ran.status == 130
    assert "Traceback" not in ran.err


def test_a_warning_is_one_line(akunu_cli, model, monkeypatch):
    import warnings

    def load(*_args, **_kwargs):
        warnings.warn("the file recommends nonsense", RuntimeWarning, stacklevel=2)
        return model

    monkeypatch.setattr(akunu, "load", load)
    assert akunu_cli("complete", "x").err == "akunu: warning: the file recommends nonsense\n"


def test_a_window_that_does_not_fit_is_named(akunu_cli, tmp_path):
    text = tmp_path / "t.txt"
    text.write_text("some words")
    assert akunu_cli("perplexity", "ember", str(text), "--window", "64").status == 0
    ran = akunu_cli("perplexity", "ember", str(text), "--window", "65")
    assert ran.status == 2
    assert "--window: 65 is more than the context of 64 tokens" in ran.err


def test_python_without_memory_is_no_internal_error(akunu_cli, monkeypatch):
    monkeypatch.setattr(akunu, "load", failing(MemoryError()))
    ran = akunu_cli("complete", "hi")
    assert ran.status == 1
    assert ran.err.startswith("akunu: error: out of memory; ")


def test_a_missing_file_is_named(akunu_cli, tmp_path):
    ran = akunu_cli("perplexity", "ember", str(tmp_path / "none.txt"))
    assert ran.status == 1
    assert "none.txt" in ran.err


def test_a_reader_that_leaves_is_quiet():
    command = f'"{sys.executable}" "{FAKE}" 0.01 complete "{"word " * 200}" | head -c 5'
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60)
    assert done.stdout == "<word"
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("no_color", "term", "coloured"),
    [("1", "xterm", False), ("", "xterm", True), ("", "dumb", False), ("", "", True)],
)
def test_no_color_and_plain_terminals_are_honoured(no_color, term, coloured, akunu_cli, monkeypatch):
    # click.style leaves colour in when it is told to; a terminal is one that says so
    import click

    from akunu.cli import app

    seen = []
    monkeypatch.setattr(click, "echo", lambda text, **options: seen.append(options["color"]))
    monkeypatch.setenv("NO_COLOR", no_color)
    monkeypatch.setenv("TERM", term)
    app.print_error("akunu", "error", "x")
    assert seen == [None if coloured else False]


@pytest.mark.parametrize(
    ("model", "hint"),
    [
        ("llama3.2-1b:q5", "as SHAPE:TYPE, llama3.2-1b has the types f32, f16,"),
        ("whisper-tiny:q6_k", "as SHAPE:TYPE, whisper-tiny has the types f32, f16, q4_0"),
        ("lama3.2-1b:q4_0", "as SHAPE:TYPE, did you mean llama3.2-1b?"),
        ("llama3.2-1b", "as SHAPE:TYPE, llama3.2-1b has the types"),
    ],
)
@pytest.mark.parametrize("command", [("profile",), ("inspect", "--plan")])
def test_a_misspelt_shape_of_random_weights_is_told_what_there_is(command, model, hint, akunu_cli):
    ran = akunu_cli(*command, model)
    assert ran.status == 1 and ran.err.startswith(f"akunu: error: no model '{model}'")
    assert hint in ran.err


@pytest.mark.parametrize("more", [(), ("--check", __file__)])
def test_a_speech_model_is_not_converted(more, akunu_cli, tmp_path):
    ran = akunu_cli("convert", "ember-speech", str(tmp_path / "out.gguf"), "--type", "q8_0", *more)
    assert ran.status == 1
    assert "ember-speech.bin transcribes speech; models of speech are not converted" in ran.err


@pytest.mark.parametrize(
    ("module", "interrupted", "raised"),
    [
        ("akunu.cli", "click", "KeyboardInterrupt"),
        ("akunu.cli.bench", "click", "KeyboardInterrupt"),
        # pybind11 says it of a module that Ctrl-C interrupts while it is being imported.
        ("akunu.cli.bench", "akunu._core", 'ImportError("initialization failed") from KeyboardInterrupt()'),
    ],
)
def test_ctrl_c_while_the_program_starts_is_no_traceback(module, interrupted, raised):
    code = f"""
import sys

class Interrupt:
    def find_spec(self, name, *_):
        if name == "{interrupted}":
            raise {raised}

sys.meta_path.insert(0, Interrupt())
from {module} import main
sys.exit(main(["-m", "ember"]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    name = {"akunu.cli": "akunu", "akunu.cli.bench": "akunu-bench"}[module]
    assert (done.returncode, done.stdout, done.stderr) == (130, "", f"{name}: interrupted\n")


def test_ctrl_c_in_a_callback_is_not_lost():
    """Python drops what callbacks raise, such as those by which it forgets the locks of imports."""
    code = """
import os, signal, sys, time, weakref
from akunu.cli import start

class Lock: ...

def load():
    lock = Lock()
    forgotten = weakref.ref(lock, lambda _: os.kill(os.getpid(), signal.SIGINT))
    del lock
    return lambda args: time.sleep(60) or 0

sys.exit(start("akunu", load, []))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=50)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "akunu: interrupted\n")


def test_ctrl_c_while_a_server_starts_leaves_no_import_half_way():
    """Beside it a thread imports too, and would wait for ever for a lock that the main thread has kept."""
    code = """
import os, signal, sys
from akunu.cli import main
from akunu.server.preloading import Preload

Preload.begin = lambda self: os.kill(os.getpid(), signal.SIGINT)
status = main(["serve", "--port", "0"])
sys.exit(status if "akunu.server.run" in sys.modules else "an import was interrupted")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr.strip()) == (130, "", "akunu: interrupted")

"""A process forked after loading has none of the model's threads: use is an error, and nothing waits."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap

import pytest

START = """
import gc, os, sys, threading, traceback
import akunu
from akunu import _core
from akunu.files.describe import gguf_config
from akunu.base.errors import AkunuError

def in_child(use):
    pid = os.fork()
    if pid == 0:
        try:
            use()
            status = 0
        except BaseException:
            traceback.print_exc()
            status = 1
        os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0, "the child failed"

def refused(call, what="spawn"):
    try:
        call()
    except AkunuError as error:
        assert what in str(error), error
    else:
        raise AssertionError("no error")
"""
MODEL = (
    START
    + """
model = akunu.load("ember", threads=2, context=256, progress=False)
"""
)
ENGINE = (
    START
    + """
from akunu.loading.finding import find_model
file = _core.GgufFile(str(find_model("ember")))
spec = gguf_config.resolve(file, context=256)
engine = _core.Engine(file, spec, device="cpu", context=256, threads=2, kv_dtype="f16", progress=None)
"""
)


def run(start: str, code: str) -> None:
    """In a process of its own, as a whole group that is killed when it hangs."""
    process = subprocess.Popen(
        [sys.executable, "-c", start + textwrap.dedent(code)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        process_group=0,
    )
    try:
        output, _ = process.communicate(timeout=120)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        pytest.fail(f"it hangs: {process.communicate()[0]}")
    assert process.returncode == 0, output
    assert "Traceback" not in output and "Exception ignored" not in output, output


def test_every_use_in_a_forked_child_is_an_error_and_the_parent_goes_on() -> None:
    run(
        MODEL,
        """
        expected = model.generate("Once", max_tokens=5, temperature=0).text
        stream = model.stream("Once", max_tokens=20)
        next(stream)

        def child():
            for call in (
                lambda: model.generate("Once"), lambda: model.stream("Once"), lambda: next(stream),
                lambda: model.chat([{"role": "user", "content": "x"}]), lambda: stream.completion,
                lambda: model.logits([1]), lambda: model.perplexity("a b c"), lambda: model.memory,
                lambda: model.__enter__(),
            ):
                refused(call)
            assert model.tokenize("Once")
            stream.cancel()
            stream.close()
            model.cancel()
            model.close()
            model.close()

        in_child(child)
        stream.close()
        assert model.generate("Once", max_tokens=5, temperature=0).text == expected
        """,
    )


def test_a_child_forked_while_another_thread_generates() -> None:
    run(
        MODEL,
        """
        stream = model.stream("Once", max_tokens=None)
        next(stream)
        reader = threading.Thread(target=lambda: [piece for piece in stream])
        reader.start()

        def child():
            refused(lambda: model.logits([1]))
            refused(lambda: next(stream))
            stream.close()
            model.close()

        for _ in range(5):
            in_child(child)
        stream.cancel()
        reader.join()
        """,
    )


def test_a_child_frees_the_model_and_may_load_its_own() -> None:
    run(
        MODEL,
        """
        expected = model.generate("Once", max_tokens=5, temperature=0).text

        def child():
            global model
            del model
            gc.collect()
            own = akunu.load("ember", threads=2, context=256, progress=False)
            assert own.generate("Once", max_tokens=5, temperature=0).text == expected
            own.close()

        in_child(child)
        """,
    )


def test_a_child_ends_as_any_interpreter_does() -> None:
    run(
        MODEL,
        """
        stream = model.stream("Once")
        next(stream)
        pid = os.fork()
        if pid == 0:
            sys.exit(0)  # all of Python's shutdown
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        stream.close()
        """,
    )


def test_multiprocessing_with_fork() -> None:
    run(
        MODEL,
        """
        import multiprocessing

        def child():
            refused(lambda: model.generate("Once"))

        process = multiprocessing.get_context("fork").Process(target=child)
        process.start()
        process.join()
        assert process.exitcode == 0
        """,
    )


def test_a_bare_engine_too() -> None:
    run(
        ENGINE,
        """
        import time

        ids = [1, 2, 3]
        expected = engine.logits(ids)
        time.sleep(0.1)  # the threads are asleep

        def child():
            refused(lambda: engine.logits(ids))
            engine.close()

        def forgetful_child():
            global engine
            del engine
            gc.collect()

        in_child(child)
        in_child(forgetful_child)
        assert (engine.logits(ids) == expected).all()
        engine.close()
        """,
    )

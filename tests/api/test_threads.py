"""Threads around an engine: the end of the process, close, a second call, and too many threads."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import threading
import time

import pytest

from akunu.base.errors import AkunuError, InvalidArgumentError
from children import environment
from sampling.engines import synthetic


def run(code: str, *, limit: str = "") -> subprocess.CompletedProcess[str]:
    """Run Python code, which can import from tests/, in a process of its own; `limit` is for ulimit."""
    command = [
        sys.executable,
        "-W",
        "ignore::DeprecationWarning",
        "-c",
        textwrap.dedent(code),
    ]  # 3.12: of forks with threads
    if limit:
        command = ["sh", "-c", f'ulimit {limit} && exec "$0" "$@"', *command]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=False, env=environment()
    )


def passes(code: str, **options: str) -> None:
    done = run(code, **options)
    assert done.returncode == 0 and not done.stderr, (done.returncode, done.stdout, done.stderr)


BUSY = {
    "prefill": "e.begin([1] * 512, reuse=False)\nwhile e.prefill()[0]: pass",
    "decode": "start(e, [1], Settings(), 0)\nwhile len(e.decode(256).ids) == 256: pass",
    "logits": "e.logits([1] * 512)",
    "nll": "e.nll([1] * 512)",
    "profile": "e.profile(repeats=1000)",
    "load": "synthetic(1024, 256, layers=8, progress=lambda done, total: None)",
}


@pytest.mark.table
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("call", BUSY)
def test_a_daemon_thread_in_a_call_does_not_disturb_the_exit(call: str, threads: int) -> None:
    body = textwrap.indent(BUSY[call], " " * 8)
    passes(f"""\
import threading, time
from sampling.engines import start, synthetic
from sampling.reference import Settings
e = synthetic(1024, 256, layers=4, context=512, threads={threads})
rounds = 0
def work():
    global rounds
    while True:
{body}
        rounds += 1
threading.Thread(target=work, daemon=True).start()
while not rounds:
    time.sleep(0.01)
time.sleep(0.05)
""")


def test_an_exit_function_may_still_use_an_engine() -> None:
    """Those registered before the module was imported run after the module's own."""
    passes("""
        import atexit
        def last_words():
            assert e.logits([1, 2]).shape == (2, 64)
            e.close()
        atexit.register(last_words)
        from sampling.engines import synthetic
        e = synthetic(64, 32, threads=2)
    """)


def test_an_exit_does_not_wait_for_threads_that_a_fork_left_behind() -> None:
    passes("""
        import os, sys, threading, time
        from akunu.base.errors import AkunuError
        from sampling.engines import synthetic
        e = synthetic(1024, 256, layers=4, context=2048)
        def work():
            try:
                while True:
                    e.nll([1] * 2048)
            except AkunuError as error:
                assert "cancelled after" in str(error), error
        thread = threading.Thread(target=work)
        thread.start()
        time.sleep(0.05)
        pid = os.fork()
        if pid == 0:
            sys.exit(0)
        for _ in range(1000):
            if os.waitpid(pid, os.WNOHANG)[0]:
                break
            time.sleep(0.01)
        else:
            os.kill(pid, 9)
            raise SystemExit("the child did not end")
        while thread.is_alive():
            e.cancel()
            thread.join(0.01)
    """)


def test_close_waits_for_no_reader_and_no_reader_sees_freed_memory() -> None:
    passes("""
        import sys, threading, time
        from akunu.base.errors import InvalidArgumentError
        from sampling.engines import synthetic
        sys.setswitchinterval(1e-6)
        for _ in range(300):
            e = synthetic(64, 32, layers=8)
            def read():
                try:
                    while True:
                        e.plan(), e.memory, e.tokens, e.isa
                except InvalidArgumentError as error:
                    assert "closed" in str(error), error
            thread = threading.Thread(target=read)
            thread.start()
            time.sleep(0.001)
            while True:
                try:
                    e.close()
                    break
                except InvalidArgumentError:  # a plan is being made
                    pass
            thread.join()
    """)


def test_a_plan_is_a_call_that_must_not_overlap_another() -> None:
    engine = synthetic(4096, 256, layers=8, context=2048)
    ended: list[AkunuError] = []
    began = threading.Event()

    def work() -> None:
        began.set()
        try:
            while True:
                engine.nll([1] * 2048)
        except AkunuError as error:
            ended.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    assert began.wait(30)
    time.sleep(0.2)  # it is in the call
    try:
        with pytest.raises(InvalidArgumentError, match="already running"):
            engine.plan("batch", rows=2)
        with pytest.raises(InvalidArgumentError, match="already running"):
            engine.close()
    finally:
        while thread.is_alive():
            engine.cancel()
            thread.join(0.01)
    assert "cancelled after" in str(ended[0])
    assert engine.plan("batch", rows=2)


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory are not enforced")
@pytest.mark.parametrize(
    ("stack", "room", "message"),
    [(16384, 1 << 30, r"only \d+ of 300 threads could be started \(.+\); use fewer threads"),
     (256, 1 << 30, r"could not allocate 1249902592 bytes; fewer threads need less")],
    ids=["threads", "scratch"],
)  # fmt: skip
def test_too_many_threads_are_an_error(stack: int, room: int, message: str) -> None:
    """300 threads: 298 more stacks of `stack` KiB, and 4 MiB of scratch each."""
    passes(
        f"""
        import re, resource
        from pathlib import Path
        from akunu.base.errors import DeviceError
        from sampling.engines import synthetic
        synthetic(64, 32, threads=2)
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + {room}, used + {room}))
        try:
            synthetic(64, 32, threads=300)
        except DeviceError as error:
            assert re.search({message!r}, str(error)), error
        else:
            raise AssertionError("no error")
        synthetic(64, 32, threads=2).logits([1, 2])
        """,
        limit=f"-s {stack}",
    )

"""What comes at any line: signals, whose handlers wait while the scheduler's books are open, and the end of a
stream that the garbage collector found."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import akunu
from akunu.api.scheduling.interrupts import allowed, check, held, wait
from children import environment
from order import Draw

from .conftest import make_model
from .fakes import FakeEngine

SHARED = ("scheduler.py", "planning.py", "sequence.py", "generation.py", "streams.py")
"""Files in which something comes at each line in turn."""
BLOCK = 16
"""Lines of which the first is met in each run, and the others of some blocks."""
PROMPT = [1, 2, 3, 4, 5, 6]


@pytest.fixture
def came() -> Iterator[list[int]]:
    """SIGUSR1 has a handler that raises and notes that it ran."""
    ran: list[int] = []

    def handler(number: int, frame: FrameType | None) -> None:
        ran.append(number)
        raise RuntimeError("a signal")

    before = signal.signal(signal.SIGUSR1, handler)
    yield ran
    assert signal.signal(signal.SIGUSR1, before) == handler, "a handler was not given back"


def test_a_handler_waits_for_the_end(came: list[int]) -> None:
    with pytest.raises(RuntimeError, match="a signal"), held:
        with held:
            signal.raise_signal(signal.SIGUSR1)
        assert not came
    assert came == [signal.SIGUSR1]
    with held:
        pass
    assert len(came) == 1


def test_a_handler_waits_for_a_check(came: list[int]) -> None:
    with held:
        signal.raise_signal(signal.SIGUSR1)
        with pytest.raises(RuntimeError, match="a signal"):
            check()
        check()
    assert len(came) == 1


def test_a_signal_ends_a_wait(came: list[int]) -> None:
    changed = threading.Condition()
    threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGUSR1)).start()
    with held, pytest.raises(RuntimeError, match="a signal"):
        while True:
            with changed:
                wait(changed)
            check()


def test_a_signal_between_two_windows_ends_a_measurement(came: list[int]) -> None:
    text = "Once upon a time there was a little cat. " * 400
    with akunu.load("ember", context=64, progress=False) as model:
        for measure in (model.perplexity, model.importance_matrix):
            seen: list[int] = []

            def progress(done: int, _: int, seen: list[int] = seen) -> None:
                seen.append(done)
                signal.raise_signal(signal.SIGUSR1)

            with pytest.raises(RuntimeError, match="a signal"):
                measure(text, progress=progress)
            assert len(seen) == 1


def test_a_handler_may_wait_for_another_reader() -> None:
    """One runs while the main thread waits for its text, and without the scheduler's lock."""
    model, hold = make_model(), threading.Event()
    model._engine.before_decode = lambda _: hold.wait()
    reader = threading.Thread(target=model.generate, args=(PROMPT,), kwargs={"max_tokens": 3})

    def handler(number: int, frame: FrameType | None) -> None:
        hold.set()
        reader.join()
        raise RuntimeError("a signal")

    before = signal.signal(signal.SIGUSR1, handler)
    reader.start()
    while model.stats.running == 0:
        time.sleep(0.001)
    threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGUSR1)).start()
    try:
        with pytest.raises(RuntimeError, match="a signal"):
            model.generate(PROMPT, max_tokens=3)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert not reader.is_alive()


@pytest.fixture
def signalled() -> Iterator[Callable[[Callable[[], object]], akunu.Model]]:
    """A model that has a handler run in its steps, in the thread that leads them."""
    before = signal.getsignal(signal.SIGUSR1)

    def make(handler: Callable[[], object]) -> akunu.Model:
        signal.signal(signal.SIGUSR1, lambda *_: handler() and None)
        model = make_model()
        model._engine.before_decode = lambda _: signal.raise_signal(signal.SIGUSR1)
        return model

    yield make
    signal.signal(signal.SIGUSR1, before)


def test_a_handler_within_a_step_does_not_wait_for_it(signalled: Any) -> None:
    calls: list[Callable[[], object]] = [lambda: model.generate(PROMPT), lambda: model.logits(PROMPT)]
    model = signalled(lambda: calls[0]())
    while calls:
        with pytest.raises(akunu.AkunuError, match=r"the handler of a signal, .*, cannot wait"):
            model.generate(PROMPT, max_tokens=3)
        calls.pop(0)
    model._engine.before_decode = lambda _: None
    assert len(model.generate(PROMPT, max_tokens=3).ids) == 3


def test_a_handler_may_close_the_model_that_its_thread_runs(signalled: Any) -> None:
    model = signalled(lambda: model.close())
    assert model.generate(PROMPT, max_tokens=9).finish_reason == "cancelled"
    assert model._engine.closed
    model.close()


def test_where_it_is_allowed_a_handler_runs_at_once_and_what_it_raises_waits(came: list[int]) -> None:
    stopped: list[int] = []
    with held:
        with allowed(lambda: stopped.append(1)):
            signal.raise_signal(signal.SIGUSR1)
            assert came and stopped == [1]
        with pytest.raises(RuntimeError, match="a signal"):
            check()


def test_a_handler_may_set_another(came: list[int]) -> None:
    def other(number: int, frame: FrameType | None) -> None: ...

    def handler(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGUSR2, other)

    before = signal.signal(signal.SIGUSR2, handler)
    try:
        with held:
            signal.raise_signal(signal.SIGUSR2)
            check()
        assert signal.getsignal(signal.SIGUSR2) == other
    finally:
        signal.signal(signal.SIGUSR2, before)


def test_a_forked_child_has_its_handlers(came: list[int]) -> None:
    with held:
        pid = os.fork()
        if pid == 0:
            try:
                signal.raise_signal(signal.SIGUSR1)
            except RuntimeError:
                os._exit(7)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7


def test_other_threads_hold_nothing(came: list[int]) -> None:
    inside, leave = threading.Event(), threading.Event()

    def work() -> None:
        with held:
            inside.set()
            leave.wait()

    thread = threading.Thread(target=work)
    thread.start()
    inside.wait()
    try:
        with pytest.raises(RuntimeError, match="a signal"):
            signal.raise_signal(signal.SIGUSR1)
    finally:
        leave.set()
        thread.join()


def at_line(
    line: int, where: list[str], act: Callable[[], object], files: Sequence[str] = SHARED
) -> Callable[..., Any]:
    """A trace that acts at the line-th line of `files` that runs, and notes `where` that is."""
    left = [line]

    def trace(frame: FrameType, event: str, _: object) -> Callable[..., Any] | None:
        if Path(frame.f_code.co_filename).name not in files:
            return None
        if event == "line":
            left[0] -= 1
            if left[0] == 0:
                where.append(f"{frame.f_code.co_name}:{frame.f_lineno}")
                act()
        return trace

    return trace


def test_an_interrupt_at_any_line_leaves_the_scheduler_in_order(draw: Draw) -> None:
    expected = make_model(chunk=4).generate(PROMPT, max_tokens=2).ids
    model = make_model(chunk=4)
    engine, scheduler = model._engine, model._scheduler
    assert isinstance(engine, FakeEngine)
    neighbour = model.stream([7, 8, 9], max_tokens=None)
    heard: list[int] = []

    def interrupted(line: int) -> bool:
        """Whether so many lines ran."""
        nonlocal neighbour, heard
        where: list[str] = []
        heard += next(neighbour).ids
        sys.settrace(at_line(line, where, lambda: signal.raise_signal(signal.SIGINT)))
        try:
            assert model.generate(PROMPT, max_tokens=2).ids == expected
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(None)
        assert not scheduler._leading, where
        assert (
            scheduler._planner.running == [neighbour._generation._sequence] and not scheduler._planner.waiting
        ), where
        assert len(engine.sequences) == 1, where
        if len(heard) > 200:
            neighbour = model.stream([7, 8, 9], max_tokens=None)
            heard = []
        return bool(where)

    # Blocks of lines, to behind the last one: that so many never run says so.
    blocks = 0
    while interrupted(blocks * BLOCK + 1):
        blocks += 1
    assert blocks * BLOCK > 150
    for block in draw(range(blocks)):
        for line in range(block * BLOCK + 2, (block + 1) * BLOCK + 1):
            interrupted(line)
    assert model.generate(PROMPT, max_tokens=2).ids == expected


@pytest.mark.long
def test_a_stream_that_is_collected_at_any_line_ends() -> None:
    expected = make_model(chunk=4).generate(PROMPT, max_tokens=2).ids
    model = make_model(chunk=4, parallel=4)
    engine, scheduler = model._engine, model._scheduler
    assert isinstance(engine, FakeEngine)
    line, where = 0, [""]
    while where:
        line += 1
        where = []
        dropped = [model.stream([7, 8, 9], max_tokens=20), model.stream([9, 8, 7], max_tokens=20)]
        ended = model.stream([8, 8, 8], max_tokens=20)
        for stream in (*dropped, ended):
            next(stream)
        with scheduler._lock:  # one waits for a slot
            scheduler._planner.suspend(dropped[0]._generation._sequence)
        sys.settrace(at_line(line, where, dropped.clear, ["scheduler.py", "planning.py"]))
        try:
            ended.close()
            assert model.generate(PROMPT, max_tokens=2).ids == expected, where
        finally:
            sys.settrace(None)
        dropped.clear()
        assert not scheduler._leading and not engine.sequences, where
        assert not scheduler._planner.running and not scheduler._planner.waiting, where
    assert line > 150


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_stream_that_is_dropped_ends_whatever_interrupts_that() -> None:
    model = make_model(chunk=4)
    planner = model._scheduler._planner
    line, where = 0, [""]
    while where:
        line += 1
        where = []
        stream = model.stream(PROMPT, max_tokens=20)
        next(stream)
        act = at_line(line, where, lambda: signal.raise_signal(signal.SIGINT), [*SHARED, "interrupts.py"])
        sys.settrace(act)
        try:
            del stream
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(None)
        assert not planner.running and not planner.waiting, where
        assert not model._engine.sequences, where
    assert line > 40


BATCH = """
import signal, sys
from api.conftest import make_model

model, last, found = make_model(), 0, True
def trace(frame, event, _):
    global left, found
    if frame.f_code.co_filename.rsplit("/", 1)[-1] not in ("threading.py", "thread.py", "_base.py"):
        return None
    if event in ("call", "return"):
        left -= 1
        if left == 0:
            found = True
            signal.raise_signal(signal.SIGINT)
    return trace
while found:
    last, found = last + 1, False
    left = last
    try:
        sys.settrace(trace)
        model.generate_batch([[1, 2, 3], [4, 5]], max_tokens=2, progress=False)
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(None)
print(last, model.stats.running)
"""


def test_an_interrupted_batch_waits_for_no_lock_that_nobody_holds() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", BATCH],
        env=environment(),
        timeout=60,
        check=True,
        capture_output=True,
        text=True,
    )
    calls, running = map(int, ran.stdout.split())
    assert calls > 50 and running == 0


def test_an_interrupt_is_heard_by_the_main_thread_alone() -> None:
    with akunu.load("ember", context=256, parallel=4) as model:
        alone = model.generate("Once upon a time", max_tokens=48, seed=3).ids
        others: list[list[int]] = []
        threads = [
            threading.Thread(
                target=lambda: others.append(model.generate("Once upon a time", max_tokens=48, seed=3).ids)
            )
            for _ in range(3)
        ]
        for thread in threads:
            thread.start()
        for _ in range(5):
            timer = threading.Timer(0.01, os.kill, (os.getpid(), signal.SIGINT))
            timer.start()
            with pytest.raises(KeyboardInterrupt):
                while True:
                    model.generate("There was a king", max_tokens=48, seed=4)
                    time.sleep(0)
            timer.join()
        for thread in threads:
            thread.join()
        assert others == [alone] * 3
        assert model.stats.running == 0

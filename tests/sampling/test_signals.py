"""A signal whose handler raises (Ctrl-C, a time limit) ends loads and long calls with what it raised."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from akunu import _core
from akunu.base.errors import AkunuError

from .engines import run, start, synthetic
from .reference import Settings

pytestmark = pytest.mark.usefixtures("no_collection")


class TimeIsUp(Exception):
    pass


@contextmanager
def alarm_after(seconds: float) -> Iterator[None]:
    def ring(*_: object) -> None:
        raise TimeIsUp

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def load(progress: Callable[[int, int], None] | None = None):
    """Many layers, so that there are many tensors to poll between."""
    return synthetic(20_000, 256, layers=60, head_dim=64, context=2048, progress=progress)


@contextmanager
def ctrl_c_after(seconds: float) -> Iterator[None]:
    timer = threading.Timer(seconds, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT))
    timer.start()
    yield
    timer.join()


@pytest.mark.parametrize("progress", [None, lambda done, total: None], ids=["silent", "progress"])
@pytest.mark.parametrize(("after", "error"), [(alarm_after, TimeIsUp), (ctrl_c_after, KeyboardInterrupt)])
def test_a_signal_ends_a_load(after, error: type[BaseException], progress) -> None:
    done: list[tuple[int, int]] = []
    began = time.perf_counter()
    load(lambda *numbers: done.append(numbers))
    whole = time.perf_counter() - began
    assert done[-1][0] == done[-1][1] > 0
    ended = False
    with pytest.raises(error), after(whole / 8):
        load(progress)
        ended = True
    assert not ended


def test_only_the_main_thread_asks_for_signals_and_never_at_first() -> None:
    """Elsewhere no handler could run, and the wait for the GIL would slow the call down."""
    engine = synthetic(8000, 512, layers=6, head_dim=64, context=4096)
    prompt = list(range(2000))
    before = _core.signal_polls()
    engine.logits(prompt[:1])
    thread = threading.Thread(target=engine.nll, args=(prompt,))
    thread.start()
    thread.join()
    assert _core.signal_polls() == before
    while _core.signal_polls() == before:  # the same on the main thread
        engine.nll(prompt)


def test_a_signal_ends_every_long_call() -> None:
    engine = synthetic(8000, 512, layers=6, head_dim=64, context=4096)
    prompt = list(range(4000))
    for call in (lambda: engine.logits(prompt), lambda: engine.nll(prompt), lambda: prefill(engine, prompt)):
        began = time.perf_counter()
        with pytest.raises(TimeIsUp), alarm_after(0.05):
            call()
        assert time.perf_counter() - began < 60
    start(engine, prompt[:8], Settings(), 1)
    with pytest.raises(TimeIsUp), alarm_after(0.05):
        while True:
            engine.decode(256)
    # The cache is as good as before.
    held = engine.tokens.tolist()
    assert held[:8] == prompt[:8]
    expected = run(engine, [*held, 1], 5, Settings(), 2)
    assert expected == run(engine, [*held, 1], 5, Settings(), 2, reuse=False)


def prefill(engine, prompt: list[int]) -> None:
    engine.begin(prompt, reuse=False)
    while engine.prefill()[0]:
        pass


def test_cancelled_logits_are_an_error() -> None:
    """Rows that were not computed must not look like logits."""
    engine = synthetic(8000, 512, layers=6, head_dim=64, context=4096)
    prompt = list(range(4000))
    for call in (engine.logits, engine.nll):
        timer = threading.Timer(0.05, engine.cancel)
        timer.start()
        with pytest.raises(AkunuError, match=r"cancelled after .* of 4000 tokens"):
            call(prompt)
        timer.join()

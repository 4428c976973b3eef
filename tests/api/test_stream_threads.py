"""Threads that a server's streams share."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError

import pytest

from akunu.api import item_streams
from akunu.api.item_streams import StreamThreads


@pytest.fixture
def threads() -> Iterator[StreamThreads]:
    found = StreamThreads()
    yield found
    found.close()


def test_there_is_a_thread_for_each_call_however_many_wait_for_each_other(threads: StreamThreads) -> None:
    barrier = threading.Barrier(60)
    results = [threads.submit(lambda: barrier.wait(30) >= 0) for _ in range(60)]
    assert all(result.result(30) for result in results)


def test_calls_one_after_the_other_need_no_new_threads(threads: StreamThreads) -> None:
    found = {threads.submit(threading.get_ident).result(30) for _ in range(100)}
    assert 1 <= len(found) <= item_streams._SPARE + 1
    assert threading.get_ident() not in found


def test_the_caller_starts_no_thread_but_the_first(
    threads: StreamThreads, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, start = list[tuple[int, str]](), threading.Thread.start

    def noted(self: threading.Thread) -> None:
        began.append((threading.get_ident(), self.name))
        start(self)

    monkeypatch.setattr(threading.Thread, "start", noted)
    barrier = threading.Barrier(20)
    results = [threads.submit(lambda: barrier.wait(30)) for _ in range(20)]
    assert {result.result(30) for result in results} == set(range(20))
    assert [name for ident, name in began if ident == threading.get_ident()] == ["akunu-starter"]
    assert len(began) >= 21


def test_an_error_is_the_caller_s_and_the_thread_goes_on(threads: StreamThreads) -> None:
    with pytest.raises(ZeroDivisionError):
        threads.submit(lambda: 1 / 0).result(30)
    assert threads.submit(lambda: 1).result(30) == 1


def test_a_call_that_was_cancelled_before_its_turn_is_not_made(threads: StreamThreads) -> None:
    made = list[int]()
    call = item_streams._Call(lambda: made.append(1), threads.submit(lambda: None).__class__())
    assert call.result.cancel()
    counted = list[int]()
    call.run(lambda: counted.append(1))
    assert not made and counted == [1]
    with pytest.raises(CancelledError):
        call.result.result()


def test_threads_that_nobody_needs_end_but_for_the_spare_ones() -> None:
    threads = StreamThreads(idle_seconds=0.01)
    try:
        barrier = threading.Barrier(20)
        for result in [threads.submit(barrier.wait) for _ in range(20)]:
            result.result(30)
        tick = threading.Event()
        for _ in range(3000):
            if threads._idle == item_streams._SPARE:
                break
            tick.wait(0.01)
        assert threads._idle == item_streams._SPARE
        assert threads.submit(lambda: 5).result(30) == 5
    finally:
        threads.close()

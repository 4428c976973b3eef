"""The lock that orders generations."""

from __future__ import annotations

import threading
import time

import pytest
from akunu.errors import AkunuError
from akunu.fairlock import FairLock


def wait_until(condition, seconds=10.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "timed out"
        time.sleep(0.001)


def test_waiters_are_served_in_arrival_order():
    lock, served = FairLock(), []
    lock.acquire()
    threads = []
    for number in range(6):

        def work(number=number):
            with lock.hold():
                served.append(number)

        threads.append(threading.Thread(target=work))
        threads[-1].start()
        wait_until(lambda n=number: len(lock._waiters) == n + 1)
    lock.release()
    for thread in threads:
        thread.join(10)
    assert served == list(range(6))


def test_a_greedy_thread_does_not_starve_another():
    lock, turns = FairLock(), []
    stop = threading.Event()

    def greedy():
        while not stop.is_set():
            with lock.hold():
                turns.append("greedy")
                time.sleep(0.001)

    thread = threading.Thread(target=greedy)
    thread.start()
    wait_until(lambda: turns)
    with lock.hold():
        before = len(turns)
    with lock.hold():
        after = len(turns)
    stop.set()
    thread.join(10)
    assert after - before <= 1


def test_acquiring_twice_in_one_thread_is_an_error_not_a_deadlock():
    lock = FairLock()
    with lock.hold(), pytest.raises(AkunuError, match="open stream"):
        lock.acquire()
    with lock.hold():
        pass


def test_an_interrupted_waiter_leaves_the_queue(monkeypatch):
    lock = FairLock()
    lock.acquire()

    class Interrupted:
        """Stands for a lock whose wait Ctrl-C breaks off."""

        calls = 0

        def acquire(self):
            self.calls += 1
            if self.calls == 2:
                raise KeyboardInterrupt

        def release(self):
            raise AssertionError("it was handed the lock after it had left")

    failed = []

    def waiter():
        try:
            lock.acquire()
        except KeyboardInterrupt:
            failed.append(True)

    with monkeypatch.context() as patch:
        patch.setattr("akunu.fairlock.threading.Lock", Interrupted)
        thread = threading.Thread(target=waiter)
        thread._bootstrap_inner  # noqa: B018  (the thread's own locks were made before the patch)
        waiter_ident = []

        def run():
            waiter_ident.append(threading.get_ident())
            waiter()

        lock._owner = -1  # so that this thread may wait too
        run()
    assert failed == [True]
    lock.release()
    with lock.hold():
        pass

"""The lock that orders generations."""

from __future__ import annotations

import signal
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


def test_ctrl_c_while_waiting_leaves_the_queue():
    lock, held, go = FairLock(), threading.Event(), threading.Event()

    def holder():
        with lock.hold():
            held.set()
            go.wait(10)

    def interrupter():
        wait_until(lambda: lock._waiters)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    threads = [threading.Thread(target=holder), threading.Thread(target=interrupter)]
    threads[0].start()
    assert held.wait(10)
    threads[1].start()
    with pytest.raises(KeyboardInterrupt):
        lock.acquire()
    assert not lock._waiters
    go.set()
    for thread in threads:
        thread.join(10)
    with lock.hold():
        pass

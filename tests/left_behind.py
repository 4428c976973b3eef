"""A test leaves the process as it found it: what it leaves behind is its own failure, not the next one's.

`sys.path`, the environment, the current folder, signal handlers, warning filters, threads and open files are
compared. The import of a test file may change none of them either. What a fixture of a module or of the
session opens is its own until it is torn down.
"""

from __future__ import annotations

import _signal  # what `signal` asks, whose answers are looked up in an enumeration: 64 signals, twice a test
import gc
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

FAILED = pytest.StashKey[bool]()
EXCUSED = pytest.StashKey[bool]()  # a file, from the comparison of threads and files at its end
MARKED = pytest.StashKey[bool]()  # a file, one of whose tests sets filters of warnings by a mark
LAST = pytest.StashKey[pytest.Item]()  # the test of a file that has run last
PATIENCE = 5.0  # seconds for threads that are about to end
FILES = "/proc/self/fd"
SIGNALS = [int(number) for number in signal.valid_signals()]
PYTEST_S_OWN = ("PYTEST_CURRENT_TEST",)


@dataclass
class Settings:
    """What a process has one of."""

    path: list[str]
    environment: dict[str, str]
    folder: str
    handlers: dict[int, Any]
    filters: list[Any]
    modules: int

    @classmethod
    def now(cls) -> Settings:
        kept = {key: value for key, value in os.environ.items() if key not in PYTEST_S_OWN}
        handlers = {number: _handler(number) for number in SIGNALS}
        return cls(list(sys.path), kept, os.getcwd(), handlers, list(warnings.filters), len(sys.modules))

    def changes(self, *, but_filters: bool = False) -> list[str]:
        """What has changed since, one line each."""
        now, found = Settings.now(), []
        if now.path != self.path:
            found.append(f"sys.path: {_difference(self.path, now.path)}")
        for key in sorted(self.environment.keys() | now.environment.keys()):
            if (old := self.environment.get(key)) != (new := now.environment.get(key)):
                found.append(f"os.environ[{key!r}]: was {old!r}, is {new!r}")
        if now.folder != self.folder:
            found.append(f"the current folder: was {self.folder}, is {now.folder}")
        for number, old in self.handlers.items():
            if (new := now.handlers[number]) != old:
                found.append(f"the handler of {signal.Signals(number).name}: was {old}, is {new}")
        # A library that is imported for the first time may add its own, as NumPy does.
        if now.filters != self.filters and now.modules == self.modules and not but_filters:
            found.append(f"warnings.filters: {_difference(self.filters, now.filters)}")
        return found

    def restore(self) -> None:
        """So that only one test fails of it."""
        sys.path[:] = self.path
        for key in os.environ.keys() - self.environment.keys() - set(PYTEST_S_OWN):
            del os.environ[key]
        os.environ.update(self.environment)
        os.chdir(self.folder)
        for number, old in self.handlers.items():
            if old is not None and (new := _handler(number)) is not old and new != old:
                signal.signal(number, old)
        warnings.filters[:] = self.filters  # type: ignore[index]


def _handler(number: int) -> Any:
    """None where it is not Python's; pytest-timeout's, which is another one for each test, counts as none."""
    handler = _signal.getsignal(number)
    return signal.SIG_DFL if getattr(handler, "__module__", "") == "pytest_timeout" else handler


def _difference(old: list[Any], new: list[Any]) -> str:
    added, gone = [x for x in new if x not in old], [x for x in old if x not in new]
    return "; ".join(f"{what} {each}" for what, each in (("added", added), ("gone", gone)) if each) or "order"


def open_files() -> dict[int, str]:
    """Each descriptor and what it is of; none where the system does not tell."""
    found = {}
    try:
        for name in os.listdir(FILES):
            try:
                found[int(name)] = os.readlink(f"{FILES}/{name}")
            except FileNotFoundError:  # that of the listing itself
                continue
    except FileNotFoundError:
        pass
    return found


def _new_files(before: dict[int, str]) -> list[str]:
    found = {fd: name for fd, name in open_files().items() if before.get(fd) != name}
    # A GPU's driver opens devices, pipes and events when it is first used, and keeps them.
    if any(name.startswith("/dev/nvidia") for name in found.values()):
        return []
    return [f"descriptor {fd}: {name}" for fd, name in found.items()]


def _new_threads(before: set[threading.Thread]) -> list[str]:
    now = [thread for thread in threading.enumerate() if thread not in before]
    # A server's starter keeps spare threads for streams, and a server that all tests share may start some at
    # any time. A server of the test's own has a starter that is new, and ends behind its threads.
    if all(thread.name != "akunu-starter" for thread in now):
        now = [thread for thread in now if thread.name != "akunu-stream"]
    return [f"thread {thread.name}{' (daemon)' if thread.daemon else ''}" for thread in now]


def _settled(look: Any) -> list[str]:
    """What is still there when what was about to end has ended, and garbage is collected.

    Garbage comes second: to look through all objects takes half a second once many tests have run.
    """
    found = look()
    for _ in range(10):
        if found:
            time.sleep(0.005)
            found = look()
    if found:
        gc.collect()
        found = look()
    deadline = time.monotonic() + PATIENCE
    while found and time.monotonic() < deadline:
        time.sleep(0.01)
        found = look()
    return found


def _others(request: pytest.FixtureRequest) -> set[str]:
    """The scopes of fixtures that outlive the test: a connection or a thread that is new may be theirs."""
    definitions = request.node._fixtureinfo.name2fixturedefs
    return {
        definitions[name][-1].scope
        for name in request.fixturenames
        if name in definitions and name not in OWN
    } - {"function"}


def _opened(threads: set[threading.Thread], files: dict[int, str]) -> list[str]:
    return _settled(lambda: _new_threads(threads)) + _settled(lambda: _new_files(files))


OWN = {"leaves_settings", "device_under_test", "tmp_path_factory"}


@pytest.fixture(autouse=True)
def leaves_no_trace(request: pytest.FixtureRequest) -> Iterator[None]:
    settings, threads, files = Settings.now(), set(threading.enumerate()), open_files()
    others, file = _others(request), request.node.getparent(pytest.Module)
    file.stash[LAST] = request.node
    if request.node.get_closest_marker("filterwarnings"):
        file.stash[MARKED] = True
    yield
    found = settings.changes()
    settings.restore()
    failed = request.node.stash.get(FAILED, False)
    if not failed and not others:
        found += _opened(threads, files)
    if found or failed or "session" in others:
        file.stash[EXCUSED] = True
    if found:
        pytest.fail("the test leaves behind:\n  " + "\n  ".join(found), pytrace=False)


@pytest.fixture(scope="module", autouse=True)
def leaves_settings(request: pytest.FixtureRequest) -> Iterator[None]:
    """The same of a file's fixtures; what those of the session open is theirs."""
    settings, threads, files = Settings.now(), set(threading.enumerate()), open_files()
    yield
    # pytest holds what the last test was given until its file has been torn down; where tests that are
    # skipped follow, it has let go of that (None).
    last: Any = request.node.stash.get(LAST, None)
    if last is not None and last.funcargs is not None:
        last.funcargs.clear()
    del last
    # A first or last test has the filters of its mark set around fixtures of the file, too.
    found = settings.changes(but_filters=request.node.stash.get(MARKED, False))
    settings.restore()
    if not request.node.stash.get(EXCUSED, False):
        found += _opened(threads, files)
    if found:
        pytest.fail("a fixture of this file leaves behind:\n  " + "\n  ".join(found), pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    """A failure's traceback holds what the test had; it has failed already."""
    report = yield
    if report.when == "call" and report.failed:
        item.stash[FAILED] = True
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Any:
    """A test file that is imported changes nothing."""
    settings = Settings.now() if isinstance(collector, pytest.Module) else None
    report = yield
    if settings is not None and report.passed and (found := settings.changes()):
        settings.restore()
        report.outcome = "failed"
        report.longrepr = f"importing {collector.path} leaves behind:\n  " + "\n  ".join(found)
    return report

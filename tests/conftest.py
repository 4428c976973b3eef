"""What all tests share."""

from __future__ import annotations

import gc
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

pytest_plugins = ["left_behind", "order"]

# Processes that run in another folder find the same.
if "PYTHONPATH" in os.environ:
    os.environ["PYTHONPATH"] = os.pathsep.join(
        os.path.abspath(path) for path in os.environ["PYTHONPATH"].split(os.pathsep) if path
    )

# Compiled Metal kernels are kept in the user's cache, which tests leave alone.
os.environ.setdefault("AKUNU_CACHE", str(ROOT / "build" / "cache"))

# What tests compile comes from caches of contents, where the Makefile keeps the package's objects too.
if shutil.which("ccache"):
    os.environ.setdefault("CMAKE_CXX_COMPILER_LAUNCHER", "ccache")
    os.environ.setdefault("CCACHE_DIR", str(ROOT / ".cache" / "ccache"))
    os.environ.setdefault("CCACHE_BASEDIR", str(ROOT))
    os.environ.setdefault("CCACHE_SLOPPINESS", "pch_defines,time_macros")

# NumPy multiplies small matrices in one thread: a second one would wait most of its time for the next.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# A shell starts background jobs with Ctrl-C ignored, and Python then leaves it so.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """What collecting made stays to the end: each `gc.collect()` of a test would look through all of it."""
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def device_under_test() -> Iterator[None]:
    """AKUNU_TEST_DEVICE: models that a test loads on no device by name run there, or not at all."""
    wanted = os.environ.get("AKUNU_TEST_DEVICE")
    if wanted is None:
        yield
        return
    from akunu.loading import load as loading

    present = loading.present
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loading, "present", lambda device: present(wanted if device == "auto" else device))
        yield


@pytest.fixture
def no_collection() -> Iterator[None]:
    """For tests whose signal handlers raise: what is raised amid a collection is printed, and lost.

    Hypothesis has a callback in Python at each (`gc.callbacks`), and handlers run there as they do anywhere.
    """
    gc.disable()
    yield
    gc.enable()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """A green run must say what it left out."""
    if config.option.markexpr == "not long":
        terminalreporter.write_sep("-", "NOT RUN: tests that are marked long; `make test-long` runs them")

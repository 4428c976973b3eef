"""The suite's order: files are shuffled, and the tests within each, by a seed that is printed.

`AKUNU_TEST_SEED=N` (or `--seed N`) gives the order of a run again.

`AKUNU_TEST_PART=N` runs one in N of the cases that take turns, by the same seed: of those marked `in_turn`
and `mutation`, and of those of large tables (`table`, the fixture `draw`).

Of two processes one collects the files from their end. Half of the collection is to rewrite `assert`s, and
each process then finds the bytecode of what the other has come to first.

A process of xdist tells of each test's call, and of a set-up or an end only where it failed or took long: to
tell of all three is a quarter of what a short test costs.
"""

from __future__ import annotations

import os
import random
import zlib
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

import pytest
from _pytest.runner import runtestprotocol

SEED = pytest.StashKey[int]()
PLACE = pytest.StashKey[int]()  # of a test among those that take turns, as they were collected
SHORT = 40  # bytes of a parameter that are the case's name
LONG = 5.0  # seconds of a set-up that the list of the slowest has
TURNS = ("in_turn", "mutation", "table")  # their marks

Each = TypeVar("Each")


class Draw(Protocol):
    """What the fixture `draw` is."""

    def __call__(self, cases: Sequence[Each], /) -> list[Each]: ...


def has_its_turn(place: int, seed: int, parts: int) -> bool:
    """Whether a test is one of those that run with a seed; any `parts` seeds in a row run each test once."""
    return (place + seed) % parts == 0


def parts() -> int:
    """Say how many seeds in a row it takes to run every case."""
    return int(os.environ.get("AKUNU_TEST_PART", "1"))


def drawn(cases: Sequence[Each], seed: int, parts: int) -> list[Each]:
    """Return the cases of a test whose turn it is; one of them, where there are fewer than `parts`."""
    among = min(parts, len(cases)) or 1
    return [case for place, case in enumerate(cases) if has_its_turn(place, seed, among)]


def spread(name: str) -> int:
    """A number by which cases that differ in one dimension of a matrix do not all have the same turn."""
    return zlib.crc32(name.encode())


@pytest.fixture
def draw(request: pytest.FixtureRequest) -> Draw:
    """For a test that goes through cases of a large table: those whose turn it is, at least one."""
    seed = request.config.stash[SEED] + spread(request.node.name)

    def draw(cases: Sequence[Each], /) -> list[Each]:
        return drawn(cases, seed, parts())

    return draw


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--seed", type=int, help="of the tests' order [default: AKUNU_TEST_SEED, or a new one]")


def pytest_configure(config: pytest.Config) -> None:
    given = config.getoption("seed")
    if given is None and "AKUNU_TEST_SEED" in os.environ:
        given = int(os.environ["AKUNU_TEST_SEED"])
    # With xdist each process collects, and all must have one order.
    handed_on = getattr(config, "workerinput", {}).get("akunu_seed")
    config.stash[SEED] = next(
        seed for seed in (handed_on, given, random.SystemRandom().randrange(10**6)) if seed is not None
    )


@pytest.hookimpl(wrapper=True, optionalhook=True)
def pytest_xdist_auto_num_workers() -> Any:
    """Half as many processes again as there are cores (`-n auto`): a fifth of their time they wait.

    That is for deadlines that are tested, for servers' answers and for children.
    """
    cores = yield
    return cores if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ else cores + cores // 2


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    node.workerinput["akunu_seed"] = node.config.stash[SEED]


def pytest_report_header(config: pytest.Config) -> str:
    seed = config.stash[SEED]
    return f"order of the tests: seed {seed} (AKUNU_TEST_SEED={seed} gives it again)"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if terminalreporter.stats.get("failed") or terminalreporter.stats.get("error"):
        terminalreporter.write_line(f"AKUNU_TEST_SEED={config.stash[SEED]} gives this order again")
    if (count := parts()) > 1:
        text = f"NOT RUN: cases of large tables that {count - 1} other seeds draw; AKUNU_TEST_PART=1 runs all"
        terminalreporter.write_sep("-", text)


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name a case after how long its bytes are: those of a file may differ between two processes."""
    return f"{argname} of {len(val)} bytes" if isinstance(val, bytes) and len(val) > SHORT else None


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Any:
    """Every other process of xdist comes to files and folders in the reverse order."""
    report = yield
    worker = getattr(collector.config, "workerinput", {}).get("workerid", "gw0")
    if isinstance(collector, pytest.Directory) and int(worker.removeprefix("gw")) % 2:
        report.result.reverse()
    return report


def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Tell of set-ups and ends that fail or take long, and of every call."""
    if not hasattr(item.config, "workerinput"):
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for report in runtestprotocol(item, log=False, nextitem=nextitem):
        if report.when == "call" or not report.passed or report.duration >= LONG:
            item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


# First: what pytest does next puts those together that share a parameter of a fixture of a module.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item], config: pytest.Config) -> None:
    items.sort(key=lambda item: item.path)  # processes have come to files in different orders
    another_day = pytest.mark.skip(reason=f"AKUNU_TEST_PART={parts()}: another seed runs this case")
    another_seed: list[pytest.Item] = []  # of tables: a test that is skipped costs as much as a short one
    files: dict[object, list[pytest.Item]] = defaultdict(list)
    for name in TURNS:
        places: dict[str, int] = {}
        marked = [item for item in items if item.get_closest_marker(name)]
        for item in sorted(marked, key=lambda item: spread(item.nodeid)) if name == "table" else marked:
            mark = item.get_closest_marker(name)
            assert mark is not None
            # Those of one name have one turn: what they need is made for them alone.
            item.stash[PLACE] = places.setdefault(*(mark.args or (item.nodeid,)), len(places))
            if name == "mutation" or has_its_turn(item.stash[PLACE], config.stash[SEED], parts()):
                continue
            if name == "table":
                another_seed.append(item)
            else:
                item.add_marker(another_day)
    if another_seed:
        config.hook.pytest_deselected(items=another_seed)
    left_out = set(another_seed)
    for item in items:
        if item not in left_out:
            files[item.path].append(item)
    order = random.Random(config.stash[SEED])
    groups = list(files.values())
    order.shuffle(groups)
    for group in groups:
        order.shuffle(group)
    items[:] = [item for group in groups for item in group]

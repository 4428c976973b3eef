"""The suite's order: files are shuffled, and the tests within each, by a seed that is printed.

`AKUNU_TEST_SEED=N` (or `--seed N`) gives the order of a run again.
"""

from __future__ import annotations

import os
import random
from collections import defaultdict
from typing import Any

import pytest

SEED = pytest.StashKey[int]()
PLACE = pytest.StashKey[int]()  # of a test among those that take turns, as they were collected
TURNS = ("in_turn", "mutation")  # their marks


def has_its_turn(place: int, seed: int, parts: int) -> bool:
    """Whether a test is one of those that run with a seed; any `parts` seeds in a row run each test once."""
    return (place + seed) % parts == 0


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


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    node.workerinput["akunu_seed"] = node.config.stash[SEED]


def pytest_report_header(config: pytest.Config) -> str:
    seed = config.stash[SEED]
    return f"order of the tests: seed {seed} (AKUNU_TEST_SEED={seed} gives it again)"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if terminalreporter.stats.get("failed") or terminalreporter.stats.get("error"):
        terminalreporter.write_line(f"AKUNU_TEST_SEED={config.stash[SEED]} gives this order again")


# First: what pytest does next puts those together that share a parameter of a fixture of a module.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item], config: pytest.Config) -> None:
    parts = int(os.environ.get("AKUNU_TEST_PART", "1"))
    another_day = pytest.mark.skip(reason=f"AKUNU_TEST_PART={parts}: another seed runs this case")
    files: dict[object, list[pytest.Item]] = defaultdict(list)
    for item in items:
        files[item.path].append(item)
    for name in TURNS:
        places: dict[str, int] = {}
        for item in items:
            mark = item.get_closest_marker(name)
            if mark is None:
                continue
            # Those of one name have one turn: what they need is made for them alone.
            item.stash[PLACE] = places.setdefault(*(mark.args or (item.nodeid,)), len(places))
            if name == "in_turn" and not has_its_turn(item.stash[PLACE], config.stash[SEED], parts):
                item.add_marker(another_day)
    drawn = random.Random(config.stash[SEED])
    groups = list(files.values())
    drawn.shuffle(groups)
    for group in groups:
        drawn.shuffle(group)
    items[:] = [item for group in groups for item in group]

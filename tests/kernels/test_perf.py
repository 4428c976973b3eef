"""The perf mode of the table: that it runs every kind of case, and what it prints. Not how fast."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from children import environment

from .case import Case, case
from .devices import cpu_targets, lab
from .perf import measure
from .perf_cases import perf_cases

ROOT = Path(__file__).resolve().parents[2]


def smallest() -> list[Case]:
    """One case of each builder, of a few experts."""
    first: dict[str, Case] = {}
    for c in perf_cases():
        if c.get("rows", 1) == 1 or c.builder == "embed":
            few = {"experts": 64} if c.get("experts", 0) > 64 else {}
            first.setdefault(c.builder, case(c.builder, **dict(c.args) | few))
    return list(first.values())


@pytest.mark.parametrize("timed", smallest(), ids=lambda c: c.id)
def test_every_kind_of_case_is_timed(timed: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernels.perf.MAX_COPIES", 2)
    result = measure(timed, lab(cpu_targets()[0]), repeats=1)
    assert result.seconds > 0 and result.bytes > 0 and result.flops >= 0


def test_the_command() -> None:
    command = [sys.executable, "-m", "kernels.perf", "--repeats", "1", "-k"]
    done = subprocess.run(
        [*command, "norm_add"], env=environment(), capture_output=True, text=True, check=True
    )
    head, _, *rows = done.stdout.splitlines()
    assert "GB/s" in head and len(rows) == 2
    assert all(re.search(r"norm_add\S+ +[\d.]+ +[\d.]+ +\d+%", row) for row in rows)
    unknown = subprocess.run(
        [*command, "no such"], env=environment(), capture_output=True, text=True, check=False
    )
    assert unknown.returncode == 1 and "no such" in unknown.stderr

"""The perf mode of the table: that it runs every kind of case, and what it prints. Not how fast."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from children import environment

from .case import Case
from .devices import cpu_targets, lab
from .perf import measure
from .perf_cases import perf_cases

ROOT = Path(__file__).resolve().parents[2]


def smallest() -> list[Case]:
    """One case of each builder, of as few experts as there are."""
    first: dict[str, Case] = {}
    for c in sorted(perf_cases(), key=lambda c: c.get("experts", 0)):
        if c.get("rows", 1) == 1 or c.builder == "embed":
            first.setdefault(c.builder, c)
    return list(first.values())


@pytest.mark.parametrize("case", smallest(), ids=lambda c: c.id)
def test_every_kind_of_case_is_timed(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernels.perf.MAX_COPIES", 2)  # 64 of all experts' weights are gigabytes
    result = measure(case, lab(cpu_targets()[0]), repeats=1)
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

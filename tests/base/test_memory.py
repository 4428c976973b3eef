"""Memory that was freed goes back to the system."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from missing import missing

CHILD = """
from akunu.base.memory import give_back

def resident():
    return int(next(x for x in open("/proc/self/status") if x.startswith("VmRSS")).split()[1]) >> 10

pieces = [bytes(100_000) for _ in range(2000)]
kept = pieces[-1]
del pieces
before = resident()
give_back()
print(before, resident())
"""


def test_freed_memory_below_one_that_is_used_goes_back():
    if not Path("/proc/self/status").exists():
        missing("/proc")
    done = subprocess.run([sys.executable, "-c", CHILD], capture_output=True, text=True, check=True)
    before, after = map(int, done.stdout.split())
    if before < 150:
        pytest.skip("this C library gives it back by itself")
    assert after < before / 2

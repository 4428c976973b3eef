"""Memory that was freed goes back to the system."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

import pytest

from missing import missing

RESIDENT = """
from akunu.base.memory import give_back, keep_freed

def resident():
    return int(next(x for x in open("/proc/self/status") if x.startswith("VmRSS")).split()[1]) >> 10
"""
PIECES = """
pieces = [b"x" * 100_000 for _ in range(2000)]
kept = pieces[-1]
del pieces
before = resident()
give_back()
print(before, resident())
"""
LARGE = """
keep_freed()
begin = resident()
for _ in range(3):
    blocks = [b"x" * 7_000_000 for _ in range(3)]
    del blocks
kept = resident()
give_back()
print(begin, kept, resident())
"""


def printed(script: str) -> list[int]:
    command = [sys.executable, "-c", RESIDENT + script]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [int(word) for word in done.stdout.split()]


def test_freed_memory_below_one_that_is_used_goes_back():
    if not Path("/proc/self/status").exists():
        missing("/proc")
    before, after = printed(PIECES)
    if before < 150:
        pytest.skip("this C library gives it back by itself")
    assert after < before / 2


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has options for what it keeps")
def test_large_blocks_are_kept_until_they_are_given_back():
    begin, kept, after = printed(LARGE)
    assert kept > begin + 15
    assert after < begin + 5

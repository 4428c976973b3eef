"""The arrays of a thread are registers, whatever the function constants are: no index is left to run time.

Apple's compiler is not here. But where clang, which knows no function constant either, has unrolled the loops
over an array, its elements are values of their own, and nothing of the array is left in memory.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from metal.matmul_lab import INCLUDE, ROOT
from metal_emulator.compiler import ir

KERNELS = ROOT / "metal/kernels"
FILES = ["attention/attention_f16", "attention/attention_merge", "matmul/q4_k", "matmul/f16"]
ENTRY = re.compile(r"^define [^@]*@_ZL\d+msl_entry_(\d+)v\(")
# What the emulator itself keeps in memory to do a SIMD-group's functions: a number for each lane.
OWN = re.compile(r'alloca (\[32 x \w+\]|%"(struct|class)\.metal::detail::\w+")')


def arrays_in_memory(text: str) -> list[str]:
    """What the kernels allocate; the functions that clang did not inline into them do not count."""
    found, kernel = list[str](), ""
    for line in text.splitlines():
        if line.startswith("define"):
            kernel = match[1] if (match := ENTRY.match(line)) else ""
        elif kernel and " = alloca " in line and not OWN.search(line):
            found.append(f"kernel {kernel}: {line.strip()}")
    return found


def of_file(path: Path) -> list[str]:
    text = ir(path, include=INCLUDE)
    kernels = [line for line in text.splitlines() if ENTRY.match(line)]
    assert kernels and not re.search(r"^define internal .*(gemv|attention|split_|flash_)", text, flags=re.M)
    return arrays_in_memory(text)


@pytest.mark.long
@pytest.mark.in_turn
@pytest.mark.parametrize("file", FILES)
def test_no_array_is_in_memory(file: str) -> None:
    assert of_file(KERNELS / f"{file}.metal") == []


KERNEL = """
#include <metal_stdlib>
using namespace metal;
constant uint N [[function_constant(0)]];
kernel void sums(device float* x [[buffer(0)]], uint tid [[thread_position_in_grid]]) {
    float sum[16];
    UNROLL for (uint i = 0; i < 16; ++i) sum[i] = 0;
    for (uint k = 0; k < 1000; ++k) {
        UNROLL for (uint i = 0; i < 16; ++i) {
            if (i >= N) EXIT;
            sum[i] += x[k * 16 + i];
        }
    }
    UNROLL for (uint i = 0; i < 16; ++i) x[tid * 16 + i] = sum[i];
}
"""


@pytest.mark.parametrize(("unrolled", "found"), [(True, 0), (False, 1)])
def test_an_array_in_memory_is_seen(unrolled: bool, found: int, tmp_path: Path) -> None:
    text = KERNEL.replace("UNROLL", '_Pragma("clang loop unroll(full)")' if unrolled else "")
    path = tmp_path / "sums.metal"
    path.write_text(text.replace("EXIT", "continue" if unrolled else "break"))
    assert len(of_file(path)) == found

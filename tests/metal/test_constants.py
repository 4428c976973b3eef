"""What Metal's compiler refuses and a C++ compiler, the emulator's, does not: constants at file scope."""

from __future__ import annotations

import re

import pytest

from metal_emulator.build import ROOT
from tools.flatten import flatten

FOLDERS = [ROOT / "metal" / "include", ROOT / "cpp", ROOT]
KERNELS = sorted((ROOT / "metal" / "kernels").rglob("*.metal"))
#: A variable; functions have a parenthesis before whatever is behind an equals sign.
VARIABLE = re.compile(r"^(?:static |inline )*(?:constexpr|const) [^(;]*(?:=|\{).*$", re.MULTILINE)


def of_the_device(text: str) -> str:
    """The text that a Metal compiler sees of what hosts include too."""
    out, skipped = [], []
    for line in text.splitlines():
        word = line.split(maxsplit=1)
        if word and word[0] in ("#if", "#ifdef", "#ifndef"):
            skipped.append(line.strip() == "#ifndef __METAL_VERSION__")
        elif word and word[0] == "#else":
            skipped[-1] = not skipped[-1] and "__METAL_VERSION__" in line
        elif word and word[0] == "#endif":
            skipped.pop()
        elif not any(skipped):
            out.append(line)
    return "\n".join(out)


@pytest.mark.parametrize("file", KERNELS, ids=lambda file: file.stem)
def test_constants_at_file_scope_are_in_constant_memory(file) -> None:
    text = of_the_device(flatten(file, FOLDERS, set()))
    found = [line for line in VARIABLE.findall(text) if "constant " not in line]
    assert not found


def test_the_search_finds_one() -> None:
    assert VARIABLE.findall("enum E : u32 { a = 1 };\nconstexpr u32 kOne = 1;\n")
    assert not VARIABLE.findall("constexpr u32 two(u32 n = 1) { return 2; }\n    constexpr u32 kInner = 1;\n")

"""The kernels of one instruction set must not leak into the rest of the program.

A function that the compiler emits as weak (a template or an inline function that it did not inline) exists
once in the linked module, whichever file it came from. One compiled for AVX-512 and taken for all would crash
older processors. So every weak function of a file in cpp/cpu/isa or cpp/cpu/family must carry its
namespace in its name, and nothing of it may run before the set has been chosen.
"""

from __future__ import annotations

import platform
import shutil
import subprocess
from pathlib import Path

import pytest

from .devices import TILES
from .toolchain import ROOT, compile_object, configure, locked, released_object, tool, unavailable

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.skipif(
        platform.machine() not in ("x86_64", "AMD64"), reason="these are x86 instruction sets"
    ),
]

# As released; what a compiler inlines differs, so both that build wheels are asked. The package of `make
# test` has no objects of sets that the machine lacks.
BUILDS = [
    ("c++", "avx2"),
    pytest.param("c++", "avx512", marks=pytest.mark.long),
    pytest.param("c++", TILES, marks=pytest.mark.long),
    pytest.param("clang++", "avx2", marks=[pytest.mark.long, pytest.mark.in_turn]),
]


def symbols(path: Path) -> list[tuple[str, str]]:
    """(type, demangled name) of everything that an object file defines."""
    done = subprocess.run(
        [tool("nm"), "--defined-only", "--demangle", str(path)], capture_output=True, text=True, check=True
    )
    lines = (line[17:].split(" ", 1) for line in done.stdout.splitlines())
    return [(kind, name) for kind, name in lines]


def leaks(path: Path, isa: str) -> list[str]:
    """Weak functions that another file may define too, and code that runs at load."""
    own = tuple(f"akunu::cpu::{name}::" for name in (f"isa_{isa}", f"family_{isa}", f"kKernels_{isa}"))
    found = [
        name for kind, name in symbols(path) if kind in ("W", "w") and not any(mark in name for mark in own)
    ]
    return found + [name for _, name in symbols(path) if name.startswith("_GLOBAL__sub_I")]


def built(compiler: str, source: str, target: str) -> Path:
    """The object file of a source, as released."""
    if compiler == "c++" and (released := released_object(source, target)):
        return released
    folder = ROOT / "build" / f"symbols-{compiler}"
    with locked(folder):
        configure(folder, "-DAKUNU_WERROR=ON", f"-DCMAKE_CXX_COMPILER={compiler}")
        return compile_object(folder, source, target)


def kernels_object(compiler: str, isa: str) -> Path:
    """The kernels of an instruction set that its family does not share."""
    return built(compiler, f"cpp/cpu/isa/{isa}.cpp", f"akunu_isa_{isa}")


def family_object(compiler: str, isa: str) -> Path:
    """What the family of that name shares."""
    return built(compiler, f"cpp/cpu/family/{isa}.cpp", f"akunu_family_{isa}")


def quantizers_object(compiler: str, isa: str) -> Path:
    """The quantisers of a family."""
    return built(compiler, "cpp/cpu/quantize/blocks.cpp", f"akunu_quantize_{isa}")


@pytest.mark.parametrize(("compiler", "isa"), BUILDS)
def test_no_code_leaks_out_of_its_instruction_set(compiler: str, isa: str) -> None:
    if compiler == "clang++":
        names = ["clang++-19", "clang++"]
        compiler = next((n for n in names if shutil.which(n)), "")
        if not compiler:
            unavailable("clang++ is not installed")
    path = kernels_object(compiler, isa)
    assert any(name == f"akunu::cpu::kKernels_{isa}" for _, name in symbols(path))
    objects = [path]
    if isa != TILES:  # which is of another's family
        objects += [family_object(compiler, isa), quantizers_object(compiler, isa)]
    for made in objects:
        assert leaks(made, isa) == []


def test_matmul_and_gate_up_share_the_tiles_of_a_format() -> None:
    """Copies of tiles, one in each kernel of each format, were most of what took long to compile."""
    names = [name for kind, name in symbols(kernels_object("c++", "avx2")) if kind in "tTwW"]
    tiles = [name.split("(")[0] for name in names if "dot_tile_" in name and ".cold" not in name]
    assert len(tiles) == len(set(tiles)) > 13
    for kernel in ("matmul_q8", "gate_up_q8", "matmul_f32", "gate_up_f32"):
        assert sum(f"::{kernel}(" in name for name in names if ".cold" not in name) == 1, kernel


def test_a_leak_is_found(tmp_path: Path) -> None:
    source = tmp_path / "leak.cpp"
    source.write_text(
        "namespace akunu::cpu::isa_avx2 { struct Own {}; }\n"
        "template <typename T> void leak(T) {}\n"
        "void (*taken)(int) = leak<int>;\n"
        "void (*owned)(akunu::cpu::isa_avx2::Own) = leak<akunu::cpu::isa_avx2::Own>;\n"
        "double g(); double at_load = g();\n"
    )
    path = tmp_path / "leak.o"
    subprocess.run([tool("c++"), "-O2", "-std=c++20", "-c", str(source), "-o", str(path)], check=True)
    leaked, at_load = leaks(path, "avx2")
    assert leaked == "void leak<int>(int)"
    assert at_load.startswith("_GLOBAL__sub_I")

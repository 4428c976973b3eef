"""What pip builds is compiled in groups of files, which a new file shifts: any of them may come together."""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BY_THEMSELVES = {"dequantize.cpp", "kernel_sets.cpp", "registry.cpp"}  # CMake gives them flags of their own


@pytest.mark.long
@pytest.mark.parametrize("folder", ["cpp", "cuda/host", "metal/choose"])
def test_no_two_files_have_one_name_for_two_things(folder: str, tmp_path: Path) -> None:
    compiler = shutil.which(os.environ.get("CXX", "c++"))
    assert compiler, "needs a C++ compiler"
    kinds = ("core", "formats", "plan", "engine", "cpu", "audio") if folder == "cpp" else ("",)
    files = [path for kind in kinds for path in sorted((ROOT / folder / kind).glob("*.cpp"))]
    files = [path for path in files if path.name not in BY_THEMSELVES]
    assert len(files) > 1
    together = tmp_path / "all.cpp"
    together.write_text("".join(f'#include "{path}"\n' for path in files))
    command = [compiler, "-std=c++20", "-fsyntax-only", f"-I{ROOT}", f"-I{ROOT / 'cpp'}", str(together)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]


@pytest.mark.long
@pytest.mark.in_turn
def test_each_file_of_the_bindings_compiles_by_itself(tmp_path: Path) -> None:
    """As `make dev` takes them. (The core's files do in tests/kernels' build for Arm.)"""
    import pybind11

    compiler = shutil.which(os.environ.get("CXX", "c++"))
    assert compiler, "needs a C++ compiler"
    folders = [ROOT / "cpp", ROOT, pybind11.get_include(), sysconfig.get_path("include")]
    flags = [
        "-std=c++20",
        "-fvisibility=hidden",
        '-DAKUNU_VERSION=""',
        *(f"-I{folder}" for folder in folders),
    ]
    ahead = tmp_path / "ahead.h"
    ahead.write_text(
        "".join(f"#include <pybind11/{name}.h>\n" for name in ("functional", "numpy", "pybind11", "stl"))
    )
    compiled = [compiler, *flags, "-x", "c++-header", str(ahead), "-o", f"{ahead}.gch"]
    files = [str(path) for path in sorted((ROOT / "cpp/bindings").glob("*.cpp"))]
    assert len(files) > 1
    for command in (compiled, [compiler, *flags, "-include", str(ahead), "-fsyntax-only", *files]):
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-4000:]

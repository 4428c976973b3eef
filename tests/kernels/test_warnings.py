"""Clang, which compiles the kernels for macOS, has nothing to say of them: GCC compiles them here."""

from __future__ import annotations

import json
import shlex
import shutil

import pytest

from .toolchain import ROOT, check_call, configure, locked, unavailable

ARM = "aarch64-linux-gnu"
CROSS = (
    f"-DCMAKE_CXX_COMPILER_TARGET={ARM}",
    "-DCMAKE_SYSTEM_NAME=Linux",
    "-DCMAKE_SYSTEM_PROCESSOR=aarch64",
    "-DCMAKE_TRY_COMPILE_TARGET_TYPE=STATIC_LIBRARY",  # nothing is linked
)


@pytest.mark.parametrize(
    ("name", "options"), [("native", ()), pytest.param(ARM, CROSS, marks=pytest.mark.long)]
)
def test_clang_has_no_warning_for_any_instruction_set(name: str, options: tuple[str, ...]) -> None:
    compiler = next((n for n in ("clang++-19", "clang++") if shutil.which(n)), None)
    if compiler is None or (options and not shutil.which(f"{ARM}-g++")):  # whose headers it takes
        unavailable("clang++ or the cross compiler is not installed")
    folder = ROOT / "build" / f"clang-{name}"
    with locked(folder):
        configure(folder, "-DAKUNU_WERROR=ON", f"-DCMAKE_CXX_COMPILER={compiler}", *options)
    sources = {
        one["file"]: one
        for one in json.loads((folder / "compile_commands.json").read_text())
        if one["file"].startswith((str(ROOT / "cpp/cpu/isa"), str(ROOT / "cpp/cpu/family")))
    }
    assert len(sources) >= 5
    for one in sources.values():
        check_call([*shlex.split(one["command"]), "-fsyntax-only"], cwd=one["directory"])

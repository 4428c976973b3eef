"""Compiling what tests need, under build/; objects come from a cache where ccache is installed."""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parents[2]


def unavailable(reason: str) -> NoReturn:
    """Call `missing.missing`, whose pytest is imported then alone: `make` builds an emulator without it."""
    from missing import missing

    missing(reason)


def tool(name: str) -> str:
    """A program beside this Python (installed from PyPI), or on the path."""
    beside = Path(sys.executable).with_name(name)
    found = str(beside) if beside.exists() else shutil.which(name)
    if not found:
        unavailable(f"{name} is not installed")
    return str(found)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """One test process at a time in a build folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def check_call(command: list[str], **options: object) -> None:
    """Run a build command; its output only when it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)  # type: ignore[call-overload]
    assert done.returncode == 0, f"{shlex.join(command)}\n{done.stdout[-4000:]}{done.stderr[-4000:]}"


def configure(folder: Path, *options: str) -> None:
    """CMake without the Python module, as released."""
    ninja = Path(sys.executable).with_name("ninja")
    generator = ["-G", "Ninja"] if ninja.exists() or shutil.which("ninja") else ["-G", "Unix Makefiles"]
    if ninja.exists():
        generator.append(f"-DCMAKE_MAKE_PROGRAM={ninja}")
    base = [tool("cmake"), "-S", str(ROOT), "-B", str(folder), *generator, "-DCMAKE_BUILD_TYPE=Release"]
    check_call([*base, "-DAKUNU_PYTHON=OFF", *options])


def _newest_input(source: str) -> float:
    inputs = [p for p in (ROOT / "cpp").rglob("*") if p.suffix in (".h", ".inl")] + [ROOT / source]
    return max(p.stat().st_mtime for p in [*inputs, ROOT / "CMakeLists.txt"])


def released_object(source: str, target: str) -> Path | None:
    """The object file that is in the installed package, where pip built it from these sources."""
    found = ROOT.glob(f"build/cp*/CMakeFiles/{target}.dir/{source}.o")
    return next((o for o in found if o.stat().st_mtime >= _newest_input(source)), None)


def released_folder(source: str, target: str) -> Path | None:
    """The folder where pip built the installed package, with that source as it is now."""
    found = released_object(source, target)
    return ROOT / "build" / found.relative_to(ROOT / "build").parts[0] if found else None


def launcher() -> list[str]:
    """What runs the compiler: a cache of objects, or nothing."""
    return shlex.split(os.environ.get("CMAKE_CXX_COMPILER_LAUNCHER", ""))


def compile_command(folder: Path, source: str, target: str) -> list[str]:
    """How a target of a configured folder compiles one source; to be run there."""
    commands = json.loads((folder / "compile_commands.json").read_text())
    return next(
        shlex.split(c["command"])
        for c in commands
        if Path(c["file"]) == ROOT / source and f"/{target}.dir/" in c["command"]
    )


def compile_object(folder: Path, source: str, target: str) -> Path:
    """The object file of one source, as a target of a configured folder has it; kept until sources change."""
    command = launcher() + compile_command(folder, source, target)
    made = folder / f"{target}-{Path(source).parent.name}-{Path(source).stem}.o"
    command[command.index("-o") + 1] = str(made)
    if not made.exists() or made.stat().st_mtime < _newest_input(source):
        check_call(command, cwd=folder)
    return made

"""Build the emulator's libraries with CMake, once per process and only what is out of date."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

from . import compiler

ROOT = Path(__file__).resolve().parents[2]


def build_dir() -> Path:
    """Where the libraries go: ``build/metal-emulator``, or ``AKUNU_METAL_EMULATOR_DIR``."""
    return Path(os.environ.get("AKUNU_METAL_EMULATOR_DIR", ROOT / "build" / "metal-emulator")).absolute()


def _tool(name: str) -> str:
    beside = Path(sys.executable).with_name(name)  # installed from PyPI into the same environment
    found = str(beside) if beside.exists() else shutil.which(name)
    if not found:
        raise FileNotFoundError(f"{name} is needed to build the Metal emulator: pip install {name}")
    return found


def _is_configured(out: Path) -> bool:
    """By a CMake that is still there: a build of the package may use a temporary one."""
    try:
        cache = (out / "CMakeCache.txt").read_text()
    except FileNotFoundError:
        return False
    found = re.search(r"^CMAKE_COMMAND:INTERNAL=(.*)$", cache, re.MULTILINE)
    return (out / "build.ninja").exists() and found is not None and Path(found[1]).exists()


@cache
def build() -> Path:
    """Build what is out of date; returns the folder of the libraries.

    Raises
    ------
    FileNotFoundError
        No clang >= 16, no cmake or no ninja.
    RuntimeError
        The build failed; the message is its log.
    """
    compiler.clang()
    out = build_dir()
    out.mkdir(parents=True, exist_ok=True)
    with (out / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        commands = [[_tool("ninja"), "-C", str(out), "-j2"]]
        if not _is_configured(out):
            ninja = f"-DCMAKE_MAKE_PROGRAM={_tool('ninja')}"
            commands.insert(
                0, [_tool("cmake"), "-G", "Ninja", ninja, "-S", str(Path(__file__).parent), "-B", str(out)]
            )
        for command in commands:
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                raise RuntimeError(
                    f"building the Metal emulator failed:\n{done.stdout[-8000:]}{done.stderr[-2000:]}"
                )
    return out


@cache
def sanitizer_library(sanitizer: str) -> str:
    """Path of clang's shared sanitizer runtime, for LD_PRELOAD."""
    name = f"libclang_rt.{sanitizer}-x86_64.so"
    path = subprocess.run(
        [compiler.clang(), f"-print-file-name={name}"], capture_output=True, text=True
    ).stdout.strip()
    if not Path(path).is_absolute():
        raise FileNotFoundError(f"{name} is not installed (Debian: libclang-rt-19-dev)")
    return path


if __name__ == "__main__":
    build()

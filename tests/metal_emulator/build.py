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


def _configured_ninja(out: Path) -> str | None:
    """What it was configured with, if that is still there: a build of the package may use a temporary one."""
    try:
        cache = (out / "CMakeCache.txt").read_text()
    except FileNotFoundError:
        return None
    tools = dict(re.findall(r"^(CMAKE_COMMAND|CMAKE_MAKE_PROGRAM):[A-Z]+=(.*)$", cache, re.MULTILINE))
    complete = len(tools) == 2 and all(Path(tool).exists() for tool in tools.values())
    return tools["CMAKE_MAKE_PROGRAM"] if complete and (out / "build.ninja").exists() else None


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
        commands = []
        ninja = _configured_ninja(out)  # another version would not trust this one's log, and build all again
        if ninja is None:
            ninja = _tool("ninja")
            source = str(Path(__file__).parent)
            commands.append(
                [_tool("cmake"), "-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={ninja}", "-S", source, "-B", str(out)]
            )
        commands.append([ninja, "-C", str(out), "-j2"])
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

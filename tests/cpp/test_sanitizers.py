"""The C++ drivers under AddressSanitizer and UBSan, and what threads share under ThreadSanitizer.

They are built with CMake in `build/asan` and `build/tsan`, without optimisation and for few instruction sets:
less than four minutes of processor time when nothing is there yet.
"""

from __future__ import annotations

import functools
import os
import platform
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from kernels.toolchain import ROOT, locked, tool, unavailable
from metal_emulator.build import sanitizer_library
from metal_emulator.compiler import clang

X86 = platform.machine() in ("x86_64", "AMD64")

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]
#: One turn each, for which its drivers are built.
ASAN, TSAN = pytest.mark.in_turn("asan"), pytest.mark.in_turn("tsan")


@dataclass(frozen=True)
class Build:
    """One build folder: its sanitizers, instruction sets, and programs."""

    sanitizers: str
    isas: str
    programs: tuple[str, ...]


BUILDS = {
    "asan": Build(
        "address,undefined",
        "avx2" if X86 else "generic",
        (
            "canary",
            "cgroup_test",
            "half_test",
            "gguf_fuzz",
            "safetensors_fuzz",
            "packed_fuzz",
            "whisper_fuzz",
            "file_source_test",
            "engine_smoke",
            "fault_test",
            "memory_test",
            "pages_test",
            "sampler_test",
            "topology_test",
            "workspace_test",
            "kernel_table_driver",
            *(["schedule_test"] if platform.system() == "Linux" else []),
        ),
    ),
    "tsan": Build("thread", "generic", ("canary", "pool_test", "sharing_test")),
}
OPTIONS = {
    "ASAN_OPTIONS": "detect_stack_use_after_return=1",
    "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
    "TSAN_OPTIONS": "halt_on_error=1",
}


def compiler() -> str:
    """Clang where it has its runtimes: two thirds of GCC's time, and a quarter for what runs under TSan."""
    if chosen := os.environ.get("CXX"):
        return chosen
    try:
        sanitizer_library("asan")
        return clang()
    except FileNotFoundError:
        return "c++"


@functools.cache
def build(name: str) -> Path:
    """The folder with the programs of `BUILDS[name]`, up to date."""
    cmake, ninja = tool("cmake"), tool("ninja")
    if not shutil.which(compiler()):
        unavailable("the sanitizer drivers need a C++ compiler")
    spec, folder = BUILDS[name], ROOT / "build" / name
    generator = ["-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={ninja}"]
    configure = [
        *(cmake, "-S", ROOT, "-B", folder, *generator),
        *("-DAKUNU_PYTHON=OFF", "-DAKUNU_TESTS=ON", f"-DAKUNU_SANITIZE={spec.sanitizers}"),
        *(f"-DAKUNU_ISAS={spec.isas}", "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_FLAGS_DEBUG=-O0"),
        *("-DCMAKE_UNITY_BUILD=ON", f"-DCMAKE_CXX_COMPILER={compiler()}"),
    ]
    with locked(folder):
        for command in (
            configure,
            [cmake, "--build", folder, "-j2", "--target", "canary"],
            [cmake, "--build", folder, "-j2", "--target", *spec.programs],
        ):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            log = done.stdout[-6000:] + done.stderr[-2000:]
            if done.returncode and "canary" in command[-1:] and "cannot find" in log:
                unavailable(f"the compiler has no runtime library for -fsanitize={spec.sanitizers}:\n{log}")
            assert done.returncode == 0, log
    return folder


def run(name: str, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a program of a build."""
    command = [str(build(name) / program), *arguments]
    env = {key: value for key, value in os.environ.items() if key != "AKUNU_CPU_ISA"} | OPTIONS

    def once(command: list[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, capture_output=True, text=True, env=env, timeout=1200, check=False)

    done = once(command)
    if "unexpected memory mapping" in done.stderr and shutil.which("setarch"):
        # Older ThreadSanitizers cannot live with the many random bits of newer kernels' addresses.
        done = once(["setarch", "-R", *command])
    return done


@pytest.mark.parametrize(
    ("name", "fault", "report"),
    [
        # First: so TSan has its turn beside the cross build for macOS, and ASan, which takes longer, another.
        pytest.param("tsan", "race", "data race", marks=TSAN),
        pytest.param("asan", "overflow", "heap-buffer-overflow", marks=ASAN),
        pytest.param("asan", "undefined", "signed integer overflow", marks=ASAN),
        pytest.param("asan", "device", "null pointer", marks=ASAN),
    ],
)
def test_the_sanitizer_is_on(name: str, fault: str, report: str) -> None:
    done = run(name, "canary", fault)
    assert done.returncode != 0
    assert report in done.stderr


@pytest.mark.parametrize(
    ("name", "program", "arguments"),
    [
        pytest.param("asan", "cgroup_test", (), marks=ASAN),
        pytest.param("asan", "half_test", (), marks=ASAN),
        pytest.param("asan", "gguf_fuzz", ("--mutations", "4000"), marks=ASAN),
        pytest.param("asan", "safetensors_fuzz", ("--mutations", "8000"), marks=ASAN),
        pytest.param("asan", "packed_fuzz", ("--mutations", "8000"), marks=ASAN),
        pytest.param("asan", "whisper_fuzz", ("--mutations", "8000"), marks=ASAN),
        pytest.param("asan", "file_source_test", (), marks=ASAN),
        pytest.param("asan", "sampler_test", (), marks=ASAN),
        pytest.param("asan", "engine_smoke", (), marks=ASAN),
        pytest.param("asan", "fault_test", (), marks=ASAN),
        pytest.param("asan", "topology_test", (), marks=ASAN),
        pytest.param("asan", "workspace_test", (), marks=ASAN),
        pytest.param("asan", "memory_test", (), marks=ASAN),
        pytest.param("asan", "pages_test", (), marks=ASAN),
        pytest.param(
            "asan",
            "schedule_test",
            (),
            marks=[
                ASAN,
                pytest.mark.skipif(platform.system() != "Linux", reason="CUDA is built on Linux"),
            ],
        ),
        pytest.param("tsan", "pool_test", (), marks=TSAN),
        pytest.param("tsan", "sharing_test", (), marks=TSAN),
    ],
)
def test_drivers_are_clean(name: str, program: str, arguments: tuple[str, ...]) -> None:
    done = run(name, program, *arguments)
    assert done.returncode == 0, (
        f"exit status {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-6000:]}"
    )

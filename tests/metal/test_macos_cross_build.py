"""The extension for macOS on arm64, compiled and linked here: zig has the compiler, we the declarations.

It shows that the Objective-C++ and all else compile for the target without warnings, and that what it takes
from the system is what the stubs of Apple's libraries list. It cannot be loaded here.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from missing import missing

ROOT = Path(__file__).resolve().parents[2]
HERE = ROOT / "tests" / "metal" / "macos"

pytestmark = [pytest.mark.long, pytest.mark.in_turn("macos"), pytest.mark.timeout(1800)]

# What zig's driver does not take as clang does: an -march of Arm, a bundle, room for longer names. At its
# first link it would compile its own C++ library and runtimes, two minutes of processor time: a Mac has them,
# and they are looked up when the module is loaded. Only a link that is not optimised wants one for UBSan.
WRAPPER = """#!{python}
import os, sys
swap = {{"-march=armv8.2-a+dotprod": "-mcpu=generic+v8_2a+dotprod", "-bundle": "-shared"}}
args = [swap.get(a, a) for a in sys.argv[1:] if a != "-Wl,-headerpad_max_install_names"]
if "-c" not in args:
    args += {link!r}
os.execv(sys.executable, [sys.executable, "-m", "ziglang", *{command!r}, *args])
"""
CHECKS_OFF = "-fno-sanitize=all"  # zig's own, where nothing is optimised
TOOLS = {
    "zig-c++": (["c++", "-target", "aarch64-macos.13.0", CHECKS_OFF], ["-O2", "-nostdlib++", "-rtlib=none"]),
    "zig-ar": (["ar"], []),
    "zig-ranlib": (["ranlib"], []),
}


@pytest.fixture(scope="module")
def module() -> Path:
    """The linked extension. The build folder is kept: the first build takes minutes."""
    try:
        import pybind11
        import ziglang  # noqa: F401
    except ImportError as e:
        missing(f"the cross build needs {e.name}: pip install ziglang pybind11 cmake ninja")
    folder = ROOT / "build" / "macos-arm64"
    folder.mkdir(parents=True, exist_ok=True)
    for name, (command, link) in TOOLS.items():
        tool = folder / name
        tool.write_text(WRAPPER.format(python=sys.executable, command=command, link=link))
        tool.chmod(0o755)
    cache = str(ROOT / ".cache" / "zig")  # of contents, as ccache's: which does not know this compiler
    env = dict(os.environ, AKUNU_ZIG=str(folder), ZIG_GLOBAL_CACHE_DIR=cache, ZIG_LOCAL_CACHE_DIR=cache)
    env.pop("CMAKE_CXX_COMPILER_LAUNCHER", None)
    env["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{env['PATH']}"
    # Debian's pyconfig.h chooses one by the target, and knows no macOS: here it is this machine's.
    include, headers = Path(sysconfig.get_path("include")), folder / "python"
    shutil.copytree(include, headers, dirs_exist_ok=True)
    own = include.parent / str(sysconfig.get_config_var("MULTIARCH")) / include.name / "pyconfig.h"
    if own.exists():
        shutil.copy(own, headers / "pyconfig.h")
    configure = [
        "cmake", "-S", str(ROOT), "-B", str(folder), "-G", "Ninja",
        f"-DCMAKE_TOOLCHAIN_FILE={HERE / 'toolchain.cmake'}", "-DCMAKE_BUILD_TYPE=Debug",
        "-DCMAKE_UNITY_BUILD=ON", "-DAKUNU_METAL=ON", "-DAKUNU_WERROR=ON",
        # Nothing of it runs: no optimising. tests/kernels compiles the kernels for Arm.
        "-DAKUNU_ISAS=generic", "-DAKUNU_KERNEL_LEVEL=-O0", "-DCMAKE_CXX_FLAGS_DEBUG=-O0",
        f"-DPython_EXECUTABLE={sys.executable}", f"-DPython_INCLUDE_DIR={headers}",
        f"-Dpybind11_DIR={pybind11.get_cmake_dir()}",
    ]  # fmt: skip
    for command in (configure, ["cmake", "--build", str(folder), "--target", "_core", "-j", "2"]):
        done = subprocess.run(command, env=env, capture_output=True, text=True)
        assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    return next(folder.glob("_core*.so"))


def test_the_extension_builds_for_macos(module: Path) -> None:
    data = module.read_bytes()
    assert data[:8] == bytes.fromhex("cffaedfe0c000001")  # Mach-O, 64 bits, arm64
    assert b"PyInit__core" in data
    frameworks = set(re.findall(rb"/System/Library/Frameworks/(\w+)\.framework", data))
    assert frameworks == {b"Metal", b"Foundation", b"IOKit", b"CoreFoundation", b"CoreGraphics"}


# Names of Apple's libraries; those of the C and C++ libraries come with zig.
APPLE = re.compile(
    rb"(?<=\0)(_(?:MTL|CF|IO|kCF|kIO|NS)[A-Za-z]+|_objc_[a-zA-Z]+|_OBJC_CLASS_\$_\w+|___CF[A-Za-z]+)(?=\0)"
)


def test_the_stubs_list_exactly_what_is_used(module: Path) -> None:
    """What a stub lacks would be looked up when the module is loaded, in no framework in particular."""
    listed = set()
    for stub in HERE.glob("stubs/**/*.tbd"):
        text = stub.read_text()
        for names in re.findall(r"^ *symbols: \[(.*)\]", text, re.M):
            listed |= set(re.findall(r"\w+", names))
        for names in re.findall(r"objc-classes: \[(.*)\]", text):
            listed |= {f"_OBJC_CLASS_$_{name}" for name in re.findall(r"\w+", names)}
    assert {name.decode() for name in APPLE.findall(module.read_bytes())} == listed

"""The same table where Python does not run: Arm kernels under emulation, AVX-VNNI, sanitizers.

tests/cpp/kernel_table_driver.cpp reads the problems from a file. The Arm build is cross-compiled in
`build/arm`, as released: a minute or two of processor time when nothing is there yet.
"""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path

import pytest

from cpp import test_sanitizers as sanitizers

from . import case_file
from .cases import CHECKS
from .devices import Target, lab, unsupported
from .toolchain import ROOT, check_call, compile_command, configure, launcher, locked, released_folder, tool

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]

ON_ARM = pytest.mark.in_turn("arm")  # one turn, for which the driver is built
ARM_COMPILER = "aarch64-linux-gnu-g++"
WITHOUT_DOTPROD = "cortex-a53"
WITHOUT_I8MM = "cortex-a76"


@pytest.fixture(scope="session")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The whole table as a file."""
    path = tmp_path_factory.mktemp("kernels") / "table.bin"
    traits = lab(Target("cpu"))
    case_file.write(path, ((c.id, c.build(traits)) for c in CHECKS))
    return path


@pytest.fixture(scope="session")
def arm_driver() -> Path:
    """The driver for Arm."""
    folder = ROOT / "build" / "arm"
    cross = ["-DCMAKE_SYSTEM_NAME=Linux", "-DCMAKE_SYSTEM_PROCESSOR=aarch64"]
    compiler = tool(ARM_COMPILER)
    with locked(folder):
        configure(folder, "-DAKUNU_TESTS=ON", "-DAKUNU_WERROR=ON", f"-DCMAKE_CXX_COMPILER={compiler}", *cross)
        check_call([tool("cmake"), "--build", str(folder), "-j2", "--target", "kernel_table_driver"])
    return folder / "kernel_table_driver"


def emulate(driver: Path, cpu: str, table: Path, isa: str) -> subprocess.CompletedProcess[str]:
    """Run the driver on an emulated processor."""
    root = ["-L", "/usr/aarch64-linux-gnu"]  # where Debian's cross compiler keeps its libraries
    command = [tool("qemu-aarch64"), "-cpu", cpu, *root, str(driver), str(table), isa]
    return subprocess.run(command, capture_output=True, text=True, timeout=1200, check=False)


@ON_ARM
@pytest.mark.parametrize(
    ("cpu", "isa"),
    [
        ("max", "neon_i8mm"),
        (WITHOUT_I8MM, "neon_dotprod"),
        (WITHOUT_DOTPROD, "generic"),  # on a processor that has nothing else
    ],
)
def test_the_table_on_arm(cpu: str, isa: str, table: Path, arm_driver: Path) -> None:
    done = emulate(arm_driver, cpu, table, isa)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert f"{len(CHECKS)} problems, 0 failed on {isa}" in done.stdout


@ON_ARM
@pytest.mark.parametrize(
    ("cpu", "isa"),
    [(WITHOUT_DOTPROD, "neon_dotprod"), (WITHOUT_I8MM, "neon_i8mm"), (WITHOUT_DOTPROD, "neon_i8mm")],
)
def test_a_set_is_not_used_where_the_processor_lacks_it(
    cpu: str, isa: str, table: Path, arm_driver: Path
) -> None:
    done = emulate(arm_driver, cpu, table, isa)
    assert (done.returncode, done.stdout) == (3, f"this processor does not support {isa}\n")


@sanitizers.ASAN
@pytest.mark.skipif(
    platform.machine() not in ("x86_64", "AMD64") or "avx2" in unsupported(), reason="an x86 build with AVX2"
)
def test_the_table_under_sanitizers(table: Path) -> None:
    done = sanitizers.run("asan", "kernel_table_driver", str(table), "avx2")
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    assert f"{len(CHECKS)} problems, 0 failed on avx2" in done.stdout


@pytest.fixture(scope="session")
def evex_driver() -> Path:
    """The driver with `avx2_vnni` for processors that have EVEX's form of its one instruction alone.

    The kernels are compiled as released. The assembler then takes the other form, since `{vex}` is gone.
    """
    source, target, own = "cpp/cpu/isa/avx2_vnni.cpp", "akunu_isa_avx2_vnni", ROOT / "build" / "evex"
    text, made, driver = own / "avx2_vnni.s", own / "avx2_vnni.o", own / "kernel_table_driver"
    with locked(own):
        folder = released_folder(source, target)
        if folder is None:
            folder = own
            configure(folder, "-DAKUNU_WERROR=ON")
            check_call([tool("cmake"), "--build", str(folder), "-j2", "--target", "akunu_core"])
        compiler, *options = compile_command(folder, source, target)
        options[options.index("-o") + 1] = str(text)
        header = ROOT / "tests/cpp/says_avx_vnni.h"
        check_call([*launcher(), compiler, *options, "-S", "-include", str(header)], cwd=folder)
        compiled = text.read_text()
        assert compiled.count("{vex} vpdpbusd") > 100
        text.write_text(compiled.replace("{vex} ", ""))
        check_call([compiler, "-c", str(text), "-o", str(made)])
        # What is there already is not taken from the library.
        parts = [str(ROOT / "tests/cpp/kernel_table_driver.cpp"), str(made), str(folder / "libakunu_core.a")]
        search = ["-std=c++20", f"-I{ROOT}", f"-I{ROOT / 'cpp'}"]
        check_call([compiler, *search, *parts, "-pthread", "-ldl", "-o", str(driver)])
    return driver


@pytest.mark.skipif(
    "avx2_vnni" not in unsupported() or "avx512_vnni" in unsupported(),
    reason="a processor with AVX-512's VNNI and no AVX-VNNI",
)
def test_the_table_on_avx_vnni(table: Path, evex_driver: Path) -> None:
    done = subprocess.run(
        [str(evex_driver), str(table), "avx2_vnni"], capture_output=True, text=True, timeout=1200, check=False
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert f"{len(CHECKS)} problems, 0 failed on avx2_vnni" in done.stdout


@ON_ARM
def test_the_driver_sees_what_is_wrong(tmp_path: Path, arm_driver: Path) -> None:
    traits = lab(Target("cpu"))
    good = next(c for c in CHECKS if c.builder == "norm" and c.get("formats") == ("f32", "q8"))
    bad_value, bad_activation, bad_input = (good.build(traits) for _ in range(3))
    next(c for c in bad_value.checks if c.buffer == "out_f32").expected[0, 0] += 0.01
    next(c for c in bad_activation.checks if c.buffer == "out_q8").expected[0, 0] += 1
    bad_input.buffers["out_f32"], bad_input.buffers["x"] = (
        case_file.Array(bad_input.buffers["x"].data, False),  # type: ignore[union-attr]
        case_file.Array(bad_input.buffers["x"].data, True),  # type: ignore[union-attr]
    )
    bad_input.checks.clear()
    path = tmp_path / "bad.bin"
    problems = {
        "good": good.build(traits),
        "value": bad_value,
        "activation": bad_activation,
        "input": bad_input,
    }
    case_file.write(path, problems.items())
    done = emulate(arm_driver, "max", path, "generic")
    lines = done.stdout.splitlines()
    assert done.returncode == 1
    assert lines[-1] == "4 problems, 3 failed on generic"
    assert any(line.startswith("value: buffer 2: NMSE") for line in lines)
    assert any(line.startswith("activation: buffer 3: ") for line in lines)
    assert any("input was changed" in line for line in lines if line.startswith("input: "))
    path.write_bytes(path.read_bytes()[:-1])
    done = emulate(arm_driver, "max", path, "generic")
    assert done.returncode == 2 and "truncated" in done.stderr

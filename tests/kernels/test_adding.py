"""docs/adding-a-kernel.md as printed: its example, put where it says, builds and runs."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from .toolchain import ROOT, check_call, tool

STEP = re.compile(
    r"^`(?P<file>[\w/.]+)`, (?P<where>before|after) `(?P<anchor>.+?)`[^`]*\n\n```cpp\n(?P<code>.*?)```$",
    re.MULTILINE | re.DOTALL,
)

RUN = """
#include <cstdio>
#include <vector>

#include "cpu/cpu_device.h"

using namespace akunu;

int main() {
    cpu::CpuDevice device(2);
    DeviceBuffer memory(device, 4 * 3 * 37, MemoryKind::kShared);
    auto* x = memory.at().host<float>();
    for (int i = 0; i < 3 * 37; ++i) x[i] = static_cast<float>(i);

    DispatchCmd command;
    command.op = op_named("scale");
    command.set_params(ScaleParams{.rows = 0, .dim = 37, .factor = -1.5f});
    command.n_buffers = 1;
    command.buffers[0] = memory.at();
    const FieldInfo* rows = find_field(op_info(command.op), "rows");
    command.patches[command.n_patches++] = {rows->offset, PatchSource::kRows};
    const Cost cost = op_info(command.op).cost(command);

    DispatchTable table;
    table.commands = {command};
    table.labels.resize(1);
    table.max_rows = 3;
    const auto program = device.compile(std::move(table));
    const Segment segment{program.get(), {.rows = 2}};
    Control control;
    device.replay({.segments = {&segment, 1}}, control, [] { return false; }, {});
    for (int i = 0; i < 3 * 37; ++i) {
        const float wanted = static_cast<float>(i) * (i < 2 * 37 ? -1.5f : 1.0f);
        if (x[i] != wanted) return std::printf("element %d: %g, expected %g\\n", i, x[i], wanted), 1;
    }
    std::printf("%g bytes and %g FLOPs for each row\\n", cost.bytes_per_row, cost.flops_per_row);
}
"""


def follow(folder: Path) -> int:
    """Do what the page says; returns how many steps that were."""
    steps = list(STEP.finditer((ROOT / "docs/adding-a-kernel.md").read_text(encoding="utf-8")))
    for step in steps:
        path = folder / step["file"]
        text = path.read_text(encoding="utf-8")
        anchor = step["anchor"]
        assert text.count(anchor) >= 1, f"{step['file']} has no {anchor!r}"
        at = text.index(anchor)
        if step["where"] == "after":
            at = text.index("\n", at) + 1
        path.write_text(text[:at] + step["code"] + text[at:], encoding="utf-8")
    return len(steps)


CMAKE = """
file(GLOB sources cpp/core/*.cpp cpp/cpu/*.cpp)
add_executable(run run.cpp ${sources} cpp/cpu/isa/generic.cpp cpp/cpu/family/generic.cpp
  $<TARGET_OBJECTS:akunu_quantize_generic>)
target_link_libraries(run PRIVATE akunu_options Threads::Threads)
"""


@pytest.mark.long
@pytest.mark.in_turn
def test_the_example_builds_and_runs(tmp_path: Path) -> None:
    for name in ("cpp", "metal", "cmake", "CMakeLists.txt", "pyproject.toml"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, tmp_path / name)
    assert follow(tmp_path) == 7
    (tmp_path / "run.cpp").write_text(RUN)
    with (tmp_path / "CMakeLists.txt").open("a") as cmake:
        cmake.write(CMAKE)
    build, ninja = tmp_path / "build", tool("ninja")
    options = ["AKUNU_PYTHON=OFF", "AKUNU_ISAS=generic", "AKUNU_WERROR=ON", "AKUNU_SANITIZE=undefined"]
    options += ["CMAKE_BUILD_TYPE=Debug", f"CMAKE_MAKE_PROGRAM={ninja}"]
    check_call(
        [tool("cmake"), "-S", str(tmp_path), "-B", str(build), "-G", "Ninja", *(f"-D{o}" for o in options)]
    )
    check_call([tool("cmake"), "--build", str(build), "-j2", "--target", "run"])
    done = subprocess.run([build / "run"], capture_output=True, text=True, check=False)
    told = done.stdout + done.stderr
    assert (done.returncode, told) == (0, "296 bytes and 37 FLOPs for each row\n")

"""What the Makefile does beyond calling tools."""

from __future__ import annotations

import json
import os
import platform
import re
import shlex
import subprocess
import tomllib
from pathlib import Path

import pytest

from akunu import _core
from kernels.toolchain import configure

ROOT = Path(__file__).resolve().parents[1]


def test_make_dev_links_the_compiled_module_in_a_fresh_clone(tmp_path: Path) -> None:
    recipe = subprocess.run(
        ["make", "-n", "dev"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.splitlines()
    links = [line for line in recipe if "ln -s" in line or line.startswith("mkdir")]
    built = [tmp_path / "build" / "dev" / name for name in ("_core.cpython.so", "libakunu.so")]
    header = tmp_path / "cpp" / "c_api" / "akunu.h"
    package = tmp_path / "python" / "akunu"
    package.mkdir(parents=True)
    for path in (*built, header):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"there")
    for line in links:
        subprocess.run(line, shell=True, cwd=tmp_path, check=True)
    found = {path.resolve() for path in package.rglob("*") if path.is_symlink()}
    assert found == {*built, header}


def test_every_test_runs_in_test_or_in_test_long_and_all_in_test_all() -> None:
    def choices(*targets: str) -> list[list[str]]:
        recipe = subprocess.run(
            ["make", "-n", *targets], cwd=ROOT, check=True, capture_output=True, text=True
        ).stdout
        runs = [shlex.split(line) for line in recipe.splitlines() if " -m pytest " in line]
        return [run[run.index("worksteal") + 1 :] for run in runs]

    assert choices("test", "test-long") == [["-m", "not long"], ["-m", "long"]]
    assert choices("test-all") == [[]]


@pytest.mark.parametrize(
    ("goal", "parts"), [(["test"], 6), (["test", "TESTARGS=-k name"], 1), (["test-all"], None)], ids=str
)
def test_make_test_draws_of_tables_where_it_runs_everything(goal: list[str], parts: int | None) -> None:
    """A person's own choice stands, and a part of the tests is run with every case."""
    recipe = subprocess.run(
        ["make", "-n", *goal], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.splitlines()
    (line,) = [line for line in recipe if " -m pytest " in line]
    asked = f"{line.split('$(')[0].rpartition(' .venv')[0] or ':'}; echo $AKUNU_TEST_PART"
    for given in ("", "5"):
        own = {key: value for key, value in os.environ.items() if key != "AKUNU_TEST_PART"}
        own |= {"AKUNU_TEST_PART": given} if given else {}
        told = subprocess.run(["sh", "-c", asked], env=own, check=True, capture_output=True, text=True).stdout
        assert told.strip() == (given or (str(parts) if parts else ""))


@pytest.mark.parametrize(("goal", "extras"), [("test", ["test"]), ("check", ["test", "dev"])])
def test_make_test_installs_what_tests_need_alone(goal: str, extras: list[str]) -> None:
    recipe = subprocess.run(
        ["make", "-n", "-B", goal], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    asked = [extra for extra in ("test", "dev") if f"p['optional-dependencies']['{extra}']" in recipe]
    assert asked == extras


def test_ci_runs_all_tests() -> None:
    lines = (ROOT / ".ci" / "run").read_text().splitlines()
    made = {word for line in lines if line.startswith("make ") for word in line.split()[1:]}
    assert {"check", "test-all", "test-real", "wheel"} <= made


@pytest.mark.parametrize(("ci", "sets"), [("", "native"), ("true", "")])
def test_the_package_of_tests_has_the_machine_s_instruction_sets_and_in_ci_all(ci: str, sets: str) -> None:
    recipe = subprocess.run(
        ["make", "-n", "-B", "wheel"],
        cwd=ROOT,
        env={key: value for key, value in os.environ.items() if key != "ISAS"} | {"CI": ci},
        check=True,
        capture_output=True,
        text=True,
    ).stdout.replace("\\\n", " ")
    (module,) = [shlex.split(line) for line in recipe.splitlines() if " -m pip install --no-deps" in line]
    (wheel,) = [shlex.split(line) for line in recipe.splitlines() if " -m pip wheel " in line]
    assert f"--config-settings=cmake.define.AKUNU_ISAS={sets}" in module
    assert not any("AKUNU_ISAS" in word for word in wheel)
    # The same CMake, whose commands are then those that the cache of objects knows.
    assert module[:2] == wheel[:2] and module[1].startswith("PATH=")
    # What one of them has chosen in a build folder does not stay for another.
    assert (
        tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["scikit-build"]["cmake"]["define"][
            "AKUNU_ISAS"
        ]
        == ""
    )


@pytest.mark.skipif(platform.machine() != "x86_64" or platform.system() != "Linux", reason="of x86 on Linux")
def test_native_sets_are_those_that_the_machine_runs(tmp_path: Path) -> None:
    configure(tmp_path, "-DAKUNU_ISAS=native")
    compiled = {Path(one["file"]) for one in json.loads((tmp_path / "compile_commands.json").read_text())}
    found = {path.stem for path in compiled if path.parent == ROOT / "cpp/cpu/isa"}
    (flags, *_) = [
        line.split() for line in Path("/proc/cpuinfo").read_text().splitlines() if line[:5] == "flags"
    ]
    wanted = {"generic", "avx2"}
    if "avx512f" in flags:
        wanted.add("avx512_vnni" if "avx512_vnni" in flags else "avx512")
    elif "avx_vnni" in flags:
        wanted.add("avx2_vnni")
    wanted |= {"avx512_amx"} if "amx_int8" in flags else set()
    assert found == wanted


@pytest.mark.skipif(platform.machine() != "x86_64" or platform.system() != "Linux", reason="of x86 on Linux")
@pytest.mark.parametrize("sets", ["native", ""])
def test_what_a_machine_chooses_is_optimised_as_released(tmp_path: Path, sets: str) -> None:
    """A build for one machine optimises its other sets little; any build `generic`, but its quantisers."""
    configure(tmp_path, f"-DAKUNU_ISAS={sets}")
    found: dict[str, str] = {}
    for one in json.loads((tmp_path / "compile_commands.json").read_text()):
        if target := re.search(r" -o CMakeFiles/akunu_((?:isa|family|quantize)_\w+)\.dir", one["command"]):
            found[target[1]] = re.findall(r" (-O\d)", one["command"])[-1]
    best = next(name for name, supported in _core.cpu_instruction_sets() if supported)
    if best == "generic":
        pytest.skip("this processor has no set but `generic`, which no build optimises")
    family = best.partition("_")[0]
    chosen = {level for name, level in found.items() if f"_{family}" in name}
    others = {level for name, level in found.items() if f"_{family}" not in name and "generic" not in name}
    assert f"isa_{best}" in found and chosen == {"-O3"}
    assert others <= {"-O1" if sets else "-O3"}
    assert found["isa_generic"] == found["family_generic"] == "-O1"
    assert found["quantize_generic"] == ("-O1" if sets else "-O3")

"""What the Makefile does beyond calling tools."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

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


def test_ci_runs_all_tests() -> None:
    lines = (ROOT / ".ci" / "run").read_text().splitlines()
    made = {word for line in lines if line.startswith("make ") for word in line.split()[1:]}
    assert {"check", "test-all", "test-real", "wheel"} <= made

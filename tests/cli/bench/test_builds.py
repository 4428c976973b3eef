"""bench/builds.py: two builds take turns on every test, and what they computed is compared."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from akunu.base.errors import AkunuError
from bench import builds

ROOT = Path(builds.__file__).parents[1]


def test_a_ratio_is_the_median_of_the_rounds_ratios() -> None:
    row = builds.Row("m", "t", here=[1.0, 2.0, 4.0], other=[2.0, 2.0, 1.0])
    assert row.ratios == [2.0, 1.0, 0.25]
    assert row.cells() == ["m", "t", "2000.00", "2000.00", "1.000", "0.250-2.000", "3", "yes"]


def test_two_builds_run_every_test_as_often_and_compute_the_same() -> None:
    asked = {
        "kind": "text", "model": "ember", "device": "cpu", "threads": 1, "prompts": [40], "tokens": 3,
        "streams": [1, 2],
    }  # fmt: skip
    rows = builds.compare(builds.HERE, asked, rounds=2, seconds=600, order=random.Random(0))
    assert [row.test for row in rows] == ["prompt of 40", "3 tokens", "3 tokens of 2"]
    for row in rows:
        assert row.equal
        assert len(row.here) == len(row.other) == 2
        assert all(seconds > 0 for seconds in row.here + row.other)


def test_a_build_runs_the_package_of_its_folder(tmp_path: Path) -> None:
    (tmp_path / "akunu").mkdir()
    (tmp_path / "akunu" / "__init__.py").write_text("raise SystemExit('another package')")
    build = builds.Build(tmp_path)
    try:
        with pytest.raises(AkunuError, match="ended at"):
            build.ask({"open": {"kind": "vectors", "model": "ember"}})
    finally:
        build.close()


def test_results_that_differ_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    hashes = iter(["a", "b"])

    def ask(_: builds.Build, request: dict[str, object]) -> dict[str, object]:
        if "open" in request:
            return {"tests": ["t"]}
        return {"seconds": 1.0, "hash": next(hashes, "a")}

    monkeypatch.setattr(builds.Build, "ask", ask)
    (row,) = builds.compare(builds.HERE, {"model": "m"}, rounds=1, seconds=0, order=random.Random(0))
    assert row.cells()[-1] == "no"


def test_the_command_prints_a_table_and_writes_seconds(tmp_path: Path) -> None:
    (tmp_path / "python").symlink_to(builds.HERE, target_is_directory=True)
    report = tmp_path / "report.json"
    done = subprocess.run(
        [sys.executable, "-m", "bench.builds", tmp_path, "ember", "-t", "1", "-p", "8", "-n", "2",
         "--streams", "1", "--rounds", "1", "--json", report],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "prompt of 8" in done.stdout
    assert [row["test"] for row in json.loads(report.read_text())] == ["prompt of 8", "2 tokens"]


def test_a_folder_without_a_package_is_refused(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bench.builds", tmp_path, "ember"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode != 0
    assert "expected another checkout" in done.stderr

"""Thousands of spoiled files: an AkunuError or success, never a crash, a hang or an allocation bomb."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import akunu


def test_spoiled_files_never_crash() -> None:
    package_parent = Path(next(iter(akunu.__path__))).parent
    result = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("fuzz_worker.py"))],
        env={"PYTHONPATH": str(package_parent)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == 0, f"exit status {result.returncode}\n{result.stderr[-4000:]}"
    counts = json.loads(result.stdout)
    assert sum(sum(outcome.values()) for outcome in counts.values()) > 20_000
    assert counts["truncations"]["accepted"] == 0
    for kind in ("byte_changes", "lying_fields", "random_changes", "bombs", "split"):
        assert counts[kind]["accepted"] > 0 and counts[kind]["refused"] > 0, (kind, counts)

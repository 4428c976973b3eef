"""Thousands of spoiled files: an AkunuError or success, never a crash, a hang or an allocation bomb."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from children import environment

pytestmark = pytest.mark.long


def counts_of(worker: str) -> dict[str, dict[str, int]]:
    """What came of the cases of a worker, which must not have crashed."""
    result = subprocess.run(
        [sys.executable, str(Path(__file__).with_name(worker))],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == 0, f"exit status {result.returncode}\n{result.stderr[-4000:]}"
    counts: dict[str, dict[str, int]] = json.loads(result.stdout)
    return counts


def test_spoiled_gguf_files_never_crash() -> None:
    counts = counts_of("fuzz_worker.py")
    assert sum(sum(outcome.values()) for outcome in counts.values()) > 20_000
    assert counts["truncations"]["accepted"] == 0
    for kind in ("byte_changes", "lying_fields", "random_changes", "bombs", "split"):
        assert counts[kind]["accepted"] > 0 and counts[kind]["refused"] > 0, (kind, counts)


def test_spoiled_safetensors_files_never_crash() -> None:
    counts = counts_of("safetensors_fuzz_worker.py")
    assert sum(sum(outcome.values()) for outcome in counts.values()) > 12_000
    assert counts["truncations"]["accepted"] == 0
    assert counts["lengths"]["accepted"] == 1
    for kind in ("byte_changes", "random_changes", "lying_numbers", "bombs"):
        assert counts[kind]["accepted"] > 0 and counts[kind]["refused"] > 0, (kind, counts)


def test_spoiled_files_of_whisper_cpp_never_crash() -> None:
    counts = counts_of("whisper_fuzz_worker.py")
    assert sum(sum(outcome.values()) for outcome in counts.values()) > 6000
    assert counts["truncations"]["accepted"] == 3  # after the vocabulary, and after each tensor but the last
    for kind in ("byte_changes", "lying_fields", "random_changes", "bombs"):
        assert counts[kind]["accepted"] > 0 and counts[kind]["refused"] > 0, (kind, counts)


def test_spoiled_packed_matrices_never_crash() -> None:
    counts = counts_of("packed_fuzz_worker.py")
    assert sum(sum(outcome.values()) for outcome in counts.values()) > 3000
    for form, outcome in counts.items():
        assert outcome["accepted"] > 0 and outcome["refused"] > 0, (form, counts)

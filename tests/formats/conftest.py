from __future__ import annotations

import os
from pathlib import Path

import pytest

_ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def vocab_dir() -> Path:
    """Folder of real GGUF vocabularies; skips without the shared test data, but fails in CI."""
    data = Path(os.environ.get("AKUNU_TEST_DATA", _ROOT.parent / "shared" / "data"))
    if not (data / "vocab").is_dir():
        message = f"no test data in {data}; set AKUNU_TEST_DATA"
        if "CI" in os.environ:
            pytest.fail(message)
        pytest.skip(message)
    return data / "vocab"

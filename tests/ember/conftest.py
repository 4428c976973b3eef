from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def ember_path() -> Path:
    return ROOT / "python" / "akunu" / "models" / "ember.gguf"

"""Paths of the ember tools, which are scripts beside the package."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "ember"))


@pytest.fixture(scope="session")
def ember_path() -> Path:
    return ROOT / "python" / "akunu" / "models" / "ember.gguf"

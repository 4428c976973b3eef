"""Paths of the tools that made ember-speech, which are a package beside Akunu's."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))


@pytest.fixture(scope="session")
def speech_path() -> Path:
    return ROOT / "python" / "akunu" / "models" / "ember-speech.bin"

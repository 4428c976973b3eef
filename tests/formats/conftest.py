from __future__ import annotations

from pathlib import Path

import pytest

from missing import data


@pytest.fixture(scope="session")
def vocab_dir() -> Path:
    """Folder of real GGUF vocabularies."""
    return data("vocab")

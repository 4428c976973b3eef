"""What a test needs and this machine lacks."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NoReturn

import pytest

DATA = Path(os.environ.get("AKUNU_TEST_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))


def missing(reason: str) -> NoReturn:
    """Skip the test, or the file that is being imported; where `CI` is set, which promises all, fail."""
    if os.environ.get("CI"):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason, allow_module_level=True)


def data(name: str) -> Path:
    """A file or a folder of the real test data."""
    path = DATA / name
    if not path.exists():
        missing(f"no test data at {path}; AKUNU_TEST_DATA names the folder that has {name}")
    return path

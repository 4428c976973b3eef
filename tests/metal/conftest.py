"""Metal tests run on Linux by the emulator of tests/metal_emulator, which needs clang >= 16."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "slow: takes more than a few seconds")


@pytest.fixture(scope="session", autouse=True)
def emulator() -> Path:
    """Folder of the emulator's libraries; without clang a failure in CI, else a skip."""
    from metal_emulator.build import build

    try:
        return build()
    except FileNotFoundError as e:
        if os.environ.get("CI"):
            pytest.fail(str(e), pytrace=False)
        pytest.skip(str(e))

"""Caches of Q4_0, and of keys and values with types of their own, on the Metal device."""

from __future__ import annotations

from pathlib import Path

import pytest

from metal.on_metal import metal_engines, some
from models import test_kv_types
from models.test_kv_types import PAIRS, path

__all__ = ["metal_engines", "path"]

pytestmark = pytest.mark.usefixtures("metal_engines")


@pytest.mark.parametrize("kv_dtype", some(PAIRS, "q4_0", "q8_0,q4_0"))
def test_a_device_keeps_what_the_cpu_keeps(path: Path, kv_dtype: str) -> None:
    """The kernel table has every pair."""
    test_kv_types.test_a_device_keeps_what_the_cpu_keeps(path, kv_dtype)

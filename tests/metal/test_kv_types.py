"""Caches of Q4_0, and of keys and values with types of their own, on the Metal device."""

from __future__ import annotations

import pytest

from metal.on_metal import metal_engines
from models.test_kv_types import path, test_a_device_keeps_what_the_cpu_keeps

__all__ = ["metal_engines", "path", "test_a_device_keeps_what_the_cpu_keeps"]

pytestmark = pytest.mark.usefixtures("metal_engines")

"""Towers and their rows in a sequence on the Metal device: the CPU's tests."""

from __future__ import annotations

import pytest

from api.vision.test_towers import (
    case,
    test_logits_are_those_of_transformers,
    test_rows_are_those_of_transformers,
)
from metal.on_metal import metal_engines

__all__ = [
    "case",
    "metal_engines",
    "test_logits_are_those_of_transformers",
    "test_rows_are_those_of_transformers",
]
pytestmark = pytest.mark.usefixtures("metal_engines")

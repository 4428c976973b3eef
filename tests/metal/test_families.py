"""Families with experts on the Metal device: the CPU's tests."""

from __future__ import annotations

import pytest

from metal.on_metal import metal_engines
from models.test_families import (
    folder,
    test_a_gguf_file_computes_what_transformers_does,
    test_rounded_weights_agree_but_for_near_ties_of_the_router,
)

__all__ = [
    "folder",
    "metal_engines",
    "test_a_gguf_file_computes_what_transformers_does",
    "test_rounded_weights_agree_but_for_near_ties_of_the_router",
]

pytestmark = pytest.mark.usefixtures("metal_engines")

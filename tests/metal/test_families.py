"""Families with experts on the Metal device: the CPU's tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from metal.on_metal import metal_engines, some
from models import test_families
from models.test_families import NAMES, folder, test_a_gguf_file_computes_what_transformers_does

__all__ = ["folder", "metal_engines", "test_a_gguf_file_computes_what_transformers_does"]

pytestmark = pytest.mark.usefixtures("metal_engines")


@pytest.mark.parametrize("name", some(NAMES, "qwen3next", "gemma4_experts", "nemotron_h_moe", "deepseek_v3"))
def test_rounded_weights_agree_but_for_near_ties_of_the_router(name: str, folder: Path) -> None:
    """One model has each kind of router and mixer; the kernel table tests products of rounded weights."""
    test_families.test_rounded_weights_agree_but_for_near_ties_of_the_router(name, folder)

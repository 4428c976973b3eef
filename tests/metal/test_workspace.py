"""Activations that share memory, on Metal: the CPU's tests of some models."""

from __future__ import annotations

from pathlib import Path

import pytest

from metal.on_metal import metal_engines, some
from models import tiny
from models.test_workspace import check_bits, test_a_model_takes_less_for_its_activations

__all__ = ["metal_engines", "test_a_model_takes_less_for_its_activations"]

pytestmark = pytest.mark.usefixtures("metal_engines")


@pytest.mark.parametrize("name", some(tiny.ALL, "llama_256", "gemma3", "phi3_long"))
def test_no_bit_depends_on_what_shares_memory(name: str, tmp_path: Path) -> None:
    check_bits(name, "Q8_0" if name.endswith("_256") else "F32", tmp_path)

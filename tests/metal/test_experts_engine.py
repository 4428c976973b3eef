"""Models with experts on the Metal device: the CPU's tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from akunu.base.errors import UnsupportedError
from metal.on_metal import metal_engines
from models import quant, test_experts
from models.test_engine import QUANTISED, open_engine
from models.test_experts import folder, test_the_engine_equals_transformers

__all__ = ["folder", "metal_engines", "test_the_engine_equals_transformers"]
pytestmark = pytest.mark.usefixtures("metal_engines")


@pytest.mark.parametrize("dtype", [dtype for dtype in QUANTISED if dtype not in quant.CODEBOOKS])
def test_every_weight_type_matches_float64(dtype: str, folder: Path) -> None:
    test_experts.test_every_weight_type_matches_float64(dtype, folder)


@pytest.mark.parametrize("dtype", quant.CODEBOOKS)
def test_types_without_kernels_are_refused_by_name(dtype: str, folder: Path) -> None:
    path = test_experts.written(folder, "qwen3moe_256", dtype)
    with pytest.raises(UnsupportedError, match=f"weights of type '{dtype.lower()}'"):
        open_engine(path)

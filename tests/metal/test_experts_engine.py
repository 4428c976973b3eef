"""Models with experts on the Metal device: the CPU's tests."""

from __future__ import annotations

import pytest

from metal.on_metal import metal_engines
from models.test_experts import (
    folder,
    test_every_weight_type_matches_float64,
    test_the_engine_equals_transformers,
)

__all__ = [
    "folder",
    "metal_engines",
    "test_every_weight_type_matches_float64",
    "test_the_engine_equals_transformers",
]


@pytest.fixture(autouse=True)
def has_kernels(request: pytest.FixtureRequest) -> None:
    """Types with codebooks run on the CPU alone."""
    dtype = str(getattr(request.node, "callspec", None) and request.node.callspec.id)
    if dtype.startswith(("IQ1", "IQ2", "IQ3")):
        pytest.skip("no Metal kernels")


pytestmark = pytest.mark.usefixtures("metal_engines")

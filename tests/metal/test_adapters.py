"""Adapters on the Metal device: the CPU's tests."""

from __future__ import annotations

import pytest

from metal.on_metal import metal_engines
from models.test_adapters import (
    llama,
    test_a_sequence_without_an_adapter_has_the_bits_of_a_model_without,
    test_an_adapter_beside_halves_and_codes,
    test_sequences_with_four_adapters_and_none_run_together,
)

__all__ = [
    "llama",
    "metal_engines",
    "test_a_sequence_without_an_adapter_has_the_bits_of_a_model_without",
    "test_an_adapter_beside_halves_and_codes",
    "test_sequences_with_four_adapters_and_none_run_together",
]

pytestmark = pytest.mark.usefixtures("metal_engines")

"""Layers with a window on the Metal device: the CPU's tests, with page tables for each group of layers."""

from __future__ import annotations

import pytest

from metal.on_metal import metal_engines
from models.test_windows import (
    path,
    test_a_sequence_goes_back_as_far_as_its_windows_are_there,
    test_logits_are_those_of_float64,
    test_pages_go_on_in_another_engine,
    test_sequences_that_take_each_others_pages_are_what_they_are_alone,
)

__all__ = [
    "metal_engines",
    "path",
    "test_a_sequence_goes_back_as_far_as_its_windows_are_there",
    "test_logits_are_those_of_float64",
    "test_pages_go_on_in_another_engine",
    "test_sequences_that_take_each_others_pages_are_what_they_are_alone",
]

pytestmark = pytest.mark.usefixtures("metal_engines")

"""A model whose layers differ, some of which read keys of another one, on Metal: the CPU's tests."""

from __future__ import annotations

import pytest

from metal.on_metal import metal_engines
from models.test_layers import (
    path,
    reference,
    test_chunks_change_no_bit,
    test_drafts_and_cache_hits_change_no_token,
    test_logits_are_those_of_float64,
    test_steps_that_are_cancelled_change_no_token,
)

__all__ = [
    "metal_engines",
    "path",
    "reference",
    "test_chunks_change_no_bit",
    "test_drafts_and_cache_hits_change_no_token",
    "test_logits_are_those_of_float64",
    "test_steps_that_are_cancelled_change_no_token",
]

pytestmark = pytest.mark.usefixtures("metal_engines")

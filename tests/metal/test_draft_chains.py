"""Chains of drafts, their verification and what follows, on the Metal device: the CPU's tests, in ids."""

from __future__ import annotations

import pytest

from metal.on_metal import metal_engines
from models.test_draft_chain import (
    hybrid,
    opened,
    test_a_chain_is_what_plain_decoding_is,
    test_a_chain_that_is_to_yield_ends_after_its_step,
    test_a_sequence_that_ends_in_a_chain_ends_there,
    test_a_state_goes_over_a_checkpoint,
    test_sequences_of_a_chain_are_what_each_is_alone,
)

__all__ = [
    "hybrid",
    "metal_engines",
    "opened",
    "test_a_chain_is_what_plain_decoding_is",
    "test_a_chain_that_is_to_yield_ends_after_its_step",
    "test_a_sequence_that_ends_in_a_chain_ends_there",
    "test_a_state_goes_over_a_checkpoint",
    "test_sequences_of_a_chain_are_what_each_is_alone",
]

pytestmark = [pytest.mark.usefixtures("metal_engines"), pytest.mark.long]

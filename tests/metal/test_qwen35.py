"""Gated delta nets on the Metal device: the CPU's tests, in ids."""

from __future__ import annotations

import pytest

from metal.on_metal import metal_engines, some
from models import test_qwen35
from models.test_qwen35 import (
    Open,
    folder,
    opened,
    test_a_gguf_file_computes_what_transformers_does,
    test_a_sequence_from_a_checkpoint_is_the_one_from_nothing,
    test_decoding_is_the_prompt,
    test_neighbours_change_nothing,
)

__all__ = [
    "folder",
    "metal_engines",
    "opened",
    "test_a_gguf_file_computes_what_transformers_does",
    "test_a_sequence_from_a_checkpoint_is_the_one_from_nothing",
    "test_decoding_is_the_prompt",
    "test_neighbours_change_nothing",
]

pytestmark = pytest.mark.usefixtures("metal_engines")


@pytest.mark.parametrize("hold", some([0, 3, 8], 3))
def test_drafts_that_are_refused_leave_the_state_as_it_was(hold: int, opened: Open) -> None:
    test_qwen35.test_drafts_that_are_refused_leave_the_state_as_it_was(hold, opened)

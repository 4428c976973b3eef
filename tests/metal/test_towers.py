"""Towers and their rows in a text on the Metal device: the CPU's tests."""

from __future__ import annotations

import pytest

from metal.on_metal import metal_engines
from vision.test_towers import (
    case,
    test_a_chain_is_the_prompt_of_its_tokens,
    test_logits_are_those_of_transformers,
    test_rows_are_those_of_transformers,
    test_texts_side_by_side_are_as_each_alone,
    test_texts_with_equal_tokens_and_other_images_share_no_page,
)

__all__ = [
    "case",
    "metal_engines",
    "test_a_chain_is_the_prompt_of_its_tokens",
    "test_logits_are_those_of_transformers",
    "test_rows_are_those_of_transformers",
    "test_texts_side_by_side_are_as_each_alone",
    "test_texts_with_equal_tokens_and_other_images_share_no_page",
]
pytestmark = pytest.mark.usefixtures("metal_engines")

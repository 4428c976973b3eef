"""Towers and their rows in a text on the emulated GPU: the CPU's tests."""

from __future__ import annotations

from collections.abc import Callable

Passes = Callable[..., None]


def test_towers_and_texts_are_transformers(passes: Passes) -> None:
    passes(
        "vision/test_towers.py",
        "rows_are_those_of_transformers",
        "logits_are_those_of_transformers",
        "a_chain_is_the_prompt_of_its_tokens",
        "texts_side_by_side_are_as_each_alone",
        "texts_with_equal_tokens_and_other_images_share_no_page",
    )

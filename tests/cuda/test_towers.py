"""Towers and their rows in a sequence on the emulated GPU: the CPU's tests."""

from __future__ import annotations

from collections.abc import Callable

import pytest

Passes = Callable[..., None]


def test_rows_are_those_of_transformers(passes: Passes) -> None:
    name = "rows_are_those_of_transformers"
    passes("api/vision/test_towers.py", f"{name}[gemma4]", f"{name}[qwen3_vl]")


@pytest.mark.long
@pytest.mark.in_turn
def test_rows_of_every_tower_are_those_of_transformers(passes: Passes) -> None:
    passes("api/vision/test_towers.py", "rows_are_those_of_transformers")


@pytest.mark.long
@pytest.mark.in_turn
@pytest.mark.parametrize(
    "name", ["gemma3", "gemma4", "gemma4_unified", "mistral3", "qwen2_5_vl", "qwen3_5", "qwen3_vl"]
)
def test_logits_are_those_of_transformers(passes: Passes, name: str) -> None:
    passes("api/vision/test_towers.py", f"logits_are_those_of_transformers[{name}-64]")

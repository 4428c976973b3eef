"""Layers with a window on the emulated GPU: the CPU's tests, with page tables for each group of layers."""

from __future__ import annotations

from collections.abc import Callable

import pytest

Passes = Callable[..., None]
# The tables are data of commands that test_kernels.py asks.
pytestmark = [pytest.mark.long, pytest.mark.in_turn]

WINDOWS = "models/test_windows.py"


def test_logits_are_those_of_float64(passes: Passes) -> None:
    passes(WINDOWS, "logits_are_those_of_float64")


def test_sequences_that_take_each_others_pages(passes: Passes) -> None:
    passes(
        WINDOWS,
        "sequences_that_take_each_others_pages_are_what_they_are_alone",
        "a_sequence_goes_back_as_far_as_its_windows_are_there",
        "pages_go_on_in_another_engine",
    )

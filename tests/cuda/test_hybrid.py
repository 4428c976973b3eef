"""Models with a state that cannot be truncated on the emulated GPU: the CPU's tests, in ids."""

from __future__ import annotations

from collections.abc import Callable

import pytest

Passes = Callable[..., None]
pytestmark = pytest.mark.long  # the op itself is asked in test_kernels.py

HYBRID = "models/test_hybrid.py"


def test_logits_are_those_of_float64(passes: Passes) -> None:
    passes(HYBRID, "logits_are_those_of_float64")


def test_drafts_and_ended_texts(passes: Passes) -> None:
    passes(
        HYBRID,
        "drafts_that_are_refused_leave_the_state_as_it_was[3]",
        "a_text_that_ends_within_a_chain_of_others_keeps_its_state",
    )

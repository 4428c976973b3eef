"""Models with a state that cannot be truncated on the emulated GPU: the CPU's tests, in ids."""

from __future__ import annotations

from collections.abc import Callable

import pytest

Passes = Callable[..., None]

HYBRID = "models/test_hybrid.py"


def test_logits_are_those_of_float64(passes: Passes) -> None:
    passes(HYBRID, "logits_are_those_of_float64")


@pytest.mark.long
def test_drafts_and_ended_texts(passes: Passes) -> None:
    passes(
        HYBRID,
        "drafts_that_are_refused_leave_the_state_as_it_was[3]",
        "a_text_that_ends_within_a_chain_of_others_keeps_its_state",
    )


@pytest.mark.long
def test_checkpoints_and_forks(passes: Passes) -> None:
    passes(
        HYBRID,
        "greedy_ids_are_those_of_float64",
        "a_text_can_go_back_among_drafts_that_held",
        "a_beginning_is_cached_up_to_a_checkpoint",
        "n_texts_share_their_prompt_and_are_those_of_their_seeds",
        "a_conversation_is_forked_saved_and_loaded",
    )

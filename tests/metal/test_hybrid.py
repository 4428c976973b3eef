"""Models with a state that cannot be truncated on the Metal device: the CPU's tests, in ids."""

from __future__ import annotations

from pathlib import Path

import pytest

from akunu import _core
from metal.on_metal import metal_engines, some
from models import hybrid, test_hybrid
from models.test_hybrid import (
    engine,
    model,
    path,
    test_a_beginning_is_cached_up_to_a_checkpoint,
    test_a_conversation_is_forked_saved_and_loaded,
    test_a_prefix_of_a_step_leaves_the_state,
    test_a_sequence_can_go_back_among_drafts_that_held,
    test_a_sequence_goes_back_to_a_checkpoint_and_on_as_if_it_had_not,
    test_a_sequence_that_ends_within_a_chain_of_others_keeps_its_state,
    test_greedy_ids_are_those_of_float64,
    test_logits_are_those_of_float64,
    test_n_outputs_share_their_prompt_and_are_those_of_their_seeds,
    test_sequences_from_checkpoints_are_those_from_nothing,
)
from models.test_same_output import Mixes

__all__ = [
    "engine",
    "metal_engines",
    "model",
    "path",
    "test_a_beginning_is_cached_up_to_a_checkpoint",
    "test_a_conversation_is_forked_saved_and_loaded",
    "test_a_prefix_of_a_step_leaves_the_state",
    "test_a_sequence_can_go_back_among_drafts_that_held",
    "test_a_sequence_goes_back_to_a_checkpoint_and_on_as_if_it_had_not",
    "test_a_sequence_that_ends_within_a_chain_of_others_keeps_its_state",
    "test_greedy_ids_are_those_of_float64",
    "test_logits_are_those_of_float64",
    "test_n_outputs_share_their_prompt_and_are_those_of_their_seeds",
    "test_sequences_from_checkpoints_are_those_from_nothing",
]

pytestmark = pytest.mark.usefixtures("metal_engines")


def test_a_sequence_is_what_it_is_alone(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels sum in another order for one row than for many, so log-probabilities have other last bits."""
    Mixes(path, None, hybrid.spec).run(3, monkeypatch, bits=False, reads=30)


@pytest.mark.parametrize("hold", some([0, 1, 3, 8], 3))
def test_drafts_that_are_refused_leave_the_state_as_it_was(engine: _core.Engine, hold: int) -> None:
    test_hybrid.test_drafts_that_are_refused_leave_the_state_as_it_was(engine, hold)

"""States that cannot be truncated, experts, layers that differ: the CPU's tests on the emulated GPU."""

from __future__ import annotations

from collections.abc import Callable

import pytest

Passes = Callable[..., None]
pytestmark = [pytest.mark.long, pytest.mark.in_turn]  # the ops themselves are asked in test_kernels.py

HYBRID = "models/test_hybrid.py"
QWEN35 = "models/test_qwen35.py"


def test_logits_are_those_of_float64(passes: Passes) -> None:
    passes(HYBRID, "logits_are_those_of_float64")


def test_drafts_and_ended_sequences(passes: Passes) -> None:
    passes(
        HYBRID,
        "drafts_that_are_refused_leave_the_state_as_it_was[3]",
        "a_sequence_that_ends_within_a_chain_of_others_keeps_its_state",
    )


def test_layers_that_differ_and_keys_of_another_block(passes: Passes) -> None:
    passes(
        "models/test_layers.py",
        "logits_are_those_of_float64",
        "chunks_change_no_bit",
        "drafts_and_cache_hits_change_no_token",
        "steps_that_are_cancelled_change_no_token",
    )


def test_no_bit_depends_on_which_activations_share_memory(passes: Passes) -> None:
    models = ("gemma3-F32", "phi3_long-F32", "llama_256-Q8_0")
    passes(
        "models/test_workspace.py", *(f"no_bit_depends_on_what_shares_memory[{model}]" for model in models)
    )


def test_delta_nets_compute_what_transformers_does(passes: Passes) -> None:
    passes(QWEN35, "a_gguf_file_computes_what_transformers_does")


def test_delta_nets_whatever_the_step(passes: Passes) -> None:
    passes(
        QWEN35,
        "decoding_is_the_prompt",
        "drafts_that_are_refused_leave_the_state_as_it_was[3]",
        "neighbours_change_nothing",
    )


def test_mamba_and_short_convolutions_whatever_the_step(passes: Passes) -> None:
    passes(
        "models/test_recurrent.py",
        "drafts_that_are_refused_leave_the_state_as_it_was[lfm2-3]",
        "drafts_that_are_refused_leave_the_state_as_it_was[nemotron_h_latent-3]",
    )


def test_experts_are_those_of_transformers(passes: Passes) -> None:
    passes("models/test_experts.py", "the_engine_equals_transformers")
    passes("models/test_families.py", "a_gguf_file_computes_what_transformers_does")

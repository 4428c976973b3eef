"""Heads of multi-token prediction, and assistants: the CPU's tests on the emulated GPU."""

from __future__ import annotations

from collections.abc import Callable

import pytest

Passes = Callable[..., None]
pytestmark = pytest.mark.long  # the ops themselves are asked in test_kernels.py

HEAD = "models/test_draft_head.py"
ASSISTANT = "models/test_assistant.py"


def test_heads_draft_what_the_equations_say(passes: Passes) -> None:
    passes(
        HEAD,
        "a_head_in_the_file_drafts_what_the_equations_say",
        "a_head_in_a_folder_drafts_what_the_equations_say[text]",
        "a_head_that_goes_on_from_its_own_stream_does",
        "drafts_of_many_sequences_are_those_of_each_alone",
        "drafts_of_common_tokens_are_those_of_all_where_these_are_common",
        "there_are_no_drafts_where_the_state_is_gone",
    )


@pytest.mark.parametrize("made", ["in_gguf", "in_folder"])
def test_heads_of_other_families_are_layers_of_their_kind(made: str, passes: Passes) -> None:
    names = ("qwen35moe", "qwen3next", "glm4moe", "deepseek_v3", "deepseek_v2_groups", "glm4_moe_lite")
    passes(HEAD, *(f"heads_of_other_families_are_layers_of_their_kind[{name}-{made}]" for name in names))


def test_assistants_draft_what_transformers_does(passes: Passes) -> None:
    passes(
        ASSISTANT,
        "it_drafts_what_transformers_does",
        "a_draft_of_clusters_looks_at_their_tokens_alone",
        "drafts_of_many_sequences_are_those_of_each_alone",
        "drafts_of_clusters_of_many_sequences_are_those_of_each_alone",
        "a_cached_prompt_is_drafted_for",
    )

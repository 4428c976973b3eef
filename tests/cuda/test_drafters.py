"""Heads of multi-token prediction, and assistants: the CPU's tests on the emulated GPU."""

from __future__ import annotations

from collections.abc import Callable

import pytest

Passes = Callable[..., None]
pytestmark = pytest.mark.long  # the ops themselves are asked in test_kernels.py

HEAD = (
    "a_head_in_the_file_drafts_what_the_equations_say",
    "a_head_that_goes_on_from_its_own_stream_does",
    "drafts_of_many_sequences_are_those_of_each_alone",
    "there_are_no_drafts_where_the_state_is_gone",
)
FAMILIES = ("qwen35moe", "qwen3next", "glm4moe", "deepseek_v3", "deepseek_v2_groups", "glm4_moe_lite")
ASSISTANT = (
    "it_drafts_what_transformers_does[gemma4_e_assistant-gguf_files]",
    "it_drafts_what_transformers_does[gemma4_assistant-folder_files]",
    "it_drafts_what_transformers_does[gemma4_e_ordered-folder_files]",
    "drafts_of_clusters_of_many_sequences_are_those_of_each_alone",
    "a_cached_prompt_is_drafted_for",
)


@pytest.mark.parametrize("test", HEAD)
def test_heads_draft_what_the_equations_say(test: str, passes: Passes) -> None:
    passes("models/test_draft_head.py", test)


@pytest.mark.parametrize("family", FAMILIES)
def test_heads_of_other_families_are_layers_of_their_kind(family: str, passes: Passes) -> None:
    passes("models/test_draft_head.py", f"heads_of_other_families_are_layers_of_their_kind[{family}-in_gguf]")


@pytest.mark.parametrize("test", ASSISTANT)
def test_assistants_draft_what_transformers_does(test: str, passes: Passes) -> None:
    passes("models/test_assistant.py", test)

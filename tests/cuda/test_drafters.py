"""Heads of multi-token prediction, and assistants: the CPU's tests on the emulated GPU."""

from __future__ import annotations

from collections.abc import Callable

import pytest

Passes = Callable[..., None]
pytestmark = [pytest.mark.long, pytest.mark.in_turn]  # the ops themselves are asked in test_kernels.py

#: More of the CPU's tests pass here, too, and take one to two minutes each.
FAMILIES = ("qwen35moe",)
ASSISTANT = (
    "it_drafts_what_transformers_does[gemma4_e_assistant-gguf_files]",
    "it_drafts_what_transformers_does[gemma4_e_ordered-folder_files]",
)
#: Likewise.
CHAINS = (
    "a_chain_is_what_plain_decoding_is[head_of_a_hybrid-often-3-5]",
    "a_chain_is_what_plain_decoding_is[assistant_with_windows-often-3-5]",
    "sequences_of_a_chain_are_what_each_is_alone[head_of_a_hybrid]",
)


def test_a_head_drafts_what_the_equations_say(passes: Passes) -> None:
    passes("models/test_draft_head.py", "a_head_in_the_file_drafts_what_the_equations_say")


@pytest.mark.parametrize("family", FAMILIES)
def test_heads_of_other_families_are_layers_of_their_kind(family: str, passes: Passes) -> None:
    passes("models/test_draft_head.py", f"heads_of_other_families_are_layers_of_their_kind[{family}-in_gguf]")


@pytest.mark.parametrize("test", CHAINS)
def test_chains_of_drafts_are_what_plain_decoding_is(test: str, passes: Passes) -> None:
    passes("models/test_draft_chain.py", test)


@pytest.mark.parametrize("test", ASSISTANT)
def test_assistants_draft_what_transformers_does(test: str, passes: Passes) -> None:
    passes("models/test_assistant.py", test)

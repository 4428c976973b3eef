"""Heads of multi-token prediction, and assistants, on the Metal device: the CPU's tests, in ids."""

from __future__ import annotations

import pytest

from metal.on_metal import metal_engines
from models.test_assistant import (
    test_a_cached_prompt_is_drafted_for,
    test_a_draft_of_clusters_looks_at_their_tokens_alone,
    test_drafts_of_clusters_of_many_sequences_are_those_of_each_alone,
    test_it_drafts_what_transformers_does,
)
from models.test_draft_head import (
    folder,
    opened,
    test_a_head_in_the_file_drafts_what_the_equations_say,
    test_a_head_that_goes_on_from_its_own_stream_does,
    test_drafts_of_many_sequences_are_those_of_each_alone,
    test_heads_of_other_families_are_layers_of_their_kind,
)

__all__ = [
    "folder",
    "metal_engines",
    "opened",
    "test_a_cached_prompt_is_drafted_for",
    "test_a_draft_of_clusters_looks_at_their_tokens_alone",
    "test_a_head_in_the_file_drafts_what_the_equations_say",
    "test_a_head_that_goes_on_from_its_own_stream_does",
    "test_drafts_of_clusters_of_many_sequences_are_those_of_each_alone",
    "test_drafts_of_many_sequences_are_those_of_each_alone",
    "test_heads_of_other_families_are_layers_of_their_kind",
    "test_it_drafts_what_transformers_does",
]

pytestmark = [pytest.mark.usefixtures("metal_engines"), pytest.mark.long]

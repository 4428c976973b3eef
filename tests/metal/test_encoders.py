"""Models that make vectors on the Metal device: the CPU's tests, and its vectors."""

from __future__ import annotations

from pathlib import Path

import pytest

from api.encoders.test_model import (
    TEXTS,
    folder,
    model,
    test_calls_of_several_threads_wait_for_each_other,
    test_the_real_minilm_equals_sentence_transformers,
)
from api.encoders.test_reference import (
    opened,
    test_a_folder_equals_transformers,
    test_a_gguf_file_equals_transformers,
    test_quantised_weights_are_near,
)
from api.encoders.test_scores import (
    reranker,
    test_a_decoder_is_asked_for_yes_or_no,
    test_scores_are_those_of_pairs_with_kinds,
)
from metal.on_metal import metal_engines

__all__ = [
    "folder",
    "metal_engines",
    "model",
    "reranker",
    "test_a_decoder_is_asked_for_yes_or_no",
    "test_a_folder_equals_transformers",
    "test_a_gguf_file_equals_transformers",
    "test_calls_of_several_threads_wait_for_each_other",
    "test_quantised_weights_are_near",
    "test_scores_are_those_of_pairs_with_kinds",
    "test_the_real_minilm_equals_sentence_transformers",
]
pytestmark = pytest.mark.usefixtures("metal_engines")


def test_vectors_are_those_of_the_cpu(folder: Path) -> None:
    with opened(folder) as here, opened(folder, device="cpu") as there:
        assert here.device != there.device
        assert ((here.embed(TEXTS) * there.embed(TEXTS)).sum(axis=1) >= 0.9999).all()

"""Speech models on the Metal device: the CPU's tests, and what Metal promises instead of equal bits.

Its kernels sum in another order for one row, for a few and for many.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from metal.on_metal import metal_engines
from speech.numpy_whisper import NumpyWhisper
from speech.on_device import check_transcripts
from speech.test_engine import (
    SpeechEngine,
    pair,
    spoken,
    test_a_sequence_of_more_tokens_than_a_step_attends_whole,
    test_encoder_states_are_those_of_the_model,
    test_files_of_whisper_cpp_of_every_type,
    test_folders_of_hugging_face,
    test_logits_and_attention_are_those_of_the_model,
    test_mlx_folders,
    test_sampled_sequences_are_those_of_single_steps,
    test_samples_follow_their_seeds_alone,
    test_sequences_of_several_windows_in_one_step_are_those_of_each_alone,
    test_the_best_tokens_are_those_of_the_rules,
    test_transformers_says_the_same,
    test_what_was_said_before_counts,
)

__all__ = [
    "metal_engines",
    "pair",
    "spoken",
    "test_a_sequence_of_more_tokens_than_a_step_attends_whole",
    "test_encoder_states_are_those_of_the_model",
    "test_files_of_whisper_cpp_of_every_type",
    "test_folders_of_hugging_face",
    "test_logits_and_attention_are_those_of_the_model",
    "test_mlx_folders",
    "test_sampled_sequences_are_those_of_single_steps",
    "test_samples_follow_their_seeds_alone",
    "test_sequences_of_several_windows_in_one_step_are_those_of_each_alone",
    "test_the_best_tokens_are_those_of_the_rules",
    "test_transformers_says_the_same",
    "test_what_was_said_before_counts",
]
pytestmark = pytest.mark.usefixtures("metal_engines")


def test_the_kernels_are_metal_s(pair: tuple[NumpyWhisper, SpeechEngine]) -> None:
    assert pair[1].isa.startswith("apple")


@pytest.mark.parametrize("options", [{"beam_size": 1}, {"beam_size": 3, "word_timestamps": True}], ids=str)
def test_transcripts_are_those_of_the_cpu(options: dict[str, Any], tmp_path: Path) -> None:
    check_transcripts("metal", tmp_path, options)

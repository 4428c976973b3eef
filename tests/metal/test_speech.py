"""Speech models on the Metal device: the CPU's tests, and what Metal promises instead of equal bits.

Its kernels sum in another order for one row, for a few and for many.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from on_metal import metal_engines

import akunu
from speech import model_files, tiny
from speech.numpy_whisper import NumpyWhisper
from speech.test_engine import (
    SpeechEngine,
    pair,
    spoken,
    test_a_text_of_more_tokens_than_a_step_attends_whole,
    test_drawn_texts_are_those_of_single_steps,
    test_encoder_states_are_those_of_the_model,
    test_files_of_whisper_cpp_of_every_type,
    test_folders_of_hugging_face,
    test_logits_and_attention_are_those_of_the_model,
    test_mlx_folders,
    test_samples_follow_their_seeds_alone,
    test_texts_of_several_windows_in_one_step_are_those_of_each_alone,
    test_the_best_tokens_are_those_of_the_rules,
    test_transformers_says_the_same,
    test_what_was_said_before_counts,
)

__all__ = [
    "metal_engines",
    "pair",
    "spoken",
    "test_a_text_of_more_tokens_than_a_step_attends_whole",
    "test_drawn_texts_are_those_of_single_steps",
    "test_encoder_states_are_those_of_the_model",
    "test_files_of_whisper_cpp_of_every_type",
    "test_folders_of_hugging_face",
    "test_logits_and_attention_are_those_of_the_model",
    "test_mlx_folders",
    "test_samples_follow_their_seeds_alone",
    "test_texts_of_several_windows_in_one_step_are_those_of_each_alone",
    "test_the_best_tokens_are_those_of_the_rules",
    "test_transformers_says_the_same",
    "test_what_was_said_before_counts",
]
pytestmark = pytest.mark.usefixtures("metal_engines")


def test_the_kernels_are_metal_s(pair: tuple[NumpyWhisper, SpeechEngine]) -> None:
    assert pair[1].isa.startswith("apple")


def sound(seconds: float) -> np.ndarray[Any, np.dtype[np.float32]]:
    t = np.arange(round(seconds * 16000)) / 16000
    noise = np.random.default_rng(1).normal(0, 0.05, len(t))
    return (0.2 * np.sin(2 * np.pi * (200 + 150 * t) * t) + noise).astype(np.float32)


@pytest.mark.parametrize("options", [{"beam_size": 1}, {"beam_size": 3, "word_timestamps": True}], ids=str)
def test_transcripts_are_those_of_the_cpu(options: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "tiny.bin"
    random = tiny.model()
    model_files.ggml(path, random.config, random.weights, "f32", tiny.TOKENS)
    texts = []
    for device in ("metal", "cpu"):
        with akunu.load(path, device=device, task="transcribe", progress=False) as model:
            texts.append(
                model.transcribe(sound(5), language="en", temperature=0, max_new_tokens=24, **options)
            )
    assert texts[0].segments and texts[0].text == texts[1].text
    assert [w.word for w in texts[0].words] == [w.word for w in texts[1].words]
    np.testing.assert_allclose(
        [w.start for w in texts[0].words], [w.start for w in texts[1].words], atol=0.021
    )

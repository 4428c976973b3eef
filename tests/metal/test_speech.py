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
    TOKENS,
    SpeechEngine,
    attended,
    begin,
    mels,
    nmse,
    pair,
    spoken,
    states_of,
    test_a_text_of_more_tokens_than_a_step_attends_whole,
    test_drawn_texts_are_those_of_single_steps,
    test_encoder_states_are_those_of_the_model,
    test_files_of_whisper_cpp_of_every_type,
    test_folders_of_hugging_face,
    test_mlx_folders,
    test_samples_follow_their_seeds_alone,
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
    "test_mlx_folders",
    "test_samples_follow_their_seeds_alone",
    "test_the_best_tokens_are_those_of_the_rules",
    "test_transformers_says_the_same",
    "test_what_was_said_before_counts",
]
pytestmark = pytest.mark.usefixtures("metal_engines")


def test_logits_and_attention_are_those_of_the_model(pair: tuple[NumpyWhisper, SpeechEngine]) -> None:
    expected, model = pair
    assert model.isa.startswith("apple")
    mel = mels(model.config)
    (window,) = model.encode(mel)
    states = states_of(expected, mel)
    text, logits = begin(model, window, TOKENS)
    assert nmse(logits, expected.logits(states, TOKENS)[0]) < 1e-9
    model.free(text)
    weights, again = model.attend(window, TOKENS)
    assert np.allclose(weights, attended(expected, states, TOKENS)[0], atol=1e-5)
    assert nmse(again, logits) < 1e-10


def test_texts_of_several_windows_in_one_step_are_those_of_each_alone(
    pair: tuple[NumpyWhisper, SpeechEngine],
) -> None:
    model = pair[1]
    windows = model.encode(mels(model.config, 3))
    prompts = [TOKENS[: 3 + i] for i in range(3)]
    rows = [[1, len(prompt) - 1] for prompt in prompts]
    alone = []
    for window, prompt, wanted in zip(windows, prompts, rows, strict=True):
        (text,), first = model.begin([window], [prompt], [wanted])
        alone.append((first, model.step([text], [9])[0]))
        model.free(text)
    texts, together = model.begin(windows, prompts, rows)
    assert nmse(together, np.concatenate([first for first, _ in alone])) < 1e-10
    texts.append(model.fork(texts[1]))  # two texts of a sound, beside others
    order = (2, 1, 3, 0)
    found = model.step([texts[k] for k in order], [9] * 4)
    assert nmse(found, np.stack([alone[1 if k == 3 else k][1] for k in order])) < 1e-10
    for text in texts:
        model.free(text)


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

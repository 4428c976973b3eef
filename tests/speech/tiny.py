"""A tiny Whisper: its sizes, vocabulary and model."""

from __future__ import annotations

import functools
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from akunu._core import WhisperFile
from akunu.speech.config import WhisperConfig
from akunu.speech.tokenizer import WhisperTokenizer
from akunu.tokenizer.bytelevel import CHAR_OF_BYTE
from formats import whisper_bytes

from .numpy_whisper import NumpyWhisper

WORDS = b" a| b| c|he|the| the|in| in|er|on|and| and|so| so|ll|ay|say| say|ou|you| you".split(b"|")
TOKENS = [bytes([b]) for b in sorted(range(256), key=CHAR_OF_BYTE.__getitem__)] + WORDS
VOCAB = len(TOKENS) + 1509 + 99
SIZES = (VOCAB, 100, 32, 2, 2, 64, 32, 4, 2, 80, 1)


@functools.cache
def tokenizer() -> WhisperTokenizer:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "ggml-tiny.bin"
        path.write_bytes(whisper_bytes.file((), TOKENS, SIZES))
        return WhisperTokenizer.from_file(WhisperFile(str(path)))


def config() -> WhisperConfig:
    sizes = dict(
        zip(
            (
                "n_vocab",
                "n_audio_ctx",
                "n_audio_state",
                "n_audio_head",
                "n_audio_layer",
                "n_text_ctx",
                "n_text_state",
                "n_text_head",
                "n_text_layer",
                "n_mels",
            ),
            SIZES,
            strict=False,
        )
    )
    return WhisperConfig.from_sizes(sizes)


def model(seed: int = 0) -> NumpyWhisper:
    return NumpyWhisper(config(), seed)


def mel(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, 0.5, (80, 200)).astype(np.float32)

"""The part of `akunu.load` that is for speech models."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from akunu.base.progress import Progress, reporter
from akunu.speech.engine import load_engine
from akunu.speech.files import open_speech
from akunu.speech.whisper_model import WhisperModel

__all__ = ["load_speech"]

TEXTS_OF_A_WINDOW: Final = 8
"""Sequences for each window that runs: the beams or samples, and what they go on from."""


def load_speech(
    path: Path, *, device: str, threads: int, parallel: int, progress: bool | Progress
) -> WhisperModel:
    """The loaded model; arguments are those of `akunu.load`, checked. `parallel` windows run side by side."""
    opened = open_speech(path)
    with ThreadPoolExecutor(1, "akunu-tokenizer") as pool, reporter(progress, "Loading") as report:
        tokenizer = pool.submit(opened.tokenizer)
        engine = load_engine(
            opened,
            device=device,
            threads=threads,
            parallel=parallel * TEXTS_OF_A_WINDOW,
            windows=parallel + 1,  # one more while the language of a recording is looked for
            progress=report,
        )
        return WhisperModel(engine, tokenizer.result(), opened.name, path, parallel + 1)

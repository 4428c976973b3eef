"""What a device other than the CPU promises of transcripts: tests/metal and tests/cuda ask for it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import akunu

from . import model_files, tiny


def sound(seconds: float) -> np.ndarray[Any, np.dtype[np.float32]]:
    t = np.arange(round(seconds * 16000)) / 16000
    noise = np.random.default_rng(1).normal(0, 0.05, len(t))
    return (0.2 * np.sin(2 * np.pi * (200 + 150 * t) * t) + noise).astype(np.float32)


def check_transcripts(device: str, folder: Path, options: Mapping[str, Any]) -> str:
    """A tiny model's are those of the CPU; returns the name of the device that it ran on."""
    path = folder / "tiny.bin"
    random = tiny.model()
    model_files.ggml(path, random.config, random.weights, "f32", tiny.TOKENS)
    texts, names = [], []
    for where in (device, "cpu"):
        with akunu.load(path, device=where, task="transcribe", progress=False) as model:
            names.append(model.device)
            texts.append(
                model.transcribe(sound(5), language="en", temperature=0, max_new_tokens=24, **options)
            )
    assert texts[0].segments and texts[0].text == texts[1].text
    assert [w.word for w in texts[0].words] == [w.word for w in texts[1].words]
    starts = [[w.start for w in text.words] for text in texts]
    np.testing.assert_allclose(starts[0], starts[1], atol=0.021)
    return names[0]

"""Time a Whisper model: its encoder for a window, and its decoder for a token."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from akunu.speech.engine import SpeechEngine

__all__ = ["SpeechTimes", "measure"]

_TOKENS: Final = 32
"""Tokens whose mean counts as the time of one."""


@dataclass(frozen=True)
class SpeechTimes:
    """Medians, in seconds.

    Attributes
    ----------
    encoder
        For a window of 30 s, the cross-attention's keys and values included.
    greedy
        For a token of one text.
    beams
        For a token of five beams, without the choice among them.
    rows
        For a token of eight windows side by side.
    """

    encoder: float
    greedy: float
    beams: float
    rows: float


def measure(engine: SpeechEngine, *, repetitions: int) -> SpeechTimes:
    """Time a loaded model; it has to have room for eight windows and texts."""
    config = engine.config
    mel = np.random.default_rng(0).random((1, config.mels, 2 * config.audio_context), np.float32)
    states = [engine.encode(mel)[0] for _ in range(8)]
    prompt = [1, 2, 3, 4]

    def encode() -> None:
        engine.release(states.pop())
        states.append(engine.encode(mel)[0])

    def steps(rows: int, windows: int) -> float:
        texts, _ = engine.begin(
            [states[i % windows] for i in range(rows)], [prompt] * rows, [[len(prompt) - 1]] * rows
        )
        began = time.perf_counter()
        for i in range(_TOKENS):
            engine.step(texts, [100 + i] * rows)
        seconds = time.perf_counter() - began
        for text in texts:
            engine.free(text)
        return seconds / _TOKENS

    try:
        return SpeechTimes(
            _median(lambda: _timed(encode), repetitions),
            _median(lambda: steps(1, 1), repetitions),
            _median(lambda: steps(5, 1), repetitions),
            _median(lambda: steps(8, 8), repetitions),
        )
    finally:
        for state in states:
            engine.release(state)


def _timed(function: Callable[[], None]) -> float:
    began = time.perf_counter()
    function()
    return time.perf_counter() - began


def _median(function: Callable[[], float], repetitions: int) -> float:
    function()
    return float(np.median([function() for _ in range(repetitions)]))

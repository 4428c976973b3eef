"""A model that says what a test tells it to, window by window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from akunu.speech.config import WhisperConfig

from . import tiny
from .counting import CountingModel

Array = npt.NDArray[np.float32]
SECOND = 100  # frames


@dataclass
class Script:
    """What a window says: its tokens (the end follows), how sure it is, and how probable silence is."""

    tokens: list[int]
    certainty: float = 0.9
    silence: float = 0.01


def stamp(seconds: float) -> int:
    return tiny.tokenizer().special.timestamp_begin + round(seconds * 50)


def said(*parts: str | float) -> list[int]:
    """Tokens: numbers are timestamps."""
    tokens: list[int] = []
    for part in parts:
        tokens += tiny.tokenizer().encode(part) if isinstance(part, str) else [stamp(part)]
    return tokens


class ScriptedModel(CountingModel):
    """A `SpeechModel` that says one script a window, the last one again and again."""

    def __init__(self, *scripts: Script, language: str = "en", language_probability: float = 0.9) -> None:
        super().__init__()
        sizes = tiny.config()
        self.config = WhisperConfig(tiny.VOCAB, 80, 1500, 32, 2, 2, 448, 4, 2, ((1, 0),))
        assert sizes.vocab_size == self.config.vocab_size
        self.scripts = scripts
        self.language = (language, language_probability)
        self.mels: list[Array] = []
        self.prompts: list[list[int]] = []
        self.times: dict[int, list[float]] = {}

    def heard(self, mel: Array) -> int:
        assert mel.shape == (80, 3000)
        self.mels.append(mel)
        return len(self.mels) - 1

    def close(self) -> None:
        """There is nothing to free."""

    def _row(self, window: int, place: int) -> Array:
        script = self.scripts[min(window, len(self.scripts) - 1)]
        special = tiny.tokenizer().special
        wanted = script.tokens[place] if place < len(script.tokens) else special.end
        row = np.full(tiny.VOCAB, -20, np.float32)
        row[: special.end] = np.log((1 - script.certainty) / special.end)  # any text
        row[wanted] = np.log(script.certainty)
        return row

    def rows(self, window: int, tokens: Sequence[int], places: Sequence[int], start: int) -> Array:
        return np.stack([self._after(window, tokens, place, start) for place in places])

    def _after(self, window: int, tokens: Sequence[int], place: int, start: int) -> Array:
        special = tiny.tokenizer().special
        row = np.full(tiny.VOCAB, -20, np.float32)
        if place >= start:
            return self._row(window, place + 1 - start)
        if list(tokens) == [special.start]:
            code, probability = self.language
            row[list(special.languages.values())] = np.log((1 - probability) / 98)
            row[special.languages[code]] = np.log(probability)
        elif place == start - 1:
            row = self._row(window, 0)
            self.prompts.append(list(tokens))
        elif tokens[place] == special.start:
            row[special.no_speech] = np.log(self.scripts[min(window, len(self.scripts) - 1)].silence)
            row[0] = np.log(1 - np.exp(row[special.no_speech]))
        return row

    def attend(self, states: int, tokens: Sequence[int]) -> tuple[Array, Array]:
        """Each row looks from its time in `times` to the next one: a time for each token, and the end."""
        special = tiny.tokenizer().special
        start = list(tokens).index(special.no_timestamps)
        attention = np.full((1, len(tokens), 1500), 1e-4, np.float32)
        moments = [round(moment * 50) for moment in self.times[self.windows[states]]]
        for row, (begin, end) in enumerate(zip(moments, [*moments[1:], moments[-1] + 10], strict=True)):
            attention[0, start + row, begin : max(end, begin + 1)] = 1
        attention[0, :start, 0] = 1
        attention /= attention.sum(axis=-1, keepdims=True)
        logits = np.full((len(tokens), tiny.VOCAB), np.log(0.1 / tiny.VOCAB), np.float32)
        for row, token in enumerate(tokens[start + 1 :]):
            logits[start + row, token] = np.log(0.9)
        return attention, logits

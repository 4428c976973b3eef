"""What models of tests have in common: sequences and windows that are counted, and nothing left behind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from akunu.speech.batching import Batcher, Work

Array = npt.NDArray[np.float32]
T = TypeVar("T")


class CountingModel:
    """A `SpeechModel` but for `config`, `heard` and `rows`, which say what it is.

    `alive` has the tokens of each sequence, and where its text begins; `windows` what was heard in each.
    """

    parallel = 64

    def __init__(self) -> None:
        self.windows: dict[int, Any] = {}
        self.alive: dict[int, tuple[int, list[int], int]] = {}
        self.steps: list[int] = []
        """Rows of each step."""
        self._next = 0

    def heard(self, mel: Array) -> Any:
        """What the encoder makes of a window."""
        raise NotImplementedError

    def rows(self, window: Any, tokens: Sequence[int], places: Sequence[int], start: int) -> Array:
        """The logits after the tokens at `places`; the text begins at `start`."""
        raise NotImplementedError

    def number(self) -> int:
        self._next += 1
        return self._next

    def encode(self, mels: Array) -> list[int]:
        numbers = [self.number() for _ in mels]
        self.windows |= {number: self.heard(mel) for number, mel in zip(numbers, mels, strict=True)}
        return numbers

    def release(self, states: int) -> None:
        assert all(window != states for window, _, _ in self.alive.values())
        del self.windows[states]

    def begin(
        self, states: Sequence[int], tokens: Sequence[Sequence[int]], rows: Sequence[Sequence[int]]
    ) -> tuple[list[int], Array]:
        found, logits = [], []
        for window, held, places in zip(states, tokens, rows, strict=True):
            found.append(self.number())
            self.alive[found[-1]] = (window, list(held), len(held))
            logits.append(self.rows(self.windows[window], held, places, len(held)))
        return found, np.concatenate(logits)

    def fork(self, sequence: int) -> int:
        window, tokens, start = self.alive[sequence]
        copy = self.number()
        self.alive[copy] = (window, list(tokens), start)
        return copy

    def step(self, sequences: Sequence[int], tokens: Sequence[int]) -> Array:
        assert len(set(sequences)) == len(sequences)
        self.steps.append(len(sequences))
        found = []
        for sequence, token in zip(sequences, tokens, strict=True):
            window, held, start = self.alive[sequence]
            held.append(token)
            found.append(self.rows(self.windows[window], held, [len(held) - 1], start))
        return np.concatenate(found)

    def free(self, sequence: int) -> None:
        del self.alive[sequence]


def run(model: Any, work: Work[T]) -> T:
    """The result of one window's work; nothing of it is left."""
    before = len(model.alive)
    found = Batcher(model).run(work, 1)
    assert len(model.alive) == before
    return found

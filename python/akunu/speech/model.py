"""The protocol of a Whisper model that is decoded; anything that has it will do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from akunu.speech.config import WhisperConfig

__all__ = ["Logits", "Mel", "SpeechModel"]

Logits = npt.NDArray[np.float32]
Mel = npt.NDArray[np.float32]


class SpeechModel(Protocol):
    """An encoder and a decoder. States and sequences are opaque to the caller.

    One thread calls at a time (`akunu.speech.batching`). What a row says does not depend on the others of a
    call.
    """

    @property
    def config(self) -> WhisperConfig:
        """The sizes."""

    @property
    def parallel(self) -> int:
        """Most sequences that there may be at a time."""

    def encode(self, mels: npt.NDArray[np.float32]) -> list[Any]:
        """The states of windows: normalised log-mel frames [windows, mels, 2 audio_context]."""

    def release(self, states: Any) -> None:
        """The states of a window are not used again; nor is any sequence of theirs."""

    def begin(
        self, states: Sequence[Any], tokens: Sequence[Sequence[int]], rows: Sequence[Sequence[int]]
    ) -> tuple[list[Any], Logits]:
        """A sequence for each of `states` that holds its `tokens`, and logits [all rows, vocab].

        `rows` are the places in a sequence's tokens after which its logits are wanted: one or more, rising.
        """

    def fork(self, sequence: Any) -> Any:
        """A second sequence with the same tokens."""

    def step(self, sequences: Sequence[Any], tokens: Sequence[int]) -> Logits:
        """Add one token to each sequence; the logits [sequences, vocab] after it."""

    def free(self, sequence: Any) -> None:
        """The sequence is not used again."""

    def attend(self, states: Any, tokens: Sequence[int]) -> tuple[npt.NDArray[np.float32], Logits]:
        """Return how the alignment heads attend to the sound.

        The weights [heads, tokens, audio positions], each row's sum 1, in the order of
        `config.alignment_heads`, and the logits [tokens, vocab].
        """

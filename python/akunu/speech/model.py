"""What decoding asks of a Whisper model; anything that answers will do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from akunu.speech.config import WhisperConfig

__all__ = ["Logits", "SpeechModel"]

Logits = npt.NDArray[np.float32]


class SpeechModel(Protocol):
    """An encoder and a decoder. States and sequences are opaque to the caller."""

    @property
    def config(self) -> WhisperConfig:
        """The sizes."""

    def encode(self, mel: npt.NDArray[np.float32]) -> Any:
        """The states of a window: normalised log-mel frames [mels, 2 audio_context]."""

    def begin(self, states: Any, tokens: Sequence[int]) -> tuple[Any, Logits]:
        """A sequence that holds `tokens`, and the logits [tokens, vocab] after each of them."""

    def fork(self, sequence: Any) -> Any:
        """A second sequence with the same tokens."""

    def step(self, sequences: Sequence[Any], tokens: Sequence[int]) -> Logits:
        """Add one token to each sequence; the logits [sequences, vocab] after it."""

    def free(self, sequence: Any) -> None:
        """The sequence is not used again."""

    def attend(self, states: Any, tokens: Sequence[int]) -> tuple[npt.NDArray[np.float32], Logits]:
        """How the alignment heads attend to the sound.

        The weights [heads, tokens, audio positions], each row's sum 1, in the order of
        `config.alignment_heads`, and the logits [tokens, vocab].
        """

"""The log-mel frames of a recording, a window at a time, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from akunu.audio import LogMelStream, normalize_log_mel
from akunu.audio.pcm import Samples

__all__ = ["MelWindows"]

Mel = npt.NDArray[np.float32]


class MelWindows:
    """Windows that only move forward over samples that are read as they are needed.

    The loudest power that has been read so far takes the place of that of the whole recording, which a stream
    does not know.

    Parameters
    ----------
    blocks : iterable of ndarray
        Mono samples at 16 kHz (`akunu.audio.audio_blocks`).
    mels : int
        Filters.
    """

    def __init__(self, blocks: Iterable[Samples], mels: int) -> None:
        self._blocks: Iterator[Samples] | None = iter(blocks)
        self._stream = LogMelStream(mels)
        self._power = np.empty((mels, 0), np.float32)  # log10, from frame self._first on
        self._first = 0
        self._top = -np.inf

    @property
    def ended(self) -> bool:
        """Whether all of the recording has been read."""
        return self._blocks is None

    @property
    def read(self) -> int:
        """Frames that have been read; the length of the recording when it has ended."""
        return self._first + self._power.shape[1]

    def window(self, start: int, frames: int) -> tuple[Mel, int]:
        """The frames from `start` on, [mels, frames], and how many of them are the recording's.

        The others are silence.
        """
        self._read(start + frames)
        held = self._power[:, start - self._first :][:, :frames]
        window = np.full((self._stream.mels, frames), -10, np.float32)
        window[:, : held.shape[1]] = held
        return normalize_log_mel(window, max(self._top, -10.0)), held.shape[1]

    def forget(self, before: int) -> None:
        """No frame before this one is asked for again."""
        self._power = self._power[:, before - self._first :].copy()
        self._first = before

    def _read(self, frames: int) -> None:
        pieces = [self._power]
        have = self.read
        while self._blocks is not None and have < frames:
            block = next(self._blocks, None)
            if block is None:
                self._blocks = None
                block = np.zeros(0, np.float32)
            piece = self._stream.feed(block, end=self._blocks is None)
            have += piece.shape[1]
            pieces.append(piece)
            if piece.size:
                self._top = max(self._top, float(piece.max()))
        self._power = np.concatenate(pieces, axis=1)

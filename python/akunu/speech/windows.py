"""The log-mel frames of a recording, a window at a time, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np

from akunu.audio import LogMelStream, normalize_log_mel
from akunu.audio.pcm import Samples
from akunu.speech.model import Mel

__all__ = ["MelWindows"]

_READ_AT_ONCE: Final = 3000
"""Frames, where many are passed over."""


class MelWindows:
    """Windows that only move forward over samples that are read as they are needed.

    The loudest power up to a window's end takes the place of that of the whole recording, which a stream does
    not know.

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
        self._top = -10.0  # of the frames before

    @property
    def ended(self) -> bool:
        """Whether all of the recording has been read."""
        return self._blocks is None

    @property
    def read(self) -> int:
        """Frames that have been read; the length of the recording when it has ended."""
        return self._first + self._power.shape[1]

    def window(self, start: int, frames: int, end: int | None = None) -> tuple[Mel, int]:
        """The frames from `start` on, [mels, frames], and how many of them are the recording's.

        The others are silence, as are those from `end` on.
        """
        last = start + frames if end is None else min(start + frames, end)
        self._read(last)
        held = self._power[:, : max(last - self._first, 0)]
        top = max(self._top, float(held.max())) if held.size else self._top
        held = held[:, start - self._first :]
        window = np.full((self._stream.mels, frames), -10, np.float32)
        window[:, : held.shape[1]] = held
        return normalize_log_mel(window, top), held.shape[1]

    def forget(self, before: int) -> None:
        """No frame before this one is asked for again."""
        while self._first < before:
            self._read(min(before, self._first + _READ_AT_ONCE))
            gone = min(before - self._first, self._power.shape[1])
            if gone <= 0:
                return
            self._top = max(self._top, float(self._power[:, :gone].max()))
            self._power = self._power[:, gone:].copy()
            self._first += gone

    def _read(self, frames: int) -> None:
        if self._blocks is None or self.read >= frames:
            return
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
        self._power = np.concatenate(pieces, axis=1)

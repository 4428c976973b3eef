"""Whisper's log-mel spectrum."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from akunu._core import LogMelStream
from akunu.audio.pcm import SAMPLE_RATE
from akunu.base.errors import InvalidArgumentError

__all__ = ["FRAMES_PER_SECOND", "LogMelStream", "log_mel", "normalize_log_mel"]

FRAMES_PER_SECOND: Final = 100
_MAX_PADDING: Final = 3600 * SAMPLE_RATE


def log_mel(samples: npt.ArrayLike, mels: int = 80, *, padding: int = 0) -> npt.NDArray[np.float32]:
    """The normalised log-mel spectrum of samples at 16 kHz, as OpenAI's `log_mel_spectrogram` makes it.

    Parameters
    ----------
    samples : array of float [n]
        Mono, at 16 kHz.
    mels : int
        Filters: 80, or 128 for large-v3 and what descends from it.
    padding : int
        Samples of silence to add at the end, at most an hour.

    Returns
    -------
    ndarray
        float32 [mels, frames], a frame for every 160 samples, at most 2 above its least value.

    Examples
    --------
    >>> import numpy as np
    >>> log_mel(np.zeros(32000)).shape
    (80, 200)
    """
    if not 0 <= padding <= _MAX_PADDING:
        raise InvalidArgumentError(f"padding is {padding}, expected 0 to {_MAX_PADDING} samples")
    samples = np.asarray(samples, np.float32)
    if padding:
        samples = np.concatenate([samples, np.zeros(padding, np.float32)])
    return normalize_log_mel(LogMelStream(mels).feed(samples, end=True))


def normalize_log_mel(
    log_power: npt.NDArray[np.float32], top: float | None = None
) -> npt.NDArray[np.float32]:
    """log10 powers (what a `LogMelStream` gives) clamped to `top` - 8 and scaled, (x + 4) / 4.

    Parameters
    ----------
    log_power : ndarray
        float32 [mels, frames].
    top : float, optional
        The largest log10 power of the recording; that of these frames when not given.
    """
    if not log_power.size:
        return log_power
    least = np.float32((log_power.max() if top is None else top) - 8)
    return (np.maximum(log_power, least) + np.float32(4)) / np.float32(4)

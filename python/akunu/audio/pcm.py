"""Samples as arrays or bytes: checked, mixed to one channel, as float32 of full scale 1."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from akunu.base.errors import AudioError, InvalidArgumentError

__all__ = ["MAX_CHANNELS", "SAMPLE_RATE", "Samples", "check_rate", "from_array", "from_bytes"]

Samples = npt.NDArray[np.float32]

SAMPLE_RATE: Final = 16000
"""Samples a second that speech models take."""

MAX_CHANNELS: Final = 64
"""The most channels; an array with more columns is taken for one with its axes exchanged."""

RATES: Final = range(1000, 1_000_001)


def check_rate(rate: int) -> int:
    """The sampling rate in Hz, or an `InvalidArgumentError`."""
    if isinstance(rate, bool) or not isinstance(rate, int | np.integer) or rate not in RATES:
        raise InvalidArgumentError(
            f"sampling_rate: found {rate!r}, expected a whole number of Hz from {RATES[0]} to {RATES[-1]}"
        )
    return int(rate)


def from_array(array: npt.NDArray[Any], channel: int | None = None) -> Samples:
    """One channel of float32 from an array [n] or [n, channels] of floats, or of integers at full scale.

    That is the channel of this number, silent where there are fewer; or the mean of all.
    """
    if array.ndim not in (1, 2):
        raise InvalidArgumentError(f"audio has {array.ndim} dimensions, expected [n] or [n, channels]")
    if array.ndim == 2 and not 1 <= array.shape[1] <= MAX_CHANNELS:
        raise InvalidArgumentError(
            f"audio of shape {array.shape} has {array.shape[1]} channels, expected 1 to {MAX_CHANNELS}; "
            "samples come first, [n, channels]: transpose the array"
        )
    with np.errstate(over="ignore", invalid="ignore"):  # found below
        if channel is not None:
            columns = array[:, None] if array.ndim == 1 else array
            few = channel >= columns.shape[1]
            array = np.zeros(len(columns), np.float32) if few else columns[:, channel]
        samples = _one_channel(array)
    if not np.isfinite(samples).all():
        at = int(np.argmin(np.isfinite(samples)))
        raise AudioError(f"sample {at} of the audio is {samples[at]}, expected finite numbers")
    return np.ascontiguousarray(samples)


def _one_channel(array: npt.NDArray[Any]) -> Samples:
    if array.dtype.kind == "f":
        samples: Samples = array.astype(np.float32, copy=False)
    elif array.dtype.kind == "i":
        samples = array.astype(np.float32) / np.float32(-float(np.iinfo(array.dtype).min))
    elif array.dtype == np.uint8:  # as in WAV files
        samples = (array.astype(np.float32) - np.float32(128)) / np.float32(128)
    else:
        raise InvalidArgumentError(
            f"audio has elements of type {array.dtype}, expected floats or signed integers (or uint8)"
        )
    return samples.mean(axis=1, dtype=np.float32) if samples.ndim == 2 else samples


def from_bytes(data: bytes | bytearray | memoryview) -> Samples:
    """Little-endian 16-bit PCM of one channel."""
    data = bytes(data)  # of a view, which counts in other units and may lie apart
    if len(data) % 2:
        raise AudioError(f"a piece of 16-bit PCM has {len(data)} bytes, expected an even number")
    return from_array(np.frombuffer(data, "<i2"))

"""Whatever holds sound, as blocks of mono samples at 16 kHz."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from akunu.audio.files import Recording
from akunu.audio.pcm import SAMPLE_RATE, Samples, check_rate, from_array, from_bytes
from akunu.audio.resample import resampled
from akunu.base.errors import AudioError, InvalidArgumentError

__all__ = ["AudioSource", "audio_blocks", "audio_channels", "audio_seconds", "load_audio"]

AudioSource = (
    str
    | os.PathLike[str]
    | bytes
    | IO[bytes]
    | npt.NDArray[Any]
    | Iterable[npt.NDArray[Any] | bytes | bytearray | memoryview]
)
"""The sources that `audio_blocks` takes."""


def audio_blocks(
    audio: AudioSource, *, sampling_rate: int | None = None, channel: int | None = None
) -> Iterator[Samples]:
    """Mono samples at 16 kHz of a recording, in pieces of about a second, as they are read.

    Parameters
    ----------
    audio : path, bytes, file object, ndarray, or iterable
        A recording that libsndfile reads, as its path, its content or an open binary file (also a pipe); an
        array [n] or [n, channels] of floats at full scale 1 or of signed integers; or an iterable of such
        arrays, or of pieces of little-endian 16-bit PCM of one channel.
    sampling_rate : int, optional
        Samples a second of an array or an iterable, 16000 when not given. A recording states its own.
    channel : int, optional
        Only the channel of this number, from 0 on (`audio_channels` counts them); their mean when not given.

    Yields
    ------
    ndarray
        float32 [n]. The memory in use does not grow with the length.

    Raises
    ------
    AudioError
        When the audio is missing, damaged, cut off or empty, or a sample is not finite.
    InvalidArgumentError
        When the argument is not audio, or its rate is out of range.

    Examples
    --------
    >>> import numpy as np
    >>> pieces = audio_blocks(np.zeros((44100, 2)), sampling_rate=44100)
    >>> sum(len(piece) for piece in pieces)
    16000
    """
    if isinstance(audio, str | os.PathLike | bytes) or hasattr(audio, "read"):
        if sampling_rate is not None:
            raise InvalidArgumentError("sampling_rate is for arrays; a recording states its own")
        return _not_empty(_recording_blocks(audio, channel))
    rate = check_rate(SAMPLE_RATE if sampling_rate is None else sampling_rate)
    if hasattr(audio, "__array__"):
        return _not_empty(resampled(_array_blocks(from_array(np.asarray(audio), channel), rate), rate))
    if isinstance(audio, Iterable) and not isinstance(audio, bytearray | memoryview | dict | list | tuple):
        return _not_empty(resampled((_piece(piece, channel) for piece in audio), rate))
    raise InvalidArgumentError(
        f"audio is of type {type(audio).__name__}, expected a path, bytes, a binary file, a NumPy array, "
        "or an iterator of arrays; numbers in a list: numpy.array(audio)"
    )


def load_audio(audio: AudioSource, *, sampling_rate: int | None = None) -> Samples:
    """All samples of a recording at once: what `audio_blocks` yields, as one float32 array [n].

    Examples
    --------
    >>> import numpy as np
    >>> load_audio(np.array([0, 16384, -32768], np.int16))
    array([ 0. ,  0.5, -1. ], dtype=float32)
    """
    return np.concatenate(list(audio_blocks(audio, sampling_rate=sampling_rate)))


def audio_channels(audio: AudioSource) -> int:
    """Return the number of channels of a recording or an array; 1 for what is only known when it comes."""
    if hasattr(audio, "__array__"):
        array = np.asarray(audio)
        return array.shape[1] if array.ndim == 2 else 1
    if isinstance(audio, str | os.PathLike | bytes):
        with Recording(audio) as recording:
            return recording.channels
    return 1


def audio_seconds(audio: AudioSource, sampling_rate: int | None = None) -> float | None:
    """Return the length that a source gives; None where that is not known before all is read."""
    if isinstance(audio, np.ndarray):
        return len(audio) / (sampling_rate or SAMPLE_RATE) if audio.ndim else None
    if isinstance(audio, bytes) or (isinstance(audio, str | os.PathLike) and os.path.isfile(audio)):
        with contextlib.suppress(AudioError), Recording(audio) as recording:
            return recording.seconds
    return None


def _recording_blocks(audio: Any, channel: int | None) -> Iterator[Samples]:
    with Recording(audio, channel) as recording:
        for rate, blocks in recording:
            yield from resampled(blocks, rate)


def _array_blocks(samples: Samples, rate: int) -> Iterator[Samples]:
    return (samples[start : start + rate] for start in range(0, len(samples), rate))


def _piece(piece: npt.NDArray[Any] | bytes | bytearray | memoryview, channel: int | None) -> Samples:
    if isinstance(piece, bytes | bytearray | memoryview):
        return from_bytes(piece)
    if hasattr(piece, "__array__"):
        return from_array(np.asarray(piece), channel)
    raise InvalidArgumentError(
        f"a piece of the audio is of type {type(piece).__name__}, expected an array or bytes"
    )


def _not_empty(blocks: Iterator[Samples]) -> Iterator[Samples]:
    empty = True
    for block in blocks:
        if len(block):
            empty = False
            yield block
    if empty:
        raise AudioError("the audio has no samples")

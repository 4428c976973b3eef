"""Find speech: frames that stand out of the steady background, and are no noise by their spectrum.

Two things are measured in every hundredth of a second, between 200 and 4000 Hz: the energy over the
background, which is the least energy of the three seconds around (speech pauses between syllables, hum and
noise do not; after R. Martin, 2001), and the flatness of the spectrum, about 0.7 for white noise and below
0.5 for speech. Music that changes counts as speech.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from akunu._core import LogMelStream
from akunu.audio.pcm import SAMPLE_RATE, Samples
from akunu.base.errors import InvalidArgumentError

__all__ = [
    "OURS",
    "Detector",
    "SpeechSpan",
    "VadOptions",
    "spans_and_silence",
    "speech_probability",
    "speech_spans",
]

Floats = npt.NDArray[np.float32]

MELS: Final = 80
BANDS: Final = slice(5, 59)  # 200 to 4000 Hz
FRAMES_PER_SECOND: Final = 100
AROUND: Final = 150  # frames on either side, in which the background shows
SMOOTHED: Final = 5  # frames
QUIETEST: Final = -4.5  # log10 of the power of a band, about -65 dB below full scale


@dataclass(frozen=True)
class VadOptions:
    """The options of speech detection; names and defaults are faster-whisper's.

    Attributes
    ----------
    threshold : float
        Speech begins where its probability is at least this.
    neg_threshold : float, optional
        And ends where it is below this; `threshold` - 0.15 when not given.
    min_speech_duration_ms : int
        Shorter speech is none.
    max_speech_duration_s : float
        Longer speech is cut where it is least probable.
    min_silence_duration_ms : int
        Shorter silence is part of the speech around it, as is one shorter than twice `speech_pad_ms`.
    speech_pad_ms : int
        What is kept before and after speech.
    """

    threshold: float = 0.5
    neg_threshold: float | None = None
    min_speech_duration_ms: int = 0
    max_speech_duration_s: float = math.inf
    min_silence_duration_ms: int = 2000
    speech_pad_ms: int = 400

    def __post_init__(self) -> None:
        self._check("threshold", "a number between 0 and 1", lambda value: 0 < value < 1)
        if self.neg_threshold is not None:
            self._check("neg_threshold", "a number or None", lambda value: True)
        for name in ("min_speech_duration_ms", "min_silence_duration_ms"):
            self._check(name, "at least 0", lambda value: value >= 0)
        self._check("speech_pad_ms", "at least 0, and finite", lambda value: 0 <= value < math.inf)
        self._check("max_speech_duration_s", "at least 1", lambda value: value >= 1)

    def _check(self, name: str, expected: str, holds: Callable[[float], bool]) -> None:
        """Keeps the field as a number of Python's own: those of NumPy may overflow."""
        given = getattr(self, name)
        try:
            value = float(given) if isinstance(given, numbers.Real) and not isinstance(given, bool) else None
        except OverflowError:
            value = None
        if value is None or math.isnan(value) or not holds(value):
            raise InvalidArgumentError(f"{name} is {given!r}, expected {expected}")
        object.__setattr__(self, name, int(given) if isinstance(given, numbers.Integral) else value)


@dataclass(frozen=True)
class SpeechSpan:
    """Speech from sample `start` to before sample `end`, at 16 kHz."""

    start: int
    end: int


@dataclass(frozen=True)
class Detector:
    """A function that says how probable speech is.

    Attributes
    ----------
    hop : int
        Samples that a probability is of.
    probabilities : callable
        From blocks of mono samples at 16 kHz to those of all of them, in pieces.
    """

    hop: int
    probabilities: Callable[[Iterable[Samples]], Iterator[Floats]]


def speech_probability(blocks: Iterable[Samples]) -> Iterator[Floats]:
    """Yield the probability of speech in each hundredth of a second, in pieces, up to 2.5 seconds late.

    Parameters
    ----------
    blocks : iterable of ndarray
        Mono samples at 16 kHz (`akunu.audio.audio_blocks`).
    """
    stream = LogMelStream(MELS)
    power = np.empty((BANDS.stop - BANDS.start, 0), np.float32)  # log10, of frames not yet out of reach
    before = 0  # frames of it that have been judged
    margin = AROUND + SMOOTHED
    for block, last in _with_last(blocks):
        power = np.concatenate([power, stream.feed(block, end=last)[BANDS]], axis=1)
        ready = power.shape[1] - (0 if last else margin)
        if ready <= before or (not last and ready - before < FRAMES_PER_SECOND):
            continue
        yield _judge(power)[before:ready]
        keep = max(ready - margin, 0)
        power, before = power[:, keep:], ready - keep


def _with_last(blocks: Iterable[Samples]) -> Iterator[tuple[Samples, bool]]:
    for block in blocks:
        yield block, False
    yield np.zeros(0, np.float32), True


def _judge(power: Floats) -> Floats:
    """The probability of each frame; those within the margins see less around them than the others."""
    if not power.shape[1]:
        return np.empty(0, np.float32)
    level = 10**power
    energy = 10 * np.log10(_smoothed(level.mean(axis=0)))
    above = energy - np.maximum(_least_around(energy), 10 * QUIETEST)
    flatness = _smoothed(10 ** power.mean(axis=0) / level.mean(axis=0))
    stands_out = 1 / (1 + np.exp(np.clip(6 - above, -20, 20) / 1.2))
    no_noise = 1 / (1 + np.exp(np.clip(flatness - 0.55, -1, 1) / 0.04))
    result: Floats = (stands_out * no_noise).astype(np.float32)
    return result


def _smoothed(values: Floats) -> Floats:
    padded = np.pad(values, SMOOTHED // 2, mode="edge")
    smooth: Floats = np.lib.stride_tricks.sliding_window_view(padded, SMOOTHED).mean(axis=-1)
    return smooth


def _least_around(values: Floats) -> Floats:
    padded = np.pad(values, AROUND, constant_values=np.inf)
    least: Floats = np.lib.stride_tricks.sliding_window_view(padded, 2 * AROUND + 1).min(axis=-1)
    return least


OURS: Final = Detector(SAMPLE_RATE // FRAMES_PER_SECOND, speech_probability)
"""The one that this module is about."""


def speech_spans(
    blocks: Iterable[Samples], options: VadOptions | None = None, detector: Detector = OURS
) -> Iterator[SpeechSpan]:
    """Yield stretches of speech, each as soon as the silence after it is long enough.

    Parameters
    ----------
    blocks : iterable of ndarray
        Mono samples at 16 kHz (`akunu.audio.audio_blocks`).
    options : VadOptions, optional
        What counts as speech.
    detector : Detector, optional
        Another one than ours (`akunu.audio.silero_detector`).

    Examples
    --------
    >>> import numpy as np
    >>> list(speech_spans([np.zeros(16000, np.float32)]))
    []
    """
    spans = spans_and_silence(blocks, options or VadOptions(), detector)
    return (span for span in spans if span.start < span.end)


def spans_and_silence(
    blocks: Iterable[Samples], options: VadOptions, detector: Detector
) -> Iterator[SpeechSpan]:
    """Yield what `speech_spans` does, and now and then an empty span: no other one begins before it.

    So that those who keep the samples know which of them they may forget.
    """
    total = 0

    def counted() -> Iterator[Samples]:
        nonlocal total
        for block in blocks:
            total += len(block)
            yield block

    hop = detector.hop
    pad = int(options.speech_pad_ms * SAMPLE_RATE // 1000)
    before = 0
    for first, end in _frame_spans(detector.probabilities(counted()), options, SAMPLE_RATE / hop):
        start = max(first * hop - pad, before)
        if first < end:  # of speech that was cut because it was long, the parts touch
            before = min(end * hop + pad, total)
            yield SpeechSpan(start, before)
        else:
            yield SpeechSpan(start, start)


def _frame_spans(
    pieces: Iterable[Floats], options: VadOptions, frames_per_second: float
) -> Iterator[tuple[int, int]]:
    """Speech as frames, before it is padded; an empty one where there is none up to here."""
    low = options.threshold - 0.15 if options.neg_threshold is None else options.neg_threshold
    silence = max(options.min_silence_duration_ms, 2 * options.speech_pad_ms) * frames_per_second // 1000
    shortest = options.min_speech_duration_ms * frames_per_second // 1000
    longest = options.max_speech_duration_s * frames_per_second
    first: int | None = None  # of the speech that has begun
    end = 0  # after its last frame so far
    heard: list[float] = []  # its probabilities
    frame = 0
    for piece in pieces:
        for probability in piece.tolist():
            if first is None and probability >= options.threshold:
                first, end, heard = frame, frame + 1, []
            if first is not None:
                heard.append(probability)
                if probability >= low:
                    end = frame + 1
                if frame + 1 - end >= silence:
                    if end - first >= shortest:
                        yield first, end
                    first = None
                elif len(heard) >= longest:
                    half = len(heard) // 2
                    cut = first + half + int(np.argmin(heard[half:]))
                    yield first, cut
                    first, heard = cut, heard[cut - first :]
                    end = max(end, first)
            frame += 1
        if first is None:
            yield frame, frame
    if first is not None and end - first >= max(shortest, 1):
        yield first, end

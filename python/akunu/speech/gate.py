"""Recordings without their silence, and their silences as places to cut."""

from __future__ import annotations

import bisect
import dataclasses
import itertools
from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np

from akunu.audio import SAMPLE_RATE, VadOptions
from akunu.audio.activity import OURS, Detector, spans_and_silence
from akunu.audio.pcm import Samples
from akunu.base.errors import InvalidArgumentError
from akunu.speech.segments import Segment, Word

__all__ = ["SpeechGate", "cut_at_silence"]

LONGEST: Final = 60.0
"""Seconds of speech that are kept until its end is found."""
LONGEST_PAUSE: Final = 5.0
"""Seconds of silence in a window; what is on either side of a longer one is in windows of its own."""
SHORT_SILENCE_MS: Final = 160
"""faster-whisper's, where windows are to end in silence."""


class SpeechGate:
    """The stretches of a recording in which somebody speaks, one after the other, in bounded memory.

    Parameters
    ----------
    blocks : iterable of ndarray
        Mono samples at 16 kHz.
    options : VadOptions
        What counts as speech.
    detector : Detector
        What finds it.
    """

    def __init__(self, blocks: Iterable[Samples], options: VadOptions, detector: Detector = OURS) -> None:
        self._blocks = blocks
        self._detector = detector
        longest = min(options.max_speech_duration_s, LONGEST)
        self._options = dataclasses.replace(options, max_speech_duration_s=longest)
        self._kept = [0.0]  # seconds of speech where each stretch begins,
        self._begins = [0.0]  # and where that is in the recording

    def __iter__(self) -> Iterator[Samples]:
        judged, heard = itertools.tee(self._blocks)
        samples = _Samples(heard)
        kept = 0
        for span in spans_and_silence(judged, self._options, self._detector):
            samples.skip(span.start)
            if span.start < span.end:
                self._kept.append(kept / SAMPLE_RATE)
                self._begins.append(span.start / SAMPLE_RATE)
                kept += span.end - span.start
                yield from samples.take(span.end)

    def original(self, seconds: float, end: bool = False) -> float:
        """Return where a moment of speech is in the recording; at a border, `end` means what is before it."""
        find = bisect.bisect_left if end else bisect.bisect_right
        at = max(find(self._kept, seconds) - 1, 0)
        return round(self._begins[at] + seconds - self._kept[at], 2)

    def restored(self, segment: Segment) -> Segment:
        """The segment with its times in the recording."""
        words = tuple(
            Word(word.word, *self._restored(word.start, word.end), word.probability) for word in segment.words
        )
        start, end = self._restored(segment.start, segment.end)
        if words:
            start, end = words[0].start, words[-1].end
        return dataclasses.replace(segment, start=start, end=max(start, end), words=words)

    def _restored(self, start: float, end: float) -> tuple[float, float]:
        """A border is the end of what is before it, unless that is what begins there."""
        start = self.original(start)
        return start, max(start, self.original(end, end=True))


class _Samples:
    """Samples that are only read forward."""

    def __init__(self, blocks: Iterator[Samples]) -> None:
        self._blocks = blocks
        self._block = np.zeros(0, np.float32)
        self._first = 0

    def take(self, end: int) -> Iterator[Samples]:
        """Yield the samples up to `end`."""
        while self._first < end:
            if not len(self._block):
                following = next(self._blocks, None)
                if following is None:
                    return
                self._block = following
            piece = self._block[: end - self._first]
            self._block = self._block[len(piece) :]
            self._first += len(piece)
            yield piece

    def skip(self, end: int) -> None:
        for _ in self.take(end):
            pass


def cut_at_silence(
    blocks: Iterable[Samples], options: VadOptions | None, seconds: float, detector: Detector = OURS
) -> Iterator[tuple[int, int]]:
    """Stretches of speech of at most so many seconds, as samples: neighbours together while they fit.

    An empty stretch says that no other one begins before it.
    """
    options = options or VadOptions(min_silence_duration_ms=SHORT_SILENCE_MS)
    longest = seconds - 2 * options.speech_pad_ms / 1000
    if longest < 1:
        raise InvalidArgumentError(
            f"speech_pad_ms is {options.speech_pad_ms}, and twice that leaves less than a second of a window "
            f"of {seconds:g} s"
        )
    options = dataclasses.replace(options, max_speech_duration_s=min(options.max_speech_duration_s, longest))
    most, pause = round(seconds * SAMPLE_RATE), round(LONGEST_PAUSE * SAMPLE_RATE)
    first = last = 0
    for span in spans_and_silence(blocks, options, detector):
        if first < last and (span.end - first > most or span.start - last > pause):
            yield first, last
            first = last
        if first == last:
            first, last = span.start, span.end
            if first == last:
                yield first, last
        elif span.start < span.end:
            last = span.end
    if first < last:
        yield first, last

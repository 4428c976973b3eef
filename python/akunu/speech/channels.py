"""A recording whose channels are transcribed apart: each by itself, their segments in the order of time."""

from __future__ import annotations

import dataclasses
import heapq
from collections.abc import Generator, Sequence
from contextlib import ExitStack, closing

from akunu.base.errors import AudioError
from akunu.speech.segments import Segment
from akunu.speech.transcription import Transcriber

__all__ = ["ChannelsTranscriber"]


class ChannelsTranscriber:
    """Iterating gives the segments of all channels; in every other way it is a `Transcriber`.

    Parameters
    ----------
    channels : sequence of Transcriber
        One for each channel.
    """

    def __init__(self, channels: Sequence[Transcriber]) -> None:
        self._channels = channels
        self._failed: AudioError | None = None

    @property
    def language(self) -> str | None:
        """The language of the first channel in which it is known."""
        return next((one.language for one in self._channels if one.language is not None), None)

    @property
    def language_probability(self) -> float:
        """The probability of that language."""
        found = (one for one in self._channels if one.language is not None)
        return next((one.language_probability for one in found), 1.0)

    @property
    def duration(self) -> float:
        """Seconds that have been read of the channel that is furthest."""
        return max(one.duration for one in self._channels)

    def cancel(self) -> None:
        """End the work; callable from any thread."""
        for one in self._channels:
            one.cancel()

    def __iter__(self) -> Generator[Segment, None, None]:
        with ExitStack() as stack:
            each = [
                stack.enter_context(closing(self._labelled(one, channel)))
                for channel, one in enumerate(self._channels)
            ]
            merged = heapq.merge(*each, key=lambda segment: segment.start)
            for number, segment in enumerate(merged):
                yield dataclasses.replace(segment, id=number)
        if self._failed is not None:
            raise self._failed

    def _labelled(self, one: Transcriber, channel: int) -> Generator[Segment, None, None]:
        """A channel's segments; the others go on where its recording is damaged."""
        with closing(iter(one)) as segments:
            try:
                for segment in segments:
                    yield dataclasses.replace(segment, channel=channel)
            except AudioError as error:
                self._failed = error

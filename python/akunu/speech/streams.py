"""The segments of a transcription as they are found: for threads, and for asyncio."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing
from typing import Protocol, TypeVar

from akunu.api.item_streams import AsyncItems, ItemStream
from akunu.speech.segments import Segment
from akunu.speech.transcript import Transcription

__all__ = ["AsyncSegmentStream", "SegmentStream", "SpeechStream", "transcribed"]

Item = TypeVar("Item")
Item_co = TypeVar("Item_co", covariant=True)


class _Source(Protocol[Item_co]):
    """The source of items: `akunu.speech.transcription.Transcriber` or `akunu.speech.live.Listener`."""

    def __iter__(self) -> Generator[Item_co, None, None]: ...
    def cancel(self) -> None: ...


class SpeechStream(ItemStream[Item]):
    """A stream of what a source makes of a recording; `cancel` and `close` end it from any thread."""

    def __init__(self, source: _Source[Item]) -> None:
        super().__init__(iter(source))
        self._source = source
        self._on_cancel: Callable[[], None] | None = None

    def on_cancel(self, function: Callable[[], None]) -> None:
        """Call `function` too when it is cancelled or closed."""
        self._on_cancel = function

    def cancel(self) -> None:
        """End it, from any thread: what runs stops within a step, and no more comes."""
        self._source.cancel()
        if self._on_cancel is not None:
            self._on_cancel()
        self._finish()


class SegmentStream(SpeechStream[Segment]):
    """The segments of a recording, as they are found.

    It begins when the first one is read, and ends by itself, by `cancel` or `close`, or when it is dropped.

    Examples
    --------
    >>> with model.transcribe_stream("talk.flac") as segments:  # doctest: +SKIP
    ...     for segment in segments:
    ...         print(segment.text)
    >>> segments.language  # doctest: +SKIP
    'en'
    """

    def __init__(self, source: _Transcribing) -> None:
        super().__init__(source)
        self._found: list[Segment] = []
        self._transcriber = source

    def __next__(self) -> Segment:
        segment = super().__next__()
        self._found.append(segment)
        return segment

    @property
    def language(self) -> str | None:
        """The language's code; None before it is known."""
        return self._transcriber.language

    @property
    def transcription(self) -> Transcription:
        """The transcription of what was read so far."""
        source = self._transcriber
        return Transcription(
            source.language, source.language_probability, source.duration, tuple(self._found)
        )


class _Transcribing(_Source[Segment], Protocol):
    @property
    def language(self) -> str | None: ...
    @property
    def language_probability(self) -> float: ...
    @property
    def duration(self) -> float: ...


class AsyncSegmentStream(AsyncItems[Segment]):
    """The segments of a recording, for `async for`; in every other way it is a `SegmentStream`."""

    def __init__(self, stream: SegmentStream) -> None:
        super().__init__(stream)
        self._segments = stream

    @property
    def language(self) -> str | None:
        """The language's code; None before it is known."""
        return self._segments.language

    @property
    def transcription(self) -> Transcription:
        """The transcription of what was read so far."""
        return self._segments.transcription


def transcribed(segments: SegmentStream) -> Transcription:
    """Read all of them; the whole."""
    with closing(segments):
        for _ in segments:
            pass
    return segments.transcription

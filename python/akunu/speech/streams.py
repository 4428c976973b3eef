"""The segments of a transcription as they are found: for threads, and for asyncio."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Generic, Protocol, Self, TypeVar

from akunu.speech.segments import Segment
from akunu.speech.transcript import Transcription

__all__ = ["AsyncItems", "AsyncSegmentStream", "ItemStream", "SegmentStream", "transcribed"]

Item = TypeVar("Item")
Item_co = TypeVar("Item_co", covariant=True)
T = TypeVar("T")


class _Source(Protocol[Item_co]):
    """What makes the items: `akunu.speech.transcription.Transcriber` or `akunu.speech.live.Listener`."""

    def __iter__(self) -> Iterator[Item_co]: ...
    def cancel(self) -> None: ...


class ItemStream(Iterator[Item], Generic[Item]):
    """Items that a model makes one after the other; `cancel` and `close` end it from any thread."""

    def __init__(self, source: _Source[Item]) -> None:
        self._source = source
        self._steps = iter(source)
        self._mutex = threading.RLock()
        self._busy = False
        self._on_cancel: Callable[[], None] | None = None

    def on_cancel(self, function: Callable[[], None]) -> None:
        """Call `function` too when it is cancelled or closed."""
        self._on_cancel = function

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Item:
        with self._mutex:
            self._busy = True
            try:
                return next(self._steps)
            finally:
                self._busy = False

    def cancel(self) -> None:
        """End it, from any thread: what runs stops within a step, and no more comes."""
        self._source.cancel()
        if self._on_cancel is not None:
            self._on_cancel()
        self._finish()

    def _finish(self) -> None:
        """Free what it holds, unless its reader does."""
        if self._mutex.acquire(blocking=False):
            try:
                if not self._busy:  # busy here: a signal's handler, in the thread that reads
                    self._steps.close()  # type: ignore[attr-defined]
            finally:
                self._mutex.release()

    def close(self) -> None:
        """End it now; the model holds nothing of it any more."""
        self.cancel()
        with self._mutex:
            self._finish()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class SegmentStream(ItemStream[Segment]):
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
        """What was read so far, as a whole."""
        source = self._transcriber
        return Transcription(
            source.language, source.language_probability, source.duration, tuple(self._found)
        )


class _Transcribing(_Source[Segment], Protocol):
    language: str | None
    language_probability: float

    @property
    def duration(self) -> float: ...


class AsyncItems(AsyncIterator[Item], Generic[Item]):
    """An `ItemStream` for `async for`; a thread of its own reads it.

    When the task that reads is cancelled, the work ends, and the model is free before the task goes on.
    """

    def __init__(self, stream: ItemStream[Item]) -> None:
        self._stream = stream
        self._thread = ThreadPoolExecutor(1, "akunu-speech-stream")
        self._ended = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Item:
        if self._ended:
            raise StopAsyncIteration
        try:
            item = await self._run(lambda: next(self._stream, None))
        except BaseException:  # a cancelled task above all
            await self.aclose()
            raise
        if item is None:
            self._end()
            raise StopAsyncIteration
        return item

    async def _run(self, function: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, function)

    def _end(self) -> None:
        self._ended = True
        self._thread.shutdown(wait=False)

    def cancel(self) -> None:
        """End it: what runs stops within a step, and no more comes."""
        self._stream.cancel()

    async def aclose(self) -> None:
        """End it now, and wait until the model holds nothing of it."""
        if not self._ended:
            self._stream.cancel()
            closed = self._run(self._stream.close)
            self._ended = True
            try:
                await asyncio.shield(closed)
            finally:
                self._end()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


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
        """What was read so far, as a whole."""
        return self._segments.transcription


def transcribed(segments: SegmentStream) -> Transcription:
    """Read all of them; the whole."""
    with closing(segments):
        for _ in segments:
            pass
    return segments.transcription

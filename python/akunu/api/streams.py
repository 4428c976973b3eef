"""The pieces of an output as the model generates it: `Stream` for threads, `AsyncStream` for asyncio."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Protocol, Self, TypeVar

from akunu.api.generation import Generation
from akunu.api.item_streams import AsyncItems, ItemStream
from akunu.api.reading import Reading
from akunu.api.results import Completion, Piece, Stats
from akunu.api.scheduling.interrupts import held
from akunu.chat.deltas import Delta

__all__ = ["AsyncStream", "Stream", "acompleted", "acompleted_all", "completed"]

T = TypeVar("T")


class _Server(Protocol):
    """The part of a model that a stream needs."""

    def _forked(self) -> bool: ...
    def _check_process(self) -> None: ...


class Stream(ItemStream[Piece]):
    """The pieces of an output, as the model generates it.

    A piece is a `str` that knows its tokens: `piece.ids`, and `piece.logprobs` where they were asked for.

    It begins at the first piece, and ends by itself, by `cancel` or `close`, or when the stream is dropped. A
    stream that is never read holds nothing, and one that is read no more holds up nobody. Closed early, it
    leaves the KV cache as if the generation had ended with the last piece that was read.

    Examples
    --------
    >>> with model.stream("Once upon a time", max_tokens=50) as pieces:  # doctest: +SKIP
    ...     for piece in pieces:
    ...         print(piece, end="", flush=True)
    >>> pieces.completion.stats.decode_tokens_per_second  # doctest: +SKIP
    """

    def __init__(self, model: _Server, generation: Generation, reading: Reading | None = None) -> None:
        self._model = model
        self._generation = generation
        self._reading = reading  # of an answer of a chat
        self._rest: deque[Piece] = deque()  # what a cancelled generation had still to say
        super().__init__(generation.pieces(reading))

    def __next__(self) -> Piece:
        self._model._check_process()
        with held, self._mutex:
            piece = self._rest.popleft() if self._rest else super().__next__()
        if self._generation.cancelled:  # while the piece was made: nobody may ask for another one
            self._finish()
        return piece

    @property
    def running(self) -> bool:
        """Whether the generation has begun and not ended."""
        return self._generation.running

    @property
    def prompt_read(self) -> tuple[int, int]:
        """Tokens of the prompt that were cached when it began, and those that are read now.

        Also while another thread waits for the next piece.
        """
        return self._generation.prompt_read

    @property
    def completion(self) -> Completion:
        """The result so far, as of `Model.generate`; before the end, its finish reason is `cancelled`."""
        self._model._check_process()
        with self._mutex:
            completion = self._generation.completion()
            if self._reading is None:
                return completion
            return replace(completion, message=self._reading.message(completion.text))

    @property
    def stats(self) -> Stats:
        """The counts and times so far, as of `completion.stats`."""
        with self._mutex:
            return self._generation.stats()

    def deltas(self) -> Iterator[Delta]:
        """Instead of the pieces, what those of a chat say: content, reasoning and calls of tools.

        Examples
        --------
        >>> for delta in model.stream_chat(messages).deltas():  # doctest: +SKIP
        ...     if isinstance(delta, akunu.chat.Content):
        ...         print(delta.text, end="")
        """
        for piece in self:
            yield from piece.deltas

    def whole_calls(self) -> Self:
        """This stream of a chat, with each call of a tool only when it is complete. Before the first piece.

        A call that breaks off is content then, as it is in `Completion.message`.
        """
        if self._reading is not None:
            self._reading.whole_calls = True
        return self

    def patient(self) -> Self:
        """This stream with fewer and longer pieces, for who wants the whole of it. Before the first piece.

        Threads that wake up for each token take time from all that the model writes together.
        """
        self._generation.be_patient()
        return self

    def cancel(self) -> None:
        """End this stream at the next piece, from any thread; what was computed is still given.

        The model is released, also when nobody reads on. A stream that waits for its turn ends at once.
        """
        if not self._model._forked():
            self._generation.cancel()
            self._finish()

    def _finish(self) -> None:
        with held:
            super()._finish()

    def _wind_up(self) -> None:
        self._rest.extend(self._steps)

    def close(self) -> None:
        """End the stream now. More pieces cannot be read."""
        if self._model._forked():
            return
        with held:
            self._generation.cancel()
            with self._mutex:
                self._rest.clear()
                self._steps.close()

    def __repr__(self) -> str:
        return "<akunu.Stream running>" if self.running else "<akunu.Stream>"


class AsyncStream(AsyncItems[Piece]):
    """The pieces of an output, for `async for`. The model runs in a thread of the stream's own.

    When the task that reads is cancelled, the generation ends and the model is free before the task goes on.
    In every other way it is a `Stream`.

    Examples
    --------
    >>> async def show():
    ...     async with model.astream("Once upon a time", max_tokens=50) as pieces:
    ...         async for piece in pieces:
    ...             print(piece, end="", flush=True)
    """

    def __init__(self, stream: Stream) -> None:
        super().__init__(stream)
        self._stream = stream

    @property
    def running(self) -> bool:
        """Whether the generation has begun and not ended."""
        return self._stream.running

    @property
    def prompt_read(self) -> tuple[int, int]:
        """Tokens of the prompt that were cached when it began, and those that are read now."""
        return self._stream.prompt_read

    @property
    def completion(self) -> Completion:
        """The result so far, as of `Model.generate`; before the end, its finish reason is `cancelled`."""
        return self._stream.completion

    @property
    def stats(self) -> Stats:
        """The counts and times so far, as of `completion.stats`."""
        return self._stream.stats

    async def deltas(self) -> AsyncIterator[Delta]:
        """Instead of the pieces, what they say, as of `Stream.deltas`."""
        async for piece in self:
            for delta in piece.deltas:
                yield delta

    def whole_calls(self) -> Self:
        """This stream with each call of a tool only when it is complete, as of `Stream.whole_calls`."""
        self._stream.whole_calls()
        return self

    def patient(self) -> Self:
        """This stream with fewer and longer pieces, as of `Stream.patient`."""
        self._stream.patient()
        return self


def completed(stream: Stream) -> Completion:
    """Read a stream to its end; the result."""
    with closing(stream.patient()):
        for _ in stream:
            pass
    return stream.completion


async def acompleted(stream: AsyncStream) -> Completion:
    """Read a stream to its end; the result."""
    async with stream.patient():
        async for _ in stream:
            pass
    return stream.completion


async def acompleted_all(streams: Sequence[AsyncStream]) -> list[Completion]:
    """Read streams to their ends, together; the results."""
    tasks = [asyncio.ensure_future(acompleted(stream)) for stream in streams]
    try:
        return list(await asyncio.gather(*tasks))
    except BaseException:
        for task in tasks:
            if not task.cancelling():  # a second one would cut its farewell short
                task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise

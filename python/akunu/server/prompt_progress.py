"""Reports of how far a prompt is read while its first token is waited for, as llama-server sends them."""

from __future__ import annotations

import asyncio
import time
from typing import Final, Self

from akunu.api.results import Piece
from akunu.api.streams import AsyncStream

__all__ = ["Progress", "ProgressWatch", "progress_of"]

_LOOK_SECONDS: Final = 0.1
"""Seconds between two looks at how far a prompt is."""


class Progress(Piece):
    """An empty piece that says how far the prompt is read, as a field of an event."""

    __slots__ = ("fields",)

    fields: dict[str, dict[str, int]]

    def __new__(cls, total: int, cached: int, read: int, seconds: float) -> Self:
        piece = super().__new__(cls, "")
        told = {"total": total, "cache": cached, "processed": read, "time_ms": round(seconds * 1000)}
        piece.fields = {"prompt_progress": told}
        return piece


def progress_of(piece: Piece | None) -> dict[str, dict[str, int]]:
    """Return the fields of a report; pieces of the output have none."""
    return piece.fields if isinstance(piece, Progress) else {}


class ProgressWatch:
    """Waits for the first piece of a stream, and tells how far its prompt is read meanwhile.

    The first report has what was cached, and the last one the whole prompt.
    """

    def __init__(self, stream: AsyncStream) -> None:
        self._stream = stream
        self._total = stream.stats.prompt_tokens
        self._first: asyncio.Task[Piece | None] | None = None
        self._told: int | None = None
        self._began = 0.0
        self.over = False
        """The first piece was given."""

    async def next(self) -> Piece | None:
        """A report, or the first piece; None: there is none."""
        if self._first is None:
            self._first = asyncio.create_task(_next(self._stream))
        while (report := self._report(self._first)) is None and not self._first.done():
            await asyncio.wait({self._first}, timeout=_LOOK_SECONDS)
        if report is None:
            self.over = True
            return await self._first
        return report

    async def close(self) -> None:
        """Wait no longer."""
        if self._first is not None and not self._first.done():
            self._first.cancel()
            await asyncio.gather(self._first, return_exceptions=True)

    def _report(self, first: asyncio.Task[Piece | None]) -> Progress | None:
        whole = first.done()
        if whole and (first.cancelled() or first.exception() is not None or first.result() is None):
            return None
        if not (whole or self._stream.running):
            return None
        now = time.monotonic()
        cached, read = self._stream.prompt_read
        if self._told is None:
            read, self._began = cached, now
        else:
            read = self._total if whole else read
            if read <= self._told:
                return None
        self._told = read
        return Progress(self._total, cached, read, now - self._began)


async def _next(stream: AsyncStream) -> Piece | None:
    return await anext(stream, None)

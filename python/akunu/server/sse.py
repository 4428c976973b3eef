"""Server-sent events, with heartbeats, back-pressure, and an end when the client goes away.

The first event is awaited before the head is sent, for as long as a heartbeat, so that what goes wrong at
once has a status. Nothing is made ahead of a client: an event is asked for when the last one was taken.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, Callable, Coroutine
from typing import Any, Final, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from akunu.server.errors import ApiError, as_api_error
from akunu.server.settings import Settings

__all__ = ["DONE", "EventStream", "Gone", "event", "unless_disconnected", "unless_gone"]

DONE: Final = b"data: [DONE]\n\n"
"""The end of OpenAI's streams."""

T = TypeVar("T")


def event(data: Any, name: str = "") -> bytes:
    """One event, its data as JSON."""
    head = f"event: {name}\n".encode() if name else b""
    return head + b"data: " + msgspec.json.encode(data) + b"\n\n"


class Gone(ApiError):
    """The client went away; nobody will read this."""

    def __init__(self) -> None:
        super().__init__(499, "the client went away")


class EventStream(Response):
    """A response that is a stream of events.

    Parameters
    ----------
    events
        Made by `event`; asked for one at a time, and closed in every case.
    heartbeat
        What is sent while there is nothing else: a comment, or an event that the API has for it.
    on_error
        The event that tells of an error after the beginning.
    media
        The type of the response.
    """

    media_type = "text/event-stream"

    def __init__(
        self,
        events: AsyncGenerator[bytes, None],
        settings: Settings,
        *,
        on_error: Callable[[ApiError], bytes],
        heartbeat: bytes = b":\n\n",
        media: str | None = None,
    ) -> None:
        super().__init__(media_type=media)
        del self.headers["content-length"]
        self.headers["cache-control"] = "no-store"
        self.headers["x-accel-buffering"] = "no"  # a proxy must not collect what is to be read at once
        self._events = events
        self._settings = settings
        self._on_error = on_error
        self._heartbeat = heartbeat
        self._began = False
        self._writing = 0  # what waits to be written
        self._at = time.monotonic()  # of the last beginning or end of that

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._send = send
        with contextlib.suppress(Gone):
            await unless_disconnected(receive, self._serve())

    async def _serve(self) -> None:
        events, watch = asyncio.create_task(self._send_events()), asyncio.create_task(self._watch())
        try:
            done, _ = await asyncio.wait({events, watch}, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        except TimeoutError:
            return  # nobody reads: the connection is closed without an end, as it deserves
        finally:
            for task in (events, watch):
                task.cancel()
            await asyncio.gather(events, watch, return_exceptions=True)
            await self._events.aclose()

    async def _send_events(self) -> None:
        while True:
            try:
                data = await anext(self._events, None)
            except Exception as error:
                if not self._began:
                    raise
                data = self._on_error(as_api_error(error))
            if data is None:
                break
            await self._write(data)
        await self._write(b"", more=False)

    async def _write(self, data: bytes, more: bool = True) -> None:
        self._writing, self._at = self._writing + 1, time.monotonic()
        try:
            if not self._began:
                self._began = True
                head = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
                await self._send(head)
            await self._send({"type": "http.response.body", "body": data, "more_body": more})
        finally:
            self._writing, self._at = self._writing - 1, time.monotonic()

    async def _watch(self) -> None:
        """Sends heartbeats; fails where a client does not read."""
        heartbeat, patience = self._settings.heartbeat_seconds, self._settings.write_seconds
        while True:
            left = self._at + (patience if self._writing else heartbeat) - time.monotonic()
            if left > 0:
                await asyncio.sleep(min(left, patience))
            elif self._writing:
                raise TimeoutError
            else:
                async with asyncio.timeout(patience):
                    await self._write(self._heartbeat)


async def unless_gone(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`, which is cancelled when the client goes away.

    Raises
    ------
    Gone
        It did.
    """
    return await unless_disconnected(request.receive, work)


async def unless_disconnected(receive: Receive, work: Coroutine[Any, Any, T]) -> T:
    """Do what `unless_gone` does, given the client's messages."""
    task = asyncio.create_task(work)
    gone = asyncio.create_task(_disconnect(receive))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise Gone
        return task.result()
    finally:
        for each in (task, gone):
            each.cancel()
        await asyncio.gather(task, gone, return_exceptions=True)


async def _disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass

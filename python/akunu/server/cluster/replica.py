"""One replica: requests as values in, messages of ASGI out, by the application itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from typing import Any

from starlette.applications import Starlette
from starlette.types import Message

from akunu.server.app import create_app
from akunu.server.catalog import ModelSpec
from akunu.server.settings import Settings

__all__ = ["Call", "Replica"]


@dataclass(frozen=True, slots=True)
class Call:
    """A request that has arrived as a whole."""

    method: str
    path: str
    query: bytes
    headers: list[tuple[bytes, bytes]]
    client: tuple[str, int] | None
    body: bytes

    def scope(self) -> dict[str, Any]:
        """Return the request's scope, as ASGI has it."""
        return {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "scheme": "http",
            "method": self.method,
            "path": self.path,
            "raw_path": self.path.encode(),
            "root_path": "",
            "query_string": self.query,
            "headers": self.headers,
            "client": self.client,
            "server": None,
        }


class Replica:
    """The application of one replica.

    Parameters
    ----------
    specs, settings
        As of `akunu.server.create_app`.
    name
        The replica's name: part of the ids of the responses that it stores.
    """

    def __init__(self, specs: Sequence[ModelSpec], settings: Settings, name: str) -> None:
        self.app: Starlette = create_app(specs, replace(settings, replica=name))
        self._life: AbstractAsyncContextManager[Any] = self.app.router.lifespan_context(self.app)

    async def start(self) -> None:
        """Load what is to be loaded at the start."""
        await self._life.__aenter__()

    async def stop(self) -> None:
        """Free everything."""
        await self._life.__aexit__(None, None, None)

    async def answer(self, call: Call) -> AsyncGenerator[Message, None]:
        """The messages of a response, as they are made: one ahead of their reader at most.

        Closed early, or cancelled, it ends the request as a client does that goes away.
        """
        messages: asyncio.Queue[Message | None] = asyncio.Queue(1)
        gone = asyncio.Event()
        body = [{"type": "http.request", "body": call.body, "more_body": False}]

        async def receive() -> Message:
            if body:
                return body.pop()
            await gone.wait()
            return {"type": "http.disconnect"}

        async def run() -> None:
            try:
                await self.app(call.scope(), receive, messages.put)
            finally:
                if not gone.is_set():
                    await messages.put(None)

        running = asyncio.create_task(run())
        try:
            while (message := await messages.get()) is not None:
                yield message
            await running
        finally:
            gone.set()
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

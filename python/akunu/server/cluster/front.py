"""The front of a cluster: an ASGI application without models, which takes requests for all replicas."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Final

from starlette.requests import ClientDisconnect, Request
from starlette.types import Message, Receive, Scope, Send

from akunu.server.bodies import Bodies, Body
from akunu.server.cluster.replica import Call
from akunu.server.errors import ApiError, as_api_error, error_response
from akunu.server.sse import Gone, unless_disconnected

__all__ = ["Front", "Lost"]

_log = logging.getLogger("akunu.server")

ATTEMPTS: Final = 5
"""Replicas that a request is given to, one after another, while they die."""
_BODIES: Final = 32
"""Times the most bytes of a request that all of them may have."""
PAUSE_SECONDS: Final = 0.1
"""The pause before the second attempt; it doubles before each further one."""


class Lost(Exception):
    """The replica that had the request is no more."""


class Front:
    """Passes each request to a replica, and to another one if that dies before it has said anything.

    Parameters
    ----------
    ask
        Gives a request to a replica; raises `Lost` when that is no more.
    max_body, max_seconds
        Bytes of a request, and the time that it has to arrive.
    """

    def __init__(
        self, ask: Callable[[Call], AsyncGenerator[Message, None]], max_body: int, max_seconds: float
    ) -> None:
        self._ask = ask
        self._max_body = max_body
        self._bodies = Bodies(_BODIES * max_body)
        self._max_seconds = max_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _live(receive, send)
            return
        if scope["type"] != "http":
            raise RuntimeError(f"found a request of the type {scope['type']!r}, expected http")
        client = scope["client"][0] if scope.get("client") else "-"
        arriving = Body(self._bodies, client, receive, self._max_body, self._max_seconds)
        try:
            if scope["path"].startswith("/admin/"):
                raise ApiError(
                    403, "/admin/: each replica has its own state; use Ray's dashboard", code="cluster"
                )
            try:
                body = await Request(scope, arriving.receive).body()
            except ClientDisconnect:
                return
            call = Call(
                scope["method"],
                scope["path"],
                scope["query_string"],
                list(scope["headers"]),
                tuple(scope["client"]) if scope.get("client") else None,
                body,
            )
            await unless_disconnected(receive, self._answer(call, send))
        except Gone:
            return
        except ApiError as error:
            await error_response(error, scope)(scope, receive, send)
        finally:
            arriving.close()

    async def _answer(self, call: Call, send: Send) -> None:
        for attempt in range(1, ATTEMPTS + 1):
            began = False
            try:
                async with aclosing(self._ask(call)) as messages:
                    async for message in messages:
                        began = True
                        await send(message)
                return
            except Lost as error:
                if began:
                    raise  # the connection is closed without an end: what was said cannot be said again
                _log.warning("a replica is lost before it answered, attempt %d: %s", attempt, error)
                await asyncio.sleep(PAUSE_SECONDS * attempt)
            except Exception as error:
                if began:
                    raise
                raise as_api_error(error) from error
        raise ApiError(503, "no replica could answer", code="no_replica", retry_after=5)


async def _live(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return

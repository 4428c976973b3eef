"""A path and a method of the server, with what it takes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from akunu.server.fields import Fields

__all__ = ["Endpoint"]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A path and a method."""

    method: str
    path: str
    handler: Callable[[Request], Awaitable[Response]]
    what: str
    body: type[Fields] | None = None
    media: str = "application/json"
    """The type of the body."""
    query: type[Fields] | None = None
    """The parameters in the address."""

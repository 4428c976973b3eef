"""The application: routes, errors, and what goes on beside requests."""

from __future__ import annotations

import asyncio
import math
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from akunu.base.errors import AkunuError
from akunu.server.catalog import ModelSpec
from akunu.server.errors import ApiError, as_api_error, error_response
from akunu.server.gate import Gate
from akunu.server.generations import Server
from akunu.server.limits import Entries
from akunu.server.metrics import Meters
from akunu.server.models import Registry
from akunu.server.preloading import Preload
from akunu.server.routes import ENDPOINTS
from akunu.server.settings import Settings
from akunu.server.site import site_routes
from akunu.server.stored import ResponseStore
from akunu.server.workers import Workers

__all__ = ["create_app"]

_SWEEP_SECONDS = 1.0

_SWITCH_SECONDS = 0.001
"""Python's threads take turns so often. An answer changes threads several times for each token, and each
time it would wait 5 ms for a thread that reads a large request."""


def create_app(
    models: Sequence[ModelSpec], settings: Settings | None = None, preload: Preload | None = None
) -> Starlette:
    """The server as an ASGI application.

    Parameters
    ----------
    models
        What may be asked for. Those with `preload` are loaded before the application says that it is ready.
    settings
        Its settings; None: the defaults.
    preload
        The first model of those with `preload`, if it loads already.

    Examples
    --------
    >>> from akunu.server import ModelSpec, create_app
    >>> app = create_app([ModelSpec(name="ember", path="ember")])  # for `uvicorn.run(app)`
    """
    settings = settings or Settings()
    entries = Entries()
    workers = Workers(entries.others_lately)
    registry = Registry(
        models, settings.max_models, settings.max_memory, workers, preload, settings.max_seconds
    )
    stored = ResponseStore(settings.max_responses)
    server = Server(settings, registry, Meters(registry), stored, workers, time.time())
    routes = [Route(each.path, each.handler, methods=[each.method]) for each in ENDPOINTS]
    middleware = [Middleware(Gate, settings=settings, meters=server.meters, entries=entries, routes=routes)]
    if settings.cors_origins:
        middleware.insert(
            0,
            Middleware(
                CORSMiddleware,
                allow_origins=settings.cors_origins,
                allow_methods=["GET", "POST", "DELETE"],
                allow_headers=["*"],
                expose_headers=["x-request-id", "retry-after"],
            ),
        )
    app = Starlette(
        routes=[*routes, *site_routes()],
        middleware=middleware,
        exception_handlers={
            ApiError: _on_error,
            AkunuError: _on_error,
            HTTPException: _on_http_error,
        },
        lifespan=_lifespan,
    )
    app.state.server = server
    app.state.draining = False
    return app


@asynccontextmanager
async def _lifespan(app: Starlette) -> AsyncIterator[None]:
    server: Server = app.state.server
    turns = sys.getswitchinterval()
    await server.models.preload()
    sweeper = asyncio.create_task(_sweep(server))
    sys.setswitchinterval(min(turns, _SWITCH_SECONDS))
    try:
        yield
    finally:
        sys.setswitchinterval(turns)
        sweeper.cancel()
        with suppress(asyncio.CancelledError):
            await sweeper
        await server.models.close()
        server.workers.close()


async def _sweep(server: Server) -> None:
    while True:
        await asyncio.sleep(_SWEEP_SECONDS)
        for entry in server.models.entries():
            entry.measure()
        await server.models.prepare_constraints()
        await server.models.unload_idle(server.settings.idle_seconds or math.inf)


async def _on_error(request: Request, error: Exception) -> Response:
    return error_response(as_api_error(error), request.scope)


def _meant(path: str) -> str:
    """A hint for a client whose base address lacks the "/v1" that its paths need, or has one too many."""
    for other in (f"/v1{path}", path.removeprefix("/v1")):
        if other != path and any(other == each.path for each in ENDPOINTS):
            return (
                f"; did you mean {other}? The address for OpenAI's clients ends in /v1, for Anthropic's not"
            )
    return ""


async def _on_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    headers = error.headers or {}
    messages = {
        404: f"no such path: {request.url.path}{_meant(request.url.path)}",
        405: f"{request.method}: not for {request.url.path}, which takes {headers.get('Allow')}",
    }
    told = ApiError(error.status_code, messages.get(error.status_code, error.detail))
    response = error_response(told, request.scope)
    response.headers.update(headers)
    return response

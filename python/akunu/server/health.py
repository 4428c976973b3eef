"""Tell whether the server lives, and whether it can serve."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from akunu.server.generations import Server
from akunu.server.replies import json_response

__all__ = ["health", "ready"]


async def health(request: Request) -> Response:
    """200 while every engine that has work makes progress; 503 names those that do not."""
    server: Server = request.app.state.server
    stalled = {
        entry.spec.name: round(seconds, 1)
        for entry in server.models.entries()
        if (seconds := entry.stalled_for()) > server.settings.stall_seconds
    }
    if stalled:
        return json_response({"status": "stalled", "seconds_without_progress": stalled}, 503)
    return json_response({"status": "ok"})


async def ready(request: Request) -> Response:
    """200 when the models that were to be loaded at the start have been, and the server is not about to end.

    One that is unloaded since, because it idled or others needed the room, is loaded by the next request.
    Whoever sends none until this says 200 would wait for ever.
    """
    server: Server = request.app.state.server
    if request.app.state.draining:
        return json_response({"status": "draining"}, 503)
    missing = [
        entry.spec.name for entry in server.models.entries() if entry.spec.preload and not entry.was_loaded
    ]
    if missing:
        return json_response({"status": "loading", "models": missing}, 503)
    return json_response({"status": "ok"})

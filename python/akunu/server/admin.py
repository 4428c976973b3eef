"""Routes for those who run the server: models in and out of memory, and what the engines do."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from akunu.server.fields import Fields, read_fields
from akunu.server.generations import Server
from akunu.server.kinds import TEXT, kind_of
from akunu.server.models import Entry
from akunu.server.replies import json_response

__all__ = ["ModelName", "available", "engine", "load", "models", "table", "unload"]


class ModelName(Fields):
    """A model that the server knows; no others can be loaded."""

    model: str


async def load(request: Request) -> Response:
    """Load a model, if it is not."""
    server: Server = request.app.state.server
    fields = await read_fields(request, ModelName)
    async with server.models.use(fields.model) as entry:
        return json_response(_state(entry))


async def unload(request: Request) -> Response:
    """Unload a model, if it is loaded and nobody uses it."""
    server: Server = request.app.state.server
    fields = await read_fields(request, ModelName)
    entry = server.models.find(fields.model)
    await server.models.unload(entry)
    return json_response(_state(entry))


async def available(request: Request) -> Response:
    """Well-known models that can be fetched (`/api/pull`), and which fit this machine's memory."""
    from akunu._core import devices
    from akunu.files.hub.short_names import SHORT_NAMES

    server: Server = request.app.state.server
    most = max(device["memory"] for device in await asyncio.to_thread(devices))
    here = {entry.spec.name for entry in server.models.entries()}
    rows = [{**row.facts(most), "here": row.name in here} for row in SHORT_NAMES.values()]
    return json_response({"memory": most, "models": rows})


async def models(request: Request) -> Response:
    """All models, and what they use."""
    server: Server = request.app.state.server
    return json_response({"models": [_state(entry) for entry in server.models.entries()]})


def _state(entry: Entry) -> dict[str, Any]:
    model = entry.model
    return {
        "id": entry.spec.name,
        "aliases": entry.spec.aliases,
        "path": entry.spec.path,
        "loaded": model is not None,
        "kind": None if model is None else kind_of(model).name,
        "requests": entry.users,
        "texts": entry.queued,
        "memory": None if model is None else asdict(model.memory),
    }


async def engine(request: Request) -> Response:
    """Tell what the engines of the loaded models do now."""
    server: Server = request.app.state.server
    return json_response({"models": [_engine(e) for e in server.models.entries() if e.model is not None]})


def _engine(entry: Entry) -> dict[str, Any]:
    model = entry.loaded
    stats = model.stats
    return {
        "id": entry.spec.name,
        "kind": kind_of(model).name,
        "device": model.device,
        "context": model.context,
        "parallel": stats.parallel,
        "tokens_per_second": round(entry.tokens_per_second, 2),
        "queue": stats.waiting,
        "sequences": [
            {"slot": slot, **generation.state()} for slot, generation in enumerate(entry.generations)
        ],
        "pages": {
            "used": stats.pages_held,
            "cached": stats.pages_cached,
            "free": stats.pages - stats.pages_held - stats.pages_cached,
            "total": stats.pages,
        },
        "prefix": {
            "hits": stats.hits,
            "hits_disk": stats.hits_disk,
            "misses": {"new": stats.misses_new, "evicted": stats.misses_evicted},
        },
        "drafts": {"drafted": stats.drafted_tokens, "accepted": stats.accepted_tokens},
    }


async def table(request: Request) -> Response:
    """The dispatch table of a token, with the time of each command, taken between two steps."""
    server: Server = request.app.state.server
    fields = await read_fields(request, ModelName)
    async with server.models.use(fields.model, TEXT) as entry:
        commands = await asyncio.to_thread(entry.loaded.profile)
    return json_response(
        {
            "commands": [
                {
                    "name": command["label"],
                    "op": command["op"],
                    "bytes": command["bytes"],
                    "flops": command["flops"],
                    "microseconds": command["seconds"] * 1e6,
                }
                for command in commands
            ]
        }
    )

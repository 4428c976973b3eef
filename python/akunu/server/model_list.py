"""`/v1/models`, in the form that both OpenAI's and Anthropic's clients read."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from akunu.server.kinds import kind_of
from akunu.server.models import Entry
from akunu.server.replies import json_response
from akunu.server.texts import Server

__all__ = ["list_models", "one_model"]


async def list_models(request: Request) -> Response:
    """All models, loaded or not."""
    server: Server = request.app.state.server
    data = [_card(server, entry, entry.spec.name) for entry in server.models.entries()]
    ends = {"first_id": data[0]["id"], "last_id": data[-1]["id"]} if data else {}
    return json_response({"object": "list", "data": data, "has_more": False, **ends})


async def one_model(request: Request) -> Response:
    """One, by name or alias."""
    server: Server = request.app.state.server
    name = request.path_params["name"]
    return json_response(_card(server, server.models.find(name), name))


def _card(server: Server, entry: Entry, name: str) -> dict[str, Any]:
    card: dict[str, Any] = {
        "id": name,
        "object": "model",
        "type": "model",
        "display_name": entry.spec.name,
        "created": int(server.started_at),
        "created_at": datetime.fromtimestamp(int(server.started_at), UTC).isoformat(),
        "owned_by": "akunu",
        "loaded": entry.model is not None,
    }
    if entry.model is not None:
        card |= {"context": entry.model.context, "kind": kind_of(entry.model).name}
    return card

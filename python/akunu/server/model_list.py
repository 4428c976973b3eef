"""`/v1/models`, in the form that both OpenAI's and Anthropic's clients read."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar, Final

from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from akunu.server.adapter_names import adapter_id
from akunu.server.fields import Fields, query_fields
from akunu.server.generations import Server
from akunu.server.kinds import TEXT, thinks
from akunu.server.replies import json_response, page

__all__ = ["ModelsQuery", "list_models", "one_model"]


_SHOWN: Final = (
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "presence_penalty",
    "frequency_penalty",
)
"""Values of sampling that a card has, which a request may change."""


class ModelsQuery(Fields):
    """The page of models that is asked for, by Anthropic's names; without any, all of them."""

    accepted: ClassVar = {"before_id": ()}

    after_id: str | None = None
    before_id: str | None = None
    limit: Annotated[int, Meta(ge=1, le=1000)] | None = None


async def list_models(request: Request) -> Response:
    """The models, loaded or not."""
    server: Server = request.app.state.server
    query = query_fields(request, ModelsQuery)
    data = []
    for entry in server.models.entries():
        names = [entry.spec.name, *(adapter_id(server.models, entry, each) for each in entry.adapters)]
        data += [_card(server, name) for name in names]
    found = page(data, query.limit, query.after_id, "after_id")
    return json_response({"object": "list", **found})


async def one_model(request: Request) -> Response:
    """One, by name or alias."""
    server: Server = request.app.state.server
    name = request.path_params["name"]
    return json_response(_card(server, name))


def _card(server: Server, name: str) -> dict[str, Any]:
    entry, adapter = server.models.named(name)
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
    if adapter is not None:
        card |= {"display_name": name, "root": entry.adapters[adapter], "parent": entry.spec.name}
    if entry.kind is not None:
        card["kind"] = entry.kind.name
    if entry.model is not None:
        card["context"] = entry.model.context
        if entry.kind is TEXT:
            sampling = entry.loaded.sampling
            card["parameters"] = entry.loaded.n_params
            card["thinking"] = thinks(entry.loaded)
            card["images"] = entry.loaded.reads_images
            card["sampling"] = {name: getattr(sampling, name) for name in _SHOWN}
    return card

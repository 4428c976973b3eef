"""Tell what llama-server tells of its models: `/props` and `/slots`."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from akunu.api.model import Model
from akunu.base.errors import AkunuError
from akunu.base.version import __version__
from akunu.server.fields import Fields, query_fields
from akunu.server.generations import Server
from akunu.server.kinds import TEXT, kind_of
from akunu.server.replies import json_response

__all__ = ["ModelQuery", "props", "sampling_of", "slots"]


class ModelQuery(Fields):
    """The model that is asked about; the first, if there is no name."""

    model: str | None = None
    autoload: bool | None = None
    fail_on_no_slot: int | None = None


async def props(request: Request) -> Response:
    """Describe a model: its context, its template, how many sequences it runs at a time."""
    server: Server = request.app.state.server
    entry = server.models.meant(query_fields(request, ModelQuery).model)
    found: dict[str, Any] = {
        "model_alias": entry.spec.name,
        "model_path": entry.spec.path,
        "modalities": {"vision": False, "audio": False},
        "build_info": f"akunu {__version__}",
        "is_sleeping": entry.model is None,
    }
    if entry.model is not None and kind_of(entry.model) is TEXT:
        model: Model = entry.loaded
        found |= {
            "modalities": {"vision": model.reads_images, "audio": False},
            "default_generation_settings": {"n_ctx": model.context, "params": sampling_of(model)},
            "total_slots": model.stats.parallel,
        }
        try:
            found["chat_template"] = model.chat_template.sources.get("default", "")
        except AkunuError:  # it has none
            found["chat_template"] = ""
    return json_response(found)


def sampling_of(model: Model) -> dict[str, Any]:
    """Return how a model samples by itself, by the names of the options."""
    return {name: getattr(model.sampling, name) for name in model.sampling.__dataclass_fields__}


async def slots(request: Request) -> Response:
    """Tell what each slot does; no text is shown."""
    server: Server = request.app.state.server
    entry = server.models.meant(query_fields(request, ModelQuery).model)
    if entry.model is None or kind_of(entry.model) is not TEXT:
        return json_response([])
    model, running = (
        entry.loaded,
        [generation.state() for generation in entry.generations if generation.state()["state"] != "waiting"],
    )
    return json_response(
        [
            {
                "id": slot,
                "n_ctx": model.context,
                "is_processing": slot < len(running),
                **(running[slot] if slot < len(running) else {}),
            }
            for slot in range(max(model.stats.parallel, len(running)))
        ]
    )

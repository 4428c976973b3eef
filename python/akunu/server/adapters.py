"""Adapters that come and go: llama-server's `/lora-adapters`, and vLLM's `/v1/load_lora_adapter`."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from akunu.base.errors import ModelFileError, UnsupportedError
from akunu.server.adapter_names import one_of
from akunu.server.errors import ApiError
from akunu.server.fields import Fields, query_fields, read_fields, read_list
from akunu.server.foreign_fields import AdapterScale
from akunu.server.generations import Server
from akunu.server.kinds import TEXT
from akunu.server.models import Entry
from akunu.server.replies import json_response

__all__ = [
    "AdapterName",
    "AdapterPath",
    "AdaptersQuery",
    "adapters",
    "load_adapter",
    "set_adapters",
    "unload_adapter",
]


class AdaptersQuery(Fields):
    """The model whose adapters are asked for; the first, if there is no name."""

    model: str | None = None


class AdapterPath(Fields):
    """An adapter that is to be loaded, by vLLM's names."""

    lora_name: str
    lora_path: str
    base_model_name: str | None = None
    load_inplace: bool | None = None


class AdapterName(Fields):
    """An adapter that is to be unloaded, by vLLM's names."""

    lora_name: str
    lora_int_id: int | None = None


async def adapters(request: Request) -> Response:
    """The adapters of a model, with the scales that requests have which say nothing of them."""
    server: Server = request.app.state.server
    return json_response(_listed(server.models.meant(query_fields(request, AdaptersQuery).model)))


def _listed(entry: Entry) -> list[dict[str, Any]]:
    name, scale = entry.adapter or ("", 0.0)
    return [
        {"id": i, "name": each, "path": path, "scale": scale if each == name else 0.0}
        for i, (each, path) in enumerate(entry.adapters.items())
    ]


async def set_adapters(request: Request) -> Response:
    """Say which adapter requests have that say nothing of them; those that are not named have none."""
    server: Server = request.app.state.server
    entry = server.models.meant(query_fields(request, AdaptersQuery).model)
    entry.adapter = one_of(entry, await read_list(request, AdapterScale), "scale")
    return json_response({"success": True})


async def load_adapter(request: Request) -> Response:
    """Load an adapter beside a model, for requests that call the model by the adapter's name."""
    server: Server = request.app.state.server
    fields = await read_fields(request, AdapterPath)
    name = fields.lora_name
    entry = server.models.meant(fields.base_model_name)
    if any(name in (each.spec.name, *each.spec.aliases) for each in server.models.entries()):
        raise ApiError(
            400, f"lora_name: {name!r} is a model of this server; give the adapter another name",
            param="lora_name", code="invalid_value",
        )  # fmt: skip
    async with server.models.use(entry.spec.name, TEXT):
        if fields.load_inplace and name in entry.adapters:
            await server.workers.change(entry.loaded.remove_adapter, name)
        try:
            await server.workers.change(entry.loaded.add_adapter, name, fields.lora_path)
        except (ModelFileError, UnsupportedError) as error:  # the file is the client's choice
            message = f"lora_path: {error}"
            raise ApiError(400, message, param="lora_path", code="invalid_value") from error
        _renew(entry, {**entry.adapters, name: fields.lora_path})
    return PlainTextResponse(f"Success: LoRA adapter '{name}' added successfully.")


async def unload_adapter(request: Request) -> Response:
    """Unload an adapter that no text has."""
    server: Server = request.app.state.server
    name = (await read_fields(request, AdapterName)).lora_name
    entry, adapter = server.models.named(name)
    if adapter is None:
        raise ApiError(404, f"lora_name: no adapter {name!r} here", param="lora_name", code="model_not_found")
    if entry.model is not None:
        async with server.models.use(entry.spec.name, TEXT):
            await server.workers.change(entry.loaded.remove_adapter, adapter)
    if entry.adapter is not None and entry.adapter[0] == adapter:
        entry.adapter = None
    _renew(entry, {each: path for each, path in entry.adapters.items() if each != adapter})
    return PlainTextResponse(f"Success: LoRA adapter '{name}' removed successfully.")


def _renew(entry: Entry, found: dict[str, str]) -> None:
    """Note a model's adapters, with which it is loaded again after it was unloaded."""
    entry.spec = msgspec.structs.replace(entry.spec, adapters=found or None)

"""Ollama's view of models: which there are, what they are, which are loaded, and vectors of texts."""

from __future__ import annotations

import asyncio
import hashlib
import math
import time
from collections.abc import AsyncGenerator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from akunu.api.encoders.model import EmbeddingModel
from akunu.base.errors import AkunuError
from akunu.base.version import __version__
from akunu.loading.facts import size_label
from akunu.loading.finding import BUILT_IN, FoundModel
from akunu.server.calls import Check, call
from akunu.server.catalog import from_name
from akunu.server.errors import ApiError
from akunu.server.fields import read_fields
from akunu.server.generations import RequestRecord, Server
from akunu.server.kinds import EMBEDDING, TEXT, kind_of
from akunu.server.models import Entry
from akunu.server.ollama import LINES, keep, line, model_entry, on_error
from akunu.server.ollama_fields import EmbeddingsRequest, EmbedRequest, NameRequest, PullRequest
from akunu.server.replies import json_response
from akunu.server.sse import EventStream, unless_gone

__all__ = ["embed", "embeddings", "ps", "pull", "show", "tags", "version"]

API_LEVEL: Final = "0.13.0"
"""The version of Ollama whose API this is: clients ask for it to know what they can send."""


async def version(request: Request) -> Response:
    """The version of the API, and ours."""
    return json_response({"version": API_LEVEL, "akunu": __version__})


async def tags(request: Request) -> Response:
    """The models, loaded or not."""
    server: Server = request.app.state.server
    cards = [_card(server, entry) for entry in server.models.entries()]
    return json_response({"models": [{**card, "modified_at": _changed(server)} for card in cards]})


async def ps(request: Request) -> Response:
    """The models in memory."""
    server: Server = request.app.state.server
    loaded = [entry for entry in server.models.entries() if entry.model is not None]
    return json_response({"models": [_running(server, entry) for entry in loaded]})


def _running(server: Server, entry: Entry) -> dict[str, Any]:
    memory = entry.loaded.memory
    stays = server.settings.idle_seconds or math.inf
    stays = stays if entry.keep_seconds is None else entry.keep_seconds
    left = timedelta(seconds=min(stays, 10**9) - (time.monotonic() - entry.used_at))
    size = sum(getattr(memory, name) for name in memory.__dataclass_fields__)
    return {
        **_card(server, entry),
        "size": size,
        "size_vram": 0 if entry.loaded.memory_left is None else size,
        "expires_at": (datetime.now(UTC) + left).isoformat().replace("+00:00", "Z"),
        "context_length": entry.loaded.context,
    }


def _changed(server: Server) -> str:
    return datetime.fromtimestamp(int(server.started_at), UTC).isoformat().replace("+00:00", "Z")


def _card(server: Server, entry: Entry) -> dict[str, Any]:
    spec = entry.spec
    path = Path(spec.path)
    size = entry.bytes or (path.stat().st_size if path.is_file() else 0)
    return {
        "name": spec.name,
        "model": spec.name,
        "size": size,
        "digest": hashlib.sha256(f"{spec.name}\n{spec.path}".encode()).hexdigest(),  # not of the weights
        "details": _details(entry),
    }


def _details(entry: Entry) -> dict[str, Any]:
    arch = getattr(getattr(entry.model, "config", None), "arch", "")
    n_params = getattr(entry.model, "n_params", None)
    suffix = Path(entry.spec.path).suffix.lower()
    return {
        "parent_model": "",
        "format": "gguf" if suffix == ".gguf" or entry.spec.path in BUILT_IN else "safetensors",
        "family": arch,
        "families": [arch] if arch else [],
        "parameter_size": size_label(n_params) if n_params else "",
        "quantization_level": "",
    }


async def show(request: Request) -> Response:
    """Describe a model. One that is not loaded is read from its files, if they are here."""
    server: Server = request.app.state.server
    fields = await read_fields(request, NameRequest)
    entry = model_entry(server, fields.wanted)
    facts = await asyncio.to_thread(_facts, entry)
    return json_response({"modelfile": f"FROM {entry.spec.name}", "parameters": "", "license": "", **facts})


def _facts(entry: Entry) -> dict[str, Any]:
    model, found = entry.model, None
    if model is None and (entry.spec.path in BUILT_IN or Path(entry.spec.path).exists()):
        found = FoundModel(entry.spec.path, progress=False)
    config = getattr(model, "config", None)
    metadata: dict[str, Any] = {}
    if found is not None:
        try:
            config, metadata = found.files.spec().config, dict(found.files.metadata)
        except AkunuError:  # a model of speech
            config = None
    info: dict[str, Any] = {}
    details = _details(entry)
    capabilities: list[str] = []
    template = ""
    if config is not None:
        info = {
            "general.architecture": config.arch,
            f"{config.arch}.context_length": config.context_length,
            f"{config.arch}.embedding_length": config.dim,
            f"{config.arch}.block_count": config.n_layers,
        }
        details |= {"family": config.arch, "families": [config.arch]}
        capabilities = ["completion", "tools"] if config.encoder is None else ["embedding"]
    if model is not None and kind_of(model) is TEXT:
        loaded = entry.loaded
        try:
            sources, reasons = loaded.chat_template.sources, loaded.chat_template.reasons
        except AkunuError:  # a model without a template
            sources, reasons, capabilities = {}, False, ["completion"]
        template = sources.get("default", "")
        if reasons:
            capabilities.append("thinking")
        if _fills_in(loaded):
            capabilities.append("insert")
        if loaded.reads_images:
            capabilities.append("vision")
    elif isinstance(given := metadata.get("tokenizer.chat_template"), str):
        template = given
        if "<think>" in given or "enable_thinking" in given:
            capabilities.append("thinking")
    return {"template": template, "details": details, "model_info": info, "capabilities": capabilities}


def _fills_in(model: Any) -> bool:
    from akunu.server.prompts import infill_ids

    try:
        infill_ids(model, "", "")
    except (ApiError, AkunuError):
        return False
    return True


async def embed(request: Request) -> Response:
    """A vector for each text."""
    fields = await read_fields(request, EmbedRequest)
    given = [fields.input] if isinstance(fields.input, str) else fields.input
    vectors, tokens = await _vectors(request, fields, given, fields.truncate is not False, fields.dimensions)
    total = int((time.monotonic() - RequestRecord.of(request).at) * 1e9)
    return json_response(
        {
            "model": fields.model,
            "embeddings": vectors,
            "total_duration": total,
            "load_duration": 0,
            "prompt_eval_count": tokens,
        }
    )


async def embeddings(request: Request) -> Response:
    """A vector for one text, as older clients ask for it."""
    fields = await read_fields(request, EmbeddingsRequest)
    vectors, _ = await _vectors(request, fields, [fields.prompt], True, None)
    return json_response({"embedding": vectors[0]})


async def _vectors(
    request: Request,
    fields: EmbedRequest | EmbeddingsRequest,
    given: list[str],
    truncate: bool,
    dimensions: int | None,
) -> tuple[list[list[float]], int]:
    server: Server = request.app.state.server
    record = RequestRecord.of(request)
    entry = model_entry(server, fields.model)
    keep(server, entry, fields.keep_alive)

    async def answer() -> tuple[list[list[float]], int]:
        async with server.models.use(entry.spec.name, EMBEDDING):
            record.model = entry.spec.name
            model: EmbeddingModel = entry.loaded
            if not given:
                return [], 0

            def work(check: Check) -> tuple[list[list[float]], int]:
                before = model.stats.prompt_tokens  # calls come one at a time
                found = model.embed(given, dimensions=dimensions, truncate=truncate, progress=check)
                return found.tolist(), model.stats.prompt_tokens - before

            return await call(server, record, entry, work)

    vectors, tokens = await unless_gone(request, answer())
    server.meters.prompt_tokens.labels(entry.spec.name).inc(tokens)
    record.prompt_tokens = tokens
    return vectors, tokens


async def pull(request: Request) -> Response:
    """Fetch a model from the Hugging Face Hub, and offer it."""
    server: Server = request.app.state.server
    fields = await read_fields(request, PullRequest)
    events = _pulled(server, fields.wanted)
    if fields.stream is False:
        async for _ in events:
            pass
        return json_response({"status": "success"})
    idle = line({"status": "pulling"})
    return EventStream(events, server.settings, on_error=on_error, heartbeat=idle, media=LINES)


async def _pulled(server: Server, name: str) -> AsyncGenerator[bytes, None]:
    try:
        model_entry(server, name)
    except ApiError:
        pass
    else:
        yield line({"status": "success"})
        return
    yield line({"status": "pulling manifest"})
    done = (0, 0)
    path = name.removesuffix(":latest")
    left = False

    def progress(count: int, total: int, *_: object) -> None:
        nonlocal done
        done = count, total
        if left:  # what is there stays, and the next time goes on with it
            raise InterruptedError(f"{path}: nobody waits for it any more")

    work = asyncio.ensure_future(server.workers.fetch(FoundModel, path, progress=progress))
    work.add_done_callback(lambda ended: ended.cancelled() or ended.exception())  # nobody may ask
    try:
        while not work.done():
            await asyncio.wait({work}, timeout=0.5)
            if done[1]:
                count, total = done
                status = f"pulling {path}"
                yield line({"status": status, "digest": path, "total": total, "completed": count})
        await work
    except (AkunuError, OSError) as error:
        raise ApiError(404, f"pull model manifest: {error}", param="model", code="model_not_found") from error
    finally:
        left = True
    server.models.add(from_name(f"{name}={path}" if "/" not in name else path))
    yield line({"status": "success"})

"""The routes of llama-server that OpenAI has not: `/completion`, `/infill`, `/props`, `/slots`."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from akunu.api.model import Model
from akunu.api.results import Completion
from akunu.api.streams import AsyncStream
from akunu.base.errors import AkunuError
from akunu.base.version import __version__
from akunu.server.errors import ApiError, error_body
from akunu.server.fields import Fields, query_fields, read_fields
from akunu.server.generations import RequestRecord, Server, generations
from akunu.server.kinds import TEXT, kind_of
from akunu.server.models import Entry
from akunu.server.prompts import infill_ids, prompt_ids
from akunu.server.replies import json_response
from akunu.server.sampling_fields import SamplingFields, stop_texts
from akunu.server.sse import EventStream, event, unless_gone

__all__ = [
    "InfillRequest",
    "ModelQuery",
    "NativeRequest",
    "completion",
    "entry_of",
    "infill",
    "props",
    "slots",
]


class NativeRequest(SamplingFields, kw_only=True):
    """What `/completion` understands."""

    model: str | None = None
    prompt: str | list[int]
    stream: bool | None = None
    stop: str | list[str] | None = None
    grammar: str | None = None
    max_tokens: int | None = None

    def options(self) -> dict[str, Any]:
        """Arguments of the generation."""
        options = self.sampling() | {
            "stop": stop_texts(self.stop),
            "grammar": self.grammar or None,
            "max_tokens": self.max_tokens,
        }
        options = {name: value for name, value in options.items() if value is not None}
        return options | self.foreign(options)

    def ids(self, model: Model) -> list[int]:
        """The prompt."""
        return prompt_ids(model, self.prompt) if isinstance(self.prompt, str) else self.prompt


class OtherFile(Fields):
    """A file that the model may look at."""

    text: str
    filename: str = "file"


class InfillRequest(NativeRequest, kw_only=True):
    """What `/infill` understands: what stands before a gap and after it."""

    prompt: str = ""
    input_prefix: str
    input_suffix: str
    input_extra: list[OtherFile] | None = None

    def ids(self, model: Model) -> list[int]:
        """The prompt."""
        files = [(each.filename, each.text) for each in self.input_extra or ()]
        return infill_ids(model, self.input_prefix + self.prompt, self.input_suffix, files)


class ModelQuery(Fields):
    """The model that is asked about; the first, if there is no name."""

    model: str | None = None
    autoload: bool | None = None
    fail_on_no_slot: int | None = None


def entry_of(server: Server, name: str | None) -> Entry:
    """A model by its name, or the first that writes text, or may."""
    if name:
        return server.models.find(name)
    entries = server.models.entries()
    found = [entry for entry in entries if entry.model is not None and kind_of(entry.model) is TEXT]
    if not (found or entries):
        raise ApiError(400, "model: it is missing", param="model", code="missing_field")
    return (found or entries)[0]


async def completion(request: Request) -> Response:
    """An output that continues a prompt."""
    fields = await read_fields(request, NativeRequest)
    return await _written(request, fields, "/completion")


async def infill(request: Request) -> Response:
    """What stands between two texts."""
    fields = await read_fields(request, InfillRequest)
    return await _written(request, fields, "/infill")


async def _written(request: Request, fields: NativeRequest, path: str) -> Response:
    server: Server = request.app.state.server
    record = RequestRecord.of(request)
    record.stream = bool(fields.stream)
    entry = entry_of(server, fields.model)
    events = _events(server, record, fields.model or entry.spec.name, fields)
    if fields.stream:
        return EventStream(
            (event(each) async for each in events),
            server.settings,
            on_error=lambda error: event(error_body(error, path)),
        )
    return json_response(await unless_gone(request, _whole(events)))


async def _whole(events: AsyncGenerator[dict[str, Any], None]) -> dict[str, Any]:
    content, last = "", dict[str, Any]()
    async with aclosing(events):
        async for last in events:
            content += last["content"]
    return {**last, "content": content}


async def _events(
    server: Server, record: RequestRecord, name: str, fields: NativeRequest
) -> AsyncGenerator[dict[str, Any], None]:
    def start(model: Model, options: dict[str, Any]) -> AsyncStream:
        return model.astream(fields.ids(model), **options)

    async with generations(server, record, name, [start], fields.options()) as (generation,):
        async with generation:
            async for piece in generation:
                yield {"index": 0, "content": str(piece), "tokens": piece.ids, "stop": False}
        more = {"warnings": record.ignored} if record.ignored else {}
        yield {**_end(generation.completion), "model": name, **more}


def _end(completion: Completion) -> dict[str, Any]:
    stats = completion.stats
    kinds = {"stop": "word" if completion.stop is not None else "eos"}
    return {
        "index": 0,
        "content": "",
        "tokens": [],
        "stop": True,
        "stop_type": kinds.get(completion.finish_reason, "limit"),
        "stopping_word": completion.stop or "",
        "truncated": False,
        "tokens_predicted": stats.generated_tokens,
        "tokens_evaluated": stats.prompt_tokens,
        "tokens_cached": stats.cached_tokens,
        "timings": {
            "cache_n": stats.cached_tokens,
            "prompt_n": stats.prompt_tokens - stats.cached_tokens,
            "prompt_ms": stats.prefill_seconds * 1000,
            "prompt_per_second": stats.prefill_tokens_per_second,
            "predicted_n": stats.generated_tokens,
            "predicted_ms": stats.decode_seconds * 1000,
            "predicted_per_second": stats.decode_tokens_per_second,
        },
    }


async def props(request: Request) -> Response:
    """What a model is: its context, its template, how many sequences it runs at a time."""
    server: Server = request.app.state.server
    entry = entry_of(server, query_fields(request, ModelQuery).model)
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
            "default_generation_settings": {"n_ctx": model.context, "params": _sampling(model)},
            "total_slots": model.stats.parallel,
        }
        try:
            found["chat_template"] = model.chat_template.sources.get("default", "")
        except AkunuError:  # it has none
            found["chat_template"] = ""
    return json_response(found)


def _sampling(model: Model) -> dict[str, Any]:
    return {name: getattr(model.sampling, name) for name in model.sampling.__dataclass_fields__}


async def slots(request: Request) -> Response:
    """What each slot does; no text is shown."""
    server: Server = request.app.state.server
    entry = entry_of(server, query_fields(request, ModelQuery).model)
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

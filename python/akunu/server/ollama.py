"""Ollama's way to generate: `/api/chat` and `/api/generate`."""

from __future__ import annotations

import math
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from akunu.api.model import Model
from akunu.api.results import Completion
from akunu.api.streams import AsyncStream
from akunu.chat.deltas import Content, Delta, Reasoning, ToolArguments, ToolCall
from akunu.server.conversations import answers, finish_reason
from akunu.server.errors import ApiError, told
from akunu.server.fields import read_fields
from akunu.server.generations import RequestRecord, Server, generations
from akunu.server.kinds import TEXT
from akunu.server.models import Entry
from akunu.server.ollama_fields import GenerateRequest, OllamaChatRequest, seconds
from akunu.server.prompts import infill_ids, prompt_ids
from akunu.server.replies import json_response, token_entries
from akunu.server.sse import EventStream, unless_gone

__all__ = ["LINES", "chat", "generate", "keep", "line", "model_entry", "now", "on_error"]

LINES = "application/x-ndjson"
"""The type of streams: a JSON object a line."""

_Part = tuple[Sequence[Delta], list[dict[str, Any]], Completion | None, str | None]
"""A piece and the log-probabilities of its tokens; at the end, the whole, and why it ended."""


def now() -> str:
    """The time, as Ollama writes it."""
    return datetime.now(UTC).isoformat().replace("+00:00", "Z")


def line(data: Any) -> bytes:
    """An object of a stream."""
    return msgspec.json.encode(data) + b"\n"


def on_error(error: ApiError) -> bytes:
    """An error in the midst of a stream."""
    return line({"error": told(error, "/api/")})


def model_entry(server: Server, name: str) -> Entry:
    """The model of a name; Ollama's clients add ":latest" to one without a tag."""
    return server.models.find(_known(server, name))


def _known(server: Server, name: str) -> str:
    """The name as the server knows it."""
    try:
        server.models.find(name)
    except ApiError:
        if not name.endswith(":latest"):
            raise
        return name.removesuffix(":latest")
    return name


def keep(server: Server, entry: Entry, given: str | float | None) -> float | None:
    """Note for how long a model is to stay in memory after its last request; the seconds.

    That is for those who may load and unload models: where there are keys, it says nothing.
    """
    wanted, settings = seconds(given), server.settings
    if wanted is not None and settings.local and not (settings.keys or settings.admin_keys):
        entry.keep_seconds = wanted
        return wanted
    return None


async def chat(request: Request) -> Response:
    """An answer to the last message of a conversation; without messages, the model is loaded or unloaded."""
    fields = await read_fields(request, OllamaChatRequest)
    server: Server = request.app.state.server
    entry = model_entry(server, fields.model)
    kept = keep(server, entry, fields.keep_alive)
    if not fields.messages:
        message: dict[str, Any] = {"message": {"role": "assistant", "content": ""}}
        return await _only_loaded(server, entry, fields, kept, message)
    record = RequestRecord.of(request)
    turn = await server.workers.sized(record.bytes, fields.turn)
    parts = _answer(server, record, _known(server, fields.model), turn)
    return await _response(request, fields, parts, _chat_fields)


async def generate(request: Request) -> Response:
    """An output that continues a prompt; without a prompt, the model is loaded or unloaded."""
    fields = await read_fields(request, GenerateRequest)
    server: Server = request.app.state.server
    entry = model_entry(server, fields.model)
    kept = keep(server, entry, fields.keep_alive)
    if not fields.prompt and not fields.suffix:
        return await _only_loaded(server, entry, fields, kept, {"response": ""})
    turn, record = fields.turn(), RequestRecord.of(request)
    if fields.raw or fields.suffix:
        if fields.images:
            raise ApiError(
                400, "images: a prompt without the chat template has no place for them (raw, suffix)",
                param="images", code="unsupported_value",
            )  # fmt: skip
        parts = _continued(server, record, _known(server, fields.model), fields)
    else:
        parts = _answer(server, record, _known(server, fields.model), turn)
    return await _response(request, fields, parts, _generate_fields)


async def _only_loaded(
    server: Server,
    entry: Entry,
    fields: OllamaChatRequest | GenerateRequest,
    kept: float | None,
    empty: dict[str, Any],
) -> Response:
    if kept == 0:
        await server.models.unload(entry)
    else:
        async with server.models.use(entry.spec.name, TEXT):
            pass
    reason = "unload" if kept == 0 else "load"
    data = {"model": fields.model, "created_at": now(), **empty, "done": True, "done_reason": reason}
    return json_response(data) if not fields.streams else Response(line(data), media_type=LINES)


async def _answer(server: Server, record: RequestRecord, name: str, turn: Any) -> AsyncGenerator[_Part, None]:
    async with aclosing(answers(server, record, name, turn, whole_calls=True)) as steps:
        async for _, step in steps:
            entries = token_entries(step.generation.model, step.piece) if step.piece is not None else []
            yield step.deltas, entries, step.completion, step.finish_reason


async def _continued(
    server: Server, record: RequestRecord, name: str, fields: GenerateRequest
) -> AsyncGenerator[_Part, None]:
    def start(model: Model, options: dict[str, Any]) -> AsyncStream:
        if fields.suffix:
            return model.astream(infill_ids(model, fields.prompt or "", fields.suffix), **options)
        return model.astream(prompt_ids(model, fields.prompt or ""), **options)

    async with generations(server, record, name, [start], fields.generation()) as (generation,):
        async with generation:
            async for piece in generation:
                yield [Content(str(piece))], token_entries(generation.model, piece), None, None
        yield (), [], generation.completion, finish_reason(generation.completion, False)


async def _response(
    request: Request,
    fields: OllamaChatRequest | GenerateRequest,
    parts: AsyncGenerator[_Part, None],
    said: Any,
) -> Response:
    server: Server = request.app.state.server
    record = RequestRecord.of(request)
    record.stream = fields.streams
    if not fields.streams:
        return json_response(await unless_gone(request, _whole(record, fields, parts, said)))
    idle = line({"model": fields.model, "created_at": now(), **said(()), "done": False})
    return EventStream(
        _lines(record, fields, parts, said), server.settings, on_error=on_error, heartbeat=idle, media=LINES
    )


async def _whole(
    record: RequestRecord,
    fields: OllamaChatRequest | GenerateRequest,
    parts: AsyncGenerator[_Part, None],
    said: Any,
) -> dict[str, Any]:
    deltas: list[Delta] = []
    logprobs: list[dict[str, Any]] = []
    end: dict[str, Any] = {}
    async with aclosing(parts):
        async for found, entries, completion, reason in parts:
            deltas += found
            logprobs += entries
            if completion is not None:
                end = _end(record, completion, reason)
    more = {"logprobs": logprobs} if fields.logprobs else {}
    return {"model": fields.model, "created_at": now(), **said(deltas), **more, **end}


async def _lines(
    record: RequestRecord,
    fields: OllamaChatRequest | GenerateRequest,
    parts: AsyncGenerator[_Part, None],
    said: Any,
) -> AsyncGenerator[bytes, None]:
    held: list[Delta] = []  # of calls, which come whole

    def part(deltas: Sequence[Delta], **more: Any) -> bytes:
        return line({"model": fields.model, "created_at": now(), **said(deltas), "done": False, **more})

    async with aclosing(parts):
        async for found, entries, completion, reason in parts:
            calls = [delta for delta in found if isinstance(delta, ToolCall | ToolArguments)]
            spoken = [delta for delta in found if delta not in calls]
            held += calls
            if spoken or (entries and fields.logprobs):
                more = {"logprobs": entries} if fields.logprobs else {}
                yield line(
                    {"model": fields.model, "created_at": now(), **said(spoken), **more, "done": False}
                )
            if completion is not None:
                if held:
                    yield part(held)
                yield part((), **_end(record, completion, reason))


def _chat_fields(deltas: Sequence[Delta]) -> dict[str, Any]:
    """The message of an answer."""
    content, thinking, calls = _parts(deltas)
    message: dict[str, Any] = {"role": "assistant", "content": content}
    if thinking:
        message["thinking"] = thinking
    if calls:
        message["tool_calls"] = calls
    return {"message": message}


def _generate_fields(deltas: Sequence[Delta]) -> dict[str, Any]:
    content, thinking, _ = _parts(deltas)
    return {"response": content, **({"thinking": thinking} if thinking else {})}


def _parts(deltas: Sequence[Delta]) -> tuple[str, str, list[dict[str, Any]]]:
    content, thinking = "", ""
    calls: dict[int, dict[str, Any]] = {}
    for delta in deltas:
        match delta:
            case Content(text):
                content += text
            case Reasoning(text):
                thinking += text
            case ToolCall(index, call_id, name):
                calls[index] = {"id": call_id, "function": {"index": index, "name": name, "arguments": ""}}
            case ToolArguments(index, fragment):
                calls[index]["function"]["arguments"] += fragment
    for call in calls.values():
        # The text stays as the model wrote it: read into values, a number that is too large would be lost.
        call["function"]["arguments"] = msgspec.Raw((call["function"]["arguments"] or "{}").encode())
    return content, thinking, list(calls.values())


def _end(record: RequestRecord, completion: Completion, reason: str | None) -> dict[str, Any]:
    """Why an output ended, and its times in nanoseconds."""
    stats = completion.stats
    total = time.monotonic() - record.at
    loading = max(0.0, total - stats.prefill_seconds - stats.decode_seconds)
    ignored = {"warnings": record.ignored} if record.ignored else {}
    return {
        **ignored,
        "done": True,
        "done_reason": "length" if reason == "length" else "stop",
        "total_duration": _nanoseconds(total),
        "load_duration": _nanoseconds(loading),
        "prompt_eval_count": stats.prompt_tokens,
        "prompt_eval_duration": _nanoseconds(stats.prefill_seconds),
        "eval_count": stats.generated_tokens,
        "eval_duration": _nanoseconds(stats.decode_seconds),
    }


def _nanoseconds(value: float) -> int:
    return int(value * 1e9) if math.isfinite(value) else 0

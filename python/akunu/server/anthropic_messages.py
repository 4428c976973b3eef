"""Anthropic's messages: `/v1/messages` and `/v1/messages/count_tokens`."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from akunu.api.results import Completion, Stats
from akunu.server.anthropic_fields import CountRequest, MessagesRequest
from akunu.server.blocks import Block, Blocks
from akunu.server.conversations import Turn, answers, finish_reason, prompt_ids, warned
from akunu.server.errors import error_body
from akunu.server.fields import read_fields
from akunu.server.generations import RequestRecord, Server
from akunu.server.kinds import TEXT
from akunu.server.replies import json_response, new_id
from akunu.server.sse import EventStream, event, unless_gone

__all__ = ["count_tokens", "messages"]

PATH = "/v1/messages"


async def messages(request: Request) -> Response:
    """An answer to the last message of a conversation."""
    server: Server = request.app.state.server
    record = RequestRecord.of(request)
    fields = await read_fields(request, MessagesRequest)
    turn, warnings = await server.workers.sized(record.bytes, fields.turn)
    turn.warnings[:0] = [*record.ignored, *warnings]
    head: dict[str, Any] = {
        "id": new_id("msg_"),
        "type": "message",
        "role": "assistant",
        "model": fields.model,
    }
    record.stream = bool(fields.stream)
    if fields.stream:
        return EventStream(
            _events(server, record, fields.model, turn, head),
            server.settings,
            on_error=lambda error: event(error_body(error, PATH), "error"),
        )
    return json_response(await unless_gone(request, _whole(server, record, fields.model, turn, head)))


async def count_tokens(request: Request) -> Response:
    """Count the tokens that a request would have."""
    server: Server = request.app.state.server
    fields = await read_fields(request, CountRequest)
    size = RequestRecord.of(request).bytes
    turn, _ = await server.workers.sized(size, fields.turn)
    async with server.models.use(fields.model, TEXT) as entry:
        ids = await server.workers.prompt(size, prompt_ids, entry.loaded, turn, server.settings)
    return json_response({"input_tokens": len(ids)})


async def _whole(
    server: Server, record: RequestRecord, name: str, turn: Turn, head: dict[str, Any]
) -> dict[str, Any]:
    blocks = Blocks()
    completion = None
    async with aclosing(answers(server, record, name, turn, whole_calls=True)) as steps:
        async for _, step in steps:
            for _ in blocks.feed(step.deltas):
                pass
            completion = step.completion
    assert completion is not None
    content = [_content(block) for block in blocks.all]
    return {
        **head,
        **warned(turn),
        "content": content,
        **_end(completion, blocks),
        "usage": _usage(completion.stats),
    }


async def _events(
    server: Server, record: RequestRecord, name: str, turn: Turn, head: dict[str, Any]
) -> AsyncGenerator[bytes, None]:
    blocks = Blocks()
    began = False
    async with aclosing(answers(server, record, name, turn)) as steps:
        async for _, step in steps:
            if not began:
                began = True
                empty: dict[str, Any] = {"content": [], "stop_reason": None, "stop_sequence": None}
                usage = {**_usage(step.generation.stats), "output_tokens": 0}
                yield _event("message_start", message={**head, **warned(turn), **empty, "usage": usage})
            for what, block, text in blocks.feed(step.deltas):
                yield _block_event(what, block, text)
            if step.completion is not None:
                for what, block, text in blocks.end():
                    yield _block_event(what, block, text)
                end, usage = _end(step.completion, blocks), _usage(step.completion.stats)
                yield _event("message_delta", delta=end, usage=usage)
    yield _event("message_stop")


def _event(kind: str, **fields: Any) -> bytes:
    return event({"type": kind, **fields}, kind)


def _block_event(what: str, block: Block, text: str) -> bytes:
    if what == "begin":
        begun: dict[str, dict[str, Any]] = {
            "reasoning": {"type": "thinking", "thinking": "", "signature": ""},
            "content": {"type": "text", "text": ""},
            "call": {"type": "tool_use", "id": block.call_id, "name": block.name, "input": {}},
        }
        return _event("content_block_start", index=block.index, content_block=begun[block.kind])
    if what == "end":
        return _event("content_block_stop", index=block.index)
    delta = {
        "reasoning": {"type": "thinking_delta", "thinking": text},
        "content": {"type": "text_delta", "text": text},
        "call": {"type": "input_json_delta", "partial_json": text},
    }
    return _event("content_block_delta", index=block.index, delta=delta[block.kind])


def _content(block: Block) -> dict[str, Any]:
    """A whole block."""
    if block.kind == "reasoning":
        return {"type": "thinking", "thinking": block.text, "signature": ""}
    if block.kind == "content":
        return {"type": "text", "text": block.text}
    # The text stays as the model wrote it: read into values, a number that is too large would be lost.
    arguments = msgspec.Raw((block.text or "{}").encode())
    return {"type": "tool_use", "id": block.call_id, "name": block.name, "input": arguments}


def _end(completion: Completion, blocks: Blocks) -> dict[str, Any]:
    called = any(block.kind == "call" for block in blocks.all)
    reasons = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}
    reason = reasons[finish_reason(completion, called)]
    if completion.stop is not None and not called:
        reason = "stop_sequence"
    return {"stop_reason": reason, "stop_sequence": completion.stop}


def _usage(stats: Stats) -> dict[str, Any]:
    """Anthropic counts what was cached beside the input, not in it."""
    return {
        "input_tokens": stats.prompt_tokens - stats.cached_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": stats.cached_tokens,
        "output_tokens": stats.generated_tokens,
    }

"""OpenAI's responses: `/v1/responses`, stored or not."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from akunu.api.results import Completion
from akunu.server.blocks import Block, Blocks
from akunu.server.conversations import answers, prompt_ids, warned
from akunu.server.errors import ApiError, told
from akunu.server.fields import query_fields, read_fields
from akunu.server.generations import RequestRecord, Server
from akunu.server.kinds import TEXT
from akunu.server.openai_responses_fields import InputItemsQuery, ResponseQuery, ResponsesRequest
from akunu.server.prompt_progress import progress_of
from akunu.server.replies import json_response, new_id, page, prompt_details, timings, token_entries
from akunu.server.response_items import stored_items
from akunu.server.sse import EventStream, event, unless_gone
from akunu.server.stored import Stored

__all__ = ["delete_response", "get_response", "input_items", "input_tokens", "responses"]


async def responses(request: Request) -> Response:
    """An answer to what was said last, after the response that it goes on from."""
    server: Server = request.app.state.server
    record = RequestRecord.of(request)
    fields = await read_fields(request, ResponsesRequest)
    fields.model = fields.model or server.models.first().spec.name
    record.stream = bool(fields.stream)
    answer = await server.workers.sized(record.bytes, _Answer, server, record, fields)
    if fields.stream:
        return EventStream(answer.events(), server.settings, on_error=answer.error)
    return json_response(await unless_gone(request, answer.whole()))


async def input_tokens(request: Request) -> Response:
    """Count the tokens that the prompt of a request would have."""
    server: Server = request.app.state.server
    fields = await read_fields(request, ResponsesRequest)
    fields.model = fields.model or server.models.first().spec.name
    record = RequestRecord.of(request)
    earlier = _conversation(_previous(server, record, fields))
    turn, _ = await server.workers.sized(record.bytes, fields.turn, earlier)
    async with server.models.use(fields.model, TEXT) as entry:
        ids = await server.workers.prompt(record.bytes, prompt_ids, entry.loaded, turn, server.settings)
    return json_response({"object": "response.input_tokens", "input_tokens": len(ids)})


async def get_response(request: Request) -> Response:
    """A stored response."""
    query_fields(request, ResponseQuery)
    return json_response(_stored(request).response)


async def input_items(request: Request) -> Response:
    """Return the items of the conversation that a stored response answers."""
    query = query_fields(request, InputItemsQuery)
    items = _stored(request).items
    ordered = items if query.order == "asc" else items[::-1]
    return json_response({"object": "list", **page(ordered, query.limit, query.after, "after")})


async def delete_response(request: Request) -> Response:
    """Forget a stored response."""
    server: Server = request.app.state.server
    name = request.path_params["id"]
    server.stored.delete(name, RequestRecord.of(request).holder)
    return json_response({"id": name, "object": "response.deleted", "deleted": True})


def _stored(request: Request) -> Stored:
    server: Server = request.app.state.server
    return server.stored.get(request.path_params["id"], RequestRecord.of(request).holder)


def _previous(server: Server, record: RequestRecord, fields: ResponsesRequest) -> Stored | None:
    """The response that a request goes on from."""
    name = fields.previous_response_id
    return None if name is None else server.stored.get(name, record.holder, "previous_response_id")


def _conversation(previous: Stored | None) -> list[dict[str, Any]]:
    return previous.conversation if previous else []


def _split_behind(
    text: str, entries: list[dict[str, Any]]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the tokens that a text has, and those of the spaces behind it, which were held back."""
    at, left = len(entries), b""
    while at and not (spaces := bytes(entries[at - 1]["bytes"])).strip():
        at, left = at - 1, spaces + left
    held = len(left) - (len(text) - len(text.rstrip()))  # those that the text ends with are its own
    behind = len(entries)
    while behind > at and held >= len(entries[behind - 1]["bytes"]) > 0:
        behind -= 1
        held -= len(entries[behind]["bytes"])
    return entries[:behind], entries[behind:]


class _Answer:
    """One response while it is generated."""

    def __init__(self, server: Server, record: RequestRecord, fields: ResponsesRequest) -> None:
        self._server = server
        self._record = record
        self._fields = fields
        self._previous = _previous(server, record, fields)
        self._earlier = _conversation(self._previous)
        self._turn, warnings = fields.turn(self._earlier)
        self._turn.warnings[:0] = [*record.ignored, *warnings]
        self._blocks = Blocks()
        self._ids: dict[int, str] = {}
        self._entries: dict[int, list[dict[str, Any]]] = {}
        self._told: list[dict[str, Any]] = []  # those of them of the latest output
        self._number = -1
        self._progress: dict[str, dict[str, int]] = {}  # of the prompt, before anything is written
        self._timings: dict[str, dict[str, float]] = {}  # so far, where they are wanted
        # Clients that ask for a summary read nothing else: what is thought is its own summary.
        self._summarised = bool(fields.reasoning and fields.reasoning.summary not in (None, "none"))
        text = fields.text
        self._head: dict[str, Any] = {
            "id": new_id(f"resp_{replica}_" if (replica := server.settings.replica) else "resp_"),
            "object": "response",
            "created_at": int(time.time()),
            "model": fields.model,
            "error": None,
            "instructions": fields.instructions,
            "max_output_tokens": fields.max_output_tokens,
            "metadata": fields.metadata or {},
            "parallel_tool_calls": fields.parallel_tool_calls is not False,
            "previous_response_id": fields.previous_response_id,
            "reasoning": {
                "effort": fields.reasoning.effort if fields.reasoning else None,
                "summary": fields.reasoning.summary if fields.reasoning else None,
            },
            "store": fields.store is not False,
            "temperature": fields.temperature,
            "text": {"format": {"type": text.format.type if text and text.format else "text"}},
            "tool_choice": "auto" if fields.tool_choice is None else fields.tool_choice,
            "tools": fields.tools or [],
            "top_p": fields.top_p,
            "truncation": "disabled",
            "user": fields.user,
        }

    async def whole(self) -> dict[str, Any]:
        """The response, when it is complete."""
        async with aclosing(self._run(whole_calls=True)) as happenings:
            async for _ in happenings:
                pass
        return self._response

    async def events(self) -> AsyncGenerator[bytes, None]:
        """The response, as it is made."""
        began = False
        async with aclosing(self._run()) as happenings:
            async for happening in happenings:
                if not began:
                    began = True
                    begun = {**self._head, "status": "in_progress", "incomplete_details": None}
                    begun |= {"output": [], "usage": None}
                    yield self._event("response.created", response=begun)
                    yield self._event("response.in_progress", response=begun)
                if self._progress:
                    yield self._event("response.in_progress", response=begun, **self._progress)
                elif happening is not None:
                    for data in self._block_events(*happening):
                        yield data
        kind = f"response.{self._response['status']}"
        yield self._event(kind, response=self._response, **self._timings)

    def error(self, error: ApiError) -> bytes:
        """Return what went wrong after the beginning."""
        return self._event("error", code=error.code, message=told(error, "/v1/responses"), param=error.param)

    async def _run(self, whole_calls: bool = False) -> AsyncGenerator[tuple[str, Block, str] | None, None]:
        """Yield what happens to the blocks; None when something else did."""
        completion, thought, untold = None, 0, list[dict[str, Any]]()
        found = answers(self._server, self._record, self._fields.model, self._turn, whole_calls=whole_calls)
        async with aclosing(found) as steps:
            async for _, step in steps:
                self._head.update(warned(self._turn))
                self._progress = progress_of(step.piece)
                if self._fields.timings_per_token and not self._progress:
                    self._timings = {"timings": timings(step.generation.stats)}
                yield None
                if step.piece is not None and self._fields.logprobs:
                    untold += token_entries(step.generation.model, step.piece)
                for happening in self._blocks.feed(step.deltas):
                    what, block, text = happening
                    if what == "text":  # the first of the tokens' texts has them all
                        self._told, untold = _split_behind(text, untold)
                        self._entries.setdefault(block.index, []).extend(self._told)
                    yield happening
                thought += step.reasoning_tokens
                completion = step.completion
        assert completion is not None
        if self._blocks.all:  # of tokens at the end that have no text
            self._entries.setdefault(self._blocks.all[-1].index, []).extend(untold)
        for happening in self._blocks.end():
            yield happening
        self._response = self._complete(completion, thought)
        if self._fields.store is not False:
            items = stored_items({item["id"] for item in self._earlier}, self._fields.items)
            self._server.stored.put(self._record.holder, self._response, items, self._previous)

    def _complete(self, completion: Completion, thought: int) -> dict[str, Any]:
        ended = completion.finish_reason == "stop"
        stats = completion.stats
        return {
            **self._head,
            "status": "completed" if ended else "incomplete",
            "incomplete_details": None if ended else {"reason": "max_output_tokens"},
            "output": [self._item(block, "completed") for block in self._blocks.all],
            "usage": {
                "input_tokens": stats.prompt_tokens,
                "input_tokens_details": prompt_details([stats]),
                "output_tokens": stats.generated_tokens,
                "output_tokens_details": {"reasoning_tokens": thought},
                "total_tokens": stats.prompt_tokens + stats.generated_tokens,
            },
        }

    def _item(self, block: Block, status: str) -> dict[str, Any]:
        """A block as an item; an empty one while it is in progress."""
        done = status == "completed"
        if block.kind == "call":
            name = self._ids.setdefault(block.index, new_id("fc_"))
            call = {"call_id": block.call_id, "name": block.name, "arguments": block.text if done else ""}
            return {"id": name, "type": "function_call", "status": status, **call}
        if block.kind == "reasoning":
            name = self._ids.setdefault(block.index, new_id("rs_"))
            parts = [self._part(block)] if done else []
            summary, content = (parts, []) if self._summarised else ([], parts)
            return {"id": name, "type": "reasoning", "status": status, "summary": summary, "content": content}
        name = self._ids.setdefault(block.index, new_id("msg_"))
        content = [self._part(block)] if done else []
        return {"id": name, "type": "message", "status": status, "role": "assistant", "content": content}

    def _part(self, block: Block, text: str | None = None) -> dict[str, Any]:
        text = block.text if text is None else text
        if block.kind == "reasoning":
            return {"type": "summary_text" if self._summarised else "reasoning_text", "text": text}
        logprobs = self._entries.get(block.index, [])
        return {"type": "output_text", "text": text, "annotations": [], "logprobs": logprobs}

    def _event(self, kind: str, **fields: Any) -> bytes:
        self._number += 1
        return event({"type": kind, "sequence_number": self._number, **fields}, kind)

    def _block_events(self, what: str, block: Block, text: str) -> Iterator[bytes]:
        kind = {"reasoning": "reasoning_text", "content": "output_text", "call": "function_call_arguments"}
        name = f"response.{kind[block.kind]}"
        if what == "begin":
            item = self._item(block, "in_progress")
            yield self._event("response.output_item.added", output_index=block.index, item=item)
        at: dict[str, Any] = {"item_id": self._ids[block.index], "output_index": block.index}
        part = "response.content_part"
        if block.kind == "reasoning" and self._summarised:
            name, part = "response.reasoning_summary_text", "response.reasoning_summary_part"
            at["summary_index"] = 0
        elif block.kind != "call":
            at["content_index"] = 0
        content = block.kind == "content"
        if what == "begin" and block.kind != "call":
            yield self._event(f"{part}.added", **at, part=self._part(block, ""))
        elif what == "text":
            spoken = {"logprobs": self._told} if content else {}
            yield self._event(f"{name}.delta", **at, delta=text, **spoken, **self._timings)
        elif what == "end":
            whole = "arguments" if block.kind == "call" else "text"
            named = {"name": block.name} if block.kind == "call" else {}
            spoken = {"logprobs": self._entries.get(block.index, [])} if content else {}
            yield self._event(f"{name}.done", **at, **{whole: block.text}, **named, **spoken)
            if block.kind != "call":
                yield self._event(f"{part}.done", **at, part=self._part(block))
            item = self._item(block, "completed")
            yield self._event("response.output_item.done", output_index=block.index, item=item)

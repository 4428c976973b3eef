"""OpenAI's chat completions: `/v1/chat/completions`."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Annotated, Any, ClassVar, Final

from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from akunu.api.results import Completion
from akunu.chat.deltas import Content, Delta, Reasoning, ToolArguments, ToolCall, message_of
from akunu.server.conversations import Step, Turn, answers, warned, without_structure
from akunu.server.errors import ApiError, error_body
from akunu.server.fields import Fields, read_fields
from akunu.server.generations import MAX_GENERATIONS, RequestRecord, Server
from akunu.server.openai_choices import AnyChoice, ThinkingFields, chosen, thinking_options
from akunu.server.openai_fields import ChatMessage, ResponseFormat, allowed_tools, chat_tools, plain_messages
from akunu.server.prompt_progress import Progress
from akunu.server.replies import (
    FINGERPRINT,
    json_response,
    new_id,
    openai_usage,
    timings,
    token_entries,
)
from akunu.server.sampling_fields import stop_texts
from akunu.server.sse import DONE, EventStream, event, unless_gone

__all__ = ["ChatRequest", "chat_completions"]

PATH = "/v1/chat/completions"

_NOTHING: Final[Mapping[str, Any]] = {}


class StreamOptions(Fields):
    """The options of a stream."""

    accepted: ClassVar = {"include_obfuscation": (False,)}

    include_usage: bool | None = None
    include_obfuscation: bool | None = None


class ChatRequest(ThinkingFields, kw_only=True):
    """The request of `/v1/chat/completions`: OpenAI's fields, and extensions from `top_k` on."""

    accepted: ClassVar = {
        "add_special_tokens": (False,),
        "audio": (),
        "echo": (False,),
        "function_call": (),
        "functions": (),
        "modalities": (["text"],),
        "moderation": (),
        "prediction": (),
        "service_tier": ("auto", "default"),
        "store": (False, True),
        "verbosity": ("low", "medium", "high"),
        "web_search_options": (),
    }

    model: str = ""
    """Without a name it is the first that there is, as with llama-server and vLLM."""
    messages: list[ChatMessage]
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    n: Annotated[int, Meta(ge=1, le=MAX_GENERATIONS)] | None = None
    stop: str | list[str] | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Meta(ge=0, le=20)] | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    response_format: ResponseFormat | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: AnyChoice | None = None
    parallel_tool_calls: bool | None = None
    # Labels: they say who asks, not for what.
    user: str | None = None
    metadata: dict[str, str] | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None
    prompt_cache_retention: str | None = None
    prompt_cache_options: Any = None
    # Extensions.
    grammar: str | None = None
    regex: str | None = None
    choice: list[str] | None = None
    chat_template_kwargs: dict[str, Any] | None = None
    continue_final_message: bool | None = None
    add_generation_prompt: bool | None = None
    thinking_budget: int | None = None
    lenient_tool_calls: bool | None = None
    generic_tools: bool | None = None
    image_tokens: int | None = None
    # Known, and refused.
    add_special_tokens: Any = None
    audio: Any = None
    echo: Any = None
    function_call: Any = None
    functions: Any = None
    modalities: Any = None
    moderation: Any = None
    prediction: Any = None
    service_tier: Any = None
    store: Any = None
    verbosity: Any = None
    web_search_options: Any = None

    def options(self) -> dict[str, Any]:
        """Arguments of the generation."""
        options = self.sampling()
        if self.max_tokens is not None and self.max_completion_tokens not in (None, self.max_tokens):
            raise ApiError(
                400, "max_tokens: differs from max_completion_tokens, which has taken its place; give one",
                param="max_tokens", code="invalid_value",
            )  # fmt: skip
        limit = self.max_completion_tokens if self.max_tokens is None else self.max_tokens
        if self.top_logprobs and not self.logprobs:
            raise ApiError(400, "top_logprobs: needs logprobs", param="top_logprobs", code="invalid_value")
        options |= {
            "max_tokens": limit,
            "stop": stop_texts(self.stop),
            "logprobs": (self.top_logprobs or 0) if self.logprobs else None,
            "grammar": self.grammar or None,
            "regex": self.regex or None,
            "choice": self.choice,
        }
        if self.response_format is not None:
            options |= self.response_format.options()
        options = {name: value for name, value in options.items() if value is not None}
        return options | self.foreign(options)

    def turn(self) -> tuple[Turn, list[str]]:
        """Return what is asked of the model, with warnings."""
        tools, warnings = chat_tools(self.tools)
        if self.store:
            warnings.append("store: chats are not stored; /v1/responses stores its responses")
        if self.verbosity not in (None, "medium"):
            warnings.append("verbosity: no model here has such a setting; it changes nothing")
        choice, allowed = chosen(self.tool_choice)
        if allowed is not None:
            tools = allowed_tools(tools, allowed, "tool_choice.allowed_tools.tools")
        options = self.options() | {
            "tools": tools,
            "tool_choice": choice,
            "parallel_tool_calls": self.parallel_tool_calls,
            "lenient_tool_calls": self.lenient_tool_calls,
            "generic_tools": self.generic_tools,
            "image_tokens": self.image_tokens,
            **thinking_options(self, self.thinking_budget),
            "template_variables": self.chat_template_kwargs,
            # vLLM's way of saying so; without a prompt for an answer, an answer goes on with what is there
            "continue_final_message": True
            if self.add_generation_prompt is False
            else self.continue_final_message,
        }
        options, more = without_structure(options, "response_format")
        messages, left_out = plain_messages(self.messages)
        return Turn(messages, options, self.n or 1), [*warnings, *more, *left_out]


async def chat_completions(request: Request) -> Response:
    """An answer, or several, to the last message of a conversation."""
    server: Server = request.app.state.server
    record = RequestRecord.of(request)
    fields = await read_fields(request, ChatRequest)
    fields.model = fields.model or server.models.first().spec.name
    turn, warnings = await server.workers.sized(record.bytes, fields.turn)
    turn.warnings[:0] = [*record.ignored, *warnings]
    record.stream = bool(fields.stream)
    head: dict[str, Any] = {
        "id": new_id("chatcmpl-"),
        "object": "chat.completion.chunk" if fields.stream else "chat.completion",
        "created": int(time.time()),
        "model": fields.model,
        "system_fingerprint": FINGERPRINT,
    }
    if fields.stream:
        events = _events(server, record, fields, turn, head)
        return EventStream(events, server.settings, on_error=lambda error: event(error_body(error, PATH)))
    return json_response(await unless_gone(request, _whole(server, record, fields, turn, head)))


async def _whole(
    server: Server, record: RequestRecord, fields: ChatRequest, turn: Turn, head: dict[str, Any]
) -> dict[str, Any]:
    deltas: list[list[Delta]] = [[] for _ in range(turn.n)]
    entries: list[list[dict[str, Any]]] = [[] for _ in range(turn.n)]
    completions: list[Completion | None] = [None] * turn.n
    reasons: list[str | None] = [None] * turn.n
    thought = 0
    async with aclosing(answers(server, record, fields.model, turn, whole_calls=True)) as steps:
        async for i, step in steps:
            deltas[i] += step.deltas
            thought += step.reasoning_tokens
            if step.piece is not None and fields.logprobs:
                entries[i] += token_entries(step.generation.model, step.piece)
            if step.completion is not None:
                completions[i], reasons[i] = step.completion, step.finish_reason
    choices = [
        {
            "index": i,
            "message": {"refusal": None, **message_of(deltas[i])},
            "logprobs": {"content": entries[i], "refusal": None} if fields.logprobs else None,
            "finish_reason": reasons[i],
        }
        for i in range(turn.n)
    ]
    usage = openai_usage([c for c in completions if c is not None], turn.n, thought)
    told = {"timings": timings(completions[0].stats)} if fields.timings_per_token and completions[0] else {}
    return {**head, **warned(turn), "choices": choices, "usage": usage, **told}


async def _events(
    server: Server, record: RequestRecord, fields: ChatRequest, turn: Turn, head: dict[str, Any]
) -> AsyncGenerator[bytes, None]:
    with_usage = bool(fields.stream_options and fields.stream_options.include_usage)
    if with_usage:
        head = {**head, "usage": None}
    began: set[int] = set()
    completions: dict[int, Completion] = {}
    thought = 0

    def chunk(
        index: int,
        delta: dict[str, Any],
        logprobs: Any = None,
        reason: str | None = None,
        more: Mapping[str, Any] = _NOTHING,
    ) -> bytes:
        choice = {"index": index, "delta": delta, "logprobs": logprobs, "finish_reason": reason}
        return event({**head, "choices": [choice], **more})

    async with aclosing(answers(server, record, fields.model, turn)) as steps:
        async for i, step in steps:
            if i not in began:
                began.add(i)
                head.update(warned(turn))
                yield chunk(i, {"role": "assistant", "content": "", "refusal": None})
            if isinstance(step.piece, Progress):
                yield chunk(i, {}, more=step.piece.fields)
                continue
            more = _timings(fields, turn, step)
            thought += step.reasoning_tokens
            logprobs = None
            if fields.logprobs and step.piece is not None and step.piece.logprobs:
                logprobs = {"content": token_entries(step.generation.model, step.piece), "refusal": None}
            for delta in step.deltas:
                yield chunk(i, _openai_delta(delta), logprobs, more=more)
                logprobs = None  # once, with the first delta of the tokens
            if logprobs is not None:
                yield chunk(i, {}, logprobs)
            if step.completion is not None:
                completions[i] = step.completion
                yield chunk(i, {}, reason=step.finish_reason, more=more)
    if with_usage:
        usage = openai_usage([completions[i] for i in sorted(completions)], turn.n, thought)
        yield event({**head, "choices": [], "usage": usage})
    yield DONE


def _timings(fields: ChatRequest, turn: Turn, step: Step) -> dict[str, Any]:
    """The times so far, where they are wanted; of several answers only at the end of each.

    Before its end, an answer beside others is being written, and would have to be waited for.
    """
    if not fields.timings_per_token or (turn.n > 1 and step.completion is None):
        return {}
    return {"timings": timings(step.generation.stats)}


def _openai_delta(delta: Delta) -> dict[str, Any]:
    match delta:
        case Content(text):
            return {"content": text}
        case Reasoning(text):
            return {"reasoning_content": text}
        case ToolCall(index, call_id, name):
            function = {"name": name, "arguments": ""}
            return {"tool_calls": [{"index": index, "id": call_id, "type": "function", "function": function}]}
        case ToolArguments(index, fragment):
            return {"tool_calls": [{"index": index, "function": {"arguments": fragment}}]}

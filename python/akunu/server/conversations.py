"""A chat, whichever API it came by: what is asked of the model, and the answers as steps of deltas."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from akunu.chat.deltas import Delta, ToolCall
from akunu.generation import Completion, Piece
from akunu.model import Model
from akunu.server.errors import ApiError
from akunu.server.settings import VOLATILE_LINES
from akunu.server.texts import Asked, Server, Text, texts, together
from akunu.streams import AsyncStream

__all__ = ["FinishReason", "Step", "Turn", "answers", "finish_reason", "prepared"]

FinishReason = Literal["stop", "length", "tool_calls"]


@dataclass(frozen=True, slots=True)
class Turn:
    """What is asked of a chat model."""

    messages: list[dict[str, Any]]
    """In OpenAI's form."""
    tools: list[dict[str, Any]] = field(default_factory=list)
    tool_choice: str = "auto"
    """auto, none, required, or the name of a function."""
    parallel_tool_calls: bool = True
    variables: Mapping[str, Any] = field(default_factory=dict)
    """For the chat template."""
    options: dict[str, Any] = field(default_factory=dict)
    """Arguments of the generation."""
    n: int = 1


@dataclass(frozen=True, slots=True)
class Step:
    """What one piece of a text says; the last one of a text has the whole of it."""

    model: Model
    deltas: Sequence[Delta]
    piece: Piece | None = None
    completion: Completion | None = None
    finish_reason: FinishReason | None = None


def prepared(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages as chat templates are written for.

    Developers are the system; what the system says first is one message, without the lines that agents change
    at every request (`VOLATILE_LINES`); a call's arguments are an object, not its JSON.
    """
    messages = [
        {**message, "role": "system"} if message["role"] == "developer" else message for message in messages
    ]
    first = next((i for i, message in enumerate(messages) if message["role"] != "system"), len(messages))
    if first:
        texts = (_without_volatile_lines(_text(message["content"])) for message in messages[:first])
        said = "\n\n".join(text for text in texts if text)
        messages = [*([{"role": "system", "content": said}] if said else []), *messages[first:]]
    return [_with_objects(message) for message in messages]


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part["text"] for part in content or ())


def _without_volatile_lines(text: str) -> str:
    while text.startswith(VOLATILE_LINES):
        text = text.partition("\n")[2].lstrip("\n")
    return text


def _with_objects(message: dict[str, Any]) -> dict[str, Any]:
    if not message.get("tool_calls"):
        return message
    calls = []
    for call in message["tool_calls"]:
        function = call["function"]
        try:
            arguments = msgspec.json.decode(function["arguments"] or "{}")
        except msgspec.DecodeError:
            arguments = function["arguments"]  # what a model wrote may be no JSON; it stays what it was
        calls.append({**call, "function": {**function, "arguments": arguments}})
    return {**message, "tool_calls": calls}


async def answers(
    server: Server, asked: Asked, name: str, turn: Turn
) -> AsyncGenerator[tuple[int, Step], None]:
    """The answers of the model `name`: the steps of each with its number. Ended early, it ends them.

    Raises
    ------
    ApiError, AkunuError
        Before the first step, for what the server, the model or its template cannot do.
    """
    known = {tool["function"]["name"] for tool in turn.tools}
    if turn.tool_choice not in ("auto", "none", "required") and turn.tool_choice not in known:
        raise ApiError(
            400, f"tool_choice: no tool {turn.tool_choice!r} was declared", param="tool_choice",
            code="invalid_value",
        )  # fmt: skip
    if turn.tool_choice not in ("auto", "none"):
        raise ApiError(
            400, "tool_choice: only auto and none are supported", param="tool_choice",
            code="unsupported_value",
        )  # fmt: skip
    messages = prepared(turn.messages)
    variables = dict(turn.variables) or None
    tools = turn.tools if turn.tool_choice != "none" else []

    def start(model: Model, options: dict[str, Any]) -> AsyncStream:
        return model.astream_chat(messages, tools=tools or None, template_variables=variables, **options)

    async with (
        texts(server, asked, name, [start] * turn.n, turn.options) as found,
        aclosing(together([_steps(text, tools) for text in found])) as steps,
    ):
        async for step in steps:
            yield step


async def _steps(text: Text, tools: list[dict[str, Any]]) -> AsyncGenerator[Step, None]:
    parser = text.model.chat_template.family.parser(tools)
    called = False
    async with aclosing(text.pieces()) as pieces:
        async for piece in pieces:
            deltas = parser.feed(str(piece))
            called = called or any(isinstance(delta, ToolCall) for delta in deltas)
            yield Step(text.model, deltas, piece)
    deltas = parser.end()
    called = called or any(isinstance(delta, ToolCall) for delta in deltas)
    yield Step(text.model, deltas, None, text.completion, finish_reason(text.completion, called))


def finish_reason(completion: Completion, called: bool) -> FinishReason:
    """OpenAI's word for why a text ended; one that was cut off by the server is cut off by a limit."""
    if completion.finish_reason != "stop":
        return "length"
    return "tool_calls" if called else "stop"

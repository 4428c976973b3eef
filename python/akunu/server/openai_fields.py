"""Parts of requests that OpenAI's APIs share: messages, tools, formats of an answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import msgspec

from akunu.server.client_tools import client_tools
from akunu.server.errors import ApiError
from akunu.server.fields import Fields
from akunu.server.images import content_of, image_part, instead_of

__all__ = [
    "ChatMessage",
    "ChatTool",
    "Function",
    "ResponseFormat",
    "allowed_tools",
    "chat_tools",
    "function_fields",
    "part_text",
    "plain_messages",
]


class ContentPart(Fields):
    """A part of a content."""

    type: str
    text: str | None = None
    refusal: str | None = None
    image_url: Any = None
    input_audio: Any = None
    file: Any = None
    # What is cached is decided here.
    cache_control: Any = None
    prompt_cache_breakpoint: Any = None


class CalledFunction(Fields):
    """The function that an assistant called."""

    name: str
    arguments: str | dict[str, Any] | None
    """JSON; some clients repeat an answer with the object itself."""
    parsed_arguments: Any = None  # the same, as OpenAI's client adds it to an answer that it has parsed


class Call(Fields):
    """A call of a tool."""

    id: str
    function: CalledFunction
    type: Literal["function"] = "function"
    index: int | None = None


class ChatMessage(Fields):
    """A message of a conversation."""

    accepted: ClassVar = {"audio": (), "function_call": ()}

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[ContentPart] | None = None
    name: str | None = None
    tool_calls: list[Call] | None = None
    tool_call_id: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None  # the same, as vLLM and OpenRouter have it
    refusal: str | None = None
    annotations: list[Any] | None = None  # say where a text is from
    audio: Any = None
    function_call: Any = None
    cache_control: Any = None
    parsed: Any = None  # the content, as OpenAI's client adds it


def plain_messages(messages: Sequence[ChatMessage]) -> tuple[list[dict[str, Any]], list[str]]:
    """Messages as `Model.chat` takes them, and warnings.

    What no model can read is refused, but for a tool's result, which has a text in its place.
    """
    plain, warnings = [], list[str]()
    for n, message in enumerate(messages):
        at = f"messages[{n}]"
        fields: dict[str, Any] = {"role": message.role, "content": message.content}
        if isinstance(message.content, list):
            parts = [
                instead_of("file", f"{at}.content[{i}]", warnings)
                if message.role == "tool" and part.type == "file"
                else _part(part, f"{at}.content[{i}]")
                for i, part in enumerate(message.content)
            ]
            fields["content"] = content_of(parts, message.role)
        elif message.content is None and message.role != "assistant":
            raise ApiError(400, f"{at}.content: missing", param=f"{at}.content", code="missing_field")
        elif message.content is None:
            fields["content"] = message.refusal or ("" if not message.tool_calls else None)
        if message.tool_calls:
            fields["tool_calls"] = [_call(call) for call in message.tool_calls]
        for name in ("name", "tool_call_id", "reasoning", "reasoning_content"):
            if (value := getattr(message, name)) is not None:
                fields["reasoning_content" if name == "reasoning" else name] = value
        plain.append(fields)
    if not plain:
        raise ApiError(400, "messages: found none, expected at least one", param="messages")
    return plain, warnings


def _call(call: Call) -> dict[str, Any]:
    given = call.function.arguments
    arguments = given if isinstance(given, str) else msgspec.json.encode(given or {}).decode()
    function = {"name": call.function.name, "arguments": arguments}
    return {"id": call.id, "type": "function", "function": function}


def _part(part: ContentPart, at: str) -> str | dict[str, Any]:
    if part.type == "image_url":
        url = part.image_url
        return (
            image_part(url.get("url"), at, url.get("detail"))
            if isinstance(url, dict)
            else image_part(url, at)
        )
    if part.type not in ("text", "refusal"):
        raise ApiError(
            400, f"{at}: a part of the type {part.type!r} is not supported; text and image_url are", param=at,
            code="unsupported_value",
        )  # fmt: skip
    return part_text(getattr(part, part.type), f"{at}.{part.type}")


def part_text(text: str | None, at: str) -> str:
    """The text that a part has to have."""
    if text is None:
        raise ApiError(400, f"{at}: it is missing", param=at, code="missing_field")
    return text


class Function(Fields):
    """A function that a model may call."""

    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class ChatTool(Fields):
    """A function among the tools."""

    type: Literal["function"]
    function: Function
    cache_control: Any = None


def function_fields(function: Function) -> dict[str, Any]:
    """Return what the model and the reader of its answer are told of a function."""
    return {
        "name": function.name,
        "description": function.description,
        "parameters": function.parameters,
        "strict": function.strict,
    }


def chat_tools(tools: Sequence[dict[str, Any]] | None) -> tuple[list[dict[str, Any]], list[str]]:
    """The functions among the tools, and warnings of what was left out."""
    return client_tools(tools, "function", ChatTool, lambda tool: function_fields(tool.function))


def allowed_tools(tools: Sequence[dict[str, Any]], names: Sequence[str], at: str) -> list[dict[str, Any]]:
    """Return the tools whose names are allowed: the model is told of no others, so it calls no others."""
    known = {tool["function"]["name"] for tool in tools}
    for n, name in enumerate(names):
        if name not in known:
            raise ApiError(
                400, f"{at}[{n}]: {name!r} is none of the tools", param=f"{at}[{n}]", code="invalid_value"
            )
    return [tool for tool in tools if tool["function"]["name"] in names]


class JsonSchema(Fields):
    """A JSON schema with a name."""

    schema: dict[str, Any]
    name: str | None = None
    description: str | None = None
    strict: bool | None = None


class ResponseFormat(Fields):
    """The format of an answer."""

    type: Literal["text", "json_object", "json_schema"]
    json_schema: JsonSchema | None = None
    schema: dict[str, Any] | None = None
    """A schema beside the type `json_object`, as llama.cpp's server takes it."""

    def options(self) -> dict[str, Any]:
        """Return the format as arguments of a generation."""
        if self.schema is not None and self.type != "json_object":
            raise ApiError(
                400, "response_format.schema: belongs to the type json_object; json_schema has its own",
                param="response_format.schema", code="invalid_value",
            )  # fmt: skip
        if (self.type == "json_schema") != (self.json_schema is not None):
            raise ApiError(
                400, "response_format.json_schema: expected with the type json_schema, and only there",
                param="response_format.json_schema", code="invalid_value",
            )  # fmt: skip
        if self.json_schema is not None:
            return {"schema": self.json_schema.schema}
        if self.schema is not None:
            return {"schema": self.schema}
        return {"json": True} if self.type == "json_object" else {}

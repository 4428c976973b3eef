"""Anthropic's requests: messages in blocks, tools, and what the model is to do with them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Final, Literal

import msgspec
from msgspec import Meta

from akunu.api.options import MAX_PRIORITY
from akunu.chat.messages import MessageContent
from akunu.server.anthropic_tools import client_tool
from akunu.server.client_tools import client_tools
from akunu.server.conversations import Turn, without_structure
from akunu.server.errors import ApiError
from akunu.server.fields import Fields
from akunu.server.images import content_of, image_part, instead_of
from akunu.server.sampling_fields import stop_texts

__all__ = ["CountRequest", "MessagesRequest"]


class Block(Fields):
    """A block of a content. Which fields it has depends on its type; `_FIELDS` says it."""

    accepted: ClassVar = {"citations": ([], {"enabled": False}), "toolset_name": ()}

    type: str
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    data: str | None = None
    id: str | None = None
    name: str | None = None
    input: dict[str, Any] | None = None
    tool_use_id: str | None = None
    tool_name: str | None = None
    content: str | list[Block] | None = None
    is_error: bool | None = None
    cache_control: Any = None
    citations: Any = None
    caller: Any = None
    toolset_name: Any = None
    source: Any = None
    title: Any = None
    context: Any = None


class Message(Fields):
    """A message of a conversation."""

    role: Literal["user", "assistant", "system"]
    content: str | list[Block]


class ToolChoice(Fields):
    """Whether tools are to be called."""

    type: Literal["auto", "any", "tool", "none"]
    name: str | None = None
    disable_parallel_tool_use: bool | None = None


class Thinking(Fields):
    """Whether the model is to think before it answers."""

    type: Literal["enabled", "disabled", "adaptive"]
    budget_tokens: int | None = None
    display: str | None = None


class Tool(Fields):
    """A tool of the client's."""

    accepted: ClassVar = {"allowed_callers": (["direct"],)}

    name: str
    input_schema: dict[str, Any]
    description: str | None = None
    type: Literal["custom"] | None = None
    strict: bool | None = None
    cache_control: Any = None
    input_examples: list[dict[str, Any]] | None = None
    eager_input_streaming: bool | None = None
    defer_loading: bool | None = None
    allowed_callers: Any = None


class OutputFormat(Fields):
    """The format of an answer."""

    type: Literal["json_schema"]
    schema: dict[str, Any]


class OutputConfig(Fields):
    """The settings of an answer."""

    effort: Literal["low", "medium", "high", "xhigh", "max"] | None = None
    format: OutputFormat | None = None


class ContextManagement(Fields):
    """Parts that a provider is to take out of a conversation that has grown long."""

    edits: list[dict[str, Any]] = msgspec.field(default_factory=list)


_MADE: Final = {"type": "clear_thinking_20251015", "keep": "all"}
"""The edit that changes nothing."""


class CountRequest(Fields, kw_only=True):
    """The request of `/v1/messages/count_tokens`."""

    accepted: ClassVar = {
        "container": (),
        "diagnostics": (),
        "mcp_servers": ([],),
        "speed": ("standard",),
    }

    model: str
    messages: list[Message]
    system: str | list[Block] | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: ToolChoice | None = None
    thinking: Thinking | None = None
    output_config: OutputConfig | None = None
    output_format: OutputFormat | None = None  # the same as its `format`, as clients of the beta send it
    # Extensions.
    lenient_tool_calls: bool | None = None
    generic_tools: bool | None = None
    image_tokens: int | None = None
    # Labels: they say who asks, not for what.
    user_profile_id: str | None = None
    workspace_id: str | None = None
    # What is cached is decided here.
    cache_control: Any = None
    context_management: ContextManagement | None = None
    # Known, and refused.
    container: Any = None
    diagnostics: Any = None
    mcp_servers: Any = None
    speed: Any = None
    thread: Any = None

    def turn(self) -> tuple[Turn, list[str]]:
        """Return what is asked of the model, with warnings."""
        if self.thread is not None:  # Anthropic's client repeats the request without it, by the details
            raise ApiError(
                400, "thread: this server has no threads; leave it out", param="thread",
                code="unsupported_value",
                details={"error_code": "thread_unsupported_request", "unsupported": ["threads"]},
            )  # fmt: skip
        tools, warnings = client_tools(self.tools, "custom", Tool, _function, client_tool)
        chosen = None if self.tool_choice is None else self.tool_choice.name
        tools = _loaded(tools, self.tools or [], self.messages, chosen)
        if self.context_management and any(edit != _MADE for edit in self.context_management.edits):
            warnings.append("context_management: nothing is taken out of a conversation here")
        system = _content(self.system, "system", "system")
        messages: list[dict[str, Any]] = [{"role": "system", "content": system}] if self.system else []
        for n, message in enumerate(self.messages):
            messages += _plain(message, f"messages[{n}]", warnings)
        if not self.messages or messages[-1].get("tool_calls"):
            raise ApiError(
                400,
                "messages: expected the last one to be the user's, or a text that the answer begins with",
                param="messages",
            )
        choice = self.tool_choice or ToolChoice(type="auto")
        if (choice.type == "tool") != (choice.name is not None):
            raise ApiError(
                400, "tool_choice.name: expected with the type tool, and only there",
                param="tool_choice.name", code="invalid_value",
            )  # fmt: skip
        names = {"any": "required", "tool": choice.name or ""}
        config = self.output_config or OutputConfig()
        if self.output_format and config.format:
            raise ApiError(
                400, "output_format: is another name of output_config.format, which is given too; give one",
                param="output_format", code="invalid_value",
            )  # fmt: skip
        form = self.output_format or config.format
        modes = {"enabled": True, "disabled": False, "adaptive": None}
        options = self.options() | {
            "schema": form.schema if form else None,
            "tools": tools,
            "tool_choice": names.get(choice.type, choice.type),
            "parallel_tool_calls": False if choice.disable_parallel_tool_use else None,
            "lenient_tool_calls": self.lenient_tool_calls,
            "generic_tools": self.generic_tools,
            "image_tokens": self.image_tokens,
            "thinking": modes[self.thinking.type] if self.thinking else None,
            "thinking_budget": self.thinking.budget_tokens if self.thinking else None,
            "reasoning_effort": config.effort,
        }
        options, more = without_structure(options, "output_config.format")
        turn = Turn(messages, options, upper_limits=("thinking", "thinking_budget", "reasoning_effort"))
        return turn, [*warnings, *more]

    def options(self) -> dict[str, Any]:
        """Arguments of the generation, but for the structure of the answer."""
        return {}


class MessagesRequest(CountRequest, kw_only=True):
    """The request of `/v1/messages`."""

    accepted: ClassVar = {
        **CountRequest.accepted,
        "service_tier": ("auto", "standard_only"),
        "inference_geo": (),
    }

    max_tokens: Annotated[int, Meta(ge=1)]
    stop_sequences: list[str] | None = None
    stream: bool | None = None
    temperature: Annotated[float, Meta(ge=0, le=1)] | None = None
    top_k: int | None = None
    top_p: float | None = None
    metadata: dict[str, Any] | None = None
    # An extension.
    priority: Annotated[int, Meta(ge=-MAX_PRIORITY, le=MAX_PRIORITY)] | None = None
    # Known, and refused.
    service_tier: Any = None
    inference_geo: Any = None

    def options(self) -> dict[str, Any]:
        """Arguments of the generation, but for the structure of the answer."""
        options = {
            "max_tokens": self.max_tokens,
            "stop": stop_texts(self.stop_sequences),
            "temperature": self.temperature,
            "top_k": self.top_k,
            "top_p": self.top_p,
            "priority": self.priority,
        }
        return {name: value for name, value in options.items() if value is not None}


_FIELDS: dict[str, tuple[str, ...]] = {
    "text": ("text",),
    "image": ("source",),
    "thinking": ("thinking",),
    "redacted_thinking": (),
    "tool_use": ("id", "name", "input"),
    "tool_result": ("tool_use_id",),
    "tool_reference": ("tool_name",),
}
"""The types of blocks that are understood, and what they have to have."""


_PROVIDERS_SEARCH: Final = "tool_search_tool_"
"""Types of tools by which a provider finds tools begin so."""


def _check(block: Block, at: str, types: Sequence[str]) -> None:
    if block.type not in types:
        raise ApiError(
            400, f"{at}: a block of the type {block.type!r} is not supported here; {', '.join(types)} are",
            param=at,
        )  # fmt: skip
    for name in _FIELDS[block.type]:
        if getattr(block, name) is None:
            raise ApiError(400, f"{at}.{name}: missing", param=f"{at}.{name}")


def _content(
    content: str | Sequence[Block] | None, at: str, role: str, warnings: list[str] | None = None
) -> MessageContent:
    """A content. With `warnings`, a document in a tool's result has a text in its place."""
    if content is None or isinstance(content, str):
        return content or ""
    return _joined([(f"{at}[{n}]", block) for n, block in enumerate(content)], role, warnings)


def _joined(
    blocks: Sequence[tuple[str, Block]], role: str, warnings: list[str] | None = None
) -> MessageContent:
    """The content of blocks, each with its place; texts that follow each other are a paragraph each."""
    found: list[str | dict[str, Any]] = []
    for at, block in blocks:
        part: str | dict[str, Any]
        if block.type == "document" and role != "system" and (text := _document(block)) is not None:
            part = text
        elif warnings is not None and block.type == "document":
            part = instead_of(block.type, at, warnings)
        elif block.type == "tool_reference" and role == "tool":
            _check(block, at, ("tool_reference",))
            part = f"{block.tool_name} can be called now."
        elif block.type == "image" and role != "system":
            _check(block, at, ("image",))
            part = _image(block.source, at)
        else:
            _check(block, at, ("text",))
            part = block.text or ""
        # In a result all are paragraphs: an image may become a text.
        if found and (role == "tool" or (isinstance(part, str) and isinstance(found[-1], str))):
            found.append("\n")
        found.append(part)
    return content_of(found, role)


def _document(block: Block) -> str | None:
    """The text of a document, after what is said of it; None if it is not given as a text."""
    source = block.source if isinstance(block.source, dict) else {}
    if source.get("type") != "text" or not isinstance(source.get("data"), str):
        return None
    return "\n".join(text for text in (block.title, block.context, source["data"]) if isinstance(text, str))


def _image(source: Any, at: str) -> dict[str, Any]:
    kind = source.get("type") if isinstance(source, dict) else None
    if kind == "base64" and isinstance(source.get("data"), str):
        return image_part(f"data:{source.get('media_type') or ''};base64,{source['data']}", at)
    if kind == "url":
        return image_part(source.get("url"), at)
    raise ApiError(
        400, f"{at}.source: found the type {kind!r}, expected an image as base64 with data, or url",
        param=f"{at}.source", code="unsupported_value",
    )  # fmt: skip


def _plain(message: Message, at: str, warnings: list[str]) -> list[dict[str, Any]]:
    """A message in OpenAI's form; results of tools are messages of their own."""
    if isinstance(message.content, str):
        return [{"role": message.role, "content": message.content}]
    at = f"{at}.content"
    if message.role == "assistant":
        return [_answer(message.content, at)]
    plain: list[dict[str, Any]] = []
    said: list[tuple[str, Block]] = []
    for n, block in enumerate(message.content):
        here = f"{at}[{n}]"
        if message.role == "system" or _document(block) is None:
            _check(block, here, ("text", "image", "tool_result") if message.role == "user" else ("text",))
        if block.type != "tool_result":
            said.append((here, block))
            continue
        if said:
            plain.append({"role": "user", "content": _joined(said, "user")})
            said = []
        result = _content(block.content, f"{here}.content", "tool", warnings)
        plain.append({"role": "tool", "tool_call_id": block.tool_use_id, "content": result})
    if said or not plain:
        plain.append({"role": message.role, "content": _joined(said, message.role)})
    return plain


def _answer(blocks: Sequence[Block], at: str) -> dict[str, Any]:
    content, reasoning = [], []
    calls = []
    for n, block in enumerate(blocks):
        _check(block, f"{at}[{n}]", ("text", "thinking", "redacted_thinking", "tool_use"))
        if block.type == "text":
            content.append(block.text or "")
        elif block.type == "thinking":
            reasoning.append(block.thinking or "")
        elif block.type == "tool_use":
            arguments = msgspec.json.encode(block.input).decode()
            function = {"name": block.name, "arguments": arguments}
            calls.append({"id": block.id, "type": "function", "function": function})
    message: dict[str, Any] = {"role": "assistant", "content": "".join(content)}
    if reasoning:
        message["reasoning_content"] = "".join(reasoning)
    if calls:
        message["tool_calls"] = calls
    return message


def _loaded(
    tools: Sequence[dict[str, Any]],
    declared: Sequence[dict[str, Any]],
    messages: Sequence[Message],
    chosen: str | None,
) -> list[dict[str, Any]]:
    """Return the tools that the model is told of: of those with `defer_loading`, the ones that it has found.

    A tool of the client's finds them, and refers to them in its result. They come last, in the order in which
    they were found, so that the prompt stays the same up to them. A search that the provider runs finds none
    here: then all are there from the start.
    """
    if any(str(tool.get("type")).startswith(_PROVIDERS_SEARCH) for tool in declared):
        return list(tools)
    deferred = {tool.get("name") for tool in declared if tool.get("defer_loading")} - {chosen}
    named = {tool["function"]["name"]: tool for tool in tools}
    found = dict.fromkeys(
        part.tool_name
        for message in messages
        for block in (message.content if isinstance(message.content, list) else ())
        if isinstance(block.content, list)
        for part in block.content
        if part.type == "tool_reference" and part.tool_name in deferred
    )
    return [
        *(tool for tool in tools if tool["function"]["name"] not in deferred),
        *(named[name] for name in found if name in named),
    ]


def _function(tool: Tool) -> dict[str, Any]:
    examples = {"examples": tool.input_examples} if tool.input_examples else {}
    return {
        "name": tool.name,
        "description": tool.description,
        "parameters": {**tool.input_schema, **examples},
        "strict": tool.strict,
    }

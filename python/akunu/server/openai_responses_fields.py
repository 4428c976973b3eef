"""Requests of OpenAI's responses: items in, and what the model is to do with them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

from akunu.chat.messages import MessageContent
from akunu.server.client_tools import client_tools
from akunu.server.conversations import Turn, without_structure
from akunu.server.errors import ApiError
from akunu.server.fields import Fields
from akunu.server.images import content_of, image_part, instead_of
from akunu.server.openai_fields import Function, allowed_tools, function_fields, part_text
from akunu.server.sampling_fields import SamplingFields

__all__ = ["InputItemsQuery", "Item", "ResponseQuery", "ResponsesRequest"]


class ContentPart(Fields):
    """A part of a content."""

    accepted: ClassVar = {"annotations": ([],)}

    type: str
    prompt_cache_breakpoint: Any = None  # everything is cached
    text: str | None = None
    refusal: str | None = None
    annotations: Any = None
    logprobs: Any = None  # of an earlier answer that a client repeats
    image_url: Any = None
    file_id: Any = None
    file_data: Any = None
    detail: Any = None


class Item(Fields):
    """Something that was said or done. Which fields it has depends on its type."""

    accepted: ClassVar = {"caller": ()}

    type: str = "message"
    role: Literal["system", "developer", "user", "assistant"] | None = None
    content: str | list[ContentPart] | None = None
    id: str | None = None
    status: str | None = None
    phase: str | None = None
    call_id: str | None = None
    name: str | None = None
    arguments: str | None = None
    output: str | list[ContentPart] | None = None
    summary: list[ContentPart] | None = None
    encrypted_content: str | None = None
    caller: Any = None
    namespace: str | None = None  # of Codex, beside a name


class TextFormat(Fields):
    """The format of an answer."""

    type: Literal["text", "json_object", "json_schema"]
    schema: dict[str, Any] | None = None
    name: str | None = None
    description: str | None = None
    strict: bool | None = None


class TextConfig(Fields):
    """The format of an answer's text."""

    accepted: ClassVar = {"verbosity": ("low", "medium", "high")}

    format: TextFormat | None = None
    verbosity: Any = None


class ReasoningConfig(Fields):
    """The options of thinking."""

    accepted: ClassVar = {"context": ("auto",), "mode": ("standard",)}

    effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = None
    summary: Literal["auto", "concise", "detailed", "none"] | None = None
    generate_summary: Any = None
    context: Any = None
    mode: Any = None


class StreamOptions(Fields):
    """The options of a stream."""

    accepted: ClassVar = {"include_obfuscation": (False,)}

    include_obfuscation: Any = None


class ChosenTool(Fields, tag_field="type", tag="function"):
    """The function that has to be called."""

    name: str


class AllowedTools(Fields, tag_field="type", tag="allowed_tools"):
    """Some of the tools, as if they were all, and whether one has to be called."""

    mode: Literal["auto", "required"]
    tools: list[ChosenTool]


class _Tool(Function, kw_only=True):
    accepted: ClassVar = {"allowed_callers": (["direct"],), "defer_loading": (False,), "output_schema": ()}

    type: Literal["function"]
    allowed_callers: Any = None
    defer_loading: Any = None
    output_schema: Any = None


class ResponseQuery(Fields):
    """The query of a stored response, which is given whole."""

    accepted: ClassVar = {"stream": (False,), "include_obfuscation": (False,)}

    stream: bool | None = None
    include_obfuscation: bool | None = None


class InputItemsQuery(Fields):
    """The query of the items that a stored response answers."""

    after: str | None = None
    limit: Annotated[int, Meta(ge=1, le=100)] = 20
    order: Literal["asc", "desc"] = "desc"


class ResponsesRequest(SamplingFields, kw_only=True):
    """The request of `/v1/responses`: OpenAI's fields, and extensions."""

    accepted: ClassVar = {
        "access_programs": (),
        "background": (False,),
        "background_options": (),
        "context_management": (),
        "conversation": (),
        "image": (),
        "moderation": (),
        "prompt": (),
        "service_tier": ("auto", "default"),
        "truncation": ("disabled",),
    }

    model: str = ""
    """Without a name it is the first that there is, as with llama-server and vLLM."""
    input: str | list[Item]
    instructions: str | None = None
    previous_response_id: str | None = None
    store: bool | None = None
    max_output_tokens: Annotated[int, Meta(ge=1)] | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: Literal["none", "auto", "required"] | ChosenTool | AllowedTools | None = None
    parallel_tool_calls: bool | None = None
    text: TextConfig | None = None
    reasoning: ReasoningConfig | None = None
    top_logprobs: Annotated[int, Meta(ge=0, le=20)] | None = None
    include: list[Literal["message.output_text.logprobs", "reasoning.encrypted_content"]] | None = None
    # Extensions.
    thinking_budget: int | None = None
    lenient_tool_calls: bool | None = None
    generic_tools: bool | None = None
    image_tokens: int | None = None
    # Labels: they say who asks, not for what.
    user: str | None = None
    metadata: dict[str, str] | None = None
    client_metadata: dict[str, str] | None = None  # of Codex
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None
    prompt_cache_retention: str | None = None
    prompt_cache_options: Any = None
    # Known, and refused.
    access_programs: Any = None
    background: Any = None
    background_options: Any = None
    context_management: Any = None
    conversation: Any = None
    image: Any = None
    max_tool_calls: int | None = None  # of tools that a provider runs
    moderation: Any = None
    prompt: Any = None
    service_tier: Any = None
    truncation: Any = None

    @property
    def logprobs(self) -> bool:
        """Whether log-probabilities are wanted."""
        return "message.output_text.logprobs" in (self.include or ())

    def options(self) -> dict[str, Any]:
        """Arguments of the generation."""
        options = self.sampling()
        if self.top_logprobs and not self.logprobs:
            raise ApiError(
                400, "top_logprobs: needs include with message.output_text.logprobs", param="top_logprobs",
                code="invalid_value",
            )  # fmt: skip
        if self.logprobs:
            options["logprobs"] = self.top_logprobs or 0
        if self.max_output_tokens is not None:
            options["max_tokens"] = self.max_output_tokens
        form = self.text.format if self.text else None
        if form is not None and (form.type == "json_schema") != (form.schema is not None):
            raise ApiError(
                400, "text.format.schema: expected with the type json_schema, and only there",
                param="text.format.schema", code="invalid_value",
            )  # fmt: skip
        if form is not None and form.schema is not None:
            options["schema"] = form.schema
        elif form is not None and form.type == "json_object":
            options["json"] = True
        return options | self.foreign(options)

    @property
    def items(self) -> list[Item]:
        """The input."""
        return [Item(role="user", content=self.input)] if isinstance(self.input, str) else self.input

    def turn(self, earlier: Sequence[dict[str, Any]]) -> tuple[Turn, list[str]]:
        """Return what is asked of the model after the items of earlier responses, with warnings."""
        tools, warnings = client_tools(self.tools, "function", _Tool, function_fields)
        messages: list[dict[str, Any]] = []
        if self.text is not None and self.text.verbosity not in (None, "medium"):
            warnings.append("text.verbosity: no model here has such a setting; it changes nothing")
        for item in msgspec.convert(earlier, list[Item]):
            _add(messages, item, "previous_response_id", warnings)
        for n, item in enumerate(self.items):
            _add(messages, item, f"input[{n}]", warnings)
        if self.instructions:
            messages.insert(0, {"role": "system", "content": self.instructions})
        if not messages:
            raise ApiError(400, "input: found nothing, expected a text or items", param="input")
        choice = self.tool_choice
        if isinstance(choice, AllowedTools):
            tools = allowed_tools(tools, [each.name for each in choice.tools], "tool_choice.tools")
            choice = choice.mode
        options = self.options() | {
            "tools": tools,
            "tool_choice": choice.name if isinstance(choice, ChosenTool) else choice,
            "parallel_tool_calls": self.parallel_tool_calls,
            "lenient_tool_calls": self.lenient_tool_calls,
            "generic_tools": self.generic_tools,
            "image_tokens": self.image_tokens,
            "reasoning_effort": self.reasoning.effort if self.reasoning else None,
            "thinking_budget": self.thinking_budget,
        }
        options, more = without_structure(options, "text.format")
        return Turn(messages, options), [*warnings, *more]


def _add(messages: list[dict[str, Any]], item: Item, at: str, warnings: list[str]) -> None:
    """Add an item to the messages; what an assistant thinks, says and calls in a row is one of them."""
    if item.type == "message":
        if item.role is None or item.content is None:
            missing = "role" if item.role is None else "content"
            raise ApiError(400, f"{at}.{missing}: missing", param=f"{at}.{missing}")
        content = _content(item.content, f"{at}.content", item.role)
        if item.role == "assistant":
            message = _assistant(messages, after_calls=False)
            message["content"] += content
        else:
            messages.append({"role": item.role, "content": content})
    elif item.type == "function_call":
        if item.call_id is None or item.name is None or item.arguments is None:
            raise ApiError(400, f"{at}: expected call_id, name and arguments", param=at)
        function = {"name": item.name, "arguments": item.arguments}
        call = {"id": item.call_id, "type": "function", "function": function}
        _assistant(messages).setdefault("tool_calls", []).append(call)
    elif item.type == "function_call_output":
        if item.output is None or (item.call_id is None and item.name is None):
            raise ApiError(400, f"{at}: expected call_id and output", param=at)
        if item.call_id is None:  # of Codex: something to know, which no call has asked for
            known = _content(item.output, f"{at}.output", "developer", warnings)
            messages.append({"role": "developer", "content": f"{item.name}: {known}"})
            return
        content = _content(item.output, f"{at}.output", "tool", warnings)
        messages.append({"role": "tool", "tool_call_id": item.call_id, "content": content})
    elif item.type == "reasoning":
        thought = _content(item.content or [], f"{at}.content", "assistant")
        thought = thought or _content(item.summary or [], f"{at}.summary", "assistant")
        if thought:
            message = _assistant(messages, after_calls=False)
            message["reasoning_content"] = message.get("reasoning_content", "") + thought
    else:
        raise ApiError(
            400, f"{at}: an item of the type {item.type!r} is not supported; message, function_call, "
            "function_call_output and reasoning are", param=at, code="unsupported_value",
        )  # fmt: skip


def _assistant(messages: list[dict[str, Any]], after_calls: bool = True) -> dict[str, Any]:
    """The assistant's message at the end, or a new one."""
    last = messages[-1] if messages else None
    if last is None or last["role"] != "assistant" or ("tool_calls" in last and not after_calls):
        last = {"role": "assistant", "content": ""}
        messages.append(last)
    return last


def _content(
    content: str | Sequence[ContentPart], at: str, role: str, warnings: list[str] | None = None
) -> MessageContent:
    """A content of someone's message. With `warnings`, a file in it has a text in its place."""
    if isinstance(content, str):
        return content
    found: list[str | dict[str, Any]] = []
    for n, part in enumerate(content):
        if warnings is not None and part.type == "input_file":
            found.append(instead_of("file", f"{at}[{n}]", warnings))
            continue
        if part.type == "input_image":
            if part.image_url is None and part.file_id is not None:
                raise ApiError(
                    400, f"{at}[{n}].file_id: this server keeps no files; send the image as image_url",
                    param=f"{at}[{n}].file_id", code="unsupported_value",
                )  # fmt: skip
            found.append(image_part(part.image_url, f"{at}[{n}]", part.detail))
            continue
        name = "refusal" if part.type == "refusal" else "text"
        kinds = ("input_text", "output_text", "text", "reasoning_text", "summary_text", "refusal")
        if part.type not in kinds:
            raise ApiError(
                400, f"{at}[{n}]: a part of the type {part.type!r} is not supported; texts and images are",
                param=f"{at}[{n}]", code="unsupported_value",
            )  # fmt: skip
        found.append(part_text(getattr(part, name), f"{at}[{n}].{name}"))
    if role == "developer" and warnings is not None:
        # What nobody asked for is the system's, which is shown no images.
        found = [p if isinstance(p, str) else instead_of("image", p["at"], warnings) for p in found]
    return content_of(found, role)

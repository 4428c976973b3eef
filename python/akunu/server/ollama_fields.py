"""Requests of Ollama's API: messages, options, and how long a model stays."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any, ClassVar, Final, Literal

import msgspec

from akunu.chat.messages import MessageContent
from akunu.server.client_tools import client_tools
from akunu.server.conversations import Turn, without_structure
from akunu.server.errors import ApiError
from akunu.server.fields import Fields
from akunu.server.images import content_of, image_part
from akunu.server.openai_choices import AnyChoice, chosen
from akunu.server.openai_fields import ChatTool, allowed_tools, function_fields
from akunu.server.sampling_fields import stop_texts

__all__ = [
    "DURATION_WORDS",
    "EmbedRequest",
    "EmbeddingsRequest",
    "GenerateRequest",
    "NameRequest",
    "OllamaChatRequest",
    "PullRequest",
    "duration",
    "seconds",
]

_DURATION: Final = re.compile(r"(-?)((?:\d+(?:\.\d+)?(?:ms|h|m|s))+)")
_PARTS: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|h|m|s)")
_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


DURATION_WORDS: Final = 'seconds or a duration such as "5m"'


def duration(text: str) -> float | None:
    """Return the seconds of "5m", "1h30m" or "300"; what is negative has no end; None: it is no duration."""
    try:
        value = float(text)
    except ValueError:
        found = _DURATION.fullmatch(text)
        if found is None:
            return None
        value = sum(float(number) * _UNITS[unit] for number, unit in _PARTS.findall(found[2]))
        value = -value if found[1] else value
    return None if math.isnan(value) else math.inf if value < 0 else value


def seconds(given: str | float | None) -> float | None:
    """Return the seconds that `keep_alive` asks for; None says nothing."""
    if given is None:
        return None
    value = duration(str(given))
    if value is None:
        raise ApiError(
            400, f"keep_alive: found {given!r}, expected {DURATION_WORDS}",
            param="keep_alive", code="invalid_value",
        )  # fmt: skip
    return value


class Sampling(Fields, kw_only=True):
    """Sampling by Ollama's names."""

    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    typical_p: float | None = None
    repeat_penalty: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    repeat_last_n: int | None = None
    seed: int | None = None
    stop: str | list[str] | None = None
    num_predict: int | None = None

    def arguments(self) -> dict[str, Any]:
        """Return what is given as arguments of a generation."""
        same = (
            "temperature", "top_k", "top_p", "min_p", "typical_p", "repeat_penalty", "presence_penalty",
            "frequency_penalty",
        )  # fmt: skip
        found = {name: getattr(self, name) for name in same}
        found["stop"] = stop_texts(self.stop)
        found["seed"] = None if self.seed is None else max(self.seed, -1)
        found["max_tokens"] = None if self.num_predict is None else max(self.num_predict, -1)
        found["penalty_window"] = self.repeat_last_n
        return {name: value for name, value in found.items() if value is not None}


class Options(Sampling, kw_only=True):
    """The options of a request. What concerns loading is settled when the server starts."""

    accepted: ClassVar = {"mirostat": (0,), "tfs_z": (1.0, 1), "penalize_newline": (False, True)}

    # How a model is loaded: without effect here.
    num_ctx: int | None = None
    num_keep: int | None = None
    num_batch: int | None = None
    num_gpu: int | None = None
    main_gpu: int | None = None
    num_thread: int | None = None
    numa: bool | None = None
    low_vram: bool | None = None
    f16_kv: bool | None = None
    logits_all: bool | None = None
    vocab_only: bool | None = None
    use_mmap: bool | None = None
    use_mlock: bool | None = None
    embedding_only: bool | None = None
    # Known, and refused but for what changes nothing.
    mirostat: Any = None
    mirostat_tau: float | None = None
    mirostat_eta: float | None = None
    tfs_z: Any = None
    penalize_newline: Any = None


class Asking(Sampling, kw_only=True):
    """The fields that both ways to generate share.

    Programs put sampling beside `options`, too, also by the names of OpenAI's API; where `options` say
    something else, they hold.
    """

    open_objects: ClassVar = ("options",)

    model: str
    stream: bool | None = None
    format: str | dict[str, Any] | None = None
    options: Options | None = None
    keep_alive: str | float | None = None
    think: bool | Literal["low", "medium", "high"] | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    max_output_tokens: int | None = None

    def generation(self) -> dict[str, Any]:
        """Arguments of the generation, but for thinking."""
        most = self.max_tokens or self.max_completion_tokens or self.max_output_tokens
        found: dict[str, Any] = {"max_tokens": most} if most is not None else {}
        found |= self.arguments() | (self.options or Options()).arguments()
        if isinstance(self.format, dict):
            found["schema"] = self.format
        elif self.format == "json":
            found["json"] = True
        elif self.format:
            raise ApiError(
                400, f"format: found {self.format!r}, expected json or a JSON schema", param="format",
                code="invalid_value",
            )  # fmt: skip
        if self.logprobs:
            found["logprobs"] = self.top_logprobs or 0
        return found

    def thinking(self) -> dict[str, Any]:
        """The options of the model's thinking."""
        if isinstance(self.think, str):
            return {"reasoning_effort": self.think}
        return {} if self.think is None else {"thinking": self.think}

    @property
    def streams(self) -> bool:
        """Whether the answer comes in pieces, as it does unless something else is said."""
        return self.stream is not False


class CalledFunction(Fields):
    """The function that an assistant called."""

    name: str
    arguments: dict[str, Any] | str | None = None
    index: int | None = None
    description: str | None = None


class Call(Fields):
    """A call of a tool."""

    function: CalledFunction
    id: str | None = None
    type: str | None = None


class Message(Fields):
    """A message of a conversation."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str | None = None
    thinking: str | None = None
    images: list[Any] | None = None
    tool_calls: list[Call] | None = None
    tool_name: str | None = None
    tool_call_id: str | None = None
    name: str | None = None


def _said(text: str, images: Sequence[Any] | None, role: str, at: str) -> MessageContent:
    """Return what is said, with the images, in Base64, before it."""
    found = []
    for n, image in enumerate(images or ()):
        if not isinstance(image, str) or not image:
            raise ApiError(400, f"{at}[{n}]: expected an image in Base64", param=f"{at}[{n}]")
        found.append(
            image_part(image if image.startswith("data:") else f"data:;base64,{image}", f"{at}[{n}]")
        )
    return content_of([*found, *([text] if text else [])], role)


class OllamaChatRequest(Asking, kw_only=True):
    """The request of `/api/chat`."""

    messages: list[Message] | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: AnyChoice | None = None
    # Extensions.
    lenient_tool_calls: bool | None = None
    generic_tools: bool | None = None
    image_tokens: int | None = None

    def turn(self) -> Turn:
        """Return what is asked of the model."""
        tools, _ = client_tools(self.tools, "function", ChatTool, lambda tool: function_fields(tool.function))
        choice, allowed = chosen(self.tool_choice)
        if allowed is not None:
            tools = allowed_tools(tools, allowed, "tool_choice.allowed_tools.tools")
        options = self.generation() | self.thinking() | {"tools": tools, "tool_choice": choice}
        options, _ = without_structure(options, "format")
        options |= {
            "lenient_tool_calls": self.lenient_tool_calls,
            "generic_tools": self.generic_tools,
            "image_tokens": self.image_tokens,
        }
        return Turn(_plain(self.messages or []), options)


def _plain(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Messages in OpenAI's form. Results follow their calls in order, or by the function's name."""
    plain: list[dict[str, Any]] = []
    waiting: list[tuple[str, str]] = []  # ids and names of calls without a result
    for n, message in enumerate(messages):
        said = _said(message.content or "", message.images, message.role, f"messages[{n}].images")
        fields: dict[str, Any] = {"role": message.role, "content": said}
        if message.thinking and message.role == "assistant":
            fields["reasoning_content"] = message.thinking
        if message.tool_calls:
            calls = [_call(call, f"call{n:03}{i:03}") for i, call in enumerate(message.tool_calls)]
            waiting = [(call["id"], call["function"]["name"]) for call in calls]
            fields["tool_calls"] = calls
            fields["content"] = message.content or None
        elif message.role == "tool":
            name = message.tool_name or message.name
            found = next((each for each in waiting if name in (None, each[1])), None)
            found = found or (waiting[0] if waiting else (message.tool_call_id or "call000000", name or ""))
            waiting = [each for each in waiting if each != found]
            fields |= {"tool_call_id": message.tool_call_id or found[0]}
            if name or found[1]:
                fields["name"] = name or found[1]
        plain.append(fields)
    return plain


def _call(call: Call, name: str) -> dict[str, Any]:
    arguments = call.function.arguments
    text = arguments if isinstance(arguments, str) else msgspec.json.encode(arguments or {}).decode()
    function = {"name": call.function.name, "arguments": text}
    return {"id": call.id or name, "type": "function", "function": function}


class GenerateRequest(Asking, kw_only=True):
    """The request of `/api/generate`."""

    accepted: ClassVar = {"template": ("",), "context": ([],)}

    prompt: str | None = None
    suffix: str | None = None
    images: list[Any] | None = None
    system: str | None = None
    raw: bool | None = None
    # Known, and refused.
    template: Any = None
    context: Any = None

    def turn(self) -> Turn:
        """Return what is asked of the model, where its chat template writes the prompt."""
        system: list[dict[str, Any]] = []
        if self.system:
            system.append({"role": "system", "content": self.system})
        said = _said(self.prompt or "", self.images, "user", "images")
        messages = [*system, {"role": "user", "content": said}]
        return Turn(messages, self.generation() | self.thinking())


class EmbedRequest(Fields):
    """The request of `/api/embed`."""

    long_lists: ClassVar = ("input",)
    open_objects: ClassVar = ("options",)

    model: str
    input: str | list[str]
    truncate: bool | None = None
    dimensions: int | None = None
    options: Options | None = None
    keep_alive: str | float | None = None


class EmbeddingsRequest(Fields):
    """The request of `/api/embeddings`."""

    open_objects: ClassVar = ("options",)

    model: str
    prompt: str
    options: Options | None = None
    keep_alive: str | float | None = None


class NameRequest(Fields):
    """A model, by either of the names that the field has had."""

    model: str | None = None
    name: str | None = None
    verbose: bool | None = None
    system: str | None = None
    template: str | None = None
    options: Options | None = None

    @property
    def wanted(self) -> str:
        """The model's name."""
        found = self.model or self.name
        if not found:
            raise ApiError(400, "model: it is missing", param="model", code="missing_field")
        return found


class PullRequest(NameRequest):
    """The request of `/api/pull`."""

    insecure: bool | None = None
    stream: bool | None = None
    username: str | None = None
    password: str | None = None

"""A chat, whichever API it came by: what is asked of the model, and the answers as steps of deltas."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from akunu.api.chat_options import ChatOptions
from akunu.api.model import Model
from akunu.api.results import Completion, Piece
from akunu.api.streams import AsyncStream
from akunu.chat import ChatTemplate
from akunu.chat.deltas import Delta, Reasoning, ToolCall
from akunu.server.foreign_fields import IGNORE_EOS, LORA, PROGRESS
from akunu.server.generations import Generation, RequestRecord, Server, generations, together
from akunu.server.images import settled
from akunu.server.settings import VOLATILE_LINES, Settings

__all__ = [
    "FinishReason",
    "Step",
    "Turn",
    "answers",
    "finish_reason",
    "prepared",
    "prompt_ids",
    "warned",
    "without_structure",
]

FinishReason = Literal["stop", "length", "tool_calls"]

_NO_THINKING: Final = (("thinking", False), ("reasoning_effort", "none"))
"""Options that ask for an answer without thoughts."""


@dataclass(frozen=True, slots=True)
class Turn:
    """The request to a chat model, in any API's terms."""

    messages: list[dict[str, Any]]
    """The messages, in OpenAI's format."""
    options: dict[str, Any]
    """Arguments of the chat (`ChatOptions`)."""
    n: int = 1
    upper_limits: tuple[str, ...] = ()
    """Options that a model keeps to by not thinking at all."""
    warnings: list[str] = field(default_factory=list)
    """The warnings for the client; the model's own are there from the first step of an answer on."""


@dataclass(frozen=True, slots=True)
class Step:
    """One piece of an output; the last one of an output has the whole of it."""

    generation: Generation
    deltas: Sequence[Delta]
    piece: Piece | None = None
    completion: Completion | None = None
    finish_reason: FinishReason | None = None

    @property
    def reasoning_tokens(self) -> int:
        """Tokens of the piece that are reasoning; where it has more than reasoning, those of its text."""
        thought = "".join(delta.text for delta in self.deltas if isinstance(delta, Reasoning))
        if self.piece is None or not thought:
            return 0
        if thought == self.piece:
            return len(self.piece.ids)
        return len(self.generation.model.tokenize(thought, add_special=False))


def without_structure(options: dict[str, Any], field: str) -> tuple[dict[str, Any], list[str]]:
    """Return the options of a chat and warnings: where a call is forced, there is no content to constrain."""
    forced = options.get("tool_choice") not in (None, "auto", "none") and options.get("tools")
    if not forced or not (options.get("schema") is not None or options.get("json")):
        return options, []
    kept = {name: value for name, value in options.items() if name not in ("schema", "json")}
    return kept, [f"{field}: tool_choice asks for a call, which has no content; the format was left out"]


def prepared(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages as chat templates are written for.

    Developers are the system; what the system says first is one message, without the lines that agents change
    at every request (`VOLATILE_LINES`).
    """
    messages = [
        {**message, "role": "system"} if message["role"] == "developer" else message for message in messages
    ]
    first = next((i for i, message in enumerate(messages) if message["role"] != "system"), len(messages))
    if first:
        texts = (_without_volatile_lines(message["content"]) for message in messages[:first])
        said = "\n\n".join(text for text in texts if text)
        messages = [*([{"role": "system", "content": said}] if said else []), *messages[first:]]
    return messages


def _without_volatile_lines(text: str) -> str:
    while text.startswith(VOLATILE_LINES):
        text = text.partition("\n")[2].lstrip("\n")
    return text


def _settled(template: ChatTemplate, turn: Turn, options: dict[str, Any]) -> dict[str, Any]:
    """The options, but for what is said of thinking to a model that does not, and that it keeps to anyway."""
    if template.reasons:
        return options
    return {
        name: value
        for name, value in options.items()
        if name not in turn.upper_limits and (name, value) not in _NO_THINKING
    }


def warned(turn: Turn) -> dict[str, Any]:
    """The field of an answer that has the warnings, if there are any."""
    return {"warnings": turn.warnings} if turn.warnings else {}


def prompt_ids(model: Model, turn: Turn, settings: Settings) -> list[int]:
    """The tokens of a turn's prompt."""
    template = model.chat_template
    known = {name: value for name, value in turn.options.items() if name not in (IGNORE_EOS, LORA, PROGRESS)}
    options: ChatOptions = _settled(template, turn, known)  # type: ignore[assignment]
    messages = settled(prepared(turn.messages), model, settings, turn.warnings)
    return model.prepare_chat(messages, options).ids


async def answers(
    server: Server, record: RequestRecord, name: str, turn: Turn, *, whole_calls: bool = False
) -> AsyncGenerator[tuple[int, Step], None]:
    """The answers of the model `name`: the steps of each with its number. Ended early, it ends them.

    With `whole_calls`, a call of a tool that breaks off is content: a client that gets all of an answer at
    once has to be able to rely on its calls.

    Raises
    ------
    ApiError, AkunuError
        Before the first step, for what the server, the model or its template cannot do.
    """
    messages = prepared(turn.messages)

    read: list[list[dict[str, Any]]] = []  # the messages, once for all answers

    def start(model: Model, options: dict[str, Any]) -> AsyncStream:
        if not read:
            read.append(settled(messages, model, server.settings, turn.warnings))
        stream = model.astream_chat(read[0], **_settled(model.chat_template, turn, options))
        return stream.whole_calls() if whole_calls else stream

    async with (
        generations(server, record, name, [start] * turn.n, turn.options) as found,
        aclosing(together(found)) as pieces,
    ):
        called: set[int] = set()
        async for i, piece in pieces:
            generation = found[i]
            if piece is None:
                completion = generation.completion
                yield i, Step(generation, (), None, completion, finish_reason(completion, i in called))
                continue
            if any(isinstance(delta, ToolCall) for delta in piece.deltas):
                called.add(i)
            yield i, Step(generation, piece.deltas, piece)


def finish_reason(completion: Completion, called: bool) -> FinishReason:
    """OpenAI's word for why an output ended; one that the server cut off counts as cut off by a limit."""
    if completion.finish_reason != "stop":
        return "length"
    return "tool_calls" if called else "stop"

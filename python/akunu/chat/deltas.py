"""The parts of an answer, as it is written: content, reasoning, and calls of tools."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

__all__ = ["Content", "Delta", "Reasoning", "ToolArguments", "ToolCall", "merged", "message_of"]


@dataclass(frozen=True, slots=True)
class Content:
    """A piece of what is said to the user."""

    text: str


@dataclass(frozen=True, slots=True)
class Reasoning:
    """A piece of what the model thought before it answered."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool begins.

    Attributes
    ----------
    index : int
        Which of the answer's calls, from 0.
    id : str
        Its name in the conversation: the tool's result refers to it.
    name : str
        The function.
    """

    index: int
    id: str
    name: str


@dataclass(frozen=True, slots=True)
class ToolArguments:
    """A fragment of a call's arguments; those of one call, joined, are a JSON object."""

    index: int
    fragment: str


Delta = Content | Reasoning | ToolCall | ToolArguments


def merged(deltas: Iterable[Delta]) -> list[Delta]:
    """Return the deltas with neighbours of one kind joined, and without empty ones."""
    joined: list[Delta] = []
    for delta in deltas:
        last = joined[-1] if joined else None
        match last, delta:
            case (Content(before), Content(text)):
                joined[-1] = Content(before + text)
            case (Reasoning(before), Reasoning(text)):
                joined[-1] = Reasoning(before + text)
            case (ToolArguments(index, before), ToolArguments(same, fragment)) if index == same:
                joined[-1] = ToolArguments(index, before + fragment)
            case (_, Content("") | Reasoning("") | ToolArguments(_, "")):
                pass
            case _:
                joined.append(delta)
    return joined


def message_of(deltas: Iterable[Delta]) -> dict[str, Any]:
    """The assistant's message in OpenAI's form.

    `content` is None beside tool calls without one; `reasoning_content` and `tool_calls` are there where the
    answer has them.
    """
    content, reasoning = "", ""
    calls: list[dict[str, Any]] = []
    for delta in deltas:
        match delta:
            case Content(text):
                content += text
            case Reasoning(text):
                reasoning += text
            case ToolCall(_, call_id, name):
                function = {"name": name, "arguments": ""}
                calls.append({"id": call_id, "type": "function", "function": function})
            case ToolArguments(index, fragment):
                calls[index]["function"]["arguments"] += fragment
    message: dict[str, Any] = {"role": "assistant", "content": content or (None if calls else "")}
    if reasoning:
        message["reasoning_content"] = reasoning
    if calls:
        message["tool_calls"] = calls
    return message

"""Tools for templates that know none: one format, in words and tags that any model can read.

The system message describes the tools; past calls and their results are parts of the assistant's and the
user's texts. Models that were trained on it (Hermes, Qwen) know it; others follow it as well as they can.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

__all__ = ["described", "with_responses", "written"]

_DESCRIPTION: Final = """\
You can call these functions, whose parameters are described by JSON schemas:
<tools>
{tools}
</tools>
To call one, answer with its name and arguments as a JSON object in these tags, and nothing after them:
<tool_call>
{{"name": "FUNCTION", "arguments": {{"PARAMETER": "VALUE"}}}}
</tool_call>
Its result follows between <tool_response> and </tool_response>."""


def described(messages: Sequence[dict[str, Any]], tools: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The messages, with the tools in what the system says first."""
    functions = "\n".join(json.dumps(tool.get("function", tool), ensure_ascii=False) for tool in tools)
    text = _DESCRIPTION.format(tools=functions)
    first = messages[0] if messages else {}
    if first.get("role") in ("system", "developer") and isinstance(first.get("content"), str):
        return [{**first, "content": f"{first['content']}\n\n{text}"}, *messages[1:]]
    return [{"role": "system", "content": text}, *messages]


def written(messages: Sequence[dict[str, Any]], *, calls: bool, results: bool) -> list[dict[str, Any]]:
    """The messages, with their calls, or the results of calls, in texts.

    Results in a row are one text, and what the user says next is part of it: many templates refuse two
    messages of the user's one after the other.
    """
    plain: list[dict[str, Any]] = []
    open_results = False
    for message in messages:
        if calls and message.get("tool_calls"):
            message = {**message, "content": _with_calls(message)}
            del message["tool_calls"]
        responds = results and message["role"] == "tool"
        if responds:
            text = f"<tool_response>\n{message.get('content') or ''}\n</tool_response>"
            message = {"role": "user", "content": text}
        if open_results and message["role"] == "user":
            gap = "\n" if responds else "\n\n"
            plain[-1] = {**plain[-1], "content": f"{plain[-1]['content']}{gap}{message['content']}"}
        else:
            plain.append(message)
        open_results = responds
    return plain


def _with_calls(message: Mapping[str, Any]) -> str:
    parts = [message["content"]] if message.get("content") else []
    for call in message["tool_calls"]:
        function = call.get("function", call)
        arguments = function.get("arguments", {})
        if not isinstance(arguments, str):
            arguments = json.dumps(arguments, ensure_ascii=False)
        name = json.dumps(function.get("name", ""), ensure_ascii=False)
        parts.append(f'<tool_call>\n{{"name": {name}, "arguments": {arguments or "{}"}}}\n</tool_call>')
    return "\n".join(parts)


def with_responses(messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages, with results as `tool_responses` of the message whose calls they answer: Gemma 4."""
    found: list[dict[str, Any]] = []
    for message in messages:
        last = found[-1] if found else {}
        if message["role"] != "tool" or not last.get("tool_calls"):
            found.append(message)
            continue
        names = {call.get("id"): call.get("function", call).get("name") for call in last["tool_calls"]}
        name = message.get("name") or names.get(message.get("tool_call_id")) or "unknown"
        response = {"name": name, "response": _value(message.get("content"))}
        found[-1] = {**last, "tool_responses": [*last.get("tool_responses", ()), response]}
    return found


def _value(content: Any) -> Any:
    """A result, as an object where it is the JSON of one."""
    try:
        value = json.loads(content)
    except (TypeError, ValueError, RecursionError):
        return content
    return value if isinstance(value, dict) else content

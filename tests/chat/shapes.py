"""Conversations of every shape, for every template in `templates`.

The templates are ours, each after the published format of the models it is named for: the same marks, places
and conditions, and as few words as will do.
"""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

from akunu.chat import ChatTemplate

from .models import tokenizer

HERE = Path(__file__).resolve().parent
RENDERINGS = HERE / "renderings.json"
TEMPLATES = {path.stem: path.read_text(encoding="utf-8") for path in sorted(HERE.glob("templates/*.jinja"))}
NOW = datetime(2026, 1, 2, 3, 4, 5)

WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": 'The weather in a "city" <b>&</b>',
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string", "description": "Où?"},
                "days": {"type": "integer"},
            },
            "required": ["city"],
        },
    },
}
SYSTEM = {"role": "system", "content": "Be kind."}
HI = {"role": "user", "content": "Hi"}
HELLO = {"role": "assistant", "content": "Hello!"}
ASK = {"role": "user", "content": "  What is the weather in Paris? \n"}
CALL_ID = "call00001"
CALL = {
    "id": CALL_ID,
    "type": "function",
    "function": {"name": "weather", "arguments": '{"city": "Paris", "days": 2}'},
}
CALLING = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT = {"role": "tool", "name": "weather", "tool_call_id": CALL_ID, "content": '{"sky": "clear"}'}
CLEAR = {"role": "assistant", "content": "It is clear."}

Conversation = tuple[list[dict[str, Any]], dict[str, Any]]

CONVERSATIONS: dict[str, Conversation] = {
    "one question": ([HI], {}),
    "system": ([SYSTEM, HI], {}),
    "turns": ([SYSTEM, HI, HELLO, ASK], {}),
    "without a prompt": ([HI, HELLO], {"add_generation_prompt": False}),
    "tools": ([SYSTEM, ASK], {"tools": [WEATHER]}),
    "tools without system": ([ASK], {"tools": [WEATHER]}),
    "call": ([ASK, CALLING, RESULT], {"tools": [WEATHER]}),
    "call of a tool that is not declared": ([ASK, CALLING, RESULT], {}),
    "called": ([SYSTEM, ASK, CALLING, RESULT, CLEAR, HI], {"tools": [WEATHER]}),
    "thought": ([HI, {**HELLO, "reasoning_content": "Polite."}, ASK], {}),
    "thought and called": ([ASK, {**CALLING, "reasoning_content": "Look."}, RESULT], {"tools": [WEATHER]}),
    "thinking": ([HI], {"variables": {"enable_thinking": True, "thinking": True}}),
    "not thinking": ([HI], {"variables": {"enable_thinking": False, "thinking": False}}),
    "much effort": ([HI], {"variables": {"reasoning_effort": "high"}}),
}


def template(name: str) -> ChatTemplate:
    return ChatTemplate(TEMPLATES[name], tokenizer())


def expected() -> dict[str, dict[str, str | None]]:
    """The text of each conversation by template; None where the template refuses it."""
    found: dict[str, dict[str, str | None]] = json.loads(RENDERINGS.read_text(encoding="utf-8"))
    return found

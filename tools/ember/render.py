"""A sample as the text the model sees: the chat template is the one that is shipped in the file."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Template
from jinja2.sandbox import ImmutableSandboxedEnvironment

from tools.ember.corpus.sample import Sample

END_OF_TEXT, START, END = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
CALL_START, CALL_END = "<tool_call>", "</tool_call>"
CONTROL_TOKENS = [END_OF_TEXT, START, END]
TAG_TOKENS = [CALL_START, CALL_END]
TEMPLATE_PATH = Path(__file__).parent / "chat_template.jinja"
_ASSISTANT = START + "assistant\n"


@cache
def template() -> Template:
    """The chat template, in the sandbox and with the ``tojson`` that inference engines give it."""
    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    env.filters["tojson"] = lambda value: json.dumps(value, ensure_ascii=False)
    return env.from_string(TEMPLATE_PATH.read_text(encoding="utf-8"))


def render(
    messages: list[dict[str, Any]], tools: list[dict[str, Any]] | None = None, prompt: bool = False
) -> str:
    """The conversation as text; with ``prompt`` it ends where the assistant is to go on."""
    return template().render(messages=messages, tools=tools or None, add_generation_prompt=prompt)


def pieces(sample: Sample) -> list[tuple[str, bool]]:
    """The document in pieces, each with whether it is learned: all of a plain text, the answers of a chat."""
    if sample.text:
        return [(sample.text + END_OF_TEXT, True)]
    out: list[tuple[str, bool]] = []
    before, *answers = render(sample.messages, sample.tools).split(_ASSISTANT)
    before += _ASSISTANT
    for i, part in enumerate(answers):
        answer, rest = part.split(END, 1)
        out += [(before, False), (answer + END, True)]
        before = rest + (_ASSISTANT if i < len(answers) - 1 else "")
    return out

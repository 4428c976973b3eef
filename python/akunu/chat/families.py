"""The families of models, by how they mark what an answer consists of: a row each.

Sources: the models' published chat templates and cards. A family is found from the template's text.
"""

from __future__ import annotations

import secrets
import string
from typing import Final

from akunu.chat.arguments import (
    gemma_arguments,
    glm_arguments,
    invoked_arguments,
    python_arguments,
    tagged_arguments,
)
from akunu.chat.calls import (
    CallFormat,
    bare_objects,
    deepseek_calls,
    gemma_call,
    glm_call,
    invoked_calls,
    mistral_call,
    objects,
    python_calls,
    python_lines,
    tagged_call,
)
from akunu.chat.family import Family
from akunu.chat.layouts import channels

__all__ = ["FAMILIES", "GENERIC", "PLAIN", "family_of"]


def _mistral_id() -> str:
    """Nine letters and digits: Mistral's templates refuse any other."""
    return "".join(secrets.choice(string.ascii_letters + string.digits) for _ in range(9))


_TOOL_CALL: Final = ("<tool_call>", "</tool_call>")

GENERIC: Final = CallFormat(
    read=objects,
    marks=("<tool_call>",),
    end="</tool_call>",
    pattern='<tool_call>\n{"name": "{name}", "arguments": {arguments}}\n</tool_call>',
)
"""What models are told where their template has no words for tools (`generic_tools`)."""

FAMILIES: Final = (
    Family(
        name="harmony",
        signs=("<|channel|>",),
        call_format=CallFormat(
            read=objects,
            marks=(),
            pattern="<|channel|>commentary to=functions.{name} <|constrain|>json<|message|>{arguments}",
        ),
        tokens=(
            "<|start|>", "<|channel|>", "<|constrain|>", "<|message|>", "<|end|>", "<|call|>", "<|return|>",
        ),
        reasoning=("<|channel|>analysis<|message|>", "<|end|>"),
        closing="<|end|><|start|>assistant<|channel|>final<|message|>",
        opening="<|channel|>final<|message|>",
        layout=channels,
    ),
    Family(
        name="gemma 4",
        signs=("<|tool_call>", "<|channel>"),
        call_format=CallFormat(
            read=gemma_call,
            marks=("<|tool_call>",),
            end="<tool_call|>",
            pattern="<|tool_call>call:{name}{arguments}<tool_call|>",
            arguments=gemma_arguments,
        ),
        reasoning=("<|channel>thought", "<channel|>"),
        closing="<channel|>",
        tokens=("<|channel>", "<|tool_call>", '<|"|>', "<tool_call|>"),
    ),
    Family(
        name="lfm 2",
        signs=("<|tool_call_start|>", "<|tool_list_start|>"),
        call_format=CallFormat(
            read=python_calls,
            marks=("<|tool_call_start|>",),
            end="<|tool_call_end|>",
            pattern="<|tool_call_start|>[{name}({arguments})]<|tool_call_end|>",
            arguments=python_arguments,
        ),
        tokens=("<|tool_call_start|>", "<|tool_call_end|>"),
    ),
    Family(
        name="phi 4",
        signs=("<|/tool_call|>", "<|/tool|>"),
        call_format=CallFormat(
            read=objects,
            marks=("<|tool_call|>", "functools"),
            end="<|/tool_call|>",
            pattern='<|tool_call|>{"name": "{name}", "arguments": {arguments}}<|/tool_call|>',
        ),
        tokens=("<|tool_call|>", "<|/tool_call|>"),
    ),
    Family(
        name="seed oss",
        signs=("<seed:tool_call>",),
        call_format=CallFormat(
            read=tagged_call,
            marks=("<seed:tool_call>",),
            end="</seed:tool_call>",
            pattern="<seed:tool_call>\n<function={name}>\n{arguments}</function>\n</seed:tool_call>",
            arguments=tagged_arguments,
        ),
        reasoning=("<seed:think>", "</seed:think>"),
        tokens=("<seed:tool_call>", "</seed:tool_call>"),
    ),
    Family(
        name="minimax",
        signs=("<minimax:tool_call>",),
        call_format=CallFormat(
            read=invoked_calls,
            marks=("<minimax:tool_call>",),
            end="</minimax:tool_call>",
            pattern='<minimax:tool_call>\n<invoke name="{name}">\n{arguments}</invoke>\n</minimax:tool_call>',
            arguments=invoked_arguments,
        ),
        tokens=("<minimax:tool_call>", "</minimax:tool_call>"),
    ),
    Family(
        name="olmo 3",
        signs=("<function_calls>",),
        call_format=CallFormat(
            read=python_lines,
            marks=("<function_calls>",),
            end="</function_calls>",
            pattern="<function_calls>{name}({arguments})</function_calls>",
            arguments=python_arguments,
        ),
        tokens=("<function_calls>", "</function_calls>"),
    ),
    Family(
        name="qwen coder",
        signs=("<function=",),
        call_format=CallFormat(
            read=tagged_call,
            marks=("<tool_call>", "<function="),
            end="</tool_call>",
            pattern="<tool_call>\n<function={name}>\n{arguments}</function>\n</tool_call>",
            arguments=tagged_arguments,
        ),
        tokens=_TOOL_CALL,
    ),
    Family(
        name="deepseek",
        signs=("<｜tool▁call▁begin｜>",),
        call_format=CallFormat(
            read=deepseek_calls,
            marks=("<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>"),
            end="<｜tool▁calls▁end｜>",
            pattern="<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>{name}\n```json\n{arguments}\n"
            "```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        ),
        tokens=(
            "<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>",
            "<｜tool▁calls▁end｜>",
        ),
    ),
    Family(
        name="glm",
        signs=("<arg_key>",),
        call_format=CallFormat(
            read=glm_call,
            marks=("<tool_call>",),
            end="</tool_call>",
            pattern="<tool_call>{name}{arguments}</tool_call>",
            arguments=glm_arguments,
        ),
        tokens=(*_TOOL_CALL, "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"),
    ),
    Family(
        name="hermes on one line",
        signs=('<tool_call>{"name"',),
        call_format=CallFormat(
            read=objects,
            marks=("<tool_call>",),
            end="</tool_call>",
            pattern='<tool_call>{"name": "{name}", "arguments": {arguments}}</tool_call>',
        ),
        tokens=_TOOL_CALL,
    ),
    Family(
        name="hermes",
        signs=("<tool_call>",),
        call_format=GENERIC,
        tokens=_TOOL_CALL,
    ),
    Family(
        name="granite",
        signs=("<|start_of_role|>",),
        call_format=CallFormat(
            read=objects,
            marks=("<|tool_call|>", "<tool_call>"),
            end="</tool_call>",
            pattern='<|tool_call|>[{"name": "{name}", "arguments": {arguments}}]',
        ),
        tokens=("<|tool_call|>",),
    ),
    Family(
        name="mistral",
        signs=("[ARGS]",),
        call_format=CallFormat(
            read=mistral_call, marks=("[TOOL_CALLS]",), pattern="[TOOL_CALLS]{name}[ARGS]{arguments}"
        ),
        reasoning=("[THINK]", "[/THINK]"),
        tokens=("[TOOL_CALLS]", "[CALL_ID]", "[ARGS]"),
        call_id=_mistral_id,
    ),
    Family(
        name="mistral with lists",
        signs=("[TOOL_CALLS]",),
        call_format=CallFormat(
            read=mistral_call,
            marks=("[TOOL_CALLS]",),
            pattern='[TOOL_CALLS] [{"name": "{name}", "arguments": {arguments}}]',
        ),
        reasoning=("[THINK]", "[/THINK]"),
        tokens=("[TOOL_CALLS]", "[CALL_ID]", "[ARGS]"),
        call_id=_mistral_id,
    ),
    Family(
        name="llama 3",
        signs=("<|python_tag|>", "<|start_header_id|>"),
        call_format=CallFormat(
            read=bare_objects,
            marks=("<|python_tag|>",),
            bare="{",
            pattern='{"name": "{name}", "parameters": {arguments}}',
        ),
        tokens=("<|python_tag|>",),
    ),
)  # fmt: skip
"""From the most particular sign to the most general."""

PLAIN: Final = Family(name="plain", call_format=GENERIC, tokens=_TOOL_CALL)
"""Any other: content, after reasoning if there is some."""


def family_of(source: str) -> Family:
    """The family of a chat template."""
    return next((family for family in FAMILIES if any(sign in source for sign in family.signs)), PLAIN)

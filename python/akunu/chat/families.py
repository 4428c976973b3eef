"""The families of models, by how they mark what an answer consists of: a row each.

Sources: the models' published chat templates and cards. A family is found from the template's text.
"""

from __future__ import annotations

import functools
import secrets
import string
from collections.abc import Container
from typing import Final

from akunu.chat.arguments import (
    gemma_arguments,
    glm_arguments,
    invoked_arguments,
    nested_arguments,
    opened_arguments,
    python_arguments,
    tagged_arguments,
)
from akunu.chat.calls import (
    CallFormat,
    bare_objects,
    deepseek_calls,
    gemma_call,
    kimi_calls,
    mistral_call,
    objects,
    python_calls,
    python_lines,
)
from akunu.chat.family import Family
from akunu.chat.layouts import addressed, channels
from akunu.chat.tagged_calls import (
    glm_call,
    hunyuan_calls,
    invoked_calls,
    nested_calls,
    opened_calls,
    tagged_call,
)

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
"""The words for models whose template has none for tools (`generic_tools`)."""

_MINIMAX: Final = "]<]minimax[>["
_DSML: Final = "｜DSML｜"


def _deepseek(name: str, block: str, *signs: str, mark: str = _DSML) -> Family:
    """DeepSeek's models that write calls as tags, in a block of this name; `mark` begins each tag's name."""
    begin, end = f"<{mark}{block}>", f"</{mark}{block}>"
    return Family(
        name=name,
        signs=signs,
        call_format=CallFormat(
            read=invoked_calls,
            marks=(begin,),
            end=end,
            pattern=f'{begin}\n<{mark}invoke name="{{name}}">\n{{arguments}}</{mark}invoke>\n{end}',
            space=mark,
            arguments=functools.partial(invoked_arguments, space=mark, says_strings=True),
        ),
        tokens=(_DSML,),
    )


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
        name="muse",
        signs=("<atem:",),
        call_format=CallFormat(
            read=invoked_calls,
            marks=("<atem:function_calls>",),
            end="</atem:function_calls>",
            address=" to={name}<|message|>",
            pattern='<atem:function_calls>\n<atem:invoke name="{name}">\n{arguments}</atem:invoke>\n'
            "</atem:function_calls>",
            space="atem:",
            arguments=functools.partial(invoked_arguments, space="atem:"),
        ),
        tokens=("<|start|>", "<|message|>", "<|eom|>", "<|eot|>"),
        reasoning=(" to=self<|message|>", "<|eom|>"),
        closing="<|eom|><|start|>assistant to=user<|message|>",
        opening=" to=user<|message|>",
        layout=addressed,
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
        name="minimax 3",
        signs=(_MINIMAX,),
        call_format=CallFormat(
            read=nested_calls,
            marks=(f"{_MINIMAX}<tool_call>",),
            end=f"{_MINIMAX}</tool_call>",
            pattern=f'{_MINIMAX}<tool_call>\n{_MINIMAX}<invoke name="{{name}}">{{arguments}}'
            f"{_MINIMAX}</invoke>\n{_MINIMAX}</tool_call>",
            space=_MINIMAX,
            arguments=functools.partial(nested_arguments, space=_MINIMAX),
        ),
        reasoning=("<mm:think>", "</mm:think>"),
        closing="</mm:think>",
        tokens=(_MINIMAX, "<tool_call>", "</tool_call>"),
    ),
    Family(
        name="kimi 3",
        signs=("<|open|>",),
        call_format=CallFormat(
            read=opened_calls,
            marks=("<|open|>tools<|sep|>",),
            end="<|close|>tools<|sep|>",
            pattern='<|open|>tools<|sep|><|open|>call tool="{name}" index="1"<|sep|>{arguments}'
            "<|close|>call<|sep|><|close|>tools<|sep|>",
            arguments=opened_arguments,
        ),
        reasoning=("<|open|>think<|sep|>", "<|close|>think<|sep|>"),
        closing="<|close|>think<|sep|><|open|>response<|sep|>",
        around=("<|open|>response<|sep|>", "<|close|>response<|sep|>", "<|close|>message<|sep|>"),
        tokens=("<|open|>", "<|close|>", "<|sep|>"),
    ),
    _deepseek("deepseek 4.1", "calls", f"{_DSML} calls>", "dsml_token + ' calls>", mark=f"{_DSML} "),
    _deepseek("deepseek 4", "tool_calls", "dsml_token + 'tool_calls>"),
    _deepseek("deepseek 3.2", "function_calls", _DSML),
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
        name="command r",
        signs=("<|START_ACTION|>",),
        call_format=CallFormat(
            read=objects,
            marks=("<|START_ACTION|>",),
            end="<|END_ACTION|>",
            pattern='<|START_ACTION|>[\n    {"tool_call_id": "0", "tool_name": "{name}", "parameters": '
            "{arguments}}\n]<|END_ACTION|>",
        ),
        reasoning=("<|START_THINKING|>", "<|END_THINKING|>"),
        closing="<|END_THINKING|>",
        around=("<|START_RESPONSE|>", "<|END_RESPONSE|>", "<|START_TEXT|>", "<|END_TEXT|>"),
        tokens=("<|START_ACTION|>", "<|END_ACTION|>"),
    ),
    Family(
        name="kimi",
        signs=("<|tool_calls_section_begin|>",),
        call_format=CallFormat(
            read=kimi_calls,
            marks=("<|tool_calls_section_begin|>", "<|tool_call_begin|>"),
            end="<|tool_calls_section_end|>",
            pattern="<|tool_calls_section_begin|><|tool_call_begin|>functions.{name}:0"
            "<|tool_call_argument_begin|>{arguments}<|tool_call_end|><|tool_calls_section_end|>",
        ),
        tokens=(
            "<|tool_calls_section_begin|>", "<|tool_call_begin|>", "<|tool_call_argument_begin|>",
            "<|tool_call_end|>", "<|tool_calls_section_end|>",
        ),
    ),
    Family(
        name="nemotron nano 2",
        signs=("<TOOLCALL>",),
        call_format=CallFormat(
            read=objects,
            marks=("<TOOLCALL>",),
            end="</TOOLCALL>",
            pattern='<TOOLCALL>[{"name": "{name}", "arguments": {arguments}}]</TOOLCALL>',
        ),
        tokens=("<TOOLCALL>", "</TOOLCALL>"),
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
        name="hunyuan 3",
        signs=("<tool_sep",),
        call_format=CallFormat(
            read=hunyuan_calls,
            marks=("<tool_calls:opensource>",),
            end="</tool_calls:opensource>",
            pattern="<tool_calls:opensource>\n<tool_call:opensource>{name}<tool_sep:opensource>\n{arguments}"
            "</tool_call:opensource>\n</tool_calls:opensource>",
            space=":opensource",
            arguments=functools.partial(glm_arguments, space=":opensource"),
        ),
        reasoning=("<think:opensource>", "</think:opensource>"),
        closing="</think:opensource>",
        tokens=(
            "<tool_calls:opensource>", "</tool_calls:opensource>", "<tool_call:opensource>",
            "</tool_call:opensource>", "<tool_sep:opensource>", "<arg_key:opensource>",
            "</arg_key:opensource>", "<arg_value:opensource>", "</arg_value:opensource>",
        ),
    ),
    Family(
        name="hunyuan",
        signs=("<tool_calls>", "<answer>"),
        call_format=CallFormat(
            read=objects,
            marks=("<tool_calls>",),
            end="</tool_calls>",
            pattern='<tool_calls>[{"name": "{name}", "arguments": {arguments}}]</tool_calls>',
        ),
        around=("<answer>", "</answer>"),
        tokens=("<tool_calls>", "</tool_calls>"),
    ),
    Family(
        name="ernie",
        signs=("<response>\\n", "<response>\n"),
        call_format=GENERIC,
        around=("<response>", "</response>"),
        tokens=_TOOL_CALL,
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


def family_of(source: str, controls: Container[str] = ()) -> Family:
    """The family of a chat template; where that has no marks, of the vocabulary's control tokens.

    Some templates (LFM2.5's) write tools, but neither calls nor how to make one: models know it.
    """
    found = next((family for family in FAMILIES if any(sign in source for sign in family.signs)), None)
    return found or next((family for family in FAMILIES if _is_known_by_tokens(family, controls)), PLAIN)


def _is_known_by_tokens(family: Family, controls: Container[str]) -> bool:
    """Whether a vocabulary has a family's mark of calls, and nothing else of its answers is its own."""
    own = family.layout is not PLAIN.layout or family.reasoning != PLAIN.reasoning or family.call_format.bare
    return not own and family.call_format.marks[0] in controls

"""What a text has to be like for its calls to be as asked."""

from __future__ import annotations

import json
from typing import Any

import pytest

from akunu.chat.deltas import message_of
from akunu.chat.families import FAMILIES, PLAIN
from akunu.chat.family import Family
from akunu.chat.tools import NO_PARAMETERS

from .answers import TOOLS
from .parsers import parser_of

WEATHER = TOOLS[0]["function"]["parameters"]
JSON = [family for family in (*FAMILIES, PLAIN) if family.call_format.arguments is None]
WITHOUT_BRACES = (
    "deepseek 3.2", "deepseek 4", "deepseek 4.1", "glm", "hunyuan 3", "kimi 3", "lfm 2", "minimax",
    "minimax 3", "muse", "olmo 3", "qwen coder", "seed oss",
)  # fmt: skip
"""Families in whose calls nothing stands where there are no arguments."""
HERMES = next(family for family in FAMILIES if family.name == "hermes")


def strict(tool: dict[str, Any]) -> dict[str, Any]:
    return {**tool, "function": {**tool["function"], "strict": True}}


@pytest.mark.parametrize("family", [*FAMILIES, PLAIN], ids=lambda family: family.name)
def test_what_a_tag_allows_is_read_as_the_call(family: Family) -> None:
    tag = family.tool_tag(TOOLS, "required")
    assert tag is not None and tag.required and len(tag.tags) == len(TOOLS)
    for tool, each in zip(TOOLS, tag.tags, strict=True):
        name = tool["function"]["name"]
        empty = "" if family.name in WITHOUT_BRACES else "{}"
        if family in JSON:
            assert each.schema == (WEATHER if name == "weather" else NO_PARAMETERS)
        else:
            assert each.grammar and each.schema is None
        parser = parser_of(family, TOOLS, whole=True)
        message = message_of([*parser.feed(each.begin + empty + each.end), *parser.end()])
        (call,) = message["tool_calls"]
        assert (call["function"]["name"], json.loads(call["function"]["arguments"])) == (name, {})
        assert message["content"] is None


@pytest.mark.parametrize("space", ["", " ", "\n"])
@pytest.mark.parametrize("family", [*FAMILIES, PLAIN], ids=lambda family: family.name)
def test_several_calls_that_a_tag_allows_are_all_read(family: Family, space: str) -> None:
    tag = family.tool_tag(TOOLS, "required")
    assert tag is not None and tag.parallel
    empty = "" if family.name in WITHOUT_BRACES else "{}"
    text = space.join(each.begin + empty + each.end for each in (*tag.tags, tag.tags[0]))
    for whole in (False, True):
        parser = parser_of(family, TOOLS, whole=whole)
        message = message_of([*parser.feed(text), *parser.end()])
        assert [call["function"]["name"] for call in message["tool_calls"]] == ["weather", "now", "weather"]
        assert message["content"] is None


def test_arguments_are_an_object_whether_the_schema_says_so_or_not() -> None:
    parameters = {"properties": {"city": {"type": "string"}}, "required": ["city"]}
    tools = [{"type": "function", "function": {"name": "act", "parameters": parameters}}]
    tag = HERMES.tool_tag(tools, "act")
    assert tag is not None and tag.tags[0].schema == {"type": "object", **parameters}


def test_a_function_by_its_name_is_the_only_one() -> None:
    tag = HERMES.tool_tag(TOOLS, "now")
    assert tag is not None and tag.required
    assert not tag.parallel  # as in OpenAI's API: exactly one call
    assert [each.begin for each in tag.tags] == ['<tool_call>\n{"name": "now", "arguments": ']


def test_a_choice_of_the_models_own_is_bound_only_by_strict_tools_and_to_one_call() -> None:
    assert HERMES.tool_tag(TOOLS) is None
    tag = HERMES.tool_tag([strict(TOOLS[0]), TOOLS[1]])
    assert tag is not None and not tag.required and tag.parallel
    assert tag.triggers == ("<tool_call>",)
    assert [each.schema for each in tag.tags] == [WEATHER, {"type": "object"}]
    one = HERMES.tool_tag(TOOLS, parallel=False)
    assert one is not None and not one.parallel and not one.required


@pytest.mark.parametrize("family", [*FAMILIES, PLAIN], ids=lambda family: family.name)
def test_every_tag_begins_with_its_trigger(family: Family) -> None:
    assert family.tool_tag([strict(tool) for tool in TOOLS]) is not None  # `StructuralTag` checks it

"""Calls in another dress than the family's: read as calls where the answer is nothing else."""

from __future__ import annotations

import json
from typing import Any

import pytest

from akunu.chat.deltas import Content, ToolArguments, ToolCall, merged, message_of
from akunu.chat.families import FAMILIES, PLAIN
from akunu.chat.family import Family
from akunu.chat.fitting import fits
from akunu.chat.loose_calls import MOST_LOOSE
from akunu.chat.parser import OutputParser
from akunu.chat.tools import Tools

from .answers import TOOLS

IN_ORDER = [family for family in (*FAMILIES, PLAIN) if family.layout is PLAIN.layout]
HERMES = next(family for family in FAMILIES if family.name == "hermes")
ARGUMENTS = {"city": "Paris", "days": 2}
CALL = json.dumps({"name": "weather", "arguments": ARGUMENTS}, indent=2)
DRESSED = {
    "bare": CALL,
    "in a fence": f"```json\n{CALL}\n```",
    "in a fence without a language": f"```\n{CALL}\n```\n",
    "in tools": f"<tools>\n{CALL}\n</tools>",
    "in tags": f"<tool_call>\n{CALL}\n</tool_call>",
    "in a fence in tags": f"<tools>\n```json\n{CALL}\n```\n</tools>",
    "with a tag that closes nothing": f"{CALL}\n</tool_call>",
    "in a list": f"```json\n[{CALL}]\n```",
    "by another word": CALL.replace("arguments", "parameters"),
    "with arguments as a text": json.dumps({"name": "weather", "arguments": json.dumps(ARGUMENTS)}),
    "as a function": json.dumps(
        {"type": "function", "function": {"name": "weather", "arguments": ARGUMENTS}}
    ),
    "arguments first": json.dumps({"arguments": ARGUMENTS, "name": "weather"}),
    "in doubled braces": "{" + CALL + "}",
    "in doubled braces in tags": "<tool_call>\n{" + CALL + "}\n</tool_call>",
    "in doubled braces of which one is not closed": "{" + CALL,
    "after white space": f"\n\n  ```json\n{CALL}\n```",
}


def read(text: str, family: Family = HERMES, *, loose: int = MOST_LOOSE, step: int = 7) -> dict[str, Any]:
    """The message, the same however the text is cut."""
    messages = []
    for size in (len(text) or 1, step, 1):
        parser = OutputParser(family, Tools(TOOLS), loose=loose, call_id=lambda index: f"call{index}")
        parts = [text[i : i + size] for i in range(0, len(text), size)]
        deltas = [delta for part in parts for delta in parser.feed(part)]
        messages.append(message_of(merged([*deltas, *parser.end()])))
    assert all(message == messages[0] for message in messages)
    return messages[0]


def calls(message: dict[str, Any]) -> list[tuple[str, Any]]:
    functions = [call["function"] for call in message.get("tool_calls", ())]
    return [(each["name"], json.loads(each["arguments"])) for each in functions]


@pytest.mark.parametrize("dress", DRESSED)
def test_a_call_in_another_dress_is_a_call(dress: str) -> None:
    for family in IN_ORDER:
        message = read(DRESSED[dress], family)
        assert calls(message) == [("weather", ARGUMENTS)], family.name
        if (family.name, dress) != ("llama 3", "with a tag that closes nothing"):  # its own form, then a text
            assert message["content"] is None, family.name


@pytest.mark.parametrize("family", IN_ORDER, ids=lambda family: family.name)
def test_calls_in_tools_may_end_a_text(family: Family) -> None:
    # As Qwen2.5-Coder 1.5B answers Claude Code's prompt, whose reminders it repeats.
    said = "<system-reminder>\nI look at the weather.\n</system-reminder>"
    message = read(f"{said}\n<tools>\n{CALL}\n</tools>", family)
    assert calls(message) == [("weather", ARGUMENTS)] and message["content"] == said
    message = read(f"It is\n\n<tools>{CALL}\n{CALL}</tools>\n", family)
    assert calls(message) == [("weather", ARGUMENTS)] * 2 and message["content"] == "It is"
    assert "tool_calls" not in read(f"{said}\n<tools>\n{CALL}\n</tools>", family, loose=0)


@pytest.mark.parametrize("family", [HERMES, PLAIN], ids=lambda family: family.name)
@pytest.mark.parametrize(
    "text",
    [
        f"Write it so:\n<tools>\n{CALL}\n</tools>\nThat calls the tool.",
        f"Write it so:\n```\n<tools>\n{CALL}\n</tools>\n```",
        f"Write it so: <tools>{CALL}</tools>",
        "Write it so:\n<tools>\n" + CALL.replace('"Paris"', "75000") + "\n</tools>",
        f"Tools\n<tools>\n</tools>\nand\n<tools>{CALL[:-3]}",
        f"Here is how to call it:\n```json\n{CALL}\n```",
        f"```json\n{CALL}\n```\nThis calls the function weather.",
        f"{CALL} is a call.",
        f"`{CALL}`",
        f"```python\n{CALL}\n```",
        f"<pre>{CALL}</pre>",
        CALL.replace("weather", "whether"),  # no tool
        CALL.replace('"Paris"', "75000"),  # does not fit
        CALL.replace('"city"', '"town"'),
        CALL.replace("2", '"two"'),
        json.dumps({"name": "weather", "arguments": ARGUMENTS, "comment": "example"}),
        json.dumps({"name": "Ada", "age": 36}),
        '{"name": "weather"',
        CALL[:-3],
        "```json\n```",
        "[]",
        "<tools></tools>",
        "{",
        "```",
        "",
    ],
)
def test_a_text_that_only_speaks_of_a_call_stays_a_text(family: Family, text: str) -> None:
    message = read(text, family)
    assert "tool_calls" not in message
    assert message["content"] == text


@pytest.mark.parametrize(
    "between", ["\n", ",\n", ";", "\n```\n\n```json\n", "\n</tools>\n<tools>\n", "\n</tool_call>\n"]
)
def test_several_calls_are_all_read(between: str) -> None:
    text = f"```json\n{CALL}{between}" + '{"name": "now", "arguments": {}}\n```'
    assert calls(read(text)) == [("weather", ARGUMENTS), ("now", {})]
    assert "tool_calls" not in read(text, loose=1)  # where one was asked for, this is none


@pytest.mark.parametrize("family", IN_ORDER, ids=lambda family: family.name)
@pytest.mark.parametrize("dress", ["{}", "```json\n{}\n```"])
def test_a_call_of_no_tool_that_was_given_up_is_none(family: Family, dress: str) -> None:
    given_up = '{"name": "run", "arguments": null}'
    message = read(dress.replace("{}", f"{given_up}\n{CALL}"), family)
    assert calls(message) == [("weather", ARGUMENTS)] and message["content"] is None
    for text in (given_up, '{"name": "run"}', f'{given_up}\n{{"name": "run", "arguments": {{}}}}'):
        assert read(dress.replace("{}", text), family)["content"] == dress.replace("{}", text)


def test_without_the_switch_only_the_familys_form_is_a_call() -> None:
    assert read(DRESSED["in a fence"], loose=0)["content"] == DRESSED["in a fence"]
    assert calls(read(DRESSED["in tags"], loose=0)) == [("weather", ARGUMENTS)]


def test_a_call_in_the_familys_form_is_still_given_piece_by_piece() -> None:
    parser = OutputParser(HERMES, Tools(TOOLS), loose=MOST_LOOSE)
    found = parser.feed('<tool_call>\n{"name": "weather", "arguments": {"city": "Par')
    assert [type(delta) for delta in found] == [ToolCall, ToolArguments]


def test_a_text_is_given_as_soon_as_it_is_no_call() -> None:
    parser = OutputParser(HERMES, Tools(TOOLS), loose=MOST_LOOSE)
    assert parser.feed("```json\n{") == []
    assert parser.feed('"city"') == [Content('```json\n{"city"')]


def test_reasoning_may_stand_before_a_call() -> None:
    message = read(f"<think>\nHm.\n</think>\n\n{DRESSED['in a fence']}")
    assert message["reasoning_content"].strip() == "Hm."
    assert calls(message) == [("weather", ARGUMENTS)]


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"properties": {"a": {"enum": [1, "b"]}}}, [{}, {"a": 1}, {"a": "b"}], [{"a": 2}]),
        ({"properties": {"a": {"const": None}}}, [{"a": None}], [{"a": 0}]),
        ({"properties": {"a": {"type": "number"}}}, [{"a": 1}, {"a": 1.5}], [{"a": "1"}, {"a": True}]),
        ({"properties": {"a": {"type": "integer"}}}, [{"a": 1}, {"a": 1.0}], [{"a": 1.5}]),
        ({"properties": {"a": {}}, "additionalProperties": False}, [{"a": 1}], [{"b": 1}]),
        ({"additionalProperties": {"type": "string"}}, [{"a": "x"}], [{"a": 1}]),
        ({"properties": {"a": {"items": {"type": "string"}}}}, [{"a": ["x"]}, {"a": 1}], [{"a": [1]}]),
        (
            {"properties": {"a": {"$ref": "#/$defs/b"}}, "$defs": {"b": {"type": "boolean"}}},
            [{"a": True}],
            [{"a": 1}],
        ),
        (
            {"properties": {"a": {"anyOf": [{"type": "string"}, {"type": "null"}]}}},
            [{"a": None}, {"a": "x"}],
            [{"a": 1}],
        ),
        ({}, [{}], [{"a": 1}]),  # a function without parameters
        ({"type": "object"}, [{}, {"a": 1}], [[], "x", None]),
    ],
)
def test_arguments_fit_by_their_structure(schema: dict[str, Any], good: list[Any], bad: list[Any]) -> None:
    assert [fits(each, schema) for each in good] == [True] * len(good)
    assert [fits(each, schema) for each in bad] == [False] * len(bad)


def test_a_schema_without_an_end_is_given_up() -> None:
    endless = {"anyOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}]}
    assert not fits({"b": 1}, {"properties": {"b": {"$ref": "#/$defs/a"}}, "$defs": {"a": endless}})

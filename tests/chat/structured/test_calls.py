"""Calls of the families that do not write JSON: their arguments fit the schema of the function."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import numpy as np
import pytest

from akunu import InvalidArgumentError
from akunu.chat.deltas import message_of
from akunu.chat.families import FAMILIES
from akunu.chat.family import Family
from akunu.chat.structured.structure import structure_of
from chat.parsers import parser_of

from .models import ember
from .test_tags import write

OWN = [family for family in FAMILIES if family.call_format.arguments]
PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 5}, "sex": {"enum": ["f", "m", 1, None]}},
    "required": ["name"],
    "additionalProperties": False,
}
PROPERTIES: dict[str, Any] = {
    "text": {"type": "string"},
    "word": {"type": "string", "minLength": 2, "maxLength": 4},
    "kind": {"type": "string", "enum": ["a", "b c", '"quoted"', ""]},
    "code": {"type": "string", "pattern": "^[a-z]{2}[0-9]$", "description": "Two letters and a digit."},
    "days": {"type": "integer", "minimum": 1, "maximum": 9},
    "share": {"type": "number"},
    "on": {"type": "boolean"},
    "units": {"type": ["integer", "null"]},
    "either": {"anyOf": [{"type": "boolean"}, {"type": "integer", "maximum": 3}]},
    "hours": {"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 3},
    "who": PERSON,
    "whom": {"$ref": "#/$defs/person"},
}


def schema_of(rng: np.random.Generator) -> dict[str, Any]:
    """Some of the properties, of which some are required."""
    names = [str(name) for name in rng.permutation(list(PROPERTIES))[: rng.integers(0, 5)]]
    required = [name for name in names if rng.random() < 0.6]
    return {
        "type": "object",
        "properties": {name: PROPERTIES[name] for name in names},
        "required": required,
        "additionalProperties": False,
        "$defs": {"person": PERSON},
    }


def check(family: Family, seed: int) -> bool:
    """One call of random letters; whether it came to its end."""
    rng = np.random.default_rng(seed)
    schema = schema_of(rng)
    tools = [{"type": "function", "function": {"name": "act", "parameters": schema}}]
    text, state = write(family.tool_tag(tools, "act", parallel=False), "", rng)
    if not state.finished:
        return False
    parser = parser_of(family, tools, whole=True)
    message = message_of([*parser.feed(text), *parser.end()])
    (call,) = message["tool_calls"]
    jsonschema.validate(json.loads(call["function"]["arguments"]), schema)
    assert message["content"] is None
    return True


@pytest.mark.parametrize("family", OWN, ids=lambda family: family.name)
def test_whatever_is_written_fits_the_schema(family: Family) -> None:
    assert sum(check(family, seed) for seed in range(12)) >= 4


@pytest.mark.long
@pytest.mark.parametrize("family", OWN, ids=lambda family: family.name)
def test_whatever_is_written_of_many_schemas_fits_them(family: Family) -> None:
    assert sum(check(family, seed) for seed in range(100, 220)) >= 40


@pytest.mark.parametrize("family", OWN, ids=lambda family: family.name)
@pytest.mark.parametrize(
    ("schema", "word"),
    [
        ({"type": "object", "properties": {"a<b": {}}}, "'a<b'"),
        ({"type": "object", "patternProperties": {"a": {}}}, "patternProperties"),
        ({"type": "array"}, "'array' of all arguments"),
        ({"$ref": "#/nowhere"}, "#/nowhere"),
    ],
)
def test_a_schema_that_cannot_be_honoured_is_refused_by_name(family: Family, schema, word) -> None:
    tools = [{"type": "function", "function": {"name": "act", "parameters": schema, "strict": True}}]
    with pytest.raises(InvalidArgumentError, match="tools: .*" + word):
        family.tool_tag(tools)


NAMES = {
    "qwen coder": (
        "\u57ce\u5e02",
        "gr\u00f6\u00dfe",
        "first name",
        "$top",
        "a[]",
        "a:b",
        "@type",
        "back\\slash",
    ),
    "gemma 4": ("\u57ce\u5e02", "gr\u00f6\u00dfe", "$top", "x-y"),
    "lfm 2": ("\u57ce\u5e02", "gr\u00f6\u00dfe", "a:b", "x-y"),
    "seed oss": ("\u57ce\u5e02", "gr\u00f6\u00dfe", "first name", "$top"),
    "glm": ("\u57ce\u5e02", "gr\u00f6\u00dfe", "first name", "$top"),
    "minimax": ("\u57ce\u5e02", "gr\u00f6\u00dfe", "first name", "$top"),
    "olmo 3": ("\u57ce\u5e02", "gr\u00f6\u00dfe", "a:b", "x-y"),
    "muse": ("\u57ce\u5e02", "gr\u00f6\u00dfe", "first name", "$top"),
    "deepseek 3.2": ("\u57ce\u5e02", "gr\u00f6\u00dfe", "first name", "$top"),
    "deepseek 4": ("\u57ce\u5e02", "gr\u00f6\u00dfe", "first name", "$top"),
    "deepseek 4.1": ("\u57ce\u5e02", "gr\u00f6\u00dfe", "first name", "$top"),
    "minimax 3": ("\u57ce\u5e02", "gr\u00f6\u00dfe", "first name", "$top"),
    "kimi 3": ("\u57ce\u5e02", "gr\u00f6\u00dfe", "first name", "a&b"),
    "hunyuan 3": ("\u57ce\u5e02", "gr\u00f6\u00dfe", "first name", "$top"),
}


@pytest.mark.parametrize("family", OWN, ids=lambda family: family.name)
def test_parameters_have_names_of_any_script_and_what_a_tag_can_hold(family: Family) -> None:
    for name in NAMES[family.name]:
        parameters = {
            "type": "object",
            "properties": {name: {"type": "boolean"}},
            "required": [name],
            "additionalProperties": False,
        }
        tools = [{"type": "function", "function": {"name": "act", "parameters": parameters}}]
        text, state = write(family.tool_tag(tools, "act"), "", np.random.default_rng(1))
        assert state.finished
        for pieces in ([text], text):
            parser = parser_of(family, tools)
            message = message_of([*(d for piece in pieces for d in parser.feed(piece)), *parser.end()])
            (call,) = message["tool_calls"]
            assert list(json.loads(call["function"]["arguments"])) == [name]
            assert message["content"] is None


SAID = {
    "qwen coder": "<parameter=text>\n\n<b>{1}</b>\n</parameter>\n",
    "gemma 4": '{text:<|"|>\n<b>{1}</b><|"|>}',
    "lfm 2": 'text="\\n<b>{1}</b>"',
    "seed oss": "<parameter=text>\n\n<b>{1}</b>\n</parameter>\n",
    "glm": "<arg_key>text</arg_key><arg_value>\n<b>{1}</b></arg_value>",
    "minimax": '<parameter name="text">\n<b>{1}</b></parameter>\n',
    "olmo 3": 'text="\\n<b>{1}</b>"',
    "muse": '<atem:parameter name="text">\n<b>{1}</b></atem:parameter>\n',
    "deepseek 3.2": '<｜DSML｜parameter name="text" string="true">\n<b>{1}</b></｜DSML｜parameter>\n',
    "deepseek 4": '<｜DSML｜parameter name="text" string="true">\n<b>{1}</b></｜DSML｜parameter>\n',
    "deepseek 4.1": '<｜DSML｜ parameter name="text" string="true">\n<b>{1}</b></｜DSML｜ parameter>\n',
    "minimax 3": "]<]minimax[>[<text>\n<b>{1}</b>]<]minimax[>[</text>",
    "kimi 3": '<|open|>argument key="text" type="string"<|sep|>\n<b>{1}</b><|close|>argument<|sep|>',
    "hunyuan 3": "<arg_key:opensource>text</arg_key:opensource>\n"
    "<arg_value:opensource>\n<b>{1}</b></arg_value:opensource>\n",
}


@pytest.mark.parametrize("family", OWN, ids=lambda family: family.name)
def test_a_text_of_a_call_may_have_anything_but_its_mark(family: Family) -> None:
    parameters = {"type": "object", "properties": {"text": {"type": "string"}}}
    tools = [{"type": "function", "function": {"name": "act", "parameters": parameters}}]
    tag = family.tool_tag(tools, "act", parallel=False)
    script = tag.tags[0].begin + SAID[family.name] + tag.tags[0].end
    state = ember()._compiler.constraint(structure_of({"structural_tag": tag}))
    state.advance(ember()._compiler._view.encode(script))
    assert state.finished
    parser = parser_of(family, tools, whole=True)
    (call,) = message_of([*parser.feed(script), *parser.end()])["tool_calls"]
    assert json.loads(call["function"]["arguments"]) == {"text": "\n<b>{1}</b>"}

"""Round trips of schemas as published: valid values may be written, and what is written is valid."""

from __future__ import annotations

import json
import random

import jsonschema
import pytest

from akunu import InvalidArgumentError
from akunu.chat.structured.structure import structure_of

from .models import ember, hostile
from .shapes import shape

SCHEMAS = 400
PARTS = 8


def tree(schema: dict) -> dict:
    """A schema of nodes that hold such a value and others of their kind."""
    node = {
        "type": "object",
        "properties": {
            "value": {"$ref": "#/$defs/value"},
            "more": {"type": "array", "items": {"$ref": "#/$defs/node"}},
        },
        "required": ["value"],
        "additionalProperties": False,
    }
    return {"$defs": {"node": node, "value": schema}, "$ref": "#/$defs/node"}


def drawn(number: int) -> tuple[dict, list]:
    """A schema and three values of it."""
    draw = random.Random(number)
    schema, value = shape(draw)
    values = [value(draw) for _ in range(3)]
    if number % 5 == 0:
        values = [{"value": values[0]}, {"value": values[1], "more": [{"value": values[2], "more": []}]}]
        return tree(schema), values
    return schema, values


@pytest.mark.parametrize("part", range(PARTS))
def test_valid_values_can_be_written(part: int) -> None:
    model = hostile()
    refused = 0
    for number in range(part, SCHEMAS, PARTS):
        schema, values = drawn(number)
        try:
            constraint = model._compiler.constraint(structure_of({"schema": schema}))
        except InvalidArgumentError as error:
            assert "15 digits" in str(error)
            refused += 1
            continue
        for value in values:
            jsonschema.Draft202012Validator(schema).validate(value)
            text = json.dumps(value, ensure_ascii=False)
            matcher = constraint.fork()._matcher
            taken = matcher.consume_tokens(model._compiler._view.encode(text)) and matcher.is_accepting()
            assert taken, f"{number}: {text} is not taken for {json.dumps(schema)}"
    assert refused <= 1


@pytest.mark.table
@pytest.mark.parametrize("make", [hostile, ember])
@pytest.mark.parametrize("part", range(PARTS))
def test_what_is_written_is_valid(part: int, make) -> None:
    model = make()
    for number in range(part, SCHEMAS if make is hostile else SCHEMAS // 4, PARTS):
        schema, _ = drawn(number)
        options = {"seed": number, "max_tokens": 60, "temperature": 1.3, "top_k": 0}
        try:
            result = model.generate("JSON: ", schema=schema, **options)
        except InvalidArgumentError as error:
            assert "15 digits" in str(error)
            continue
        assert result.finish_reason in ("stop", "length")
        if result.finish_reason == "stop":
            value = json.loads(result.text)
            jsonschema.Draft202012Validator(schema).validate(value)

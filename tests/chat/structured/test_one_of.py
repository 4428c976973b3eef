"""`oneOf` is taken where no value can be of two of its schemas, whatever tells them apart."""

from __future__ import annotations

import itertools
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from akunu import InvalidArgumentError
from akunu.chat.structured.disjoint import differ

from .models import hostile
from .schemas import Schema
from .test_schemas import allows

VALUES: list[Any] = [
    *(None, True, False, 0, 1, 1.0, 2, 2.5, 3, "a", "b", "", [], [1]),
    *({}, {"a": 1}, {"a": 2}, {"b": 1}, {"a": 1, "b": 2}, {"a": "a"}, {"a": None}),
]
A, B = {"type": "object", "required": ["t"]}, {"type": "object", "required": ["t"]}


@pytest.mark.parametrize(
    ("choices", "valid", "invalid"),
    [
        ([{"const": 1, "title": "one"}, {"const": 2}, {"enum": [3, 4]}], "2", "5"),
        ([{"type": "integer", "maximum": 5}, {"type": "integer", "exclusiveMinimum": 5}], "7", "1.5"),
        ([{"type": "number", "maximum": -1}, {"const": 0}], "0", "1"),
        ([{"const": True}, {"type": "null"}, {"type": "string"}], "true", "false"),
        (
            [A | {"properties": {"t": {"const": 1}}}, B | {"properties": {"t": {"const": 2}, "n": {}}}],
            '{"t": 2, "n": 0}',
            '{"t": 3}',
        ),
        ([{"$ref": "#/$defs/one"}, {"$ref": "#/$defs/two"}], '{"t": 1}', '{"t": 2, "u": 1}'),
    ],
)
def test_schemas_without_a_value_in_common(choices: list[Schema], valid: str, invalid: str) -> None:
    defs = {
        "one": A | {"properties": {"t": {"const": 1}}, "additionalProperties": False},
        "two": B | {"properties": {"t": {"enum": [2, 3]}}, "additionalProperties": False},
    }
    schema = {"oneOf": choices, "$defs": defs}
    assert allows(schema, valid)
    assert not allows(schema, invalid)
    assert allows({"anyOf": [{"type": ["null", "string", "boolean", "object", "number"]}], **schema}, valid)


@pytest.mark.parametrize(
    "choices",
    [
        [{"type": "integer"}, {"type": "number"}],
        [{"const": 1}, {"enum": [1.0, 2]}],
        [{"type": "integer", "maximum": 5}, {"type": "integer", "minimum": 5}],
        [{"required": ["a"]}, {"required": ["b"]}],
        # Of both is whatever is no object.
        [
            {"required": ["t"], "properties": {"t": {"const": 1}}},
            {"required": ["t"], "properties": {"t": {"const": 2}}},
        ],
    ],
)
def test_what_may_be_of_two_is_refused_with_a_remedy(choices: list[Schema]) -> None:
    with pytest.raises(InvalidArgumentError, match=r"^schema: oneOf: .* use anyOf"):
        hostile().generate("x", schema={"oneOf": choices}, max_tokens=1)


numbers = st.sampled_from([0, 1, 1.0, 2, 2.5])
leaves = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from([*("null", "object", "string", "integer", "number"), ["string", "integer"]]),
        "const": st.sampled_from(VALUES),
        "enum": st.lists(st.sampled_from(VALUES), min_size=1, max_size=3),
        "minimum": numbers,
        "exclusiveMinimum": numbers,
        "maximum": numbers,
        "exclusiveMaximum": numbers,
    },
)
objects = st.fixed_dictionaries(
    {"type": st.just("object"), "required": st.lists(st.sampled_from("ab"), unique=True)},
    optional={
        "properties": st.dictionaries(st.sampled_from("ab"), leaves),
        "additionalProperties": st.just(False),
    },
)


@settings(
    max_examples=2000, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck), database=None
)
@given(st.lists(leaves | objects, min_size=2, max_size=3))
def test_no_value_is_of_two_that_differ(schemas: list[Schema]) -> None:
    if not differ({}, schemas):
        return
    for first, second in itertools.combinations(map(jsonschema.Draft202012Validator, schemas), 2):
        assert not any(first.is_valid(value) and second.is_valid(value) for value in VALUES)

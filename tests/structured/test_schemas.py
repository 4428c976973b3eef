"""Whatever the schema and the model: the text is valid or said to be cut off, or the schema was refused."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from akunu import InvalidArgumentError
from akunu.model import Model

from .corpus import SCHEMAS
from .models import ember, hostile
from .schemas import NOT_HONOURED, Schema, schemas

QUICK = settings(
    max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck), database=None
)


def check(model: Model, schema: Schema, seed: int, tokens: int) -> None:
    try:
        stream = model.stream("JSON: ", schema=schema, seed=seed, max_tokens=tokens, top_k=0, temperature=1.5)
    except InvalidArgumentError as error:
        assert str(error).startswith("schema: ")
        assert any(name in str(error) for name in _words(schema)), error
        return
    text = "".join(stream)
    reason = stream.completion.finish_reason
    assert reason in ("stop", "length")
    if reason == "stop":
        value = json.loads(text)
        jsonschema.Draft202012Validator(schema).validate(value)


def _words(schema: Any) -> set[str]:
    """The keywords of a schema, as its error may name them."""
    if isinstance(schema, dict):
        inner = {word for value in schema.values() for word in _words(value)}
        return {"Unsatisfiable"} | set(schema) | inner
    return {word for item in schema for word in _words(item)} if isinstance(schema, list) else set()


@QUICK
@given(schemas(), st.integers(0, 1000))
def test_texts_of_a_model_that_writes_anything_are_valid(schema: Schema, seed: int) -> None:
    check(hostile(), schema, seed, 120)


@QUICK
@given(schemas(), st.integers(0, 1000))
def test_texts_of_a_trained_model_are_valid(schema: Schema, seed: int) -> None:
    check(ember(), schema, seed, 80)


@pytest.mark.long
@pytest.mark.parametrize("model, examples", [(hostile, 400), (ember, 200)])
def test_texts_of_several_hundred_schemas_are_valid(model, examples: int) -> None:
    @settings(QUICK, max_examples=examples)
    @given(schemas(), st.integers(0, 1000))
    def campaign(schema: Schema, seed: int) -> None:
        check(model(), schema, seed, 160)

    campaign()


@pytest.mark.parametrize("model", [hostile, ember])
@pytest.mark.parametrize("name", list(SCHEMAS)[::5])
def test_texts_of_schemas_as_people_write_them_are_valid(name: str, model) -> None:
    check(model(), SCHEMAS[name], 1, 120)


@pytest.mark.long
@pytest.mark.parametrize("model", [hostile, ember])
def test_many_texts_of_schemas_as_people_write_them_are_valid(model) -> None:
    for schema in SCHEMAS.values():
        for seed in range(2):
            check(model(), schema, seed, 250)


@pytest.mark.parametrize("name", SCHEMAS)
def test_only_what_cannot_be_honoured_is_refused(name: str) -> None:
    try:
        hostile().stream("x", schema=SCHEMAS[name])
        refused = False
    except InvalidArgumentError:
        refused = True
    assert refused == name.startswith("not ")


@pytest.mark.parametrize("keyword", NOT_HONOURED)
@pytest.mark.parametrize("place", [lambda s: s, lambda s: {"items": s}, lambda s: {"properties": {"p": s}}])
def test_a_keyword_that_is_not_honoured_is_refused_by_name_wherever_it_stands(keyword: str, place) -> None:
    schema = place({"type": "string", keyword: NOT_HONOURED[keyword]})
    with pytest.raises(InvalidArgumentError, match="colour" if keyword == "format" else keyword):
        hostile().stream("x", schema=schema)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "minProperties": 2},
        {"$defs": {"x": {"minProperties": 3, "required": ["a"]}}, "$ref": "#/$defs/x"},
        {"properties": {"minProperties": {"anyOf": [{"type": "object", "minProperties": 2}]}}},
    ],
)
def test_properties_without_a_name_are_not_counted_and_so_refused(schema: Schema) -> None:
    """A name that comes twice is one property."""
    with pytest.raises(InvalidArgumentError, match="minProperties is"):
        hostile().stream("x", schema=schema)


def test_one_property_without_a_name_and_data_that_look_like_a_schema_are_no_reason_to_refuse() -> None:
    for schema in (
        {"type": "object", "properties": {"a": {}}, "required": ["a"], "minProperties": 2},
        {"const": {"minProperties": 7}},
        {"type": "object", "properties": {"minProperties": {"type": "integer"}}},
    ):
        hostile().stream("x", schema=schema)


def test_other_white_space_is_the_schemas_to_ask_for() -> None:
    schema = {"type": "array", "items": {"const": 1}, "minItems": 3, "maxItems": 3}
    assert hostile().generate("x", schema=schema).text == "[1, 1, 1]"
    compact = {"x-guidance": {"item_separator": ",", "whitespace_flexible": False}}
    assert hostile().generate("x", schema=schema | compact).text == "[1,1,1]"

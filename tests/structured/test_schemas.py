"""Whatever the schema and the model: the text is valid, is said to be cut off, or the schema is refused up front."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from akunu import InvalidArgumentError
from akunu.model import Model

from .models import ember, hostile
from .schemas import NOT_HONOURED, Schema, schemas

QUICK = settings(
    max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck), database=None
)
CAMPAIGN = settings(QUICK, max_examples=600)


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
        return (
            {"oneOf", "Unsatisfiable", "Regex"}
            | set(schema)
            | {w for v in schema.values() for w in _words(v)}
        )
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
@CAMPAIGN
@given(schemas(), st.integers(0, 1000))
def test_texts_of_several_hundred_schemas_are_valid(schema: Schema, seed: int) -> None:
    check(hostile(), schema, seed, 200)


@pytest.mark.parametrize("keyword", NOT_HONOURED)
@pytest.mark.parametrize("place", [lambda s: s, lambda s: {"items": s}, lambda s: {"properties": {"p": s}}])
def test_a_keyword_that_is_not_honoured_is_refused_by_name_wherever_it_stands(keyword: str, place) -> None:
    schema = place({"type": "string", keyword: NOT_HONOURED[keyword]})
    with pytest.raises(InvalidArgumentError, match="colour" if keyword == "format" else keyword):
        hostile().stream("x", schema=schema)

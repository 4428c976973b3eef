"""Whatever the schema and the model: the text is valid or said to be cut off, or the schema was refused."""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from akunu import InvalidArgumentError
from akunu.api.model import Model
from akunu.chat.structured.structure import structure_of

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


def allows(schema: Schema, text: str) -> bool:
    """Whether a text of this schema may be this one."""
    model = hostile()
    constraint = model._compiler.constraint(structure_of({"schema": schema}))
    for token in model._compiler._view.encode(text):
        if not constraint.mask()[token // 32] >> token % 32 & 1:
            return False
        constraint.advance([token])
    return constraint.finished or bool(
        constraint.mask()[constraint.end_id // 32] >> constraint.end_id % 32 & 1
    )


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
@pytest.mark.in_turn
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
@pytest.mark.in_turn
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
    with pytest.raises(InvalidArgumentError, match=keyword):
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


@pytest.mark.parametrize(
    ("schema", "valid", "invalid"),
    [
        ({"prefixItems": [{"type": "string"}], "additionalItems": False}, ['["a"]'], ["[1]"]),
        ({"prefixItems": [{"const": 1}], "items": {"const": 2}, "additionalItems": {}}, ["[1, 2]"], ["[2]"]),
        ({"items": {"const": 1}, "additionalItems": False}, ["[1]"], ["[2]"]),
        ({"items": [{"const": 1}], "additionalItems": False}, ["[1]"], ["[1, 1]", "[2]"]),
    ],
)
def test_items_of_older_drafts_do_not_hide_those_of_the_new_one(schema: Schema, valid, invalid) -> None:
    for text in valid:
        assert allows({"type": "array", **schema}, text)
    for text in invalid:
        assert not allows({"type": "array", **schema}, text)


def test_items_of_two_drafts_at_once_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="schema: items is a list beside prefixItems"):
        hostile().stream("x", schema={"prefixItems": [{}], "items": [{}]})


def test_items_that_need_not_differ_are_no_reason_to_refuse() -> None:
    assert allows({"type": "array", "items": {"const": 1}, "uniqueItems": False}, "[1, 1]")


@pytest.mark.parametrize("kind", ["date", "date-time"])
@pytest.mark.parametrize(
    "more", [{}, {"pattern": "^[12]"}, {"pattern": "^1|^2", "allOf": [{"minLength": 1}]}]
)
def test_a_date_is_one_that_exists(kind: str, more: Schema) -> None:
    schema = {"type": "string", "format": kind, **more}
    time = "" if kind == "date" else "T12:30:00Z"
    for day in ("2024-02-29", "2000-02-29", "2023-02-28", "2023-12-31"):
        assert allows(schema, f'"{day}{time}"')
    for day in ("2023-02-29", "1900-02-29", "2023-04-31", "2023-13-01", "2023-00-10"):
        assert not allows(schema, f'"{day}{time}"')


def test_times_are_those_that_others_read() -> None:
    schema = {"type": "string", "format": "date-time"}
    for time in ("00:00:00Z", "23:59:59.123456+05:30", "12:00:00-00:30"):
        assert allows(schema, f'"2023-01-01T{time}"')
        datetime.fromisoformat(f"2023-01-01T{time}")
    for time in ("24:00:00Z", "12:00:60Z", "12:00:00", "12:00:00z", "12:00Z", "12:00:00+24:00"):
        assert not allows(schema, f'"2023-01-01T{time}"')


def test_other_white_space_is_the_schemas_to_ask_for() -> None:
    schema = {"type": "array", "items": {"const": 1}, "minItems": 3, "maxItems": 3}
    assert hostile().generate("x", schema=schema).text == "[1, 1, 1]"
    compact = {"x-guidance": {"item_separator": ",", "whitespace_flexible": False}}
    assert hostile().generate("x", schema=schema | compact).text == "[1,1,1]"


def test_formats_that_are_annotations_say_nothing() -> None:
    for kind in ("binary", "password", "path", "uuid4", "json-pointer", "idn-email", "colour", "int64"):
        assert allows({"type": "string", "format": kind, "maxLength": 3}, '"a b"')
        assert not allows({"type": "string", "format": kind, "maxLength": 3}, '"abcd"')
    assert not allows({"type": "string", "format": "uuid"}, '"a b"')


INT64 = {"type": "integer", "minimum": -(2**63), "maximum": 2**63 - 1}
DOUBLE = {"type": "number", "minimum": -1.7976931348623157e308, "maximum": 1.7976931348623157e308}


@pytest.mark.parametrize(
    ("schema", "valid", "invalid"),
    [
        (INT64, [0, 2**63 - 1, -(2**63)], [2**63, -(2**63) - 1]),
        ({"type": "integer", "minimum": 0, "maximum": 2**64 - 1}, [0, 2**64 - 1], [-1, 2**64]),
        ({"type": "integer", "exclusiveMaximum": 2**63}, [2**63 - 1, -(10**30)], [2**63]),
        ({"type": "integer", "minimum": 2**53 + 1}, [2**53 + 1, 10**40], [2**53, 0, -(2**60)]),
        ({"maximum": 2**53, "type": ["integer", "null"]}, [2**53, None], [2**53 + 1, "a"]),
        (DOUBLE, [0, 1.5, 1e300, -1e-5, 1.7976931348623157e308], [10**309]),
        ({"type": "number", "maximum": 1e20}, [1e20, 10**20, -1e300], [10**20 + 1, 2e20]),
        ({"maximum": 1e20}, [1, 1.5, -1e300, "a", None, True, [2.5], {"b": 1e30}], [2e20]),
        ({"type": "number", "exclusiveMinimum": 5e-324, "maximum": 1}, [1, 0.5], [0, -1, 1.5]),
        ({"enum": [2**53 + 1, 1e300, "a"]}, [2**53 + 1, 1e300, "a"], [2**53]),
        ({"const": {"id": 2**63 - 1}}, [{"id": 2**63 - 1}], [{"id": 2**63}]),
    ],
)
@pytest.mark.parametrize("place", ["root", "property", "item", "reference", "union"])
def test_numbers_beyond_doubles_have_their_bounds(schema: Schema, valid, invalid, place: str) -> None:
    put = {
        "root": (schema, "{}"),
        "property": (
            {"type": "object", "properties": {"a": {}, "n": schema}, "required": ["n"]},
            '{{"n": {}}}',
        ),
        "item": ({"type": "array", "prefixItems": [{"const": 1}], "items": schema}, "[1, {}]"),
        "reference": ({"$defs": {"n": schema}, "type": "array", "items": {"$ref": "#/$defs/n"}}, "[{}]"),
        "union": ({"anyOf": [{"const": "b"}, schema]}, "{}"),
    }
    whole, text = put[place]
    for value in valid:
        assert allows(whole, text.format(json.dumps(value)))
    for value in invalid:
        assert not allows(whole, text.format(json.dumps(value)))


@pytest.mark.parametrize(
    ("schema", "valid", "invalid"),
    [
        ({"properties": {"n": INT64}}, ["5", '{"n": 5}', "[1.5]", '"a"'], [f'{{"n": {2**63}}}']),
        ({"items": INT64}, ["1.5", "[5]", "{}", "null"], [f"[{2**63}]", "[1.5]"]),
        ({"pattern": "^(?!a)b"}, ['"b"', "1.5", "null"], ['"a"', '"c"']),
    ],
)
def test_a_schema_without_a_type_asks_about_its_own_kind_of_values_alone(
    schema: Schema, valid, invalid
) -> None:
    assert all(allows(schema, text) for text in valid)
    assert not any(allows(schema, text) for text in invalid)


LETTERS, DIGIT, DOTS, SPACES = "\u00e9\u4e2d", "\u0967", "\u2026", "\u00a0\u0085\ufeff"
MIXED = f"a1_-{LETTERS}{DIGIT}{DOTS}{SPACES}"


@pytest.mark.parametrize(
    ("pattern", "allowed"),
    [
        *((pattern, f"-{DOTS}{SPACES}") for pattern in (r"^\W$", r"^[^\w]$")),
        *((pattern, f"a_-{LETTERS}{DOTS}{SPACES}") for pattern in (r"^\D$", r"^[^\d]$")),
        *((pattern, "a1_") for pattern in (r"^\w$", r"^[^\W]$")),
        *((pattern, MIXED) for pattern in (r"^[\w\W]$", r"^[\s\S]$", r"^[\D\d]$")),
        (r"^[^\w\s]$", f"-{DOTS}"),
        (r"^[^\W\d_]$", "a"),
        (r"^[^\D]$", "1"),
        (r"^[^\s]$", f"a1_-{LETTERS}{DIGIT}{DOTS}"),
    ],
)
def test_classes_are_what_ecma_and_python_both_mean(pattern: str, allowed: str) -> None:
    schema = {"type": "string", "pattern": pattern}
    assert [char for char in MIXED if allows(schema, json.dumps(char, ensure_ascii=False))] == [
        char for char in MIXED if char in allowed
    ]


def test_where_such_numbers_have_no_place_nothing_invalid_is_written() -> None:
    schema = {"allOf": [{"type": "object", "properties": {"n": INT64}}, {"required": ["n"]}]}
    assert allows(schema, '{"n": 5}')
    assert not allows(schema, f'{{"n": {2**63}}}')
    with pytest.raises(InvalidArgumentError, match="minimum is 9223372036854775808"):
        hostile().stream("x", schema={"type": "integer", "minimum": 2**63, "multipleOf": 2})


@pytest.mark.parametrize(
    ("pattern", "valid", "invalid"),
    [
        (r'^[^"\\]{1,6}$', ["abc", "\n", "é"], ['a"', "\\"]),
        (r'^[^"\n]*$', ["\\"], ['"', "\n"]),
        (r"^[\x00-!#-\[]+$", ["!#["], ['"', "\\"]),
        (r"^[\s\S]$", ['"', "\\", "\n"], ["aa"]),
        (r"^.$", ['"', "\\", "é"], ["\n", "\r"]),
        (r"^[[]$", ["["], ["a"]),
        (r"^[a&&b]$", ["a", "&"], ["c"]),
        (r"^{\w+}\/$", ["{a}/"], ["a/"]),
        (r"^[\ud83d\ude00]$", ["\U0001f600"], ["a"]),
        (r"^(?=.*[A-Z])(?=.*\d)[A-Za-z\d]{4,}$", ["Abc1"], ["abc1", "ABCD", "A1"]),
        (r"^[^\p{L}\"]+$", ["1-"], ["é", '"']),
        (r"^\S+$", ['"a'], ["a b", "\u00a0"]),
        (r"^(?<year>\d{4})$", ["2024"], ["24"]),
        (r"^a\0b$", ["a\0b"], ["ab"]),
        (r"^\x1b\[\cA[\x01-\x03]\x7f-$", ["\x1b[\x01\x02\x7f-"], ["[-", "[\x01\x02-"]),
        (r"^[\x7f]$", ["\x7f"], [""]),
    ],
)
def test_patterns_mean_what_ecma_says(pattern: str, valid: list[str], invalid: list[str]) -> None:
    for texts, expected in ((valid, True), (invalid, False)):
        for text in texts:
            written = json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
            assert allows({"type": "string", "pattern": pattern}, written) == expected, text


DECIMAL = r"^(?!^[-+.]*$)[+-]?0*\d*\.?\d*$"
"""Pydantic's of a Decimal."""


@pytest.mark.parametrize(
    ("pattern", "valid", "invalid"),
    [
        (DECIMAL, ["1.50", "-.5", "+007"], ["-", "+.", "", "1.5.0"]),
        (r"^(?!(?:con|prn)$)[a-z]{3,4}$", ["cons", "abc"], ["con", "prn", "ab"]),
        (r"^(?!-)(?!.*--)(?=.*\d)[a-z\d-]{2,}$", ["a-1"], ["-1", "a--1", "ab"]),
        (r"^(?!\s*$).+", ["a ", " b"], ["", "  "]),
        (r"^(?!https?:\/\/)", ["ftp://x"], ["http://x", "https://"]),
    ],
)
def test_what_a_pattern_excludes_is_not_written(pattern: str, valid: list[str], invalid: list[str]) -> None:
    schema = {"anyOf": [{"type": "integer"}, {"type": "string", "pattern": pattern}]}
    place = {"type": "object", "properties": {"x": schema}, "required": ["x"], "additionalProperties": False}
    for texts, expected in ((valid, True), (invalid, False)):
        for text in texts:
            assert (re.search(pattern, text) is not None) == expected
            assert allows(schema, json.dumps(text)) == expected, text
            assert allows(place, json.dumps({"x": text})) == expected, text
    assert allows(schema, "7")
    for seed in range(4):
        check(hostile(), schema, seed, 60)


def test_where_such_a_pattern_has_no_place_it_is_refused() -> None:
    for schema in (
        {"allOf": [{"type": "string", "pattern": DECIMAL}, {"minLength": 2}]},
        {"type": "string", "pattern": r"^(?!a)b|c$"},
        {"type": "string", "pattern": r"^a(?!b)"},
        {"type": "object", "patternProperties": {r"^(?!x)": {}}},
    ):
        with pytest.raises(InvalidArgumentError, match=r"\(\?!\.\.\.\)|look-around"):
            hostile().stream("x", schema=schema)


def test_a_pattern_that_ends_in_an_escape_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="ends in a backslash"):
        hostile().stream("x", schema={"type": "string", "pattern": "a\\"})


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"score": {}}, "patternProperties": {"^score$": {}}, "additionalProperties": False},
        {
            "properties": {"a": {}, "b": {}},
            "patternProperties": {"^(a|b)$": {}},
            "additionalProperties": False,
        },
        {"properties": {"score": {}}, "patternProperties": {"": False}},
        {"properties": {"score": {}}, "patternProperties": {r"^\p{L}*$": {}, r"[^\p{L}]": False}},
    ],
)
@pytest.mark.parametrize("model", [ember, hostile])
def test_where_no_name_is_left_nothing_follows(schema: Schema, model) -> None:
    names = list(schema["properties"])
    schema = {"type": "object", "required": names, **schema}
    schema["properties"] = {name: {"type": "boolean"} for name in names}
    for seed in range(4):
        check(model(), schema, seed, 40)


def test_a_pattern_binds_a_property_that_it_names() -> None:
    properties = {"score": {"type": "integer"}}
    schema = {"type": "object", "properties": properties, "patternProperties": {"^score$": {"minimum": 3}}}
    assert allows(schema, '{"score": 4}')
    assert not allows(schema, '{"score": 2}')


def test_no_name_is_written_in_disguise() -> None:
    """A validator reads `\\u0061` as `a`."""
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    assert allows(schema, '{"b": "x"}')
    assert not allows(schema, '{"\\u0061": "x"}')


def test_a_schema_that_is_nested_too_deeply_is_refused() -> None:
    schema: Schema = {}
    for _ in range(900):
        schema = {"items": schema}
    with pytest.raises(InvalidArgumentError, match="schema: "):
        hostile().stream("x", schema=schema)


@pytest.mark.parametrize(
    "dialect",
    ["http://json-schema.org/schema#", "https://example.com/tool.json", "x", None, 7,
     "http://json-schema.org/draft-07/schema#"],
)  # fmt: skip
def test_a_dialect_that_is_not_known_is_not_fetched(dialect: object) -> None:
    schema = {"$schema": dialect, "type": "object", "properties": {"$schema": {"const": 1}},
              "required": ["$schema"], "additionalProperties": False}  # fmt: skip
    inner = {"type": "array", "items": schema, "minItems": 1, "maxItems": 1}
    assert allows(schema, '{"$schema": 1}') and not allows(schema, '{"a": 1}')
    assert allows(inner, '[{"$schema": 1}]')

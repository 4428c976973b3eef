"""Random JSON schemas, of the keywords that are honoured and now and then of one that is not."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

Schema = dict[str, Any]

NAMES = st.sampled_from(["a", "b", "name", "first name", "é", "x-y", 'q"uote', "back\\slash", "", "0"])
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-1000, 10**12)
    | st.sampled_from([0.5, -2.25, 1e300, "", "text", "é\n\u2028", '"', "\\", "\x7f", "\U0001f600"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=2),
    max_leaves=4,
)
FORMATS = (
    "date",
    "time",
    "date-time",
    "duration",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "uuid",
    "uri",
    "colour",
    "binary",
)
PATTERNS = (r"^[a-z]{2,4}$", r"[0-9]", r"^(foo|bar)-[0-9]+$", r"x", r"^[^ ]+ [^ ]+$", r"^a|b$")
NOT_HONOURED: dict[str, Any] = {
    "not": {"type": "null"},
    "uniqueItems": True,
    "propertyNames": {"pattern": "a"},
    "if": {"type": "string"},
    "contains": {"type": "integer"},
    "dependentRequired": {"a": ["b"]},
    "unevaluatedProperties": False,
}


@st.composite
def limits(draw: st.DrawFn, low: str, high: str, most: int) -> Schema:
    """Both limits, one, or none, in order."""
    first, second = sorted(draw(st.tuples(st.integers(0, most), st.integers(0, most))))
    both = {low: first, high: second}
    return {name: both[name] for name in draw(st.sets(st.sampled_from([low, high])))}


@st.composite
def numbers(draw: st.DrawFn) -> Schema:
    schema: Schema = {"type": draw(st.sampled_from(["integer", "number"]))}
    low = draw(st.integers(-50, 50) | st.floats(-50, 50).map(lambda x: round(x, 2)))
    if draw(st.booleans()):
        schema[draw(st.sampled_from(["minimum", "exclusiveMinimum"]))] = low
    if draw(st.booleans()):
        schema[draw(st.sampled_from(["maximum", "exclusiveMaximum"]))] = low + draw(st.integers(2, 500))
    if draw(st.integers(0, 3)) == 0:
        schema["multipleOf"] = draw(st.sampled_from([1, 2, 5, 0.5, 10]))
    return schema


@st.composite
def strings(draw: st.DrawFn) -> Schema:
    kind = draw(st.integers(0, 5))
    if kind == 0:
        return {"type": "string", "format": draw(st.sampled_from(FORMATS))}
    if kind == 1:
        return {"type": "string", "pattern": draw(st.sampled_from(PATTERNS))}
    return {"type": "string"} | draw(limits("minLength", "maxLength", 8))


@st.composite
def arrays(draw: st.DrawFn, inner: st.SearchStrategy[Schema]) -> Schema:
    schema: Schema = {"type": "array"} | draw(limits("minItems", "maxItems", 4))
    if draw(st.integers(0, 3)):
        schema["items"] = draw(inner | st.just(False)) if "minItems" not in schema else draw(inner)
    if draw(st.integers(0, 3)) == 0:
        schema["prefixItems"] = draw(st.lists(inner, min_size=1, max_size=2))
    return schema


@st.composite
def objects(draw: st.DrawFn, inner: st.SearchStrategy[Schema]) -> Schema:
    properties = draw(st.dictionaries(NAMES, inner, max_size=4))
    schema: Schema = {"type": "object", "properties": properties}
    if properties:
        schema["required"] = draw(st.lists(st.sampled_from(sorted(properties)), unique=True))
    more = draw(st.integers(0, 4))
    if more < 3:
        schema["additionalProperties"] = False if more else draw(inner)
    elif more == 3:
        schema["patternProperties"] = {"^k[0-9]$": draw(inner)}
    if draw(st.integers(0, 5)) == 0:
        schema |= draw(limits("minProperties", "maxProperties", 5))
    return schema


def _containers(inner: st.SearchStrategy[Schema]) -> st.SearchStrategy[Schema]:
    some = st.lists(inner, min_size=1, max_size=3)
    return (
        arrays(inner)
        | objects(inner)
        | objects(inner)
        | some.map(lambda schemas: {"anyOf": schemas})
        | some.map(lambda schemas: {"oneOf": schemas})
        | st.tuples(objects(inner), objects(inner)).map(lambda pair: {"allOf": list(pair)})
    )


LEAVES = (
    numbers()
    | strings()
    | st.sampled_from([{"type": "null"}, {"type": "boolean"}, {"type": ["integer", "string"]}, {}])
    | VALUES.map(lambda value: {"const": value})
    | st.lists(VALUES, min_size=1, max_size=3).map(lambda values: {"enum": values})
)


@st.composite
def schemas(draw: st.DrawFn) -> Schema:
    """A schema; one in ten has a keyword that is not honoured, some refer to themselves."""
    schema = dict(draw(st.recursive(LEAVES, _containers, max_leaves=6)))
    kind = draw(st.integers(0, 19))
    if kind in (11, 17):
        name = draw(st.sampled_from(sorted(NOT_HONOURED)))
        schema[name] = NOT_HONOURED[name]
    elif kind == 13:
        child = {"$ref": "#/$defs/node"}
        node = {"type": "object", "properties": {"value": schema, "next": child}, "required": ["value"]}
        schema = {"$defs": {"node": node | {"additionalProperties": False}}, **child}
    return {**schema, "title": "T", "x-own": 1}

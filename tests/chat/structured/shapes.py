"""Random schemas of the shapes that public collections have, each with values that are valid.

The shapes: tools of agents (Pydantic, Zod, MCP servers), components of OpenAPI documents (64-bit integers,
doubles, formats that are annotations, unions by a tag), configuration files (pattern properties, patterns
with look-aheads, maps), protobuf messages.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

__all__ = ["Shape", "shape"]

Shape = tuple[dict[str, Any], Callable[[random.Random], Any]]
"""A schema, and what draws a value of it."""

_WORDS = ("alpha", "beta-2", "x_y", "é", 'q"', "a b", "")
_NAMES = (
    "id",
    "name",
    "created_at",
    "x-rate",
    "$type",
    "url",
    "count",
    "items",
    "first name",
    "é",
    'a"b',
    "default",
)
_FORMATS = {
    "uuid": "123e4567-e89b-12d3-a456-426614174000",
    "date": "2024-02-29",
    "date-time": "2024-02-29T12:30:00Z",
    "email": "a.b@example.com",
    "ipv4": "10.0.0.1",
    "uri": "https://example.com/a?b=c",
    "hostname": "example.com",
    "binary": "any",
    "password": 'pa"ss',
    "byte": "YWI=",
    "path": "/a\\b",
    "uuid4": "annotation",
    "regex": "^a$",
    "json-pointer": "/a/b",
    "uri-reference": "../x",
    "idn-email": "é@é",
    "color": "#fff",
    "duration": "P1D",
}
_PATTERNS = {
    r"^[a-z][a-z0-9_-]{0,30}$": "abc-1",
    r"^[^\\/:*?\"<>|]{1,20}$": "file name",
    r'^[^"\\]*$': "it's",
    r"^(?=.*[A-Z])(?=.*\d).{4,}$": "Abc1",
    r"^\d{3}-\d{4}$": "555-1234",
    r"^#[0-9a-fA-F]{6}$": "#00fFaA",
    r"^\/[\w\-\/]*$": "/a/b-c",
    r"^v?\d+\.\d+(\.\d+)?$": "v1.2.3",
    r"\S": "  x",
    r"^\$\{[A-Z_]+\}$": "${HOME}",
    r"^[+-]?([0-9.]+)(m|[KMGTP]i?)?$": "100Mi",
    "^.*$": 'a\\b"c',
    r"^[^\s]+$": 'a"',
    r"^[[\]]$": "[",
    r"^{{ \w+ }}$": "{{ x }}",
    r"^(a|b)?$": "",
    r"^[a&&b]+$": "a&b",
}
_BOUNDS = (
    (-(2**31), 2**31 - 1),
    (-(2**63), 2**63 - 1),
    (0, 2**64 - 1),
    (0, 2**53 - 1),
    (1, None),
    (None, 10**18),
    (0, 100),
    (-(2**63), None),
    (None, 2**63),
    (2**60, 2**62),
    (0, 10**30),
)
_RANGES = (
    (-1.7976931348623157e308, 1.7976931348623157e308),
    (-3.402823669209385e38, 3.402823669209385e38),
    (0, 1.7976931348623157e308),
    (0, 1),
    (-90, 90),
    (None, 1e20),
    (5e-324, None),
    (0.001, 0.999),
    (-1e16, None),
)


def shape(draw: random.Random, depth: int = 3) -> Shape:
    """A schema without references, no deeper than this."""
    makers = [_string, _string, _integer, _number, _constant, _simple]
    if depth:
        makers += [
            _object,
            _object,
            _object,
            _array,
            _union,
            _tagged,
            _nullable,
            _map,
            _patterned,
            _reference,
        ]
    return draw.choice(makers)(draw, depth)


def _string(draw: random.Random, depth: int) -> Shape:
    kind = draw.randrange(3)
    if kind == 0:
        name, value = draw.choice(list(_FORMATS.items()))
        return {"type": "string", "format": name}, lambda draw: value
    if kind == 1:
        pattern, value = draw.choice(list(_PATTERNS.items()))
        schema = {"type": "string", "pattern": pattern}
        return (schema | {"maxLength": 64} if draw.random() < 0.3 else schema), lambda draw: value
    limits = {"minLength": 0, "maxLength": draw.randint(6, 40)}
    schema = {"type": "string"} | {key: limits[key] for key in limits if draw.random() < 0.4}
    return {**schema, "description": "a text"}, lambda draw: draw.choice(_WORDS)


def _limits(draw: random.Random, low: Any, high: Any) -> dict[str, Any]:
    schema = {} if low is None else {draw.choice(["minimum", "exclusiveMinimum"]): low}
    return schema if high is None else schema | {draw.choice(["maximum", "exclusiveMaximum"]): high}


def _integer(draw: random.Random, depth: int) -> Shape:
    low, high = draw.choice(_BOUNDS)
    schema = {"type": "integer", "format": "int64", **_limits(draw, low, high)}
    first = -(10**20) if low is None else low + ("exclusiveMinimum" in schema)
    last = max(first, 10**20) if high is None else high - ("exclusiveMaximum" in schema)
    return schema, lambda draw: draw.choice([first, last, draw.randint(first, last)])


def _number(draw: random.Random, depth: int) -> Shape:
    low, high = draw.choice(_RANGES)
    schema = {"type": "number", "format": "double", **_limits(draw, low, high)}
    inside = [value for value in (0.5, 0.25, 0.75) if (low or -1) < value < (high or 2)]
    if low is not None and "minimum" in schema:
        inside.append(low)
    if high is not None and "maximum" in schema:
        inside.append(high)
    return schema, lambda draw: draw.choice(inside)


def _constant(draw: random.Random, depth: int) -> Shape:
    values = draw.sample(["a", "b c", 'q"', 1, 2.5, None, 2**53 + 1, 2**63 - 1, {"k": [1]}, True], 3)
    if draw.random() < 0.3:
        return {"const": values[0]}, lambda draw: values[0]
    return {"enum": values}, lambda draw: draw.choice(values)


def _simple(draw: random.Random, depth: int) -> Shape:
    return draw.choice([({"type": "boolean"}, lambda draw: True), ({"type": "null"}, lambda draw: None)])


def _object(draw: random.Random, depth: int) -> Shape:
    names = draw.sample(_NAMES, draw.randint(0, 5))
    parts = {name: shape(draw, depth - 1) for name in names}
    required = [name for name in names if draw.random() < 0.6]
    schema: dict[str, Any] = {"type": "object", "properties": {name: parts[name][0] for name in names}}
    if required or draw.random() < 0.5:
        schema["required"] = draw.sample(required, len(required))
    if draw.random() < 0.6:
        schema["additionalProperties"] = False
    if draw.random() < 0.3:
        schema |= {"title": "T", "$comment": "c", "x-order": 1}

    def value(draw: random.Random) -> Any:
        return {name: parts[name][1](draw) for name in names if name in required or draw.random() < 0.5}

    return schema, value


def _array(draw: random.Random, depth: int) -> Shape:
    items, item = shape(draw, depth - 1)
    schema: dict[str, Any] = {"type": "array", "items": items}
    low, high = draw.randint(0, 2), draw.randint(2, 4)
    if draw.random() < 0.5:
        schema |= {"minItems": low, "maxItems": high}
    return schema, lambda draw: [item(draw) for _ in range(draw.randint(low, high))]


def _union(draw: random.Random, depth: int) -> Shape:
    parts = [shape(draw, depth - 1) for _ in range(draw.randint(1, 3))]
    return {"anyOf": [part[0] for part in parts]}, lambda draw: draw.choice(parts)[1](draw)


def _tagged(draw: random.Random, depth: int) -> Shape:
    parts = [shape(draw, depth - 1) for _ in range(2)]
    schemas = [
        {
            "type": "object",
            "properties": {"kind": {"const": f"k{i}"}, "value": part[0]},
            "required": ["kind", "value"],
            "additionalProperties": False,
        }
        for i, part in enumerate(parts)
    ]

    def value(draw: random.Random) -> Any:
        i = draw.randrange(2)
        return {"kind": f"k{i}", "value": parts[i][1](draw)}

    return {"oneOf": schemas, "discriminator": {"propertyName": "kind"}}, value


def _nullable(draw: random.Random, depth: int) -> Shape:
    low, high = draw.choice(_BOUNDS[:6])
    schema = {"type": ["integer", "null"], **_limits(draw, low, high), "default": None}
    middle = ((low or 0) + (high or 10**6)) // 2
    return schema, lambda draw: draw.choice([None, middle])


def _map(draw: random.Random, depth: int) -> Shape:
    schema, item = shape(draw, depth - 1)
    return {"type": "object", "additionalProperties": schema}, lambda draw: {
        "k": item(draw),
        "é b": item(draw),
    }


def _patterned(draw: random.Random, depth: int) -> Shape:
    (schema, item), (other, own) = _string(draw, 0), shape(draw, 0)
    pattern, names = draw.choice(
        [
            ("^x-", ["x-a", "x-"]),
            ("^[a-z]+$", ["ab", "z"]),
            ("^[A-ZÉ]", ["É", "A"]),
            ("^(k)$", ["k"]),
            (".*", ["", "a"]),
        ]
    )
    result: dict[str, Any] = {"type": "object", "patternProperties": {pattern: schema}}
    fixed = draw.random() < 0.5
    if fixed:  # a name that the pattern has too, where it is the only one
        name = "k" if pattern == "^(k)$" else "1" if pattern != ".*" else "k"
        both = pattern in ("^(k)$", ".*")
        result |= {"properties": {name: {} if both else other}, "required": [name]}
        names = [each for each in names if each != name]
    if draw.random() < 0.5:
        result["additionalProperties"] = False

    def value(draw: random.Random) -> Any:
        found = {name: item(draw) if both else own(draw)} if fixed else {}
        return found | {each: item(draw) for each in names if draw.random() < 0.5}

    return result, value


def _reference(draw: random.Random, depth: int) -> Shape:
    """A tree; definitions are those of the root, so this is one that is not put into another."""
    return _object(draw, depth)

"""JSON schemas as people write them: tools of agents, records, trees, unions, configuration."""

from __future__ import annotations

from typing import Any

__all__ = ["SCHEMAS"]

Schema = dict[str, Any]


def record(required: list[str] | None = None, /, **properties: Schema) -> Schema:
    """An object with these properties and no others; all are required, unless it is said which."""
    names = list(properties) if required is None else required
    return {"type": "object", "properties": properties, "required": names, "additionalProperties": False}


TEXT: Schema = {"type": "string"}
WHOLE: Schema = {"type": "integer"}
NUMBER: Schema = {"type": "number"}
FLAG: Schema = {"type": "boolean"}


def array(items: Schema, **limits: int) -> Schema:
    return {"type": "array", "items": items, **limits}


POINT = record(x=NUMBER, y=NUMBER)

SCHEMAS: dict[str, Schema] = {
    "weather": record(["city"], city=TEXT, unit={"type": "string", "enum": ["C", "F"]}, days=WHOLE),
    "calculator": record(operation={"enum": ["add", "subtract", "multiply", "divide"]}, a=NUMBER, b=NUMBER),
    "search": record(
        ["query"], query=TEXT, limit={"type": "integer", "minimum": 1, "maximum": 100}, safe=FLAG
    ),
    "read file": record(["path"], path=TEXT, offset={"type": "integer", "minimum": 0}, limit=WHOLE),
    "edit file": record(
        ["path", "old", "new"], path=TEXT, old=TEXT, new=TEXT, all={**FLAG, "default": False}
    ),
    "run command": record(["command"], command=TEXT, timeout={"type": ["integer", "null"]}),
    "todo list": record(
        todos=array(
            record(
                content={"type": "string", "minLength": 1},
                status={"enum": ["pending", "in_progress", "done"]},
            ),
            maxItems=4,
        )
    ),
    "email": record(
        ["to"], to=array({"type": "string", "format": "email"}, minItems=1), subject=TEXT, body=TEXT
    ),
    "event": record(
        title=TEXT,
        begins={"type": "string", "format": "date-time"},
        day={"type": "string", "format": "date"},
        lasts={"type": "string", "format": "duration"},
    ),
    "identifiers": record(
        id={"type": "string", "format": "uuid"},
        address={"type": "string", "format": "ipv4"},
        code={"type": "string", "pattern": "^[A-Z]{3}-[0-9]{4}$"},
    ),
    "person": record(
        ["name"],
        name={"type": "string", "minLength": 1, "maxLength": 30},
        age={"type": "integer", "minimum": 0, "maximum": 150},
        email={"type": ["string", "null"]},
        tags=array(TEXT, maxItems=3),
    ),
    "address book": record(
        people=array(
            record(name=TEXT, phones=array({"type": "string", "pattern": "^[0-9 +]+$"}, maxItems=2)),
            maxItems=2,
        )
    ),
    "sentiment": record(
        sentiment={"enum": ["positive", "negative", "neutral"]},
        score={"type": "number", "minimum": 0, "maximum": 1},
    ),
    "extraction": record(
        entities=array(record(text=TEXT, kind={"enum": ["person", "place", "date"]}), maxItems=3)
    ),
    "steps of reasoning": record(
        steps=array(record(thought=TEXT, result=TEXT), minItems=1, maxItems=2), answer=TEXT
    ),
    "choice of types": {"anyOf": [TEXT, WHOLE, {"type": "null"}]},
    "shapes": {
        "oneOf": [
            record(kind={"const": "circle"}, center=POINT, radius={"type": "number", "exclusiveMinimum": 0}),
            record(kind={"const": "square"}, corner=POINT, side={"type": "number", "minimum": 0}),
        ]
    },
    "tagged union of actions": record(
        action={
            "anyOf": [
                record(type={"const": "click"}, x=WHOLE, y=WHOLE),
                record(type={"const": "type"}, text=TEXT),
                record(type={"const": "wait"}, seconds={"type": "number", "maximum": 10}),
            ]
        }
    ),
    "tree": {
        "$defs": {
            "node": record(
                ["value"], value=WHOLE, left={"$ref": "#/$defs/node"}, right={"$ref": "#/$defs/node"}
            )
        },
        "$ref": "#/$defs/node",
    },
    "linked list": {
        "$defs": {"list": {"anyOf": [{"type": "null"}, record(head=WHOLE, tail={"$ref": "#/$defs/list"})]}},
        "$ref": "#/$defs/list",
    },
    "expression": {
        "definitions": {
            "e": {
                "anyOf": [
                    WHOLE,
                    record(op={"enum": ["+", "*"]}, of=array({"$ref": "#/definitions/e"}, maxItems=2)),
                ]
            }
        },
        "$ref": "#/definitions/e",
    },
    "composed": {
        "allOf": [
            {"type": "object", "properties": {"a": WHOLE}, "required": ["a"]},
            {"properties": {"b": TEXT}},
        ]
    },
    "map of numbers": {"type": "object", "additionalProperties": NUMBER},
    "map with patterns": {
        "type": "object",
        "patternProperties": {"^k[0-9]$": FLAG},
        "additionalProperties": False,
    },
    "tuple": {"type": "array", "prefixItems": [TEXT, WHOLE], "items": False, "minItems": 2},
    "matrix": array(array(NUMBER, minItems=2, maxItems=2), minItems=2, maxItems=2),
    "anything": {},
    "any object": {"type": "object"},
    "any array": {"type": "array", "maxItems": 3},
    "empty object": record(),
    "constant": {"const": {"a": [1, 2.5, None, 'x\n"\\é']}},
    "enum of all types": {"enum": [1, 1.5, "a", None, True, [1], {"a": {}}, "", "\u2028", "\U0001f600"]},
    "names that need quoting": record(
        **{'a"b': WHOLE, "back\\slash": WHOLE, "new\nline": WHOLE, "": WHOLE, "é": FLAG}
    ),
    "numbers with limits": record(
        a={"type": "integer", "minimum": -3, "maximum": 3},
        b={"type": "integer", "multipleOf": 5, "minimum": 0, "maximum": 100},
        c={"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
        d={"type": "integer", "minimum": 10**12},
    ),
    "strings with limits": record(
        a={"type": "string", "minLength": 3, "maxLength": 3},
        b={"type": "string", "maxLength": 0},
        c={"type": "string", "pattern": "x"},
        d={"type": "string", "pattern": "^(ab)+$"},
    ),
    "many optional properties": record([], **{f"p{i}": WHOLE for i in range(12)}),
    "a wide enum": {"enum": [f"value {i}" for i in range(200)]},
    "deep": record(a=record(b=record(c=record(d=record(e=record(f=array(record(g=FLAG), maxItems=1))))))),
    "pydantic's": {
        "$defs": {"Color": {"enum": ["red", "blue"], "title": "Color", "type": "string"}},
        "properties": {
            "color": {"$ref": "#/$defs/Color"},
            "size": {"anyOf": [WHOLE, {"type": "null"}], "default": None, "title": "Size"},
        },
        "required": ["color"],
        "title": "Thing",
        "type": "object",
    },
    "zod's": {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {"u": {"type": "string", "format": "uri"}, "n": {"type": ["number", "null"]}},
        "required": ["u", "n"],
        "additionalProperties": False,
    },
    "not honoured: unique": array(WHOLE, maxItems=3) | {"uniqueItems": True},
    "not honoured: not": {"not": TEXT},
    "not honoured: if": {"if": TEXT, "then": {"minLength": 2}},
    "not honoured: dependent": {"type": "object", "dependentRequired": {"a": ["b"]}},
    "not satisfiable": {"type": "integer", "minimum": 5, "maximum": 4},
}
"""By name."""

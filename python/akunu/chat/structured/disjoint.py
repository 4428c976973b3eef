"""Tell whether JSON schemas have no value in common: `oneOf` of them is `anyOf` then."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Mapping
from typing import Any, Final

__all__ = ["differ", "resolved"]

_TYPES: Final = frozenset({"null", "boolean", "object", "array", "string", "number"})
_DEEPEST: Final = 8
"""References and properties that are followed; what is deeper counts as something in common."""


def resolved(root: Any, reference: str) -> Any:
    """Return the schema that a reference within `root` names; ``{}`` if there is none."""
    found: Any = root
    if not reference.startswith("#"):
        return {}  # llguidance refuses it by name
    for part in filter(None, reference[1:].split("/")):
        key = part.replace("~1", "/").replace("~0", "~")
        try:
            found = found[int(key)] if isinstance(found, list) else found[key]
        except (KeyError, ValueError, IndexError, TypeError):
            return {}
    return found


def differ(root: Any, schemas: Any) -> bool:
    """Whether no value is of two of these schemas, by their types, constants, ranges and properties."""
    return isinstance(schemas, list | tuple) and all(
        _disjoint(root, first, second, _DEEPEST) for first, second in itertools.combinations(schemas, 2)
    )


def _disjoint(root: Any, first: Any, second: Any, depth: int) -> bool:
    if first is False or second is False:
        return True
    if depth == 0 or not isinstance(first, Mapping) or not isinstance(second, Mapping):
        return False
    for one, other in ((first, second), (second, first)):
        if isinstance(one.get("$ref"), str):
            return _disjoint(root, resolved(root, one["$ref"]), other, depth - 1)
        values = _values(one)
        if values is not None:
            return all(_is_not(value, other) for value in values)
    kinds = _kinds(first) & _kinds(second)
    if kinds == {"number"}:
        return _above(first, second) or _above(second, first)
    if kinds != {"object"}:
        return not kinds
    return any(
        _apart(root, one, other, name, depth - 1)
        for one, other in ((first, second), (second, first))
        for name in _names(one)
    )


def _values(schema: Mapping[str, Any]) -> list[Any] | None:
    if "const" in schema:
        return [schema["const"]]
    return schema["enum"] if isinstance(schema.get("enum"), list) else None


def _kinds(schema: Mapping[str, Any]) -> frozenset[str]:
    kind = schema.get("type", list(_TYPES))
    kinds = [kind] if isinstance(kind, str) else kind if isinstance(kind, list) else list(_TYPES)
    return frozenset("number" if each == "integer" else each for each in kinds)


def _kind_of(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    kinds = {str: "string", list: "array", dict: "object", type(None): "null"}
    return kinds.get(type(value), "number")


def _is_not(value: Any, schema: Mapping[str, Any]) -> bool:
    """Whether a value is none of a schema's, by its type, its constants and its range."""
    kind = _kind_of(value)
    if kind not in _kinds(schema):
        return True
    values = _values(schema)
    if values is not None:
        return all(_written(value) != _written(each) for each in values)
    alone = {"minimum": value, "maximum": value}
    return kind == "number" and (_above(schema, alone) or _above(alone, schema))


def _written(value: Any) -> str:
    """Return equal texts for equal values: 1 and 1.0 are one number."""

    def plain(part: Any) -> Any:
        if isinstance(part, Mapping):
            return {str(key): plain(each) for key, each in part.items()}
        if isinstance(part, list):
            return [plain(each) for each in part]
        return int(part) if isinstance(part, float) and part.is_integer() else part

    return json.dumps(plain(value), sort_keys=True)


def _above(high: Mapping[str, Any], low: Mapping[str, Any]) -> bool:
    """Whether all numbers of one schema are greater than those of the other."""
    least, open_below = _bound(high, "minimum", "exclusiveMinimum", -1)
    most, open_above = _bound(low, "maximum", "exclusiveMaximum", 1)
    return least > most or (least == most and (open_below or open_above))


def _bound(schema: Mapping[str, Any], key: str, exclusive: str, side: int) -> tuple[float, bool]:
    """Return a bound, or infinity, and whether it is excluded; draft 4 says that with true."""
    found, excluded = side * math.inf, False
    for name, is_open in ((key, schema.get(exclusive) is True), (exclusive, True)):
        bound = schema.get(name)
        if isinstance(bound, bool) or not isinstance(bound, int | float):
            continue
        if side * bound < side * found or (bound == found and is_open):
            found, excluded = bound, is_open
    return found, excluded


def _names(schema: Mapping[str, Any]) -> list[str]:
    required = schema.get("required")
    return [name for name in required if isinstance(name, str)] if isinstance(required, list | tuple) else []


def _apart(root: Any, one: Mapping[str, Any], other: Mapping[str, Any], name: str, depth: int) -> bool:
    """Whether a property that `one` requires tells its objects from those of `other`."""
    own, others = one.get("properties") or {}, other.get("properties") or {}
    if not isinstance(own, Mapping) or not isinstance(others, Mapping):
        return False
    if name not in others:
        return other.get("additionalProperties") is False and not other.get("patternProperties")
    return name in own and name in _names(other) and _disjoint(root, own[name], others[name], depth)

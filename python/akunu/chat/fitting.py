"""Check that arguments are what a tool's schema asks for, as far as their structure goes.

Formats, patterns and bounds are not looked at: a pattern is the client's and a text the model's, and
matching one against the other can take for ever. Structured output sees to them where they have to hold.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from akunu.chat.tools import NO_PARAMETERS, Schema, kind_of, named_schema

__all__ = ["fits"]

_MOST_STEPS: Final = 20_000
"""Parts of values and schemas that are looked at; references can make a schema endless."""


def fits(arguments: object, schema: Schema) -> bool:
    """Whether arguments have the types, properties and constants of a function's schema."""
    try:
        return isinstance(arguments, dict) and _Fitting(schema).fits(arguments, schema or NO_PARAMETERS)
    except RecursionError:
        return False


class _Fitting:
    """Compares values with parts of one schema; what takes too long does not fit."""

    def __init__(self, root: Schema) -> None:
        self._root = root
        self._left = _MOST_STEPS

    def fits(self, value: object, schema: object) -> bool:
        """Whether a value is what a part of the schema asks for."""
        self._left -= 1
        if not isinstance(schema, Mapping) or self._left < 0:
            return schema is not False and self._left >= 0
        ref = schema.get("$ref")
        if isinstance(ref, str) and not self.fits(value, named_schema(ref, self._root)):
            return False
        kinds = schema.get("type")
        kinds = [kinds] if isinstance(kinds, str) else kinds if isinstance(kinds, list) else []
        if kinds and not _is_of(value, kinds):
            return False
        for keyword, choices in (("const", [schema.get("const")]), ("enum", schema.get("enum"))):
            if keyword in schema and isinstance(choices, list) and value not in choices:
                return False
        for keyword, enough in (("allOf", all), ("anyOf", any), ("oneOf", any)):
            parts = schema.get(keyword)
            if isinstance(parts, list) and not enough(self.fits(value, part) for part in parts):
                return False
        if isinstance(value, dict):
            return self._members_fit(value, schema)
        items = schema.get("items", True)
        return not isinstance(value, list) or all(self.fits(each, items) for each in value)

    def _members_fit(self, value: dict[str, Any], schema: Schema) -> bool:
        properties = schema.get("properties")
        properties = properties if isinstance(properties, Mapping) else {}
        required = schema.get("required")
        if isinstance(required, list) and not all(name in value for name in required):
            return False
        others = True if schema.get("patternProperties") else schema.get("additionalProperties", True)
        return all(self.fits(each, properties.get(name, others)) for name, each in value.items())


def _is_of(value: object, kinds: list[Any]) -> bool:
    kind = kind_of(value)
    whole = isinstance(value, float) and value.is_integer() and "integer" in kinds
    return kind in kinds or whole or (kind == "integer" and "number" in kinds)

"""JSON schemas as llguidance takes them. It refuses by name what it cannot do, but for what is said here."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from akunu.base.errors import InvalidArgumentError

__all__ = ["JSON_STYLE", "schema_text"]

JSON_STYLE: Final = {"item_separator": ", ", "key_separator": ": ", "whitespace_flexible": False}
"""One line, as `json.dumps` writes it. Most of the tokens between values are then forced, which costs no step
each, and no model can fill its context with white space. A schema's own ``x-guidance`` goes first."""

_BY_NAME: Final = frozenset({"properties", "patternProperties", "$defs", "definitions"})
_NO_SCHEMAS: Final = frozenset({"const", "enum", "default", "examples"})

_FOURTHS: Final = "(?:0[48]|[2468][048]|[13579][26])"
_DATE: Final = (
    "(?:(?:[1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])"
    "|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))"
    f"|(?:[0-9]{{2}}{_FOURTHS}|{_FOURTHS}00)-02-29)"
)
_TIME: Final = (
    r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,9})?(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
)
_FORMATS: Final[Mapping[str, str]] = {
    "date": f"^{_DATE}$",
    "time": f"^{_TIME}$",
    "date-time": f"^{_DATE}T{_TIME}$",
}
"""Those of which llguidance's own are wider than what exists: 2023-02-29, 12:00:60. RFC 3339, in capitals."""


def schema_text(schema: Mapping[str, Any], name: str = "schema") -> str:
    """A schema for llguidance; errors about it begin with `name`.

    Raises
    ------
    InvalidArgumentError
        `minProperties` asks for two or more properties without a name: a grammar of them does not know which
        names it has seen, and a name that comes twice counts once. Or both of two drafts' words are there for
        the first items of an array, of which one would be ignored.
    """
    return json.dumps({"x-guidance": JSON_STYLE, **_understood(schema, name)}, ensure_ascii=False)


def _understood(value: Any, name: str) -> Any:
    """A schema, or what may have some in it, in words that llguidance does not misunderstand."""
    if isinstance(value, list | tuple):
        return [_understood(part, name) for part in value]
    if not isinstance(value, Mapping):
        return value
    _check(value, name)
    schema = {}
    for key, part in value.items():
        if _says_nothing(key, value):
            continue
        if key in _NO_SCHEMAS:
            schema[key] = part
        elif key in _BY_NAME and isinstance(part, Mapping):
            schema[key] = {each: _understood(named, name) for each, named in part.items()}
        else:
            schema[key] = _understood(part, name)
    kind = schema.get("format")
    if isinstance(kind, str) and kind in _FORMATS:
        del schema["format"]
        pattern = {"pattern": _FORMATS[kind]}
        if "pattern" in schema:
            schema["allOf"] = [*schema.get("allOf", ()), pattern]
        else:
            schema |= pattern
    return schema


def _says_nothing(key: str, schema: Mapping[str, Any]) -> bool:
    """Whether a keyword changes nothing where it stands, and llguidance refuses it or takes it for another.

    `additionalItems` belongs to a list of `items`; beside anything else it makes `prefixItems` be ignored.
    """
    if key == "uniqueItems":
        return schema[key] is False
    return key == "additionalItems" and not isinstance(schema.get("items"), list | tuple)


def _check(schema: Mapping[str, Any], name: str) -> None:
    least, required = schema.get("minProperties"), schema.get("required", ())
    if isinstance(least, int) and isinstance(required, list | tuple) and least > len(set(required)) + 1:
        raise InvalidArgumentError(
            f"{name}: minProperties is {least}, and required names {len(set(required))}; one more can "
            "be asked for. Name them, or use an array of pairs"
        )
    if "prefixItems" in schema and isinstance(schema.get("items"), list | tuple):
        raise InvalidArgumentError(
            f"{name}: items is a list beside prefixItems, which has taken its place; give one of them"
        )

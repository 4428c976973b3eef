"""JSON schemas as llguidance takes them. It refuses by name what it cannot do, but for what is said here."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from akunu.base.errors import InvalidArgumentError
from akunu.chat.structured.disjoint import differ
from akunu.chat.structured.exact_numbers import ExactNumbers, within_doubles
from akunu.chat.structured.names import can_be, some_name
from akunu.chat.structured.patterns import Patterns, llguidance_patterns

__all__ = ["JSON_STYLE", "schema_expression"]

JSON_STYLE: Final = {"item_separator": ", ", "key_separator": ": ", "whitespace_flexible": False}
"""One line, as `json.dumps` writes it. Most of the tokens between values are then forced, which costs no step
each, and no model can fill its context with white space. A schema's own ``x-guidance`` goes first."""

_ESCAPES: Final = 'nrbtf\\"'
"""The escapes that strings have. With ``\\u`` a property's name could be written so that llguidance does not
know it: ``"\\u0061"`` for ``a``, with a value that fits what other names have."""
_CONTROLS: Final = re.compile(r"\\u00(?:0[0-7bBeEfF]|1[0-9a-fA-F]|7[fF])|\x7f")

_DRAFT: Final = re.compile(r"https?://json-schema\.org/(?:draft-0[467]|draft/(?:2019-09|2020-12))/schema#?")
"""A dialect that is known. One that is not, such as `http://json-schema.org/schema#` ("the newest"), would
have to be fetched: the schema is read as if it did not say."""
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
"""Formats of which llguidance's own are wider than what exists: 2023-02-29, 12:00:60. RFC 3339, capitals."""
_KNOWN_FORMATS: Final = frozenset({"duration", "email", "hostname", "ipv4", "ipv6", "uuid", "uri"})
"""Formats that llguidance holds a string to. Any other is what JSON schema says: an annotation."""


def schema_expression(schema: Mapping[str, Any] | bool, name: str = "schema") -> str:
    """A schema as an expression of Lark; errors about it begin with `name`.

    Raises
    ------
    InvalidArgumentError
        `minProperties` asks for two or more properties without a name: a grammar of them does not know which
        names it has seen, and a name that comes twice counts once. Or both of two drafts' words are there for
        the first items of an array, of which one would be ignored.
    """
    if isinstance(schema, bool):
        schema = {} if schema else {"not": {}}
    understood = _understood(schema, name, schema)
    style = {**JSON_STYLE, **_own_style(understood, name)}
    if "json_allowed_escapes" not in style and not _CONTROLS.search(json.dumps(understood)):
        style["json_allowed_escapes"] = _ESCAPES
    exact = ExactNumbers(understood, style, name)
    if exact.needed and not style["whitespace_flexible"]:
        return exact.expression()
    return "%json " + json.dumps(
        within_doubles({**understood, "x-guidance": style}, name), ensure_ascii=False
    )


def _own_style(schema: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    style = schema.get("x-guidance", {})
    if not isinstance(style, Mapping):
        raise InvalidArgumentError(f"{name}: x-guidance: expected an object, got {style!r}")
    # What llguidance takes for granted where a style is given.
    return (
        {"item_separator": ",", "key_separator": ":", "whitespace_flexible": True, **style} if style else {}
    )


def _understood(value: Any, name: str, root: Any) -> Any:
    """A schema, or what may have some in it, in words that llguidance does not misunderstand."""
    if isinstance(value, str | int):  # most are
        return value
    if isinstance(value, list | tuple):
        return [_understood(part, name, root) for part in value]
    if not isinstance(value, Mapping):
        return value
    _check(value, name)
    schema: dict[str, Any] = {}
    for key, part in value.items():
        if _says_nothing(key, value) or (key == "$schema" and not _DRAFT.fullmatch(str(part))):
            continue
        if key in _NO_SCHEMAS or key == "x-guidance":
            schema[key] = part
        elif key in _BY_NAME and isinstance(part, Mapping):
            schema[key] = {each: _understood(named, name, root) for each, named in part.items()}
        else:
            schema[key] = _understood(part, name, root)
    if differ(root, schema.get("oneOf")):
        choices = schema.pop("oneOf")
        if "anyOf" in schema:
            schema["allOf"] = [*schema.get("allOf", ()), {"anyOf": choices}]
        else:
            schema["anyOf"] = choices
    patterns: list[str] = []
    excluded: tuple[str, ...] = ()
    if isinstance(schema.get("pattern"), str):
        found = _patterns(schema.pop("pattern"), name)
        patterns, excluded = [*found.every], found.none
    kind = schema.get("format")
    if isinstance(kind, str) and kind not in _KNOWN_FORMATS:
        del schema["format"]
        patterns += [_FORMATS[kind]] if kind in _FORMATS else []
    if excluded:
        schema["pattern"] = {"every": patterns, "none": [*excluded]}
        patterns = []
    if patterns:
        schema["pattern"] = patterns.pop(0)
    if patterns:
        schema["allOf"] = [*schema.get("allOf", ()), *({"pattern": pattern} for pattern in patterns)]
    if isinstance(schema.get("patternProperties"), Mapping):
        _name_properties(schema, name)
    return schema


def _patterns(pattern: str, name: str) -> Patterns:
    try:
        return llguidance_patterns(pattern)
    except ValueError as error:
        raise InvalidArgumentError(f"{name}: the pattern {pattern!r}: {error}") from error


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


def _name_properties(schema: dict[str, Any], name: str) -> None:
    """Take away patterns, and `additionalProperties`, that no name is left for.

    After a comma llguidance expects one of their names even so, and no text can go on.
    """
    given: Mapping[str, Any] = schema["patternProperties"]
    patterns: dict[str, Any] = {}
    for pattern, part in given.items():
        found = _patterns(pattern, name)
        patterns[pattern if len(found.every) > 1 or found.none else found.every[0]] = part
    properties = dict(schema.get("properties") or {})
    required = schema.get("required") or ()
    names = list(dict.fromkeys([*properties, *required])) if isinstance(required, list | tuple) else []
    for pattern, part in list(patterns.items()):
        if some_name(names, [pattern], others=False):
            continue
        for each in names:
            if can_be(pattern, each):
                parts = [
                    p for p in (properties.get(each), part) if p is not None and p != {} and p is not True
                ]
                properties[each] = {} if not parts else parts[0] if len(parts) == 1 else {"allOf": parts}
        del patterns[pattern]
    if schema.get("additionalProperties") is not False and not some_name(names, patterns, others=True):
        schema["additionalProperties"] = False
    if properties:
        schema["properties"] = properties
    schema["patternProperties"] = patterns
    if not patterns:
        del schema["patternProperties"]


def _both(first: Any, second: Any) -> Any:
    if first is True or first == {}:
        return second
    return first if second is True or second == {} else {"allOf": [first, second]}

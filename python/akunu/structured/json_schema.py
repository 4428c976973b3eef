"""JSON schemas as llguidance takes them. It refuses by name what it cannot do, but for what is said here."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from akunu.errors import InvalidArgumentError

__all__ = ["JSON_STYLE", "schema_text"]

JSON_STYLE: Final = {"item_separator": ", ", "key_separator": ": ", "whitespace_flexible": False}
"""One line, as `json.dumps` writes it. Most of the tokens between values are then forced, which costs no step
each, and no model can fill its context with white space. A schema's own ``x-guidance`` goes first."""

_BY_NAME: Final = frozenset({"properties", "patternProperties", "$defs", "definitions"})
_NO_SCHEMAS: Final = frozenset({"const", "enum", "default", "examples"})


def schema_text(schema: Mapping[str, Any], name: str = "schema") -> str:
    """A schema for llguidance; errors about it begin with `name`.

    Raises
    ------
    InvalidArgumentError
        `minProperties` asks for two or more properties without a name: a grammar of them does not know which
        names it has seen, and a name that comes twice counts once.
    """
    for part in _schemas(schema):
        least, required = part.get("minProperties"), part.get("required", ())
        if isinstance(least, int) and isinstance(required, list | tuple) and least > len(set(required)) + 1:
            raise InvalidArgumentError(
                f"{name}: minProperties is {least}, and required names {len(set(required))}; one more can "
                "be asked for. Name them, or use an array of pairs"
            )
    return json.dumps({"x-guidance": JSON_STYLE, **schema}, ensure_ascii=False)


def _schemas(value: object) -> Iterator[Mapping[str, Any]]:
    """A schema and those in it."""
    if isinstance(value, Mapping):
        yield value
        for key, part in value.items():
            if key in _BY_NAME and isinstance(part, Mapping):
                for named in part.values():
                    yield from _schemas(named)
            elif key not in _NO_SCHEMAS:
                yield from _schemas(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _schemas(part)

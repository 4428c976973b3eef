"""The functions that an answer may call: their names, and the schemas of their arguments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

__all__ = ["NO_PARAMETERS", "Schema", "Tools", "inner_schema", "kind_of", "named_schema", "schema_kinds"]

Schema = Mapping[str, Any]

NO_PARAMETERS: Final[Schema] = {"type": "object", "properties": {}, "additionalProperties": False}
"""The parameters of a function that has no `parameters`: none, as in OpenAI's API."""


class Tools(Mapping[str, Schema]):
    """Schemas of arguments by the function's name; {} for one that has none.

    Parameters
    ----------
    tools
        Definitions as in OpenAI's API, or what is under `function` there.
    """

    def __init__(self, tools: Sequence[Mapping[str, Any]] | None = None) -> None:
        given = [tool.get("function", tool) for tool in tools or ()]
        functions = {
            str(each["name"]): each for each in given if isinstance(each, Mapping) and "name" in each
        }
        self._schemas = {name: _mapping(each.get("parameters")) for name, each in functions.items()}
        self.strict = frozenset(name for name, each in functions.items() if each.get("strict") is True)
        """Functions whose arguments have to fit their schema."""

    def __getitem__(self, name: str) -> Schema:
        return self._schemas[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._schemas)

    def __len__(self) -> int:
        return len(self._schemas)

    def parameter(self, function: str, name: str) -> Schema:
        """The schema of one parameter; {} where nothing is known of it."""
        return _mapping(_mapping(self.get(function, {}).get("properties")).get(name))

    def kinds(self, function: str, name: str) -> set[str]:
        """The types that the schema of a parameter names; empty where it does not say."""
        return schema_kinds(self.parameter(function, name), self.get(function, {}))


def kind_of(value: object) -> str:
    """JSON schema's type of a value; of a whole number, "integer"."""
    return next((name for kind, name in _KINDS if isinstance(value, kind)), "null")


_KINDS: Final = (
    (dict, "object"), (list, "array"), (str, "string"), (bool, "boolean"), (int, "integer"),
    (float, "number"),
)  # fmt: skip


def schema_kinds(schema: Schema, root: Schema) -> set[str]:
    """The types that a schema within `root` names; empty where it does not say."""
    return _kinds(schema, root, set())


def inner_schema(schema: Schema, root: Schema, name: str | None) -> Schema:
    """The schema of an object's property, or, without a name, of an array's items; {}: it is not known."""
    parts = [schema, *(part for key in ("anyOf", "oneOf") for part in _list(schema.get(key)))]
    for part in map(_mapping, parts):
        if isinstance(part.get("$ref"), str):
            part = named_schema(part["$ref"], root)
        found = part.get("items") if name is None else _mapping(part.get("properties")).get(name)
        if isinstance(found, Mapping):
            return named_schema(found["$ref"], root) if isinstance(found.get("$ref"), str) else found
    return {}


def _kinds(schema: Schema, root: Schema, seen: set[str]) -> set[str]:
    """The types of a schema in `root`; `seen`: the references that were followed."""
    named = schema.get("type")
    kinds = {each for each in (named if isinstance(named, list) else [named]) if isinstance(each, str)}
    if not kinds:
        constants = [schema["const"]] if "const" in schema else schema.get("enum")
        kinds = {kind_of(value) for value in constants} if isinstance(constants, list) else set()
        for keyword in ("anyOf", "oneOf", "allOf"):
            parts = schema.get(keyword)
            for part in parts if isinstance(parts, list) else ():
                kinds |= _kinds(_mapping(part), root, seen)
        ref = schema.get("$ref")
        if isinstance(ref, str) and ref not in seen:
            seen.add(ref)
            kinds |= _kinds(named_schema(ref, root), root, seen)
    return kinds | {"integer"} if "number" in kinds else kinds


def named_schema(ref: str, root: Schema) -> Schema:
    """Return what a reference within a schema names; {} where that is not known."""
    found = root
    for part in ref.removeprefix("#").strip("/").split("/"):
        found = _mapping(found.get(part))
    return found


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}

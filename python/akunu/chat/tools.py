"""The functions that an answer may call: their names, and the schemas of their arguments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

__all__ = ["NO_PARAMETERS", "Tools"]

Schema = Mapping[str, Any]

NO_PARAMETERS: Final[Schema] = {"type": "object", "properties": {}, "additionalProperties": False}
"""What a function without `parameters` takes, as in OpenAI's API: nothing."""


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


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}

"""The functions that an answer may call: their names, and the schemas of their arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["Tools"]

Schema = Mapping[str, Any]


class Tools(Mapping[str, Schema]):
    """Schemas of arguments by the function's name; {} for one that has none.

    Parameters
    ----------
    tools
        Definitions as in OpenAI's API, or what is under `function` there.
    """

    def __init__(self, tools: Sequence[Mapping[str, Any]] | None = None) -> None:
        functions = [tool.get("function", tool) for tool in tools or ()]
        self._schemas: dict[str, Schema] = {
            str(function.get("name", "")): function.get("parameters") or {} for function in functions
        }
        self.strict = frozenset(str(f["name"]) for f in functions if f.get("strict") is True and "name" in f)
        """Functions whose arguments have to fit their schema."""

    def __getitem__(self, name: str) -> Schema:
        return self._schemas[name]

    def __iter__(self) -> Any:
        return iter(self._schemas)

    def __len__(self) -> int:
        return len(self._schemas)

    def parameter(self, function: str, name: str) -> Schema:
        """The schema of one parameter; {} where nothing is known of it."""
        properties = self._schemas.get(function, {}).get("properties")
        found = properties.get(name) if isinstance(properties, Mapping) else None
        return found if isinstance(found, Mapping) else {}

"""The tools that a client declares, whichever API it came by."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec

from akunu.server.errors import ApiError
from akunu.server.fields import Fields, refuse_others, without_nulls

__all__ = ["checked_tool", "client_tools"]

F = TypeVar("F", bound=Fields)


def checked_tool(tool: dict[str, Any], kind: type[F], at: str) -> F:
    """A tool as what its API has; one that is not is refused."""
    try:
        checked = _converted(tool, kind)
    except msgspec.ValidationError as error:
        raise ApiError(400, f"{at}: {error}".replace("`", ""), param=at, code="invalid_type") from error
    refuse_others(checked, f"{at}.")
    return checked


def _given(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _converted(tool: dict[str, Any], kind: type[F]) -> F:
    try:
        return msgspec.convert(tool, kind)
    except msgspec.ValidationError as error:
        try:
            return without_nulls(tool, kind, error)
        except ApiError:
            raise error from None


def client_tools(
    tools: Sequence[dict[str, Any]] | None,
    own: str,
    kind: type[F],
    function: Callable[[F], dict[str, Any]],
    others: Callable[[dict[str, Any], str], dict[str, Any] | None] = lambda tool, at: None,
) -> tuple[list[dict[str, Any]], list[str]]:
    """The client's own tools in the form that templates know, and warnings of those that were left out.

    Tools of other types are a provider's (a web search that runs there). Clients declare them beside their
    own without a way not to; alone they are refused.

    Parameters
    ----------
    tools
        As they came.
    own
        The type of the client's tools; one without a type is of it too, if `kind` lets it.
    kind
        What a tool of this API has.
    function
        Name, description and parameters of a tool.
    others
        The same of a tool of another type that the client runs too; None for one that it does not.
    """
    kept: list[dict[str, Any]] = []
    warnings = []
    for n, tool in enumerate(tools or ()):
        found = tool.get("type")
        if isinstance(found, str) and found != own:
            if (known := others(tool, f"tools[{n}]")) is not None:
                kept.append({"type": "function", "function": _given(known)})
                continue
            warnings.append(f"tools[{n}]: the type {found!r} is not supported; it was left out")
            continue
        checked = checked_tool(tool, kind, f"tools[{n}]")
        kept.append({"type": "function", "function": _given(function(checked))})
    if warnings and not kept:
        message = warnings[0].replace("it was left out", f"the type {own!r} is")
        raise ApiError(400, message, param="tools[0]", code="unsupported_value")
    return kept, warnings

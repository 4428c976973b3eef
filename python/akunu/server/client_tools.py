"""The tools that a client declares, whichever API it came by."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec

from akunu.server.errors import ApiError
from akunu.server.fields import Fields, refuse_others, without_nulls

__all__ = ["client_tools"]

F = TypeVar("F", bound=Fields)


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
    """
    kept: list[dict[str, Any]] = []
    warnings = []
    for n, tool in enumerate(tools or ()):
        found = tool.get("type")
        if isinstance(found, str) and found != own:
            warnings.append(f"tools[{n}]: the type {found!r} is not supported; it was left out")
            continue
        try:
            checked = _converted(tool, kind)
        except msgspec.ValidationError as error:
            message = f"tools[{n}]: {error}".replace("`", "")
            raise ApiError(400, message, param=f"tools[{n}]", code="invalid_type") from error
        refuse_others(checked, f"tools[{n}].")
        fields = {name: value for name, value in function(checked).items() if value is not None}
        kept.append({"type": "function", "function": fields})
    if warnings and not kept:
        message = warnings[0].replace("it was left out", f"the type {own!r} is")
        raise ApiError(400, message, param="tools[0]", code="unsupported_value")
    return kept, warnings

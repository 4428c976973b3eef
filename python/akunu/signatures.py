"""Functions that share their keyword arguments show them: in `help`, `inspect.signature` and type hints."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any, TypeVar, get_type_hints

from akunu.options import GenerationOptions

__all__ = ["spelled_out"]

F = TypeVar("F", bound=Callable[..., Any])

_PLACE = re.compile(r"^( *)\*\*options\n(?:\1 +.*\n)+", re.MULTILINE)
_FIELDS = (inspect.getdoc(GenerationOptions) or "").partition("Attributes\n----------\n")[2]


def spelled_out(function: F) -> F:
    """Put the fields of `GenerationOptions` where a function's signature and docstring have `**options`.

    The function itself is not changed: it takes these arguments and no others, since `resolve` refuses them.
    """
    signature = inspect.signature(function)
    fields = get_type_hints(GenerationOptions)
    given = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    options = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
        for name, kind in fields.items()
    ]
    function.__signature__ = signature.replace(parameters=given + options)  # type: ignore[attr-defined]
    returned = function.__annotations__.pop("return")
    del function.__annotations__["options"]
    function.__annotations__.update(fields, **{"return": returned})
    function.__doc__ = _PLACE.sub(_indented, function.__doc__ or "")
    return function


def _indented(place: re.Match[str]) -> str:
    return "".join(f"{place[1]}{line}\n" if line else "\n" for line in _FIELDS.rstrip().splitlines())

"""Functions that share their keyword arguments show them: in `help`, `inspect.signature` and type hints."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from textwrap import indent
from typing import Any, TypeVar, get_type_hints, is_typeddict

from akunu.api.options import GenerationOptions

__all__ = ["spelled_out"]

F = TypeVar("F", bound=Callable[..., Any])

_PLACE = re.compile(r"^( *)\*\*options\n(?:\1 +.*\n)+", re.MULTILINE)


def spelled_out(function: F, options: Sequence[Any] = (GenerationOptions,)) -> F:
    """Put the fields of `options` where a function's signature and docstring have `**options`.

    The function itself is not changed: it takes these arguments and no others, since `resolve` refuses them.

    Parameters
    ----------
    options
        A class of keyword arguments, and those that it extends; or one of fields, which have defaults.
    """
    signature = inspect.signature(function)
    hints = get_type_hints(options[0])
    defaults: dict[str, Any] = {}
    if not is_typeddict(options[0]):
        own = inspect.signature(options[0]).parameters.values()
        defaults = {parameter.name: parameter.default for parameter in own}
        hints = {name: hints[name] for name in defaults}
    # Each class's own fields, in the order of the classes; a class has those that it extends as well.
    extended = [name for kind in options[1:] for name in kind.__annotations__]
    names = [*(name for name in hints if name not in extended), *extended]
    documented = "".join(map(_documented, options))
    given = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    spelled = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=defaults.get(name), annotation=hints[name]
        )
        for name in names
    ]
    function.__signature__ = signature.replace(parameters=given + spelled)  # type: ignore[attr-defined]
    returned = function.__annotations__.pop("return")
    del function.__annotations__["options"]
    function.__annotations__.update(hints, **{"return": returned})
    function.__doc__ = _PLACE.sub(lambda place: indent(documented, place[1]), function.__doc__ or "")
    return function


def _documented(options: Any) -> str:
    return (inspect.getdoc(options) or "").partition("Attributes\n----------\n")[2].rstrip() + "\n"

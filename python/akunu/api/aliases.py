"""Arguments of a generation by the names that other programs give them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from akunu.base.errors import InvalidArgumentError

__all__ = ["ALIASES", "translated"]


def _response_format(value: Any) -> dict[str, Any]:
    """Read OpenAI's `response_format`, and the one of llama-cpp-python with a `schema` beside its type."""
    kind = value.get("type") if isinstance(value, Mapping) else None
    if kind == "text":
        return {}
    if kind == "json_object":
        return {"json": True} if value.get("schema") is None else {"schema": value["schema"]}
    if kind == "json_schema":
        inner = value.get("json_schema", value)
        if isinstance(inner, Mapping) and inner.get("schema") is not None:
            return {"schema": inner["schema"]}
        raise InvalidArgumentError("response_format: expected a schema under json_schema.schema, found none")
    raise InvalidArgumentError(
        f"response_format: found {value!r:.80}, expected a mapping of type text, json_object or json_schema"
    )


ALIASES: Final[Mapping[str, Callable[[Any], dict[str, Any]]]] = {
    "repetition_penalty": lambda value: {"repeat_penalty": value, "penalty_window": -1},
    "max_new_tokens": lambda value: {"max_tokens": value},
    "response_format": _response_format,
    "chat_template_kwargs": lambda value: {"template_variables": value},
}
"""Our arguments for one of Transformers', vLLM's or OpenAI's.

`repetition_penalty` counts the whole sequence there, so the window is all of it.
"""


def translated(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options by our own names.

    Raises
    ------
    InvalidArgumentError
        An argument is given by both names, or `response_format` is none.
    """
    own = {name: value for name, value in options.items() if name not in ALIASES}
    for name in ALIASES.keys() & options.keys():
        if options[name] is None:
            continue
        for meant, value in ALIASES[name](options[name]).items():
            if own.get(meant) is None:
                own[meant] = value
            elif meant != "penalty_window":
                raise InvalidArgumentError(f"{name}: is another name of {meant}; give one of them")
    return own

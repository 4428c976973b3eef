"""Whether and how much a model thinks, by the variables that templates have for it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from akunu.errors import InvalidArgumentError

__all__ = ["SWITCHES", "thinking_variables"]

SWITCHES: Final = ("enable_thinking", "thinking")
"""Variables that let a model think or not (Qwen 3, SmolLM 3, Gemma 4; DeepSeek, Granite)."""

_EFFORT: Final = "reasoning_effort"


def thinking_variables(sources: Iterable[str], thinking: bool | None, effort: str | None) -> dict[str, Any]:
    """The template's variables for what is wanted.

    Parameters
    ----------
    sources
        The templates.
    thinking, effort
        As in `ChatOptions`.

    Raises
    ------
    InvalidArgumentError
        The template has no variable for it, or the two contradict each other.
    """
    if thinking is None and effort is None:
        return {}
    sources = list(sources)
    if effort is not None and not isinstance(effort, str):
        raise InvalidArgumentError(f"reasoning_effort: expected a word such as 'low', got {effort!r}")
    if effort == "none":
        if thinking:
            raise InvalidArgumentError("reasoning_effort: 'none' contradicts thinking=True; give one of them")
        thinking, effort = False, None
    variables: dict[str, Any] = {}
    found = [name for name in SWITCHES if _mentions(sources, name)]
    if effort is not None:
        if _mentions(sources, _EFFORT):
            variables[_EFFORT] = effort
        elif found and thinking is not False:
            thinking = True
        else:
            raise InvalidArgumentError(
                "reasoning_effort: the model's chat template has neither a variable for it nor a switch"
            )
    if thinking is not None:
        if not found:
            raise InvalidArgumentError(
                "thinking: the model's chat template has no switch for thinking "
                f"(no variable {' or '.join(SWITCHES)})"
            )
        variables |= dict.fromkeys(found, bool(thinking))
    return variables


def _mentions(sources: Iterable[str], name: str) -> bool:
    """Whether a template uses a variable, in an expression and not in a text."""
    from jinja2 import Environment, TemplateSyntaxError

    for source in sources:
        if not re.search(rf"\b{name}\b", source):
            continue
        try:
            if any(kind == "name" and text == name for _, kind, text in Environment().lex(source)):
                return True
        except TemplateSyntaxError:  # it uses an extension's syntax; the word alone must do
            return True
    return False

"""Variables by which templates say whether and how much a model thinks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from akunu.base.errors import InvalidArgumentError

__all__ = ["EFFORTS", "SWITCHES", "effort_budget", "switches", "thinking_variables"]

SWITCHES: Final = ("enable_thinking", "thinking")
"""Variables that let a model think or not (Qwen 3, SmolLM 3, Gemma 4; DeepSeek, Granite)."""

EFFORTS: Final[Mapping[str, int]] = {"minimal": 512, "low": 1024, "medium": 4096}
"""Tokens of reasoning for a word that the template does not know; for others, as many as the model likes."""

_WORDS: Final = (*EFFORTS, "high", "xhigh", "max")
"""Efforts in OpenAI's and Anthropic's APIs; a template that has the variable may know others."""

_EFFORT: Final = "reasoning_effort"


def switches(sources: Iterable[str]) -> list[str]:
    """Return the `SWITCHES` that templates have."""
    sources = list(sources)
    return [name for name in SWITCHES if _mentions(sources, name)]


def effort_budget(sources: Iterable[str], effort: str | None) -> int | None:
    """The tokens of reasoning that an effort stands for; None: no limit, or the template sees to it."""
    return None if effort is None or _mentions(sources, _EFFORT) else EFFORTS.get(effort)


def thinking_variables(
    sources: Iterable[str], thinking: bool | None, effort: str | None, reasons: bool = False
) -> dict[str, Any]:
    """The template's variables for what is wanted.

    Parameters
    ----------
    sources
        The templates.
    thinking, effort
        As in `ChatOptions`.
    reasons
        The model thinks without being told to.

    Raises
    ------
    InvalidArgumentError
        The template has no variable for it, the two contradict each other, or there is no such effort.
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
    found = switches(sources)
    if effort is not None:
        if _mentions(sources, _EFFORT):
            variables[_EFFORT] = effort
        elif effort not in _WORDS:
            raise InvalidArgumentError(
                f"reasoning_effort: found {effort!r}, expected none, {', '.join(_WORDS)}"
            )
        elif found and thinking is not False:
            thinking = True
        elif not reasons:
            raise InvalidArgumentError(
                "reasoning_effort: the model's chat template has no variable for it, and no reasoning"
            )
    if thinking is not None:
        if not found and not (thinking and reasons):
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

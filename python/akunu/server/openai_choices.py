"""Choices of calls and of thinking, by OpenAI's names and those of other servers of its API."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from akunu.server.errors import ApiError
from akunu.server.fields import Fields
from akunu.server.sampling_fields import SamplingFields

__all__ = ["AnyChoice", "ThinkingFields", "chosen", "thinking_options"]

# -- Calls. --------------------------------------------------------------------------------------------------


class ChosenFunction(Fields):
    """A function by its name."""

    name: str


class ToolChoice(Fields, tag_field="type", tag="function"):
    """The function that has to be called; its name also without the object around it, as in responses."""

    function: ChosenFunction | None = None
    name: str | None = None

    @property
    def called(self) -> str:
        """The function's name."""
        if self.function is not None:
            return self.function.name
        if self.name is None:
            raise ApiError(
                400, "tool_choice.function: it is missing", param="tool_choice.function",
                code="missing_field",
            )  # fmt: skip
        return self.name


class _NamedTool(Fields, tag_field="type", tag="tool"):
    """Anthropic's way to name the function."""

    name: str


class _AutoWord(Fields, tag_field="type", tag="auto"):
    """The word "auto" as an object."""

    word = "auto"


class _NoWord(Fields, tag_field="type", tag="none"):
    """The word "none" as an object."""

    word = "none"


class _RequiredWord(Fields, tag_field="type", tag="required"):
    """The word "required" as an object."""

    word = "required"


class _AnyWord(Fields, tag_field="type", tag="any"):
    """Anthropic's and Mistral's word for "required", as an object."""

    word = "required"


_Word = _AutoWord | _NoWord | _RequiredWord | _AnyWord


class AllowedFunctions(Fields):
    """The functions that may be called, and whether one has to be."""

    mode: Literal["auto", "required"]
    tools: list[ToolChoice]


class AllowedTools(Fields, tag_field="type", tag="allowed_tools"):
    """The tools that a request allows, as if there were no others."""

    allowed_tools: AllowedFunctions


AnyChoice = Literal["none", "auto", "required", "any"] | ToolChoice | _NamedTool | AllowedTools | _Word
"""The choice whether tools are called, and which."""


def chosen(choice: AnyChoice | None) -> tuple[str | None, list[str] | None]:
    """A choice as a chat takes it, and the names of the tools that are allowed; None: all."""
    allowed = None
    if isinstance(choice, AllowedTools):
        allowed = [each.called for each in choice.allowed_tools.tools]
        return choice.allowed_tools.mode, allowed
    if isinstance(choice, ToolChoice):
        return choice.called, None
    if isinstance(choice, _NamedTool):
        return choice.name, None
    word = choice.word if isinstance(choice, _Word) else choice
    return "required" if word == "any" else word, None


# -- Thinking. -----------------------------------------------------------------------------------------------

_Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]


class ThinkingMode(Fields):
    """The switch of thinking, as DeepSeek, GLM and Kimi have it."""

    type: Literal["enabled", "disabled", "auto", "adaptive"]
    budget_tokens: int | None = None


class Reasoning(Fields):
    """The options of thinking, as OpenRouter has them."""

    accepted: ClassVar = {"exclude": (False,)}

    effort: _Effort | None = None
    max_tokens: int | None = None
    enabled: bool | None = None
    exclude: Any = None


class ThinkingFields(SamplingFields, kw_only=True):
    """OpenAI's effort, and what others say instead."""

    reasoning_effort: _Effort | Literal[""] | None = None
    enable_thinking: bool | None = None
    think: bool | Literal["low", "medium", "high"] | None = None
    thinking: ThinkingMode | None = None
    reasoning: Reasoning | None = None
    thinking_budget_tokens: int | None = None
    reasoning_budget_tokens: int | None = None
    """Llama-server's names of the same; -1 is no limit."""


def thinking_options(fields: ThinkingFields, budget: int | None) -> dict[str, Any]:
    """Return the options of thinking, by whichever name, as arguments of a chat.

    Raises
    ------
    ApiError
        400: names contradict each other.
    """
    mode, reasoning, think = fields.thinking, fields.reasoning or Reasoning(), fields.think
    switch = None if mode is None else {"enabled": True, "disabled": False}.get(mode.type)
    given: dict[str, list[Any]] = {
        "reasoning_effort": [
            fields.reasoning_effort,
            reasoning.effort,
            think if isinstance(think, str) else None,
        ],
        "thinking": [
            fields.enable_thinking,
            reasoning.enabled,
            think if isinstance(think, bool) else None,
            switch,
        ],
        "thinking_budget": [
            budget,
            reasoning.max_tokens,
            mode.budget_tokens if mode else None,
            *(
                n if n != -1 else None
                for n in (fields.thinking_budget_tokens, fields.reasoning_budget_tokens)
            ),
        ],
    }
    found = {}
    for name, values in given.items():
        said = {value for value in values if value not in (None, "")}
        if len(said) > 1:
            both = " and ".join(map(str, said))
            raise ApiError(
                400, f"{name}: found {both} by different names; give one", param=name, code="invalid_value"
            )
        found[name] = next(iter(said), None)
    return found

"""Families of models: how each marks the parts of an answer."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from akunu.chat.calls import (
    CallFormat,
)
from akunu.chat.incoming import Steps
from akunu.chat.layouts import Answer, in_order
from akunu.chat.structured.tags import StructuralTag
from akunu.chat.tools import NO_PARAMETERS, Tools

if TYPE_CHECKING:
    from akunu.chat.structured.thinking import ThinkingBudget

__all__ = ["Family"]


def _openai_id() -> str:
    return "call_" + secrets.token_hex(12)


@dataclass(frozen=True, kw_only=True)
class Family:
    """The way in which models of one family write an answer.

    Attributes
    ----------
    name : str
        Its name.
    signs : tuple of str
        Texts of which a template of the family has at least one.
    call_format : CallFormat
        How calls of tools are written.
    reasoning : tuple of (str, str)
        What reasoning begins and ends with.
    closing : str
        What ends reasoning that has to end, and begins the content; empty: the mark, on a line of its own.
    opening : str
        What content begins with, where it is not simply written.
    around : tuple of str
        What stands around the content, and is none of it.
    tokens : tuple of str
        Control tokens among the marks, which have to be visible in the text that is parsed.
    layout : callable
        What an answer consists of, in which order.
    call_id : callable
        Makes the id of a call.
    """

    name: str
    signs: tuple[str, ...] = ()
    call_format: CallFormat
    reasoning: tuple[str, str] = ("<think>", "</think>")
    closing: str = ""
    opening: str = ""
    around: tuple[str, ...] = ()
    tokens: tuple[str, ...] = ()
    layout: Callable[[Answer], Steps[None]] = in_order
    call_id: Callable[[], str] = _openai_id

    def opens_reasoning(self, prompt: str, begun: str | None = None) -> bool:
        """Whether a prompt ends within the reasoning, which the answer then goes on with.

        `begun` is what the answer begins with in the prompt, if it does: it may open the reasoning itself.
        """
        begin, end = self.reasoning
        _, mark, rest = prompt.rpartition(begin)
        rest = rest.strip()
        return bool(mark) and (
            not rest or (begun is not None and begun.strip().endswith(rest) and end not in rest)
        )

    def thinking_budget(self, tokens: int, opened: bool) -> ThinkingBudget:
        """Reasoning of so many tokens at most; `opened`: the prompt ends within it."""
        from akunu.chat.structured.thinking import ThinkingBudget

        begin, end = self.reasoning
        return ThinkingBudget(tokens, begin, end, self.closing or f"\n{end}\n\n", opened)

    def tool_tag(
        self, tools: Sequence[Mapping[str, Any]], choice: str = "auto", parallel: bool = True
    ) -> StructuralTag | None:
        """Return the constraint by which an answer's calls are as asked; None where nothing is asked.

        Parameters
        ----------
        tools
            Functions that the answer may call.
        choice
            "auto": calls, if there are some, fit the schemas of the tools that are `strict`; "required":
            there is one at least, and each fits its schema; or the name of the function that is called, once.
        parallel
            Whether more than one call may come.
        """
        known, form = Tools(tools), self.call_format
        required = choice != "auto"
        if not (required or known.strict or not parallel):
            return None
        names = [choice] if choice in known else list(known)
        tags = tuple(
            form.tag(
                name,
                (known[name] or NO_PARAMETERS) if required or name in known.strict else {},
                first=required,
            )
            for name in names
        )
        triggers = () if required else (form.trigger,)
        once = not parallel or choice not in ("auto", "required")
        return StructuralTag(tags, triggers, required=required, parallel=not once)

    @property
    def marks(self) -> frozenset[str]:
        """Texts that have to be visible in an answer even if they are control tokens."""
        return frozenset((*self.reasoning, *self.around, *self.tokens))

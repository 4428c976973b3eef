"""The families of models, by how they mark what an answer consists of: a row each.

Sources: the models' published chat templates and cards. A family is found from the template's text.
"""

from __future__ import annotations

import secrets
import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from akunu.chat.arguments import gemma_arguments, python_arguments, tagged_arguments
from akunu.chat.calls import (
    Form,
    bare_objects,
    gemma_call,
    mistral_call,
    objects,
    python_calls,
    tagged_call,
)
from akunu.chat.incoming import Steps
from akunu.chat.layouts import channels, in_order
from akunu.chat.parser import OutputParser
from akunu.chat.tools import NO_PARAMETERS, Tools
from akunu.errors import InvalidArgumentError
from akunu.structured.tags import StructuralTag

if TYPE_CHECKING:
    from akunu.structured.thinking import ThinkingBudget

__all__ = ["FAMILIES", "Family", "family_of"]


def _openai_id() -> str:
    return "call_" + secrets.token_hex(12)


def _mistral_id() -> str:
    """Nine letters and digits: Mistral's templates refuse any other."""
    return "".join(secrets.choice(string.ascii_letters + string.digits) for _ in range(9))


@dataclass(frozen=True, kw_only=True)
class Family:
    """How models of one family write an answer.

    Attributes
    ----------
    name : str
        Its name.
    signs : tuple of str
        Texts of which a template of the family has at least one.
    form : Form or None
        How calls of tools are written; None where there is no such thing.
    reasoning : tuple of (str, str)
        What reasoning begins and ends with.
    closing : str
        What ends reasoning that has to end, and begins the content; empty: the mark, on a line of its own.
    opening : str
        What content begins with, where it is not simply written.
    tokens : tuple of str
        Control tokens among the marks, which have to be visible in the text that is parsed.
    layout : callable
        What an answer consists of, in which order.
    call_id : callable
        Makes the id of a call.
    """

    name: str
    signs: tuple[str, ...] = ()
    form: Form | None = None
    reasoning: tuple[str, str] = ("<think>", "</think>")
    closing: str = ""
    opening: str = ""
    tokens: tuple[str, ...] = ()
    layout: Callable[[OutputParser], Steps[None]] = in_order
    call_id: Callable[[], str] = _openai_id

    def parser(
        self, tools: Sequence[Mapping[str, Any]] | None = None, thinking: bool = False, *, whole: bool = False
    ) -> OutputParser:
        """A parser for one answer.

        Parameters
        ----------
        tools
            Functions that the answer may call, as JSON schemas. Without any, what looks like a call is
            content.
        thinking
            Whether the prompt ends within the reasoning: see `opens_reasoning`.
        whole
            Give each call only when it is complete; one that is not is content.
        """
        return OutputParser(self, Tools(tools), thinking=thinking, whole=whole)

    def opens_reasoning(self, prompt: str) -> bool:
        """Whether a prompt ends within the reasoning, which the answer then goes on with."""
        return prompt.rstrip().endswith(self.reasoning[0])

    def thinking_budget(self, tokens: int, opened: bool) -> ThinkingBudget:
        """Reasoning of so many tokens at most; `opened`: the prompt ends within it."""
        from akunu.structured.thinking import ThinkingBudget

        begin, end = self.reasoning
        return ThinkingBudget(tokens, begin, end, self.closing or f"\n{end}\n\n", opened)

    def tool_tag(
        self, tools: Sequence[Mapping[str, Any]], choice: str = "auto", parallel: bool = True
    ) -> StructuralTag | None:
        """What an answer has to be like for its calls to be as asked; None where nothing has to.

        Parameters
        ----------
        tools
            Functions that the answer may call.
        choice
            "auto": calls, if there are some, fit the schemas of the tools that are `strict`; "required":
            there is one at least, and each fits its schema; or the name of the function that is called, once.
        parallel
            Whether more than one call may come.

        Raises
        ------
        InvalidArgumentError
            A call is asked for, and it is not known how models of this family write calls.
        """
        known, form = Tools(tools), self.form
        required = choice != "auto"
        if not (required or known.strict or not parallel):
            return None
        if form is None:
            raise InvalidArgumentError(
                "tool_choice: it is not known from the chat template how this model writes calls of tools; "
                "only 'auto' and 'none' can be chosen"
            )
        names = [choice] if choice in known else list(known)
        tags = tuple(
            form.tag(name, (known[name] or NO_PARAMETERS) if required or name in known.strict else {})
            for name in names
        )
        triggers = () if required else (form.trigger,)
        once = not parallel or choice not in ("auto", "required")
        return StructuralTag(tags, triggers, required=required, parallel=not once)

    @property
    def marks(self) -> frozenset[str]:
        """Texts that have to be visible in an answer even if they are control tokens."""
        return frozenset((*self.reasoning, *self.tokens))


_TOOL_CALL: Final = ("<tool_call>", "</tool_call>")

FAMILIES: Final = (
    Family(
        name="harmony",
        signs=("<|channel|>",),
        form=Form(
            read=objects,
            marks=(),
            pattern="<|channel|>commentary to=functions.{name} <|constrain|>json<|message|>{arguments}",
        ),
        tokens=(
            "<|start|>", "<|channel|>", "<|constrain|>", "<|message|>", "<|end|>", "<|call|>", "<|return|>",
        ),
        reasoning=("<|channel|>analysis<|message|>", "<|end|>"),
        closing="<|end|><|start|>assistant<|channel|>final<|message|>",
        opening="<|channel|>final<|message|>",
        layout=channels,
    ),
    Family(
        name="gemma 4",
        signs=("<|tool_call>", "<|channel>"),
        form=Form(
            read=gemma_call,
            marks=("<|tool_call>",),
            end="<tool_call|>",
            pattern="<|tool_call>call:{name}{arguments}<tool_call|>",
            arguments=gemma_arguments,
        ),
        reasoning=("<|channel>thought", "<channel|>"),
        closing="<channel|>",
        tokens=("<|channel>", "<|tool_call>", '<|"|>', "<tool_call|>"),
    ),
    Family(
        name="lfm 2",
        signs=("<|tool_call_start|>", "<|tool_list_start|>"),
        form=Form(
            read=python_calls,
            marks=("<|tool_call_start|>",),
            end="<|tool_call_end|>",
            pattern="<|tool_call_start|>[{name}({arguments})]<|tool_call_end|>",
            arguments=python_arguments,
        ),
        tokens=("<|tool_call_start|>", "<|tool_call_end|>"),
    ),
    Family(
        name="phi 4",
        signs=("<|/tool_call|>", "<|/tool|>"),
        form=Form(
            read=objects,
            marks=("<|tool_call|>", "functools"),
            end="<|/tool_call|>",
            pattern='<|tool_call|>{"name": "{name}", "arguments": {arguments}}<|/tool_call|>',
        ),
        tokens=("<|tool_call|>", "<|/tool_call|>"),
    ),
    Family(
        name="qwen coder",
        signs=("<function=",),
        form=Form(
            read=tagged_call,
            marks=("<tool_call>", "<function="),
            end="</tool_call>",
            pattern="<tool_call>\n<function={name}>\n{arguments}</function>\n</tool_call>",
            arguments=tagged_arguments,
        ),
        tokens=_TOOL_CALL,
    ),
    Family(
        name="hermes on one line",
        signs=('<tool_call>{"name"',),
        form=Form(
            read=objects,
            marks=("<tool_call>",),
            end="</tool_call>",
            pattern='<tool_call>{"name": "{name}", "arguments": {arguments}}</tool_call>',
        ),
        tokens=_TOOL_CALL,
    ),
    Family(
        name="hermes",
        signs=("<tool_call>",),
        form=Form(
            read=objects,
            marks=("<tool_call>",),
            end="</tool_call>",
            pattern='<tool_call>\n{"name": "{name}", "arguments": {arguments}}\n</tool_call>',
        ),
        tokens=_TOOL_CALL,
    ),
    Family(
        name="granite",
        signs=("<|start_of_role|>",),
        form=Form(
            read=objects,
            marks=("<|tool_call|>", "<tool_call>"),
            pattern='<|tool_call|>[{"name": "{name}", "arguments": {arguments}}]',
        ),
        tokens=("<|tool_call|>",),
    ),
    Family(
        name="mistral",
        signs=("[ARGS]",),
        form=Form(
            read=mistral_call, marks=("[TOOL_CALLS]",), pattern="[TOOL_CALLS]{name}[ARGS]{arguments}"
        ),
        reasoning=("[THINK]", "[/THINK]"),
        tokens=("[TOOL_CALLS]", "[CALL_ID]", "[ARGS]"),
        call_id=_mistral_id,
    ),
    Family(
        name="mistral with lists",
        signs=("[TOOL_CALLS]",),
        form=Form(
            read=mistral_call,
            marks=("[TOOL_CALLS]",),
            pattern='[TOOL_CALLS] [{"name": "{name}", "arguments": {arguments}}]',
        ),
        reasoning=("[THINK]", "[/THINK]"),
        tokens=("[TOOL_CALLS]", "[CALL_ID]", "[ARGS]"),
        call_id=_mistral_id,
    ),
    Family(
        name="llama 3",
        signs=("<|python_tag|>", "<|start_header_id|>"),
        form=Form(
            read=bare_objects,
            marks=("<|python_tag|>",),
            bare="{",
            pattern='{"name": "{name}", "parameters": {arguments}}',
        ),
        tokens=("<|python_tag|>",),
    ),
)  # fmt: skip
"""From the most particular sign to the most general."""

PLAIN: Final = Family(name="plain")
"""Any other: content, after reasoning if there is some."""


def family_of(source: str) -> Family:
    """The family of a chat template."""
    return next((family for family in FAMILIES if any(sign in source for sign in family.signs)), PLAIN)

"""How an answer is laid out: reasoning, content and calls in order, or messages on channels."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from akunu.chat.calls import named_call
from akunu.chat.deltas import Content, Reasoning
from akunu.chat.incoming import Malformed, Steps

if TYPE_CHECKING:
    from akunu.chat.parser import OutputParser

__all__ = ["channels", "in_order"]


def in_order(answer: OutputParser) -> Steps[None]:
    """Reasoning between its marks, then content, with calls in it."""
    source = answer.source
    begin, end = answer.family.reasoning
    thinking = answer.thinking
    while thinking or (yield from answer.next(begin)):
        thinking = False
        yield from source.space()
        yield from answer.text(Reasoning, (end,))
        yield from source.space()
    form = answer.family.form if answer.tools else None
    if form is None:
        yield from answer.text(Content, ())
        return
    if form.bare and (yield from answer.next(form.bare)):
        yield from answer.calls(form.bare, form.read(form, answer, form.bare))
    while mark := (yield from answer.text(Content, form.marks)):
        yield from answer.calls(mark, form.read(form, answer, mark))


_MESSAGE: Final = "<|message|>"
_HEADS: Final = ("<|start|>", "<|channel|>", "to=")
_ENDS: Final = ("<|end|>", "<|call|>", "<|return|>", "<|start|>", "<|channel|>")
_RECIPIENT: Final = re.compile(r"\bto=(?:functions\.)?([\w.:/-]+)")


def channels(answer: OutputParser) -> Steps[None]:
    """Messages with a header each, which names a channel and perhaps a function: Harmony, of gpt-oss."""
    source = answer.source
    given: set[type] = set()
    mark = ""
    while True:
        header = mark if mark in _HEADS else (yield from answer.next(*_HEADS))
        if header:
            try:
                header += yield from source.until(_MESSAGE)
            except Malformed:  # the answer was cut off in a header, which says nothing
                return
        recipient = _RECIPIENT.search(header)
        kind = Reasoning if "analysis" in header and not recipient else Content
        if recipient and answer.tools:
            yield from answer.calls("", named_call(answer, recipient[1]))
        elif kind in given and (yield from source.peek()):
            answer.give(kind("\n"))
        mark = yield from answer.text(kind, _ENDS)
        given.add(kind)
        if not mark:
            return

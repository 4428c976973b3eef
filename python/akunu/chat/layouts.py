"""Layouts of answers: reasoning, content and calls in order, or messages on channels."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, Protocol

from akunu.chat.calls import CallFormat, Calls, named_call
from akunu.chat.deltas import Content, Delta, Reasoning
from akunu.chat.incoming import Malformed, Steps
from akunu.chat.loose_calls import AFTER_TEXT, loose_calls

__all__ = ["Answer", "addressed", "channels", "in_order"]


class Marking(Protocol):
    """The marks of an answer's parts."""

    @property
    def call_format(self) -> CallFormat:
        """The format in which calls of tools are written."""

    @property
    def reasoning(self) -> tuple[str, str]:
        """The marks that reasoning begins and ends with."""

    @property
    def around(self) -> tuple[str, ...]:
        """The marks that stand around the content, and are none of it."""


class Answer(Calls, Protocol):
    """Reads an answer, part by part: see `OutputParser`."""

    thinking: bool
    loose: int

    @property
    def family(self) -> Marking:
        """The marks of the model."""

    def text(self, kind: type[Content] | type[Reasoning], marks: Sequence[str]) -> Steps[str]:
        """Give text as `kind` up to one of `marks`, which is taken and returned; "" at the end."""

    def next(self, *marks: str) -> Steps[str]:
        """The one of `marks` that comes next, after white space at most; then both are taken."""

    def give(self, delta: Delta) -> None:
        """Give a delta that stands for no text."""

    def whole(self, reading: Steps[None]) -> Steps[bool]:
        """Read the rest of the answer; what is none of this is not taken."""

    def calls(self, mark: str, reading: Steps[None]) -> Steps[None]:
        """Read what follows the mark of a call; what is none is content."""


def in_order(answer: Answer) -> Steps[None]:
    """Reasoning between its marks, then content, with calls in it."""
    source = answer.source
    begin, end = answer.family.reasoning
    thinking = answer.thinking
    while thinking or (yield from answer.next(begin)):
        thinking = False
        yield from source.space()
        yield from answer.text(Reasoning, (end,))
        yield from source.space()
    around = answer.family.around
    if around and (yield from answer.next(*around)):
        yield from source.space()
    if not answer.tools:
        while (yield from answer.text(Content, around)):
            yield from source.space()
        return
    form = answer.family.call_format
    if form.bare and (yield from answer.next(form.bare)):
        yield from answer.calls(form.bare, form.read(form, answer, form.bare))
    mark = yield from answer.next(*form.marks)
    if not mark and answer.loose and (yield from answer.whole(loose_calls(answer, answer.loose))):
        return
    after_text = (AFTER_TEXT,) if answer.loose else ()
    while mark or (mark := (yield from answer.text(Content, (*form.marks, *around, *after_text)))):
        if mark in around:
            yield from source.space()
        elif mark in after_text:
            yield from answer.calls(mark, loose_calls(answer, answer.loose, fences=False))
        else:
            yield from answer.calls(mark, form.read(form, answer, mark))
        mark = ""


_MESSAGE: Final = "<|message|>"
_HEADS: Final = ("<|start|>", "<|channel|>", "to=")
_ENDS: Final = ("<|end|>", "<|call|>", "<|return|>", "<|start|>", "<|channel|>")
_RECIPIENT: Final = re.compile(r"\bto=(?:functions\.)?([\w.:/-]+)")


def _header(answer: Answer, mark: str, heads: tuple[str, ...]) -> Steps[str | None]:
    """Return the header that begins with `mark`, or the next one; None: the answer was cut off in it."""
    header = mark if mark in heads else (yield from answer.next(*heads))
    if not header:
        return ""
    try:
        return header + (yield from answer.source.until(_MESSAGE))
    except Malformed:
        return None


def channels(answer: Answer) -> Steps[None]:
    """Messages with a header each, which names a channel and perhaps a function: Harmony, of gpt-oss."""
    source = answer.source
    given: set[type] = set()
    mark = ""
    while True:
        header = yield from _header(answer, mark, _HEADS)
        if header is None:
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


_TURN_HEADS: Final = ("<|start|>", "to=")
_TURN_ENDS: Final = ("<|eom|>", "<|eot|>", "<|start|>")


def addressed(answer: Answer) -> Steps[None]:
    """Messages whose header says whom they are for: oneself, a function, or the user: Muse."""
    source, form = answer.source, answer.family.call_format
    marks = (*_TURN_ENDS, *form.marks) if answer.tools else _TURN_ENDS
    given: set[type] = set()
    mark = ""
    while True:
        header = yield from _header(answer, mark, _TURN_HEADS)
        if header is None:
            return
        recipient = _RECIPIENT.search(header)
        kind = Reasoning if recipient and recipient[1] == "self" else Content
        if kind in given and (yield from source.peek()) not in ("", "<"):
            answer.give(kind("\n"))
        mark = yield from answer.text(kind, marks if kind is Content else _TURN_ENDS)
        while mark in form.marks:
            yield from answer.calls(mark, form.read(form, answer, mark))
            mark = (yield from answer.next("to=")) or (yield from answer.text(kind, marks))
        given.add(kind)
        if not mark:
            return

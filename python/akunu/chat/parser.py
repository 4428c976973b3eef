"""A model's answer, as it is written, into content, reasoning and tool calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from akunu.chat.deltas import Content, Delta, Reasoning, ToolArguments, ToolCall, merged
from akunu.chat.family import Family
from akunu.chat.incoming import Incoming, Malformed, Steps
from akunu.chat.tools import Tools

__all__ = ["OutputParser"]


class OutputParser:
    """Reads one answer. How the text is cut into pieces makes no difference to the deltas, when joined.

    A call that is not of the family's form is content, as it was written: nothing is lost. One that breaks
    off within its arguments has been given as far as it came; with `whole`, it is content too.

    Parameters
    ----------
    family
        How the model marks what.
    tools
        Functions that the answer may call; without any, what looks like a call is content.
    thinking
        Whether the prompt has opened the reasoning.
    loose
        An answer that is nothing but calls, so many at most, is read as calls in whatever dress
        (`loose_calls`).
    whole
        Give each call only when it is complete.
    call_id
        The id of a call, by its index; by default a new one of the family's form.
    """

    def __init__(
        self,
        family: Family,
        tools: Tools,
        *,
        thinking: bool = False,
        loose: int = 0,
        whole: bool = False,
        call_id: Callable[[int], str] | None = None,
    ) -> None:
        self.source = Incoming()
        self.family = family
        self.tools = tools
        self.thinking = thinking
        self.loose = loose if tools else 0
        self._whole = whole
        self._call_id = call_id or (lambda index: family.call_id())
        self._gap = ""  # white space before the mark that was taken last
        self._ready: list[Delta] = []
        self._call: list[Delta] = []  # of a call that is not complete, where it has to be
        self._index = -1
        self._complete = 0
        self._safe = 0  # up to here, the text is in deltas
        self._steps = family.layout(self)

    def feed(self, text: str) -> list[Delta]:
        """Take more of the answer, and return what is certain now."""
        self.source.push(text)
        return self._proceed()

    def end(self) -> list[Delta]:
        """The answer is over; the rest of it."""
        self.source.over = True
        return self._proceed()

    @property
    def broke_off(self) -> bool:
        """Whether a call was begun and not completed."""
        return self._complete <= self._index

    def _proceed(self) -> list[Delta]:
        next(self._steps, None)
        ready, self._ready = self._ready, []
        return merged(ready)

    # -- for layouts -----------------------------------------------------------------------------------------

    def text(self, kind: type[Content] | type[Reasoning], marks: Sequence[str]) -> Steps[str]:
        """Give text as `kind` up to one of `marks`, which is taken and returned; "" at the end.

        White space before a mark belongs to the mark.
        """
        source = self.source
        held = ""
        while True:
            source.forget()
            text, mark = yield from source.some(marks)
            if mark:
                solid = text.rstrip()
                if solid:
                    self._ready.append(kind(held + solid))
                    held = ""
                self._gap = held + text[len(solid) :]
                return mark
            if not text:
                self._ready.append(kind(held))
                return ""
            held += text
            solid = held.rstrip()
            self._ready.append(kind(solid))
            held = held[len(solid) :]

    def next(self, *marks: str) -> Steps[str]:
        """The one of `marks` that comes next, after white space at most; then both are taken."""
        start = self.source.at
        self._gap = yield from self.source.space()
        mark = yield from self.source.one_of(marks)
        if not mark:
            self.source.at = start
        return mark

    def give(self, delta: Delta) -> None:
        """Give a delta that stands for no text."""
        self._ready.append(delta)

    def whole(self, reading: Steps[None]) -> Steps[bool]:
        """Read the rest of the answer; what is none of this is not taken."""
        start = self.source.at
        try:
            yield from reading
        except Malformed:
            self.source.at = start
            return False
        return True

    def calls(self, mark: str, reading: Steps[None]) -> Steps[None]:
        """Read what follows the mark of a call; what is none is content."""
        begin = self._safe = self.source.at
        gap = self._gap
        try:
            yield from reading
            yield from self.source.space()
        except Malformed:
            if self._call:
                self._call.clear()
                self._index -= 1
            if self._safe == begin:
                self._ready.append(Content(gap + mark))
            self.source.at = self._safe

    # -- for forms of calls (`Calls`) ------------------------------------------------------------------------

    def begin(self, name: str) -> None:
        self._index += 1
        self._add(ToolCall(self._index, self._call_id(self._index), name))

    def arguments(self, fragment: str) -> None:
        self._add(ToolArguments(self._index, fragment))

    def done(self) -> None:
        self._complete += 1
        self._ready += self._call
        self._call.clear()
        self._safe = self.source.at

    def _add(self, delta: Delta) -> None:
        if self._whole:
            self._call.append(delta)
        else:
            self._ready.append(delta)
            self._safe = self.source.at

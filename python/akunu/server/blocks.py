"""An answer as a list of blocks: what it thinks, says, and calls, each a whole of its own.

Anthropic's messages and OpenAI's responses are made of them, and so are their streams.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from akunu.chat.deltas import Content, Delta, Reasoning, ToolArguments, ToolCall

__all__ = ["Block", "BlockEvent", "Blocks"]


@dataclass(slots=True)
class Block:
    """A part of an answer; `text` is what it has so far, of a call the JSON of its arguments."""

    index: int
    kind: Literal["reasoning", "content", "call"]
    call_id: str = ""
    name: str = ""
    text: str = ""


BlockEvent = tuple[Literal["begin", "text", "end"], Block, str]
"""An event of a block, and its new text."""


class Blocks:
    """Reads deltas, one answer's."""

    def __init__(self) -> None:
        self.all: list[Block] = []
        self._open: Block | None = None

    def feed(self, deltas: Iterable[Delta]) -> Iterator[BlockEvent]:
        """Yield what the deltas do; it has to be iterated to its end."""
        for delta in deltas:
            match delta:
                case Content(text):
                    yield from self._go_on("content", text)
                case Reasoning(text):
                    yield from self._go_on("reasoning", text)
                case ToolCall(_, call_id, name):
                    yield from self._begin(Block(len(self.all), "call", call_id, name))
                case ToolArguments(_, fragment):
                    yield from self._go_on("call", fragment)

    def end(self) -> Iterator[BlockEvent]:
        """The answer is over."""
        if self._open is not None:
            block, self._open = self._open, None
            yield "end", block, ""

    def _begin(self, block: Block) -> Iterator[BlockEvent]:
        yield from self.end()
        self._open = block
        self.all.append(block)
        yield "begin", block, ""

    def _go_on(self, kind: Literal["reasoning", "content", "call"], text: str) -> Iterator[BlockEvent]:
        if not text:
            return
        if self._open is None or self._open.kind != kind:
            yield from self._begin(Block(len(self.all), kind))
        assert self._open is not None
        self._open.text += text
        yield "text", self._open, text

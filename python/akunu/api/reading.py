"""How the answer to one prompt is read: pieces with deltas while it is written, a message at its end."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

from akunu.api.results import Piece
from akunu.chat.deltas import message_of
from akunu.chat.family import Family
from akunu.chat.parser import OutputParser
from akunu.chat.tools import Tools

if TYPE_CHECKING:
    from akunu.structured.late import LateConstraints
    from akunu.structured.thinking import ThinkingBudget

__all__ = ["Reading"]


class Reading:
    """Reads one answer, as often as it is wanted.

    Parameters
    ----------
    family
        How the model marks what.
    tools
        Functions that the answer may call.
    thinking
        Whether the prompt ends within the reasoning.
    visible
        Ids of the control tokens that the answer's text has to show.
    budget
        How much it may think; None: as much as it likes.
    """

    def __init__(
        self,
        family: Family,
        tools: Sequence[Mapping[str, Any]] | None,
        thinking: bool,
        visible: frozenset[int],
        budget: ThinkingBudget | None = None,
    ) -> None:
        self.visible = visible
        self.whole_calls = False
        """Of pieces: a call is given when it is complete; one that breaks off is content."""
        self.budget = budget
        self.loose = 0
        """Most calls in another form than the family's that are read as calls (`loose_calls`)."""
        self.late: LateConstraints | None = None
        """What the answer has to be like once it has begun as one."""
        self._family = family
        self._tools = Tools(tools)
        self._thinking = thinking
        self._call_ids: list[str] = []

    def pieces(self, pieces: Generator[Piece, None, None]) -> Generator[Piece, None, None]:
        """The same, each with what it says, and an empty one for what was still held back."""
        parser = self._parser(whole=self.whole_calls)
        with closing(pieces):
            for piece in pieces:
                piece.deltas = parser.feed(piece)
                yield piece
        rest = parser.end()
        if rest:
            last = Piece("")
            last.deltas = rest
            yield last

    def message(self, text: str) -> dict[str, Any]:
        """The assistant's message; a call in it is complete, or it is content."""
        parser = self._parser(whole=True)
        return message_of([*parser.feed(text), *parser.end()])

    def _parser(self, *, whole: bool) -> OutputParser:
        return OutputParser(
            self._family,
            self._tools,
            thinking=self._thinking,
            loose=self.loose,
            whole=whole,
            call_id=self._call_id,
        )

    def _call_id(self, index: int) -> str:
        """The same each time that the answer is read."""
        while len(self._call_ids) <= index:
            self._call_ids.append(self._family.call_id())
        return self._call_ids[index]

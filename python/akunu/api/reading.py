"""Read the answer to one prompt: pieces with deltas while it is written, a message at its end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any

from akunu.api.results import Piece
from akunu.chat.deltas import Delta, message_of
from akunu.chat.family import Family
from akunu.chat.parser import OutputParser
from akunu.chat.tools import Tools

if TYPE_CHECKING:
    from akunu.chat.structured.late import LateConstraints
    from akunu.chat.structured.thinking import ThinkingBudget

__all__ = ["Reading"]


class Reading:
    """Reads one answer, once.

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
        """A piece has a call only when that is complete; one that breaks off is content."""
        self.budget = budget
        self.loose = 0
        """Most calls in another form than the family's that are read as calls (`loose_calls`)."""
        self.late: LateConstraints | None = None
        """The constraint of the answer once it has begun as a call."""
        self.begun = ""
        """The text in the prompt that the answer goes on with, for the answer's constraint."""
        self._family = family
        self._tools = Tools(tools)
        self._thinking = thinking
        self._call_ids: list[str] = []
        self._parser: OutputParser | None = None
        self._deltas: list[Delta] = []
        self._ended = False

    def fresh(self) -> Reading:
        """Return one for another answer to the same prompt, of which nothing has been read."""
        other = copy(self)
        other._call_ids, other._parser, other._deltas, other._ended = [], None, [], False
        return other

    def read(self, piece: Piece) -> None:
        """Give a piece of the answer its deltas."""
        if self._parser is None:
            self._parser = self._new_parser(whole=self.whole_calls)
        piece.deltas = self._parser.feed(piece)
        self._deltas += piece.deltas

    def end(self) -> Piece | None:
        """The answer is over; an empty piece with what was still held back."""
        last = Piece("")
        if self._parser is not None:
            last.deltas = self._parser.end()
            self._deltas += last.deltas
            self._ended = True
        return last if last.deltas else None

    def message(self, text: str) -> dict[str, Any]:
        """The assistant's message; a call in it is complete, or it is content.

        It is what the pieces said. Only before the end of the answer, and where pieces had the beginning of a
        call that was never completed, the text is read again.
        """
        if self._ended and self._parser is not None and not self._parser.broke_off:
            return message_of(self._deltas)
        parser = self._new_parser(whole=True)
        return message_of([*parser.feed(text), *parser.end()])

    def _new_parser(self, *, whole: bool) -> OutputParser:
        return OutputParser(
            self._family,
            self._tools,
            thinking=self._thinking,
            loose=self.loose,
            whole=whole,
            call_id=self._call_id,
        )

    def _call_id(self, index: int) -> str:
        """Return a call's id, the same one each time that the answer is read."""
        while len(self._call_ids) <= index:
            self._call_ids.append(self._family.call_id())
        return self._call_ids[index]

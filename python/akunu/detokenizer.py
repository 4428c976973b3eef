"""Text as it is generated: token ids to characters, and the strings that end it.

Both classes take what a sequence has so far in any cut and give the same text for every cut.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from akunu.errors import InvalidArgumentError

if TYPE_CHECKING:
    from akunu.tokenizer import Tokenizer

__all__ = ["StopMatcher", "StreamingDetokenizer"]


class StreamingDetokenizer:
    """Turns one sequence's ids into text, piece by piece.

    The pieces of all `push` calls and the final `flush` together are what `Tokenizer.decode` gives for all
    ids: no piece ends within a character, and bytes that are not UTF-8 become U+FFFD as in
    ``bytes.decode(errors="replace")``. Time is linear in the number of tokens.

    Parameters
    ----------
    tokenizer : Tokenizer
        The model's tokenizer.
    after : sequence of int
        The ids that come before, such as the prompt; the last one counts. Encoders of the SentencePiece kind
        put a space before a text, at its start and after an added token, and there it is taken off again. A
        continuation of ordinary text keeps its space.
    skip_special : bool
        Leave out control tokens.
    """

    def __init__(self, tokenizer: Tokenizer, *, after: Sequence[int] = (), skip_special: bool = True) -> None:
        self._pieces = tokenizer.pieces
        self._trims_space = tokenizer.trims_space
        self._added = tokenizer.added_ids
        self._hidden = tokenizer.control_ids if skip_special else frozenset[int]()
        self._after_special = not len(after) or int(after[-1]) in self._added
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def push(self, ids: int | Sequence[int]) -> str:
        """The characters that `ids` complete.

        Raises
        ------
        InvalidArgumentError
            An id is not in the vocabulary.
        """
        if not isinstance(ids, Iterable):
            ids = (ids,)
        if not self._trims_space:
            return self._decoder.decode(b"".join([self._pieces[i] for i in ids if i not in self._hidden]))
        parts = []
        for i in ids:
            piece = self._pieces[i]
            added = i in self._added
            if self._after_special and not added and piece[:1] == b" ":
                piece = piece[1:]
            self._after_special = added
            if i not in self._hidden:
                parts.append(piece)
        return self._decoder.decode(b"".join(parts))

    @property
    def pending(self) -> int:
        """Bytes held back because they do not complete a character yet: 0 to 3."""
        return len(self._decoder.getstate()[0])

    def flush(self) -> str:
        """What is left at the end: U+FFFD for a character that was never completed."""
        return self._decoder.decode(b"", final=True)


class StopMatcher:
    """Finds the first stop string in a text that arrives in pieces.

    A match is the one that ends first; of two that end together, the longer. So the result does not depend on
    how the text is cut. Text that may be the beginning of a stop string is held back until that is decided.
    Each stop string is followed with the Knuth-Morris-Pratt automaton: a character costs the same however
    long the strings are.

    Parameters
    ----------
    stops : sequence of str
        The stop strings; none may be empty.
    """

    def __init__(self, stops: Sequence[str] = ()) -> None:
        if isinstance(stops, str):
            stops = (stops,)
        if not all(isinstance(stop, str) and stop for stop in stops):
            raise InvalidArgumentError(
                f"stop strings: found {list(stops)!r}, expected strings that are not empty"
            )
        self._stops = [(stop, _failure(stop)) for stop in dict.fromkeys(stops)]
        self._states = [0] * len(self._stops)
        self._held = ""
        self.matched: str | None = None
        """The stop string that was found, or None."""

    def push(self, text: str) -> str:
        """Text that is certain now. Once `matched` is set: the last of it, without the stop string."""
        if self.matched is not None:
            return ""
        if not self._stops:
            return text
        buffer = self._held + text
        states = self._states
        for position in range(len(self._held), len(buffer)):
            char = buffer[position]
            found = 0
            for n, (stop, failure) in enumerate(self._stops):
                state = states[n]
                while state and stop[state] != char:
                    state = failure[state]
                if stop[state] == char:
                    state += 1
                if state == len(stop):
                    if state > found:
                        found = state
                        self.matched = stop
                    state = failure[state]
                states[n] = state
            if found:
                self._held = ""
                return buffer[: position + 1 - found]
        keep = max(states)
        self._held = buffer[len(buffer) - keep :]
        return buffer[: len(buffer) - keep]

    def flush(self) -> str:
        """What was held back, when the text ends without a stop string."""
        held, self._held = self._held, ""
        self._states = [0] * len(self._stops)
        return held


def _failure(stop: str) -> list[int]:
    """For each length matched, the longest shorter prefix that is also a suffix of what was matched."""
    failure = [0] * (len(stop) + 1)
    state = 0
    for length in range(1, len(stop)):
        while state and stop[state] != stop[length]:
            state = failure[state]
        if stop[state] == stop[length]:
            state += 1
        failure[length + 1] = state
    return failure

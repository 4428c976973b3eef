"""Text as it is generated: token ids to characters, the same for every cut of the ids."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Protocol

__all__ = ["StreamingDetokenizer"]


class _Vocabulary(Protocol):
    """The part of a `Tokenizer` that is needed."""

    @property
    def pieces(self) -> Mapping[int, bytes]: ...
    @property
    def trims_space(self) -> bool: ...
    @property
    def trims_after_added(self) -> bool: ...
    @property
    def split_ids(self) -> AbstractSet[int]: ...
    @property
    def control_ids(self) -> AbstractSet[int]: ...


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
    visible : set of int
        Control tokens that are not left out.
    trims : bool
        Take that space off. Not for a text whose bytes were chosen one by one.
    """

    def __init__(
        self,
        tokenizer: _Vocabulary,
        *,
        after: Sequence[int] = (),
        skip_special: bool = True,
        visible: AbstractSet[int] = frozenset(),
        trims: bool = True,
    ) -> None:
        self._pieces = tokenizer.pieces
        self._trims_space = trims and tokenizer.trims_space
        self._added = tokenizer.split_ids
        self._control = tokenizer.control_ids
        self._hidden = self._control - visible if skip_special else frozenset()
        self._trims_after_added = tokenizer.trims_after_added
        self._trims_next = not len(after) or (self._trims_after_added and int(after[-1]) in self._added)
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
            shown = ids if self._hidden.isdisjoint(ids) else [i for i in ids if i not in self._hidden]
            return self._decoder.decode(b"".join(map(self._pieces.__getitem__, shown)))
        parts = []
        for i in ids:
            piece = self._pieces[i]
            added = i in self._added
            if self._trims_next and not added and piece[:1] == b" ":
                piece = piece[1:]
            # BOS was put before a text that got its space; what else is at the start is part of that text.
            self._trims_next = added and (
                self._trims_after_added or (self._trims_next and i in self._control)
            )
            if i not in self._hidden:
                parts.append(piece)
        return self._decoder.decode(b"".join(parts))

    @property
    def pending(self) -> int:
        """Bytes held back because they do not complete a character yet: 0 to 3."""
        return len(self._decoder.getstate()[0])

    def flush(self) -> str:
        """Return what is left at the end: U+FFFD for a character that was never completed."""
        return self._decoder.decode(b"", final=True)

"""Cutting a text at borders that no token can cross, and encoding each distinct piece once.

Words repeat: in English prose nine pieces of ten were met before, and a dictionary answers them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection

import numpy as np

__all__ = ["SPACE", "PieceCache", "cutting_pattern"]

SPACE = "\u2581"
"""The character that SentencePiece writes for a space."""

_LONGEST_CACHED = 48  # characters; longer pieces hardly ever repeat
_MOST_CACHED = 1 << 16

_APART = "\U0010ffff"  # a character that is none


def cutting_pattern(vocabulary: Collection[str]) -> re.Pattern[str] | None:
    """A pattern whose matches tile any text, cut only where no token of `vocabulary` crosses the cut.

    Encoding the matches one by one then gives the ids of the whole text, both for merges (a merge's result
    is a token) and for Unigram (a path that ends a token at every cut is the only kind there is). Two kinds
    of cut are tried, and proved on the vocabulary at hand: before a run of U+2581, which needs that no token
    holds U+2581 after another character, and around a run of newlines, which needs that no token mixes
    newlines with other characters. None when neither holds.
    """
    text = _APART.join(vocabulary)  # as one: a loop over 256k tokens takes long
    if text.count(_APART) >= max(1, len(vocabulary)):  # one of them has it
        return None
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    apart, space, newline = (codes == ord(char) for char in (_APART, SPACE, "\n"))
    at_space = not (~(apart | space)[:-1] & space[1:]).any()
    other = ~(apart | newline)
    at_newline = not (other[:-1] & newline[1:] | newline[:-1] & other[1:]).any()
    if at_space and at_newline:
        return re.compile(f"\n+|{SPACE}+[^{SPACE}\n]*|[^{SPACE}\n]+")
    if at_space:
        return re.compile(f"{SPACE}+[^{SPACE}]*|[^{SPACE}]+")
    if at_newline:
        return re.compile("\n+|[^\n]+")
    return None


class PieceCache:
    """Encodes a text piece by piece, remembering short pieces.

    Parameters
    ----------
    pattern
        From `cutting_pattern`; None encodes each text as one piece.
    encode_piece
        Ids of one piece, independent of its neighbours.
    """

    def __init__(self, pattern: re.Pattern[str] | None, encode_piece: Callable[[str], list[int]]) -> None:
        self._pattern = pattern
        self._encode_piece = encode_piece
        self._known: dict[str, list[int]] = {}

    def __call__(self, text: str) -> list[int]:
        ids: list[int] = []
        known = self._known
        for piece in self._pattern.findall(text) if self._pattern else (text,):
            found = known.get(piece)
            if found is None:
                found = self._encode_piece(piece)
                if len(piece) <= _LONGEST_CACHED:
                    if len(known) >= _MOST_CACHED:
                        known = self._known = {}
                    known[piece] = found
            ids += found
        return ids

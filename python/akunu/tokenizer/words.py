"""Ids of a text whose words are encoded each for itself, as BERT's are: words of earlier texts are known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

__all__ = ["KnownWords"]

_MOST: Final = 1 << 16
"""Words, and characters of one, that are remembered."""
_LONGEST: Final = 32


class KnownWords:
    """Encodes what stands between spaces. Other white space and punctuation are left to `encode`.

    Parameters
    ----------
    encode
        The ids of a text, which are those of its parts between spaces, one after the other.
    """

    def __init__(self, encode: Callable[[str], list[int]]) -> None:
        self._encode = encode
        self._known: dict[str, list[int]] = {}

    def encode(self, text: str) -> list[int]:
        """Ids of `text`. Several threads may call it."""
        known = self._known
        ids: list[int] = []
        for word in text.split(" "):
            made = known.get(word)
            if made is None:
                made = self._encode(word)
                if len(word) <= _LONGEST:
                    if len(known) >= _MOST:
                        known = self._known = {}
                    known[word] = made
            ids += made
        return ids

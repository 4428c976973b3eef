"""Byte-level BPE by rank, as in tiktoken's files: an id is a rank, and the pair of the lowest rank is joined.

For vocabularies without a list of merges, as those in the files of whisper.cpp.
"""

from __future__ import annotations

from collections.abc import Sequence

from akunu.tokenizer.bytelevel import splits
from akunu.tokenizer.pieces import PieceCache
from akunu.tokenizer.pretokenizers import pre_tokenizer

__all__ = ["RankBpe"]

_NONE = 1 << 62


class RankBpe:
    """Encodes text without added tokens.

    Parameters
    ----------
    tokens : sequence of bytes
        By rank. Every single byte is among them; empty ones are never used.
    """

    keeps_bytes = True

    def __init__(self, tokens: Sequence[bytes]) -> None:
        import tokenizers

        self._rank = {token: rank for rank, token in enumerate(tokens) if token}
        self._split = tokenizers.pre_tokenizers.Sequence(splits(pre_tokenizer("gpt-2")))
        self._encode_piece = PieceCache(None, self._merge)

    def encode(self, text: str, *, at_start: bool) -> list[int]:
        """Ids of `text`."""
        pieces = [piece for piece, _ in self._split.pre_tokenize_str(text)]
        return [i for piece in pieces for i in self._encode_piece(piece)]

    def encode_inside(self, text: str) -> list[int]:
        """Ids of a text that follows another; what comes before does not matter."""
        return self.encode(text, at_start=False)

    def _merge(self, piece: str) -> list[int]:
        rank = self._rank
        data = piece.encode()
        if data in rank:
            return [rank[data]]
        parts = [data[i : i + 1] for i in range(len(data))]
        while len(parts) > 1:
            ranks = [rank.get(parts[i] + parts[i + 1], _NONE) for i in range(len(parts) - 1)]
            at = min(range(len(ranks)), key=ranks.__getitem__)
            if ranks[at] == _NONE:
                break
            parts[at : at + 2] = [parts[at] + parts[at + 1]]
        return [rank[part] for part in parts]

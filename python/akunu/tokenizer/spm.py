"""SentencePiece BPE: merge the adjacent pair whose result has the best score, until no result is a token.

Gemma 4's vocabulary has a list of merges in place of scores: the pair that stands first in it is merged.

Done here rather than with a `tokenizers` BPE model, which needs the merges as a list: deriving it from a
vocabulary of 256k tokens takes seconds at every load, tokens of equal score would be merged in the wrong
order, and a long unsplit text is slow. Here a vocabulary is one dictionary, ties go to the leftmost pair as
in SentencePiece (``bpe_model.cc``), and texts are cut at borders that no merge can cross.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from heapq import heapify, heappop, heappush

from akunu.base.errors import TokenizerError
from akunu.tokenizer.pieces import SPACE, PieceCache, cutting_pattern
from akunu.tokenizer.vocabulary import TokenType, Vocabulary

__all__ = ["MERGED_TYPES", "SentencePieceBpe", "byte_value", "fuse"]

# Control, unknown and byte tokens are not text, and user-defined ones are found before merging starts.
_NORMAL = int(TokenType.NORMAL)
MERGED_TYPES = frozenset({_NORMAL, int(TokenType.UNUSED)})
_LINES = re.compile(r"\n+|[^\n]+")


class SentencePieceBpe:
    """Encodes text without added tokens, for ``tokenizer.ggml.model = llama`` and ``gemma4``.

    `merges`: pairs of tokens by rank, as "LEFT RIGHT"; None: tokens have scores.
    """

    keeps_bytes = True

    def __init__(self, vocabulary: Vocabulary, merges: Sequence[str] | None = None) -> None:
        tokens, scores = vocabulary.tokens, vocabulary.scores
        if scores is None and merges is None:
            raise TokenizerError(
                "tokenizer.ggml.scores is missing; a 'llama' vocabulary needs a score per token"
            )
        # There may be 256k tokens, so little is done for each. Of equal texts the first counts.
        merged = [i for i in vocabulary.ids_of_types(MERGED_TYPES) if tokens[i]]
        merged.reverse()
        self._ids: dict[str, int] = dict(zip([tokens[i] for i in merged], merged, strict=True))
        # What a merge costs, by its two sides with `_joint` between them; heapq pops the smallest.
        self._cost: dict[str, float]
        if merges is not None:
            self._joint = " "
            self._cost = dict(zip(reversed(merges), range(len(merges) - 1, -1, -1), strict=True))
        else:
            assert scores is not None
            self._joint = ""
            self._cost = {text: -scores[i] for text, i in self._ids.items()}
        others = [(i, kind) for i, kind in enumerate(vocabulary.types) if kind != _NORMAL]
        unused = [i for i, kind in others if kind == TokenType.UNUSED]
        self._unused = {tokens[i] for i in unused if self._ids.get(tokens[i]) == i and not self._joint}
        self._bytes = {byte_value(tokens[i], i): i for i, kind in others if kind == TokenType.BYTE}
        self._unknown = vocabulary.unknown
        self._add_prefix = vocabulary.add_space_prefix
        self._encode = PieceCache(cutting_pattern(self._ids), self._encode_piece)

    def encode(self, text: str, *, at_start: bool) -> list[int]:
        """Ids of `text`, which begins the whole text or follows an added token."""
        return self._ids_of((SPACE if self._add_prefix else "") + text.replace(" ", SPACE))

    def encode_inside(self, text: str) -> list[int]:
        """Ids of `text` that continues another one, so without a space before it."""
        return self._ids_of(text.replace(" ", SPACE))

    def _ids_of(self, text: str) -> list[int]:
        if self._joint:  # such a vocabulary cuts at newlines first
            ids = [i for line in _LINES.findall(text) for i in self._encode(line)]
        else:
            ids = self._encode(text)
        return ids if len(self._bytes) == 256 else fuse(ids, self._unknown)

    def _encode_piece(self, piece: str) -> list[int]:
        symbols, parts = self._merge(list(piece))
        ids: list[int] = []
        symbols.reverse()
        while symbols:
            symbol = symbols.pop()
            if symbol in parts:  # an unused token may be a step of a merge, but not its result
                symbols.extend(reversed(parts[symbol]))
            elif symbol in self._ids:
                ids.append(self._ids[symbol])
            else:
                ids.extend(self._byte_id(value, symbol) for value in symbol.encode())
        return ids

    def _merge(self, symbols: list[str]) -> tuple[list[str], dict[str, tuple[str, str]]]:
        """Merge `symbols`; returns what is left, and the two parts of each unused token that was formed."""
        cost, unused, joint = self._cost.get, self._unused, self._joint
        parts: dict[str, tuple[str, str]] = {}
        count, apart = len(symbols), len(joint)
        after = list(range(1, count + 1))  # index of the next symbol, `count` at the end
        before = list(range(-1, count - 1))
        heap = []
        for i in range(count - 1):
            pair = symbols[i] + joint + symbols[i + 1]
            if (price := cost(pair)) is not None:
                heap.append((price, i, len(pair)))
        heapify(heap)
        while heap:
            _, i, length = heappop(heap)
            left, j = symbols[i], after[i]
            # Stale when a side was merged meanwhile: symbols only grow, so the length tells.
            if not left or j == count or len(left) + len(symbols[j]) + apart != length:
                continue
            pair = left + symbols[j]
            if pair in unused:
                parts[pair] = (left, symbols[j])
            symbols[i], symbols[j] = pair, ""
            j = after[i] = after[j]
            if j < count:
                before[j] = i
                longer = pair + joint + symbols[j]
                if (price := cost(longer)) is not None:
                    heappush(heap, (price, i, len(longer)))
            if (h := before[i]) >= 0:
                longer = symbols[h] + joint + pair
                if (price := cost(longer)) is not None:
                    heappush(heap, (price, h, len(longer)))
        return [symbol for symbol in symbols if symbol], parts

    def _byte_id(self, value: int, symbol: str) -> int:
        token = self._bytes.get(value, self._unknown)
        if token is None:
            raise TokenizerError(
                f"the vocabulary cannot encode {symbol!r}: it has no byte token <0x{value:02X}> "
                "and no unknown token"
            )
        return token


def byte_value(text: str, token: int) -> int:
    """The byte that a BYTE token such as ``<0x0A>`` stands for."""
    try:
        if len(text) == 6 and text.startswith("<0x") and text.endswith(">"):
            return int(text[3:5], 16)
    except ValueError:
        pass
    raise TokenizerError(f"token {token} has type BYTE and text {text!r}; expected the form '<0x0A>'")


def fuse(ids: list[int], unknown: int | None) -> list[int]:
    """Join runs of the unknown token into one, as SentencePiece does."""
    if unknown is None or unknown not in ids:
        return ids
    return [i for n, i in enumerate(ids) if i != unknown or n == 0 or ids[n - 1] != unknown]

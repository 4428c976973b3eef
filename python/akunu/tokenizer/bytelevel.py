"""Byte-level BPE (``tokenizer.ggml.model = gpt2``): a pattern cuts the text, merges join bytes within it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from akunu._core import ByteMerges
from akunu.base.errors import TokenizerError
from akunu.tokenizer.pretokenizers import PreTokenizer
from akunu.tokenizer.vocabulary import CONTROL_TYPES, Vocabulary, strings

if TYPE_CHECKING:
    import tokenizers

__all__ = ["CHAR_OF_BYTE", "ByteLevelBpe", "splits"]


def _byte_alphabet() -> list[str]:
    """GPT-2's stand-in for each byte: itself where printable, else the next character from U+0100."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    alphabet = [""] * 256
    for byte in printable:
        alphabet[byte] = chr(byte)
    shifted = iter(range(0x100, 0x200))
    for byte in range(256):
        alphabet[byte] = alphabet[byte] or chr(next(shifted))
    return alphabet


_TURN: Final = 1 << 12
"""Pieces that are encoded without a break."""

CHAR_OF_BYTE = "".join(_byte_alphabet())


class ByteLevelBpe:
    """Encodes text without added tokens.

    The patterns are the `tokenizers` library's, the merges are ours: of 128,000 tokens its model takes half a
    second to make.
    """

    keeps_bytes = True

    def __init__(self, vocabulary: Vocabulary, metadata: Mapping[str, object], pre: PreTokenizer) -> None:
        import tokenizers

        lines = strings(metadata, "merges")
        if lines is None:
            raise TokenizerError("tokenizer.ggml.merges is missing; a 'gpt2' vocabulary needs it")
        # Control tokens are left out: no merge and no whole word gives one. Token bytes that are not UTF-8
        # arrive as lone surrogates; they are outside the byte alphabet, so nothing is encoded to them.
        control = vocabulary.ids_of_types(CONTROL_TYPES)
        self._merges = ByteMerges(vocabulary.tokens, lines, control, CHAR_OF_BYTE, pre.ignore_merges)
        self._split = tokenizers.pre_tokenizers.Sequence(splits(pre))

    def encode(self, text: str, *, at_start: bool) -> list[int]:
        """Ids of `text`."""
        pieces = [piece for piece, _ in self._split.pre_tokenize_str(text)]
        ids: list[int] = []
        for at in range(0, len(pieces), _TURN):  # other threads get their turns
            ids += self._merges.encode(pieces[at : at + _TURN])
        return ids

    def encode_inside(self, text: str) -> list[int]:
        """Ids of a text that follows another; what comes before does not matter."""
        return self.encode(text, at_start=False)


def splits(pre: PreTokenizer) -> list[tokenizers.pre_tokenizers.PreTokenizer]:
    """Return what cuts a text by the patterns of a family, one after the other."""
    import tokenizers

    return [
        tokenizers.pre_tokenizers.Split(tokenizers.Regex(pattern), "isolated") for pattern in pre.patterns
    ]

"""Byte-level BPE (``tokenizer.ggml.model = gpt2``): a pattern cuts the text, merges join bytes within it."""

from __future__ import annotations

from collections.abc import Mapping

from akunu.errors import TokenizerError
from akunu.tokenizer.pretokenizers import PreTokenizer
from akunu.tokenizer.vocabulary import CONTROL_TYPES, Vocabulary, strings

__all__ = ["CHAR_OF_BYTE", "ByteLevelBpe", "is_utf8"]


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


CHAR_OF_BYTE = _byte_alphabet()


class ByteLevelBpe:
    """Encodes text without added tokens.

    Attributes
    ----------
    library : tokenizers.Tokenizer
        What does it.
    """

    def __init__(self, vocabulary: Vocabulary, metadata: Mapping[str, object], pre: PreTokenizer) -> None:
        import tokenizers

        lines = strings(metadata, "merges")
        if lines is None:
            raise TokenizerError("tokenizer.ggml.merges is missing; a 'gpt2' vocabulary needs it")
        # Control tokens are left out: no merge and no whole word gives one. Token bytes that are not UTF-8
        # arrive as lone surrogates; they are outside the byte alphabet, so nothing is encoded to them.
        all_utf8 = is_utf8("".join(vocabulary.tokens))
        entries = {
            text: i
            for i, (text, kind) in enumerate(zip(vocabulary.tokens, vocabulary.types, strict=True))
            if kind not in CONTROL_TYPES and (all_utf8 or is_utf8(text))
        }
        merges = []
        for line in lines:
            left, _, right = line.partition(" ")
            if left in entries and right in entries and left + right in entries:
                merges.append((left, right))
        try:
            model = tokenizers.models.BPE(entries, merges, ignore_merges=pre.ignore_merges)
            splits = [
                tokenizers.pre_tokenizers.Split(tokenizers.Regex(pattern), "isolated")
                for pattern in pre.patterns
            ]
        except Exception as error:  # the library raises plain Exception
            raise TokenizerError(f"the 'gpt2' vocabulary is not usable: {error}") from error
        self.library = tokenizers.Tokenizer(model)
        self.library.pre_tokenizer = tokenizers.pre_tokenizers.Sequence(
            [*splits, tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
        )

    def encode(self, text: str, *, at_start: bool) -> list[int]:
        """Ids of `text`."""
        ids: list[int] = self.library.encode(text, add_special_tokens=False).ids
        return ids

    def encode_inside(self, text: str) -> list[int]:
        """The same: what comes before does not matter."""
        return self.encode(text, at_start=False)


def is_utf8(text: str) -> bool:
    """Whether a text that was read with `surrogateescape` was UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True

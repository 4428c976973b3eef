"""WordPiece (``tokenizer.ggml.model = bert``): BERT's normaliser and the longest token first.

GGUF stores the start of a word as U+2581 + text and a continuation bare; BERT has it the other way round,
bare and ``##`` + text. The vocabulary is turned back for the `tokenizers` model.
"""

from __future__ import annotations

from akunu.base.errors import TokenizerError
from akunu.tokenizer.pieces import SPACE
from akunu.tokenizer.vocabulary import CONTROL_TYPES, Vocabulary
from akunu.tokenizer.words import KnownWords

__all__ = ["WordPiece"]


class WordPiece:
    """Encodes text without added tokens."""

    keeps_bytes = False

    def __init__(self, vocabulary: Vocabulary) -> None:
        import tokenizers

        if vocabulary.unknown is None:
            raise TokenizerError("tokenizer.ggml.unknown_token_id is missing; a 'bert' vocabulary needs it")
        unknown = "\0unknown"  # a name that no word has: the normaliser removes control characters
        entries = {unknown: vocabulary.unknown}
        for i, (text, kind) in enumerate(zip(vocabulary.tokens, vocabulary.types, strict=True)):
            if kind in CONTROL_TYPES or not text.isprintable():
                continue
            word = text[1:] if text.startswith(SPACE) else "##" + text
            entries.setdefault(word, i)
        tokenizer = tokenizers.Tokenizer(tokenizers.models.WordPiece(entries, unk_token=unknown))
        tokenizer.normalizer = tokenizers.normalizers.BertNormalizer(
            clean_text=True,
            handle_chinese_chars=True,
            strip_accents=vocabulary.strip_accents,
            lowercase=vocabulary.lowercase,
        )
        tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
        self._words = KnownWords(lambda text: tokenizer.encode(text, add_special_tokens=False).ids)

    def encode(self, text: str, *, at_start: bool) -> list[int]:
        """Ids of `text`."""
        return self._words.encode(text)

    def encode_inside(self, text: str) -> list[int]:
        """Ids of a text that follows another; its first word begins a word all the same."""
        return self.encode(text, at_start=False)

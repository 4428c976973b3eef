"""SentencePiece Unigram (``tokenizer.ggml.model = t5``): normalise, then take the most likely segmentation.

The segmentation is a `tokenizers` Unigram model. The normaliser is ours: the library's one works on grapheme
clusters, which is not what SentencePiece does, and it trusts the table, which comes from the file.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

from akunu.base.errors import TokenizerError
from akunu.tokenizer.pieces import SPACE, PieceCache, cutting_pattern
from akunu.tokenizer.spm import MERGED_TYPES, fuse
from akunu.tokenizer.vocabulary import Vocabulary

__all__ = ["Charsmap", "Unigram", "as_bytes"]


class Unigram:
    """Encodes text without added tokens."""

    keeps_bytes = False

    def __init__(self, vocabulary: Vocabulary, metadata: Mapping[str, object]) -> None:
        from tokenizers.models import Unigram as Model

        if vocabulary.scores is None:
            raise TokenizerError(
                "tokenizer.ggml.scores is missing; a 't5' vocabulary needs a score per token"
            )
        if vocabulary.unknown is None:
            raise TokenizerError("tokenizer.ggml.unknown_token_id is missing; a 't5' vocabulary needs it")
        charsmap = metadata.get("tokenizer.ggml.precompiled_charsmap")
        self._charsmap = Charsmap(as_bytes(charsmap)) if charsmap is not None else None
        self._add_prefix = vocabulary.add_space_prefix
        self._merge_spaces = vocabulary.remove_extra_whitespaces
        self._unknown = vocabulary.unknown
        entries = []
        matched = []
        seen: set[str] = set()
        for i, (text, kind) in enumerate(zip(vocabulary.tokens, vocabulary.types, strict=True)):
            if kind in MERGED_TYPES and text and " " not in text and text not in seen:
                seen.add(text)
                matched.append(text)
                entries.append((_encodable(text), vocabulary.scores[i]))
            else:
                # A text with a space never matches: the normalised text has none. So a control token cannot
                # come out of a text that spells its name.
                entries.append((f" {i}", 0.0))
        try:
            self._model = Model(entries, unk_id=vocabulary.unknown, byte_fallback=False)
        except Exception as error:  # the library raises plain Exception
            raise TokenizerError(f"the 't5' vocabulary is not usable: {error}") from error
        self._encode = PieceCache(cutting_pattern(matched), self._encode_piece)

    def encode(self, text: str, *, at_start: bool) -> list[int]:
        """Ids of `text`. Every stretch between added tokens is normalised on its own, as in SentencePiece."""
        normalised = self.normalise(text)
        return fuse(self._encode(normalised), self._unknown) if normalised else []

    def encode_inside(self, text: str) -> list[int]:
        """Ids of `text` that continues another one: it is normalised already."""
        return fuse(self._encode(text.replace(" ", SPACE)), self._unknown)

    def normalise(self, text: str) -> str:
        """Return the text that is segmented: characters mapped, spaces written as U+2581."""
        if self._charsmap:
            text = self._charsmap.apply(text)
        if self._merge_spaces:
            text = " ".join(word for word in text.split(" ") if word)
        if text and self._add_prefix:
            text = " " + text
        return text.replace(" ", SPACE)

    def _encode_piece(self, piece: str) -> list[int]:
        return [token.id for token in self._model.tokenize(piece)]


def _encodable(text: str) -> str:
    # Token bytes that are not UTF-8 arrive as lone surrogates, which the library cannot take. No text holds
    # them.
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def as_bytes(value: object) -> bytes:
    """The map of characters as a file of GGUF gives it."""
    if hasattr(value, "tobytes"):
        return bytes(value.tobytes())
    if isinstance(value, (bytes, bytearray)):
        return bytes(value)
    if isinstance(value, (list, tuple)) and all(isinstance(b, int) and -128 <= b < 256 for b in value):
        return bytes(b & 0xFF for b in value)
    raise TokenizerError("tokenizer.ggml.precompiled_charsmap: expected an array of bytes")


class Charsmap:
    """SentencePiece's precompiled character map: the longest matching key is replaced, again and again.

    Layout: a little-endian uint32 with the size of the trie in bytes, the trie, then replacement strings that
    end in a zero byte. The trie is a Darts-clone double array of uint32 units: bit 31 marks a value (in the
    low 31 bits, the replacement's offset), else bits 0-7 are the label, bit 8 says that a value hangs off
    this unit, and bits 10-30 (shifted by 8 when bit 9 is set) are the offset to its children.

    Every index is checked: a table that points outside itself is a `TokenizerError`, when it is used.
    """

    def __init__(self, data: bytes) -> None:
        if len(data) < 4:
            raise TokenizerError(
                f"tokenizer.ggml.precompiled_charsmap: {len(data)} bytes, expected at least 4"
            )
        (size,) = struct.unpack_from("<I", data)
        if size % 4 or 4 + size > len(data):
            raise TokenizerError(
                f"tokenizer.ggml.precompiled_charsmap: its trie has {size} bytes by its header, "
                f"but {len(data) - 4} bytes follow"
            )
        self._units = struct.unpack_from(f"<{size // 4}I", data, 4)
        self._strings = data[4 + size :]
        self._root = self._offset(self._units[0]) if self._units else 0

    def apply(self, text: str) -> str:
        """`text` with every longest match replaced; what does not match stays."""
        if not self._units:
            return text
        data = text.encode("utf-8", "replace")
        out = []
        position = copied = 0
        while position < len(data):
            length, replacement = self._longest(data, position)
            if length:
                out.append(data[copied:position])
                out.append(replacement)
                position += length
                copied = position
            else:
                position += 1
                while position < len(data) and data[position] & 0xC0 == 0x80:
                    position += 1
        out.append(data[copied:])
        return b"".join(out).decode("utf-8", "replace")

    def _longest(self, data: bytes, position: int) -> tuple[int, bytes]:
        units = self._units
        node = self._root
        found = 0
        value = 0
        try:
            for end in range(position, len(data)):
                label = data[end]
                if not label:
                    break
                node ^= label
                unit = units[node]
                if unit & 0x800000FF != label:
                    break
                node ^= self._offset(unit)
                if unit & 0x100:
                    found = end - position + 1
                    value = units[node] & 0x7FFFFFFF
        except IndexError:
            raise TokenizerError(
                f"tokenizer.ggml.precompiled_charsmap: points to unit {node} of {len(units)}"
            ) from None
        if not found:
            return 0, b""
        stop = self._strings.find(b"\0", value)
        if stop < 0:
            raise TokenizerError(
                f"tokenizer.ggml.precompiled_charsmap: no replacement ends after byte {value} "
                f"of {len(self._strings)}"
            )
        return found, self._strings[value:stop]

    @staticmethod
    def _offset(unit: int) -> int:
        return (unit >> 10) << ((unit & 0x200) >> 6)

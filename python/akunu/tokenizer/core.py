"""The tokenizer of one model: texts to ids, with added tokens and BOS/EOS, and ids to bytes and text."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from akunu._core import bytes_of
from akunu.base.errors import InvalidArgumentError, TokenizerError
from akunu.tokenizer.bytelevel import CHAR_OF_BYTE, ByteLevelBpe
from akunu.tokenizer.detokenizer import StreamingDetokenizer
from akunu.tokenizer.pieces import SPACE
from akunu.tokenizer.pretokenizers import pre_tokenizer
from akunu.tokenizer.special import AddedTokens, Span
from akunu.tokenizer.spm import SentencePieceBpe, byte_value
from akunu.tokenizer.templates import Template
from akunu.tokenizer.unigram import Unigram
from akunu.tokenizer.vocabulary import CONTROL_TYPES, TokenType, Vocabulary, strings
from akunu.tokenizer.wordpiece import WordPiece

__all__ = ["Encoder", "Segment", "Tokenizer"]


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of a prompt by one author.

    Attributes
    ----------
    text : str
        The text.
    parse_special : bool
        Whether control tokens spelt in it are recognised. One that crosses the border between two segments
        never is, whatever the two say.
    ids : tuple of int
        Tokens in the place of the text, which stand for something else than text, such as an image.
    """

    text: str
    parse_special: bool = False
    ids: tuple[int, ...] = ()


class Encoder(Protocol):
    """Encodes the text before, between and after added tokens."""

    keeps_bytes: bool
    """The bytes of the tokens are those of the text: none is left out."""

    def encode(self, text: str, *, at_start: bool) -> list[int]:
        """Ids of `text`; `at_start`: nothing comes before it, not even an added token."""

    def encode_inside(self, text: str) -> list[int]:
        """Ids of `text` in the middle of another one."""


class Tokenizer:
    """Encodes and decodes text for one model. Safe to share between threads.

    Build one with `from_gguf` or `from_metadata`.

    Examples
    --------
    >>> tokenizer = Tokenizer.from_gguf("model.gguf")
    >>> ids = tokenizer.encode("Hello world")
    >>> tokenizer.decode(ids)
    'Hello world'
    """

    def __init__(self, vocabulary: Vocabulary, encoder: Encoder) -> None:
        self._vocabulary = vocabulary
        self._encoder = encoder
        self._added_tokens = AddedTokens(vocabulary)
        self.model = vocabulary.model
        """The kind of tokenizer: ``llama``, ``gemma4``, ``gpt2``, ``bert`` or ``t5``."""
        self.pre = vocabulary.pre
        """The name of the pre-tokenizer, or None."""
        self.vocab_size = len(vocabulary.tokens)
        """Number of token ids."""
        self.bos_id = vocabulary.bos
        """The token that begins a text, or None."""
        self.eos_id = vocabulary.eos
        """The token that ends a text, or None."""
        self.unknown_id = vocabulary.unknown
        """The token that stands for what the vocabulary cannot encode, or None."""
        self.template: Template = vocabulary.text_template()
        """The special tokens that `encode` puts around a text when `add_special` is set, and those of a pair
        of texts: mostly BOS before and EOS after, or none."""
        known = (
            ("bos_token", vocabulary.bos),
            ("eos_token", vocabulary.eos),
            ("unk_token", vocabulary.unknown),
        )
        self.names: Mapping[str, str] = {name: "" for name, _ in known} | (
            dict(vocabulary.names) or {name: vocabulary.tokens[i] for name, i in known if i is not None}
        )
        """Texts of special tokens by the names that chat templates have for them; "" where BOS, EOS or the
        unknown token is missing."""
        self.chats_begin = vocabulary.chats_begin
        """Whether a chat whose template has not written BOS gets it, where `add_bos` is set."""
        self.end_of_generation_ids: frozenset[int] = vocabulary.end_of_generation
        """The tokens after which a model has finished: EOS, end of turn, end of message, and their like."""
        self.added_ids = self._added_tokens.ids
        """Ids of control, unknown and user-defined tokens."""
        self.split_ids = self._added_tokens.split_ids - {vocabulary.unknown}
        """Ids of those between which each stretch of a text is encoded for itself. The unknown token is none
        of them: mostly it stands for a character in the middle of one."""
        self.control_ids = self._added_tokens.control_ids
        """Ids of the tokens that only a template may write, and that `decode` leaves out by default."""
        self.trims_space = vocabulary.add_space_prefix or vocabulary.model == "bert"
        """Whether a text begins with a space that encoding has put there."""
        self.trims_after_added = vocabulary.prefix_after_added
        """Whether the text after an added token does so too."""
        self._pieces = _Pieces(vocabulary)
        self.pieces: Mapping[int, bytes] = self._pieces
        """The bytes of each token; an id that is not in the vocabulary is an `InvalidArgumentError`."""

    def __repr__(self) -> str:
        pre = f" ({self.pre})" if self.pre else ""
        return f"<akunu.Tokenizer {self.model}{pre}, {self.vocab_size} tokens>"

    @classmethod
    def from_metadata(cls, metadata: Mapping[str, object]) -> Tokenizer:
        """Build from the metadata of a GGUF file.

        Parameters
        ----------
        metadata : mapping of str to value
            GGUF's keys, arrays as lists. Strings that are not UTF-8 are decoded with ``surrogateescape``.

        Raises
        ------
        TokenizerError
            A key is missing or inconsistent.
        UnsupportedError
            The tokenizer model (``tokenizer.ggml.model``) or pre-tokenizer (``tokenizer.ggml.pre``) is not
            one that Akunu has; the message names it.
        """
        vocabulary = Vocabulary.from_metadata(metadata)
        for name, wanted, token in (
            ("bos", metadata.get("tokenizer.ggml.add_bos_token"), vocabulary.bos),
            ("eos", metadata.get("tokenizer.ggml.add_eos_token"), vocabulary.eos),
        ):
            if wanted and token is None:
                raise TokenizerError(
                    f"tokenizer.ggml.add_{name}_token is true, "
                    f"but tokenizer.ggml.{name}_token_id names no token"
                )
        encoder: Encoder
        if vocabulary.model == "llama":
            encoder = SentencePieceBpe(vocabulary)
        elif vocabulary.model == "gemma4":
            merges = strings(metadata, "merges")
            if merges is None:
                raise TokenizerError("tokenizer.ggml.merges is missing; a 'gemma4' vocabulary needs it")
            encoder = SentencePieceBpe(vocabulary, merges)
        elif vocabulary.model == "bert":
            encoder = WordPiece(vocabulary)
        elif vocabulary.model == "t5":
            encoder = Unigram(vocabulary, metadata)
        else:
            pre = pre_tokenizer(vocabulary.pre)
            if "tokenizer.ggml.add_bos_token" not in metadata:
                vocabulary.add_bos = pre.add_bos
            encoder = ByteLevelBpe(vocabulary, metadata, pre)
        return cls(vocabulary, encoder)

    @classmethod
    def from_gguf(cls, path: str | os.PathLike[str]) -> Tokenizer:
        """Build from a GGUF file, which may hold a vocabulary alone.

        Raises
        ------
        ModelFileError
            The file is missing or damaged.
        TokenizerError, UnsupportedError
            As `from_metadata`.
        """
        from akunu._core import GgufFile
        from akunu.base.arguments import as_path

        return cls.from_metadata(GgufFile(os.fspath(as_path("path", path))).metadata)

    def encode(self, text: str, *, add_special: bool = True, parse_special: bool = False) -> list[int]:
        """Ids of a text.

        Parameters
        ----------
        text : str
            Any text. Lone surrogates become U+FFFD.
        add_special : bool
            Begin with BOS and end with EOS, or whatever stands there by `template` (never twice).
        parse_special : bool
            Recognise control tokens, such as ``<|im_end|>``, in `text`. Leave it off for text from users:
            they could end their turn and begin another. User-defined tokens are recognised either way.
        """
        return self.encode_segments([Segment(text, parse_special)], add_bos=add_special, add_eos=add_special)

    def encode_segments(
        self, segments: Iterable[Segment], *, add_bos: bool = True, add_eos: bool = False
    ) -> list[int]:
        """Ids of a text by several authors, such as a chat in a template's frame.

        The texts are joined, and encoded as one: only control tokens heed the borders.

        Parameters
        ----------
        segments : iterable of Segment
            The stretches, in order.
        add_bos, add_eos : bool
            Begin with BOS and end with EOS, or what stands there by `template`, where the text does not do so
            already.
        """
        return self.encode_placed(segments, add_bos=add_bos, add_eos=add_eos)[0]

    def encode_placed(
        self, segments: Iterable[Segment], *, add_bos: bool = True, add_eos: bool = False
    ) -> tuple[list[int], list[int]]:
        """Ids as of `encode_segments`, and where among them those of each segment with `ids` begin."""
        ids: list[int] = []
        places: list[int] = []
        run: list[Segment] = []
        for segment in segments:
            if not segment.ids:
                run.append(segment)
                continue
            ids += self._encoded(run, at_start=not ids)
            run = []
            places.append(len(ids))
            ids += segment.ids
        ids += self._encoded(run, at_start=not ids)
        before, after = list(self.template.before), list(self.template.after)
        if add_bos and ids[: len(before)] != before:
            ids = before + ids
            places = [len(before) + place for place in places]
        if add_eos and after and ids[-len(after) :] != after:
            ids += after
        return ids, places

    def _encoded(self, segments: Iterable[Segment], *, at_start: bool) -> list[int]:
        """The ids of texts that are joined; `at_start`: nothing comes before them."""
        texts: list[str] = []
        spans: list[Span] = []
        length = 0
        for segment in segments:
            if not isinstance(segment.text, str):
                raise InvalidArgumentError(
                    f"text to encode: found {type(segment.text).__name__}, expected str"
                )
            text = _without_surrogates(segment.text)
            if segment.parse_special and text:
                spans.append((length, length + len(text)))
            texts.append(text)
            length += len(text)
        ids: list[int] = []
        for part in self._added_tokens.split("".join(texts), spans):
            if isinstance(part, int):
                ids.append(part)
            else:
                ids += self._encoder.encode(part, at_start=at_start and not ids)
        return ids

    def encode_inside(self, text: str) -> list[int]:
        """Ids of a text that continues another one, with nothing before it and without control tokens."""
        ids: list[int] = []
        for part in self.split_added(text, parse_special=False):
            ids += [part] if isinstance(part, int) else self._encoder.encode_inside(part)
        return ids

    def split_added(self, text: str, *, parse_special: bool) -> list[str | int]:
        """Split a text into added tokens (ids), with `parse_special` also control tokens, and the rest."""
        text = _without_surrogates(text)
        return list(self._added_tokens.split(text, [(0, len(text))] if parse_special and text else []))

    def decode(self, ids: Sequence[int], *, skip_special: bool = True) -> str:
        """The text of `ids`, taken as a whole text.

        ``decode(encode(text)) == text`` for every text without control tokens (WordPiece and Unigram: up to
        their normalisation). To decode what a model adds to a prompt, use `StreamingDetokenizer`.

        Parameters
        ----------
        ids : sequence of int
            Token ids, 0 <= id < `vocab_size`.
        skip_special : bool
            Leave out control tokens (BOS, EOS, ``<|im_start|>``, …). User-defined tokens always show.
        """
        detokenizer = StreamingDetokenizer(self, skip_special=skip_special)
        return detokenizer.push(ids) + detokenizer.flush()

    def id_to_piece(self, token: int) -> bytes:
        """The bytes of one token: as they stand in a text, U+2581 as a space; a control token's name."""
        return self.pieces[token]

    def all_pieces(self) -> list[bytes]:
        """`pieces` of the whole vocabulary, by id: made at once, which takes less than one by one."""
        return self._pieces.all()

    @cached_property
    def longest(self) -> int:
        """Most bytes of a text that one token stands for."""
        longest = max(map(len, self.all_pieces()), default=1)
        return max(1, longest) * (1 if self._encoder.keeps_bytes else _DROPPED)

    def token_text(self, token: int) -> str:
        """The token as the vocabulary writes it."""
        _check_id(token, self.vocab_size)
        return self._vocabulary.tokens[token]

    def token_type(self, token: int) -> TokenType:
        """Return the kind of a token."""
        _check_id(token, self.vocab_size)
        kind = self._vocabulary.types[token]
        return TokenType(kind) if 0 <= kind <= max(TokenType) else TokenType.UNDEFINED

    def control_texts(self) -> frozenset[str]:
        """The texts of the control tokens: what a user's text must not be able to write."""
        return self._added_tokens.control_texts


_DROPPED = 16
"""The most bytes of a text for each that is left when a normaliser has dropped white space and such."""

_OUTSIDE = "\U0010ffff"
_BYTE_OF_CHAR = {
    **{byte: _OUTSIDE for byte in range(256)},  # but for those that stand for themselves or another byte:
    **{ord(char): chr(byte) for byte, char in enumerate(CHAR_OF_BYTE)},
}


_AS_TEXT = frozenset({int(TokenType.NORMAL), int(TokenType.UNUSED)})
"""Types of the tokens whose bytes are those of their texts, or what these stand for: nearly all."""


class _Pieces(dict[int, bytes]):
    """Bytes by token id, made when first asked for: of a large vocabulary a text needs few."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__()
        self._vocabulary = vocabulary

    def __missing__(self, token: int) -> bytes:
        vocabulary = self._vocabulary
        _check_id(token, len(vocabulary.tokens))
        text = vocabulary.tokens[token]
        kind = vocabulary.types[token]
        if kind == TokenType.BYTE:
            piece = bytes([byte_value(text, token)])
        elif kind in CONTROL_TYPES or (kind == TokenType.USER_DEFINED and not vocabulary.spaces_in_added):
            piece = text.encode("utf-8", "surrogateescape")
        elif vocabulary.model == "gpt2":
            try:
                piece = text.translate(_BYTE_OF_CHAR).encode("latin-1")
            except UnicodeEncodeError:  # not in the byte alphabet: an added token that the file calls normal
                piece = text.encode("utf-8", "surrogateescape")
        else:
            piece = text.replace(SPACE, " ").encode("utf-8", "surrogateescape")
        self[int(token)] = piece
        return piece

    def all(self) -> list[bytes]:
        """Texts of all tokens, of which few are made one by one."""
        tokens = self._vocabulary.tokens
        made: list[bytes | None] = (
            bytes_of(tokens, CHAR_OF_BYTE)
            if self._vocabulary.model == "gpt2"
            else [text.replace(SPACE, " ").encode("utf-8", "surrogateescape") for text in tokens]
        )
        return [
            self[i] if piece is None or kind not in _AS_TEXT else piece
            for i, (piece, kind) in enumerate(zip(made, self._vocabulary.types, strict=True))
        ]


def _check_id(token: int, vocab_size: int) -> None:
    try:
        operator.index(token)
    except TypeError:
        raise InvalidArgumentError(f"token ids: expected integers, got {token!r}") from None
    if not 0 <= token < vocab_size:
        raise InvalidArgumentError(f"token id {token} is not in the vocabulary of {vocab_size} tokens")


def _without_surrogates(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        # By way of UTF-16, which joins the pairs that JSON escapes come in.
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text

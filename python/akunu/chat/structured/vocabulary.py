"""A model's vocabulary as masks and grammars see it: the bytes of every token, and which ones end a text."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt
from llguidance import LLTokenizer, TokenizerWrapper

from akunu.base.errors import TokenizerError, UnsupportedError

if TYPE_CHECKING:
    from akunu.tokenizer import Tokenizer

__all__ = ["CONTROL_MARK", "TokenMask", "VocabularyView"]

CONTROL_MARK: Final = b"\xff"
"""A byte before a control token's name. No text has it, so no text spells a control token."""

TokenMask = npt.NDArray[np.uint32]
"""[ceil(vocab / 32)]: token t may be sampled if bit t % 32 of word t // 32 is set."""


class VocabularyView:
    """The tokens of one model. Making it takes a good part of a second for 150,000 tokens.

    Parameters
    ----------
    tokenizer
        The tokenizer of the model.
    vocab_size
        Logits of the model, which may be more than there are tokens: the rest is never sampled.
    """

    def __init__(self, tokenizer: Tokenizer, vocab_size: int) -> None:
        ends = sorted(i for i in tokenizer.end_of_generation_ids if i < vocab_size)
        if not ends:
            raise UnsupportedError("the vocabulary has no token that ends an output; a constraint needs one")
        self.end_id = ends[0]
        """A token that ends a text."""
        self._tokenizer = tokenizer
        self.end_ids = frozenset(ends)
        """All tokens that end a text."""
        self._size = vocab_size
        self.control_ids = tokenizer.control_ids.union(ends)
        known = min(vocab_size, tokenizer.vocab_size)
        self.pieces: list[bytes] = tokenizer.all_pieces()[:known]
        """The bytes of each token; a control token's name with `CONTROL_MARK` before it."""
        for i in self.control_ids:
            if i < known:
                self.pieces[i] = CONTROL_MARK + self.pieces[i]
        self.pieces += [b""] * (vocab_size - known)

    def grammar_tokens(self) -> LLTokenizer:
        """Make the vocabulary for llguidance, anew at each call.

        It keeps this view, where no garbage collector looks: the view cannot keep it, or both stay for ever.
        """
        return LLTokenizer(_Encoder(self), eos_token=sorted(self.end_ids))

    def encode(self, text: str) -> list[int]:
        """Tokens that spell a text in the middle of another: the usual ones, if they do so byte by byte."""
        ids = self._tokenizer.encode_inside(text)
        data = text.encode()
        return ids if b"".join(self.pieces[i] for i in ids) == data else self._spell(data)

    def _spell(self, data: bytes) -> list[int]:
        """The longest token first. An encoder that normalises texts, or adds spaces, gives other bytes."""
        ids = []
        while data:
            sizes = range(min(len(data), self._longest), 0, -1)
            length = next((n for n in sizes if data[:n] in self._by_bytes), 0)
            if length == 0:
                raise TokenizerError(f"the vocabulary has no token for the byte 0x{data[0]:02X} of a grammar")
            ids.append(self._by_bytes[data[:length]])
            data = data[length:]
        return ids

    @cached_property
    def _by_bytes(self) -> dict[bytes, int]:
        return {piece: i for i, piece in enumerate(self.pieces) if piece}

    @cached_property
    def _longest(self) -> int:
        return max(map(len, self.pieces))

    def split(self, text: str) -> list[str | int]:
        """Control tokens (ids) and the texts between them (never empty), of a mark."""
        parts: list[str | int] = []
        for part in self._tokenizer.split_added(text, parse_special=True):
            if isinstance(part, int) and part not in self.control_ids:
                part = self.pieces[part].decode()
            if isinstance(part, str) and parts and isinstance(parts[-1], str):
                parts[-1] += part
            else:
                parts.append(part)
        return parts

    def spell(self, text: str) -> bytes:
        """A mark's bytes, as they appear when the tokens' `pieces` are put together."""
        return b"".join(
            self.pieces[part] if isinstance(part, int) else part.encode() for part in self.split(text)
        )

    def mask_without(self, ids: Iterable[int], *, ends: bool) -> TokenMask:
        """All tokens but these; `ends`: those that end a text are among them."""
        allowed = np.zeros((self._size + 31) // 32 * 32, bool)
        allowed[: self._size] = True
        allowed[list(ids)] = False
        if not ends:
            allowed[list(self.end_ids)] = False
        return np.packbits(allowed, bitorder="little").view(np.uint32)

    def mask_of(self, token: int) -> TokenMask:
        """Return the mask that allows this token alone."""
        mask = np.zeros((self._size + 31) // 32, np.uint32)
        mask[token // 32] = 1 << token % 32
        return mask


class _Encoder(TokenizerWrapper):
    """The methods that `LLTokenizer` asks of a tokenizer."""

    is_tokenizer_wrapper = True

    def __init__(self, view: VocabularyView) -> None:  # not the base's, which wraps one of Guidance
        self.eos_token_id = view.end_id
        self.bos_token_id = None
        self.tokens = view.pieces
        self.special_token_ids = sorted(view.control_ids)
        self._view = view

    def __call__(self, text: str) -> list[int]:
        return self._view.encode(text)

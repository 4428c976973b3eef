"""Tell whether a text can fit a context before all of it is put into tokens, which takes long."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from akunu.base.errors import ContextLengthError
from akunu.tokenizer.core import Tokenizer

__all__ = ["check_fits"]

_USUAL_BYTES: Final = 16
"""A text with more bytes than that for each token of the context is not usual, and is looked at closely.
Others are put into tokens: how many they are says by how much a conversation is too long."""

_CHUNK: Final = 1 << 14
"""Characters that are put into tokens at a time."""

_CERTAINLY: Final = 2
"""Times the context: cut into chunks, a text has more tokens than as a whole, but not so many more."""


def check_fits(tokenizer: Tokenizer, texts: Sequence[str], context: int, what: str = "the prompt") -> None:
    """Refuse texts that together have more tokens than a context, if that is plain to see.

    Parameters
    ----------
    tokenizer
        What would put them into tokens.
    texts
        Parts of a prompt.
    context
        Most tokens.
    what
        What they are, for the error.

    Raises
    ------
    ContextLengthError
        They do not fit, however they are put into tokens.
    """
    size = sum(len(text) if text.isascii() else len(text.encode("utf-8", "replace")) for text in texts)
    if size <= _USUAL_BYTES * context:
        return
    least = size // tokenizer.longest
    if least <= context:
        least = _counted(tokenizer, texts, _CERTAINLY * context)
    if least > context:
        raise ContextLengthError(f"{what} has at least {least} tokens, the context holds {context}")


def _counted(tokenizer: Tokenizer, texts: Sequence[str], most: int) -> int:
    """The tokens of the beginning of the texts, where they are more than `most`; else 0."""
    count = 0
    for text in texts:
        for at in range(0, len(text), _CHUNK):
            count += len(tokenizer.encode_inside(text[at : at + _CHUNK]))
            if count > most:
                return count
    return 0

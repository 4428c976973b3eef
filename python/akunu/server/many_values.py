"""Bodies with very many values: when they cannot be right, and in which pieces the others are read.

Python's lock is kept while JSON is decoded, 40 ms for a million numbers, and while its objects are freed.
numpy looks through a body without it.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from akunu.base.errors import ContextLengthError
from akunu.base.turns import let_others
from akunu.server.errors import ApiError

__all__ = ["Pieces", "joined_items", "looked_through", "times"]

Body = bytes | memoryview

_MANY: Final = 1 << 14
"""Values, or letters that are not plain (`_Outline.letters`), that a body may have whatever its model is."""
_PER_TOKEN: Final = 16
"""And as many for each token of its context: there are prompts of ids for so many outputs."""
_LETTER: Final = 4
"""Bytes beyond ASCII that count as a letter."""
_ROLE: Final = b'"role"'
_FEW: Final = 1000
"""Messages, or tokens, that are read without more ado."""
_BLOCK: Final = 1 << 16
"""Bytes that are looked through, or decoded, at a time: some processors' own caches have them."""
_KEY: Final = re.compile(rb'"(\w+)"\s*:\s*\Z')
_KEY_BYTES: Final = 64


@dataclass(frozen=True, slots=True)
class Pieces:
    """A body that has a long list: what stands before its items, they in pieces, and what stands after."""

    name: str
    head: bytes
    items: list[Body]
    tail: bytes

    def __iter__(self) -> Iterator[bytes]:
        """Bodies that have a piece of the list each."""
        for piece in self.items:
            yield b"".join((self.head, piece, self.tail))
            let_others()


class _Named(msgspec.Struct):
    model: str | None = None


class _Outline(NamedTuple):
    """The form of a body."""

    values: int
    """Commas, and beginnings of lists and objects."""
    letters: int
    """Escapes in strings, and every fourth byte of letters beyond ASCII: what takes longest to decode."""
    body: bytes
    """Without what is in the lists and objects of the outermost one."""
    inner: npt.NDArray[np.int64]
    """Beginnings and ends of those that have more than a block [n, 2]."""
    commas: list[int]
    """The last comma between their items in each block."""


def times(word: bytes, body: Body) -> int:
    """Return how often a word, which does not overlap itself, is in a body.

    Each letter is looked for in turn, in blocks that fit in a processor's own cache: without Python's lock,
    which `bytes.count` keeps for 5 ms of 5 MB.
    """
    whole, found, rest = np.frombuffer(body, np.uint8), 0, len(word) - 1
    for at in range(0, len(whole) - rest, _BLOCK):
        block = whole[at : at + _BLOCK + rest]
        here = block[: len(block) - rest] == word[0]
        for n, letter in enumerate(word[1:], 1):
            if not here.any():
                break
            here &= block[n : n + len(here)] == letter
        found += int(np.count_nonzero(here))
    return found


def _has_many(body: Body) -> bool:
    """Whether a body has so many values or escapes, or texts that look like them, that it matters."""
    whole, found = np.frombuffer(body, np.uint8), 0
    for at in range(0, len(whole), _BLOCK):
        block = whole[at : at + _BLOCK]
        for marks in (block == ord(","), block | 32 == ord("{"), block == ord("\\")):
            found += int(np.count_nonzero(marks))
        found += int(np.count_nonzero(block > 127)) // _LETTER
    return found > _MANY


def looked_through(server: Any, body: Body, names: tuple[str, ...]) -> Pieces | None:
    """The body in pieces, if one of the fields of these names has a list of more than a block.

    Raises
    ------
    ContextLengthError
        Without that list, it has more values or letters than a prompt of its model can be made of, or more
        messages: each has a role, and a token at least.
    """
    messages = times(_ROLE, body)
    if messages >= _FEW:  # which is found out sooner than how many values there are
        _check_fits(server, messages, body)
    if not _has_many(body):
        return None
    outline = _outline(body)
    found = _in_pieces(body, outline, names) if names else None
    if found is not None:
        outline = _outline(found.head + found.tail)
    # A text of an endpoint for long lists may be cut to what fits.
    count = max(outline.values, 0 if names else outline.letters)
    _check_fits(server, (count - _MANY) // _PER_TOKEN, outline.body)
    return found


def _check_fits(server: Any, least: int, named: Body) -> None:
    """Refuse a prompt of at least so many tokens, if the model that a body names holds fewer."""
    context = _context(server, named) if least >= _FEW else None
    if context is not None and least > context:
        raise ContextLengthError(f"the prompt has at least {least} tokens, the context holds {context}")


def _in_pieces(body: Body, outline: _Outline, names: tuple[str, ...]) -> Pieces | None:
    for begin, end in outline.inner.tolist():
        key = _KEY.search(bytes(body[max(begin - _KEY_BYTES, 0) : begin]))
        if key is None or body[begin] != ord("[") or (name := key[1].decode()) not in names:
            continue
        cuts = [begin, *(at for at in outline.commas if begin < at < end), end]
        items = [body[one + 1 : other] for one, other in pairwise(cuts)]
        if not all(bytes(piece[:_KEY_BYTES]).strip() or bytes(piece).strip() for piece in items):
            return None  # a comma too many, which its readers find
        return Pieces(name, bytes(body[: begin + 1]), items, bytes(body[end:]))
    return None


def _context(server: Any, body: Body) -> int | None:
    """The context of the model that a body names; without one, of the first."""
    try:
        name = msgspec.json.decode(body, type=_Named).model
    except (msgspec.DecodeError, ValueError, RecursionError):
        name = None
    for each in (name, None):
        try:
            found: int | None = getattr(server.models.meant(each).model, "context", None)
        except ApiError:  # which is said by those who need the model
            continue
        return found
    return None


def _outline(body: Body) -> _Outline:
    values = letters = depth = at = 0
    inside = False
    kept, begins, ends, commas = [], [], [], []
    while at < len(body):
        data = bytes(body[at : at + _BLOCK])
        if (len(data) - len(data.rstrip(b"\\"))) % 2:
            data += body[at + len(data) : at + len(data) + 1]  # what the last backslash escapes
        # Backslashes in pairs, and quotes that are no end of a string, say nothing.
        plain = data.replace(rb"\\", b"  ").replace(rb"\"", b"  ")
        letters += data.count(b"\\") - data.count(rb"\\") - plain.count(rb"\/")
        block = np.frombuffer(plain, np.uint8)
        letters += int(np.count_nonzero(block > 127)) // _LETTER
        quotes = block == ord('"')
        strings = np.logical_xor.accumulate(quotes) ^ inside if quotes.any() else np.full(block.shape, inside)
        inside = bool(strings[-1])
        folded = (block | 32) * ~strings  # brackets are braces then
        steps = (folded == ord("{")).view(np.int8) - (folded == ord("}")).view(np.int8)
        if steps.any():
            depths = np.cumsum(steps, dtype=np.int32) + depth
            depth = int(depths[-1])
        else:
            depths = np.full(block.shape, depth, np.int32)
        between = (block == ord(",")) & ~strings
        values += int(np.count_nonzero(between)) + int(np.count_nonzero(steps > 0))
        if (outermost := np.minimum(depths, depths - steps) < 2).any():
            kept.append(block[outermost].tobytes())
        begins.append(np.flatnonzero((steps > 0) & (depths == 2)) + at)
        ends.append(np.flatnonzero((steps < 0) & (depths == 1)) + at)
        last = np.flatnonzero(between & (depths == 2))[-1:]
        commas += (last + at).tolist()
        at += len(data)
    first, end = np.concatenate(begins), np.concatenate(ends)
    inner = np.stack([each[: min(len(first), len(end))] for each in (first, end)], 1)
    return _Outline(values, letters, b"".join(kept), inner[inner[:, 1] - inner[:, 0] > _BLOCK], commas)


def joined_items(lists: Iterator[list[Any]]) -> Any:
    """The items of several lists: numbers as an array, and lists of numbers as arrays.

    A million of Python's numbers would have to be freed one by one.
    """
    found = [_array(items) for items in lists]
    if all(isinstance(items, np.ndarray) for items in found):
        return np.concatenate(found)
    return [
        _array(item) if isinstance(item, list) else item
        for items in found
        for item in (items.tolist() if isinstance(items, np.ndarray) else items)
    ]


def _array(items: list[Any]) -> Any:
    """A list of numbers as an array; others as they are."""
    try:  # numpy itself takes twice as long
        return np.frombuffer(array("q", items), np.int64) if items else items
    except (TypeError, OverflowError):
        return items

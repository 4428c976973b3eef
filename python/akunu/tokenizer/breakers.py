"""Sequence breakers of DRY: texts that a repeat does not go beyond, as tokens, in the form that devices read.

A token that contains a whole breaker is one. A token that ends with the beginning of a breaker is its head,
and is one where a tail, the tokens of the rest, follows: as llama.cpp reads them.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from akunu._core import BREAKER_SETS, BREAKER_TAIL_IDS, BREAKER_TAILS
from akunu.base.errors import InvalidArgumentError
from akunu.tokenizer.core import Tokenizer

__all__ = ["breaker_table", "breaker_tokens", "breakers_of"]

_LONGEST: Final = 40
"""Bytes of a breaker that count, as in llama.cpp."""
_MOST_KEPT: Final = 8
_tables: weakref.WeakKeyDictionary[Tokenizer, dict[tuple[str, ...], npt.NDArray[np.uint32]]] = (
    weakref.WeakKeyDictionary()
)


def breakers_of(tokenizer: Tokenizer, texts: tuple[str, ...]) -> npt.NDArray[np.uint32]:
    """Return `breaker_table` of these texts; what was asked for before is kept."""
    kept = _tables.setdefault(tokenizer, {})
    table = kept.get(texts)
    if table is None:
        table = breaker_table(breaker_tokens(tokenizer, texts), tokenizer.vocab_size)
        if len(kept) == _MOST_KEPT:
            kept.pop(next(iter(kept)), None)
        kept[texts] = table
    return table


def breaker_tokens(tokenizer: Tokenizer, texts: Sequence[str]) -> dict[int, list[tuple[int, ...]]]:
    """Return the tails of every token that begins a breaker; an empty one where it is one itself."""
    found: dict[int, list[tuple[int, ...]]] = {}
    pieces = tokenizer.all_pieces()

    def add(token: int, tail: tuple[int, ...]) -> None:
        tails = found.setdefault(token, [])
        if tail not in tails:
            tails.append(tail)

    for text in texts:
        whole = text.encode("utf-8", "replace")[:_LONGEST].decode("utf-8", "ignore")
        coded = whole.encode()
        for token, piece in enumerate(pieces):
            if coded in piece:
                add(token, ())
        for n in range(1, len(whole)):
            tail = tuple(tokenizer.encode_inside(whole[n:])[:BREAKER_TAIL_IDS])
            head = whole[:n].encode()
            for token, piece in enumerate(pieces):
                if piece.endswith(head) and coded not in piece and tail:
                    add(token, tail)
    return found


def breaker_table(breakers: Mapping[int, Sequence[Sequence[int]]], vocab_size: int) -> npt.NDArray[np.uint32]:
    """Return breakers as devices read them (`BreakerLimits` in cpp/core/step_state.h).

    Raises
    ------
    InvalidArgumentError
        They are too many.
    """
    sets: dict[tuple[tuple[int, ...], ...], int] = {(): 0}
    words = [0]
    tails = np.zeros((BREAKER_TAILS, 1 + BREAKER_TAIL_IDS), np.uint32)
    used = 0
    of_token = np.zeros((vocab_size + 3) // 4 * 4, np.uint8)
    for token, given in breakers.items():
        key = tuple(sorted(map(tuple, given)))
        if token >= vocab_size:
            continue
        if key not in sets:
            longer = [tail for tail in key if tail]
            if len(sets) == BREAKER_SETS or used + len(longer) > BREAKER_TAILS:
                raise InvalidArgumentError(
                    "dry_sequence_breakers: too many tokens begin them; give fewer, or shorter ones"
                )
            sets[key] = len(words)
            words.append(used | len(longer) << 16 | (1 << 31 if () in key else 0))
            for tail in longer:
                tails[used, 0] = len(tail)
                tails[used, 1 : 1 + len(tail)] = tail
                used += 1
        of_token[token] = sets[key]
    first = np.zeros(BREAKER_SETS, np.uint32)
    first[: len(words)] = words
    return np.concatenate([first, tails.reshape(-1), of_token.view(np.uint32)])

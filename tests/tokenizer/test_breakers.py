"""Sequence breakers as tokens: those that have one, and those that begin one, with what has to follow."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import akunu
from akunu._core import BREAKER_SETS, BREAKER_TAIL_IDS, BREAKER_TAILS
from akunu.base.errors import InvalidArgumentError
from akunu.tokenizer import Tokenizer
from akunu.tokenizer.breakers import breaker_table, breaker_tokens, breakers_of

EMBER = Path(akunu.__file__).parent / "models" / "ember.gguf"


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.from_gguf(EMBER)


def test_every_token_with_a_breaker_is_one(tokenizer: Tokenizer) -> None:
    found = breaker_tokens(tokenizer, ["\n", "he"])
    for token, piece in enumerate(tokenizer.all_pieces()):
        assert (() in found.get(token, [])) == (b"\n" in piece or b"he" in piece), piece
    assert sum(() in tails for tails in found.values()) > 10


def test_tails_are_what_is_left_of_the_breaker(tokenizer: Tokenizer) -> None:
    found = breaker_tokens(tokenizer, ["User:"])
    pieces = tokenizer.all_pieces()
    several = 0
    for token, tails in found.items():
        for tail in tails:
            if tail:
                rest = b"".join(pieces[i] for i in tail)
                head = b"User:"[: len(b"User:") - len(rest)]
                assert head and pieces[token].endswith(head) and head + rest == b"User:"
                several += 1
    assert several > 3


def test_control_tokens_are_breakers_by_their_names(tokenizer: Tokenizer) -> None:
    control = min(tokenizer.control_ids)
    assert breaker_tokens(tokenizer, [tokenizer.token_text(control)])[control] == [()]


def test_a_long_breaker_counts_to_its_40th_byte(tokenizer: Tokenizer) -> None:
    assert breaker_tokens(tokenizer, ["ab" * 30]) == breaker_tokens(tokenizer, ["ab" * 20])


def test_a_table_is_made_once(tokenizer: Tokenizer) -> None:
    assert breakers_of(tokenizer, ("\n", ":")) is breakers_of(tokenizer, ("\n", ":"))


def test_the_table_has_sets_of_tails_and_a_byte_for_each_token() -> None:
    table = breaker_table({3: [()], 7: [(1, 2), (), (5,)], 8: [()]}, 10)
    sets = table[:BREAKER_SETS]
    tails = table[BREAKER_SETS:][: BREAKER_TAILS * (1 + BREAKER_TAIL_IDS)].reshape(BREAKER_TAILS, -1)
    of_token = table[BREAKER_SETS + tails.size :].view(np.uint8)
    assert of_token.tolist()[:10] == [0, 0, 0, 1, 0, 0, 0, 2, 1, 0]
    assert sets[:4].tolist() == [0, 1 << 31, 1 << 31 | 2 << 16, 0]
    assert [row[1 : 1 + row[0]].tolist() for row in tails[:3]] == [[1, 2], [5], []]


def test_too_many_ways_to_begin_a_breaker_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="dry_sequence_breakers"):
        breaker_table({token: [(token,)] for token in range(300)}, 300)

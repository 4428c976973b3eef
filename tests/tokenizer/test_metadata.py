"""Files whose vocabulary is missing, damaged or of a kind that Akunu does not have."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from akunu.base.errors import AkunuError, InvalidArgumentError, TokenizerError, UnsupportedError
from akunu.tokenizer import Tokenizer

from .vocabularies import (
    BYTES,
    CONTROL,
    NORMAL,
    REAL,
    SPECIALS,
    UNUSED,
    USER_DEFINED,
    byte_level,
    metadata,
    real,
    spm,
)

GOOD = metadata("llama", [*SPECIALS, *BYTES, ("\u2581", NORMAL, -1.0), ("a", NORMAL, -2.0)])


@pytest.mark.parametrize("model", ["rwkv", "plamo2", "none", "no_vocab", "gemma9", "", 7])
def test_a_model_that_akunu_does_not_have_is_named(model: object) -> None:
    with pytest.raises(UnsupportedError, match=f"is {model!r}"):
        Tokenizer.from_metadata(GOOD | {"tokenizer.ggml.model": model})


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("model", None, "no vocabulary"),
        ("tokens", None, "missing or empty"),
        ("tokens", [], "missing or empty"),
        ("tokens", "abc", "found str, expected an array"),
        ("tokens", ["a", 5], "not a string"),
        ("token_type", [1, 1], "found 2 entries, expected 261"),
        ("token_type", ["x"] * 261, "not an integer"),
        ("scores", [0.0], "found 1 entries, expected 261"),
        ("scores", [float("nan")] * 261, "not a finite number"),
        ("scores", None, "scores is missing"),
        ("bos_token_id", "one", "expected a token id"),
        ("eos_token_id", True, "expected a token id"),
        ("add_bos_token", "yes", "expected a boolean"),
        ("pre", 5, "expected a string"),
    ],
)
def test_a_damaged_key_is_named(key: str, value: object, message: str) -> None:
    broken = {
        name: item for name, item in (GOOD | {f"tokenizer.ggml.{key}": value}).items() if item is not None
    }
    with pytest.raises(TokenizerError, match=message) as error:
        Tokenizer.from_metadata(broken)
    assert f"tokenizer.ggml.{key}" in str(error.value)


def test_a_byte_token_must_name_its_byte() -> None:
    with pytest.raises(TokenizerError, match="expected the form '<0x0A>'"):
        spm({}, [("<0xZZ>", 6, 0.0)])


def test_bos_that_is_wanted_but_not_there_is_an_error() -> None:
    with pytest.raises(TokenizerError, match="bos_token_id names no token"):
        byte_level([], add_bos_token=True)


def test_byte_level_needs_merges() -> None:
    broken = metadata("gpt2", [("a", NORMAL, 0.0)], pre="gpt-2")
    with pytest.raises(TokenizerError, match="merges is missing"):
        Tokenizer.from_metadata(broken)


def test_merges_that_lead_nowhere_or_to_a_control_token_are_left_out() -> None:
    tokenizer = byte_level(["a b"], [("cd", CONTROL)], pre="gpt-2")
    merges = ["a b", "c d", "x", "é ö", "a zz", ""]
    tokens = [
        (tokenizer.token_text(i), int(tokenizer.token_type(i)), 0.0) for i in range(tokenizer.vocab_size)
    ]
    again = Tokenizer.from_metadata(metadata("gpt2", tokens, merges=merges, pre="gpt-2"))
    assert [again.token_text(i) for i in again.encode("abcd")] == ["ab", "c", "d"]


def test_without_token_types_all_are_normal_but_the_bytes_of_sentencepiece() -> None:
    silent = {key: value for key, value in GOOD.items() if key != "tokenizer.ggml.token_type"}
    tokenizer = Tokenizer.from_metadata(silent)
    assert tokenizer.decode(tokenizer.encode("aéa")) == "aéa"


def test_tokens_that_are_not_utf8_keep_their_bytes() -> None:
    broken = b"\xff\xfe".decode("utf-8", "surrogateescape")
    for tokenizer in (spm({"\u2581": -1.0, broken: -1.0}), byte_level([], [(broken, USER_DEFINED)])):
        last = tokenizer.vocab_size - 1
        assert tokenizer.id_to_piece(last) == b"\xff\xfe"
        assert tokenizer.decode(tokenizer.encode("text")) == "text"


@pytest.mark.parametrize("name", REAL)
def test_the_bytes_of_all_tokens_are_those_of_each(name: str) -> None:
    tokenizer = real(name)
    assert tokenizer.all_pieces() == [tokenizer.pieces[i] for i in range(tokenizer.vocab_size)]


def test_the_bytes_of_all_tokens_of_odd_kinds_are_those_of_each() -> None:
    texts = ["a", "\u2581b", "\u0120c", "中", "", b"\xff".decode("utf-8", "surrogateescape")]
    odd = [(text, kind) for text in texts for kind in (0, NORMAL, 2, CONTROL, USER_DEFINED, UNUSED, 7)]
    for tokenizer in (byte_level([], odd), spm({}, [(text, kind, 0.0) for text, kind in odd])):
        assert tokenizer.all_pieces() == [tokenizer.pieces[i] for i in range(tokenizer.vocab_size)]


def test_pieces_are_raw_bytes() -> None:
    tokenizer = spm({"\u2581a": -1.0}, [("\u2581x", USER_DEFINED, 0.0)])
    assert tokenizer.id_to_piece(3 + 0x0A) == b"\n"
    assert tokenizer.id_to_piece(259) == b" a"
    assert tokenizer.id_to_piece(260) == "\u2581x".encode()
    assert tokenizer.id_to_piece(1) == b"<s>"
    assert byte_level([]).id_to_piece(0xE9) == b"\xe9"


@pytest.mark.parametrize("token", [-1, 261, 10**12])
def test_an_id_outside_the_vocabulary_is_an_error(token: int) -> None:
    tokenizer = Tokenizer.from_metadata(GOOD)
    for use in (tokenizer.id_to_piece, tokenizer.token_text, tokenizer.token_type):
        with pytest.raises(InvalidArgumentError, match=f"token id {token} is not in the vocabulary of 261"):
            use(token)
    with pytest.raises(InvalidArgumentError):
        tokenizer.decode([token])


@pytest.mark.parametrize("ids", ["text", [1.5], None, [None], np.array([0.5])])
def test_what_is_no_id_is_an_error(ids: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="token ids: expected integers, got"):
        Tokenizer.from_metadata(GOOD).decode(ids)


VALUES: st.SearchStrategy[Any] = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**40), 2**40), st.floats(), st.text(max_size=5),
    st.lists(st.one_of(st.text(max_size=4), st.integers(-2, 9), st.floats()), max_size=8),
)  # fmt: skip


@given(
    st.sampled_from(["llama", "gpt2", "bert", "t5"]),
    st.lists(st.tuples(st.text(max_size=4), st.integers(-1, 8), st.floats(-5, 0)), min_size=1, max_size=12),
    st.dictionaries(
        st.sampled_from(
            [
                "pre",
                "merges",
                "scores",
                "token_type",
                "bos_token_id",
                "unknown_token_id",
                "precompiled_charsmap",
            ]
        ),
        VALUES,
        max_size=4,
    ),
    st.text(max_size=12),
)
def test_any_metadata_gives_a_tokenizer_or_an_akunu_error(
    model: str, tokens: list[tuple[str, int, float]], keys: dict[str, Any], text: str
) -> None:
    found = metadata(model, tokens, **({"merges": ["a b"], "pre": "gpt-2", "unknown_token_id": 0} | keys))
    with suppress(AkunuError):
        tokenizer = Tokenizer.from_metadata(found)
        ids = tokenizer.encode(text, parse_special=True)
        assert isinstance(tokenizer.decode(ids), str)

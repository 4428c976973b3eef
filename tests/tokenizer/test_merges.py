"""Byte-level merges: the ids are those of the `tokenizers` library's model, whatever the vocabulary."""

from __future__ import annotations

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st

from akunu import _core
from akunu.loading.conversion.folder_tokenizer import _byte_level
from akunu.tokenizer import Tokenizer
from akunu.tokenizer.bytelevel import CHAR_OF_BYTE, ByteLevelBpe
from akunu.tokenizer.pretokenizers import pre_tokenizer
from akunu.tokenizer.vocabulary import Vocabulary

from .vocabularies import CONTROL, NORMAL, byte_level, data_file, metadata

BYTE_LEVEL = ("llama-bpe", "qwen2", "gpt-2", "starcoder", "deepseek-llm")


def library_ids(found: dict[str, object], text: str) -> list[int]:
    library: tokenizers.Tokenizer = _byte_level(Vocabulary.from_metadata(found), found)
    ids: list[int] = library.encode(text, add_special_tokens=False).ids
    return ids


@pytest.mark.table
@pytest.mark.parametrize("name", BYTE_LEVEL)
def test_a_real_text_and_odd_ones_have_the_ids_of_the_library(name: str) -> None:
    found = _core.GgufFile(str(data_file(f"vocab/ggml-vocab-{name}.gguf"))).metadata
    vocabulary = Vocabulary.from_metadata(found)
    ours = ByteLevelBpe(vocabulary, found, pre_tokenizer(vocabulary.pre))  # without added tokens
    library = _byte_level(vocabulary, found)

    def check(text: str) -> None:
        assert ours.encode_inside(text) == library.encode(text, add_special_tokens=False).ids

    check(data_file("text/tinyshakespeare.txt").read_text()[:200_000])
    for unit in ("a", " ", "\n", "ab", "!?", "日本"):
        check(unit * 2000)
    settings(max_examples=300)(given(st.text(st.characters(exclude_categories=["Cs"])))(check))()


PAIRS = st.lists(st.tuples(st.text("abc", min_size=1, max_size=3), st.text("abc", min_size=1, max_size=3)))


@given(PAIRS, st.booleans(), st.text("abc", max_size=30))
@settings(max_examples=300)
def test_any_merges_in_any_order_give_the_ids_of_the_library(
    pairs: list[tuple[str, str]], whole_first: bool, text: str
) -> None:
    pieces = [*CHAR_OF_BYTE, *dict.fromkeys("".join(pair) for pair in pairs if len("".join(pair)) > 1)]
    found = metadata(
        "gpt2",
        [(piece, NORMAL, 0.0) for piece in pieces],
        merges=[" ".join(pair) for pair in pairs],
        pre="llama-bpe" if whole_first else "gpt-2",
    )
    assert Tokenizer.from_metadata(found).encode(text) == library_ids(found, text)


def test_bytes_without_a_token_are_left_out_and_their_neighbours_meet() -> None:
    tokens = [("a", NORMAL, 0.0), ("b", NORMAL, 0.0), ("ab", NORMAL, 0.0)]
    found = metadata("gpt2", tokens, merges=["a b"], pre="gpt-2")
    assert Tokenizer.from_metadata(found).encode("axb") == library_ids(found, "axb") == [2]


def test_of_tokens_with_the_same_text_the_last_is_written() -> None:
    tokenizer = byte_level(["a b"], [("ab", NORMAL), ("ab", CONTROL)])
    assert tokenizer.encode("ab") == [257]


def test_what_is_no_list_of_texts_is_refused() -> None:
    for tokens, merges, left_out in (([b"a"], [], []), (["a"], [1], []), (["a"], [], [1])):
        with pytest.raises((TypeError, IndexError)):
            _core.ByteMerges(tokens, merges, left_out, CHAR_OF_BYTE, False)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="256"):
        _core.bytes_of(["a"], "ab")
    assert _core.bytes_of(["aĠ", "é", "中", ""], CHAR_OF_BYTE) == [b"a ", b"\xe9", None, b""]

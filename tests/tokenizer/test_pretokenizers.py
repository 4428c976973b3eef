"""The table of pre-tokenizers: every name works, cuts as its family does, and an unknown one is refused."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from akunu.base.errors import UnsupportedError
from akunu.tokenizer import Tokenizer
from akunu.tokenizer.pretokenizers import PRE_TOKENIZERS, pre_tokenizer

from .vocabularies import NORMAL, byte_level, metadata


def cuts(name: str, text: str) -> list[str]:
    """How the library cuts `text` by the patterns of `name`."""
    from tokenizers import Regex
    from tokenizers.pre_tokenizers import Sequence, Split

    splits = Sequence([Split(Regex(pattern), "isolated") for pattern in PRE_TOKENIZERS[name].patterns])
    return [piece for piece, _ in splits.pre_tokenize_str(text)]


def test_every_name_loses_no_text() -> None:
    for name in PRE_TOKENIZERS:
        tokenizer = byte_level([], pre=name)
        assert (
            tokenizer.decode(tokenizer.encode("It's 1234  words;\n\nÉ 中文 🦙"))
            == "It's 1234  words;\n\nÉ 中文 🦙"
        )


#: Of the names that share their patterns, one.
KINDS = {kind: name for name, kind in sorted(PRE_TOKENIZERS.items(), reverse=True)}


@pytest.mark.parametrize("name", sorted(KINDS.values()))
def test_every_pattern_compiles_and_loses_no_text(name: str) -> None:
    tokenizer = byte_level([], pre=name)

    @settings(max_examples=30)
    @given(st.text(max_size=60))
    def holds(text: str) -> None:
        assert tokenizer.decode(tokenizer.encode(text)) == text
        assert "".join(cuts(name, text)) == text

    holds()


@pytest.mark.parametrize(
    ("name", "text", "pieces"),
    [
        ("gpt-2", "Hello  world's 1234\n\n", ["Hello", " ", " world", "'s", " 1234", "\n\n"]),
        ("llama-bpe", "It'S 12345 a\n\nb", ["It", "'S", " ", "123", "45", " a", "\n\n", "b"]),
        ("qwen2", "x=12345", ["x", "=", "1", "2", "3", "4", "5"]),
        ("qwen35", "e\u0301te\u0301", ["e\u0301te\u0301"]),
        ("qwen2", "e\u0301te\u0301", ["e", "\u0301te", "\u0301"]),
        ("starcoder", "a 12", ["a", " ", "1", "2"]),
        ("falcon", "12345 a.b", ["123", "45", " a", ".", "b"]),
        ("deepseek-llm", "é: 中文ab 12", ["é", ":", " ", "中文", "ab", " ", "12"]),
        ("deepseek-coder", "a 12", ["a", " ", "1", "2"]),
        ("deepseek-v3", "中文a1234 .py", ["中文", "a", "123", "4", " .", "py"]),
        ("bloom", "a,b (c", ["a", ",", "b", " (", "c"]),
        ("tekken", "helloWorld 12", ["hello", "World", " ", "1", "2"]),
        ("gpt-4o", "HelloWorld's 1234", ["Hello", "World's", " ", "123", "4"]),
        ("superbpe", "12345 is one", ["12", "345", " is one"]),
        ("afmoe", "1234567 a", ["1", "234", "567", " a"]),
        ("kimi-k2", "中文abc中", ["中文", "abc", "中"]),
        ("jais-2", "a" + " " * 7 + "b", ["a", " " * 4, " " * 2, " b"]),
        ("seed-coder", "a!\n", ["a", "!", "\n"]),
        ("qwen2", "a!\n", ["a", "!\n"]),
        ("laguna", "a!\nb", ["a", "!", "\n", "b"]),
        ("ufakzeka", "Ali'den", ["Ali", "'den"]),
        ("qwen2", "Ali'den", ["Ali", "'d", "en"]),
        ("chameleon", "IMGIMGABZ1", ["IMGIMGABZ", "1"]),
    ],
)
def test_text_is_cut_as_the_family_cuts_it(name: str, text: str, pieces: list[str]) -> None:
    assert cuts(name, text) == pieces


def test_a_whole_piece_that_is_a_token_needs_no_merges_where_the_family_says_so() -> None:
    whole = [("Ġhello", NORMAL)]
    assert byte_level([], whole, pre="llama-bpe").encode("a hello", add_special=False)[-1] == 256
    assert byte_level([], whole, pre="gpt-2").encode("a hello", add_special=False)[-1] != 256


def test_an_unknown_name_is_refused_with_its_name() -> None:
    with pytest.raises(UnsupportedError, match="'my-tokenizer-9'"):
        byte_level([], pre="my-tokenizer-9")


def test_a_missing_name_is_taken_for_the_default_with_a_warning() -> None:
    with pytest.warns(UserWarning, match=r"tokenizer\.ggml\.pre is missing"):
        assert pre_tokenizer(None) is PRE_TOKENIZERS["default"]


def test_other_models_need_no_name() -> None:
    tokens = [("<unk>", 2, 0.0), ("<s>", 3, 0.0), ("</s>", 3, 0.0), ("a", 1, 0.0)]
    assert Tokenizer.from_metadata(metadata("llama", tokens, pre="anything")).pre == "anything"

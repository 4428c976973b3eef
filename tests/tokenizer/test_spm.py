"""SentencePiece BPE against a naive merger, and against SentencePiece itself."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st

from akunu.base.errors import TokenizerError
from akunu.tokenizer import Tokenizer
from akunu.tokenizer.pieces import SPACE, cutting_pattern
from akunu.tokenizer.vocabulary import TokenType

from .vocabularies import BYTES, NORMAL, SPECIALS, UNUSED, USER_DEFINED, data_file, metadata, real, spm

FIRST_PIECE = 3 + 256


def naive(pieces: dict[str, float], text: str) -> list[str]:
    """The definition: again and again merge the pair with the best score, the leftmost of equals."""
    symbols = list(text)
    while True:
        pairs = [
            (-pieces[left + right], n)
            for n, (left, right) in enumerate(pairwise(symbols))
            if left + right in pieces
        ]
        if not pairs:
            return symbols
        _, n = min(pairs)
        symbols[n : n + 2] = [symbols[n] + symbols[n + 1]]


@st.composite
def vocabularies(draw: st.DrawFn) -> dict[str, float]:
    """Pieces over a small alphabet with few scores, so that equal scores and rivals are common."""
    alphabet = draw(st.sampled_from([f"ab{SPACE}", f"ab{SPACE}\n"]))
    pieces = draw(st.lists(st.text(alphabet, min_size=2, max_size=5), max_size=25, unique=True))
    singles = dict.fromkeys(alphabet, -100.0)
    return singles | {piece: float(draw(st.integers(-6, 0))) for piece in pieces}


@st.composite
def merge_lists(draw: st.DrawFn) -> list[str]:
    """Merges over a small alphabet, each of what letters and earlier ones make."""
    pieces, merges = [*"ab", SPACE], []
    for _ in range(draw(st.integers(0, 12))):
        left, right = draw(st.sampled_from(pieces)), draw(st.sampled_from(pieces))
        if f"{left} {right}" not in merges:
            merges.append(f"{left} {right}")
            pieces.append(left + right)
    return merges


@given(merge_lists(), st.text("ab c\n", max_size=40), st.sampled_from(["gemma4", "llama"]))
@settings(max_examples=200)
def test_merging_by_a_list_equals_the_tokenizers_library(merges: list[str], text: str, model: str) -> None:
    """Gemma 4's vocabulary has one; Ollama calls it `llama` with `pre` gemma4."""
    pieces = list(dict.fromkeys([*"ab", SPACE, "\n", *(merge.replace(" ", "") for merge in merges)]))
    tokens = [*SPECIALS, *BYTES, *((piece, NORMAL, -1000.0) for piece in pieces)]
    ours = Tokenizer.from_metadata(
        metadata(model, tokens, pre="gemma4", merges=merges, bos_token_id=1, eos_token_id=2)
    )
    theirs = tokenizers.Tokenizer(
        tokenizers.models.BPE(
            {piece: i for i, (piece, _, _) in enumerate(tokens)},
            [tuple(merge.split(" ")) for merge in merges],
            byte_fallback=True,
            unk_token="<unk>",
        )
    )
    theirs.normalizer = tokenizers.normalizers.Replace(" ", SPACE)
    theirs.pre_tokenizer = tokenizers.pre_tokenizers.Split(tokenizers.Regex(r"\n+|[^\n]+"), "isolated")
    ids = ours.encode(text, add_special=False)
    assert ids == theirs.encode(text, add_special_tokens=False).ids
    assert ours.decode(ids) == text


def test_a_list_of_merges_is_needed() -> None:
    tokens = [*SPECIALS, *BYTES]
    with pytest.raises(TokenizerError, match=r"tokenizer\.ggml\.merges is missing; a 'gemma4'"):
        Tokenizer.from_metadata(metadata("gemma4", tokens))


@given(vocabularies(), st.text("ab \n", max_size=40))
@settings(max_examples=400)
def test_merging_equals_the_definition(pieces: dict[str, float], text: str) -> None:
    tokenizer = spm(pieces, add_space_prefix=False)
    got = [tokenizer.token_text(i) for i in tokenizer.encode(text, add_special=False)]
    got = ["\n" if piece == "<0x0A>" else piece for piece in got]  # where no piece is a newline
    assert got == naive(pieces, text.replace(" ", SPACE))


def test_text_is_cut_before_spaces_only_when_no_piece_crosses_them() -> None:
    def cut(*pieces: str) -> list[str]:
        pattern = cutting_pattern(pieces)
        return pattern.findall(f"ab{SPACE}{SPACE}cd\n\nef") if pattern else []

    assert cut(f"{SPACE}a", SPACE * 2, "\n\n") == ["ab", f"{SPACE}{SPACE}cd", "\n\n", "ef"]
    assert cut(f"a{SPACE}") == [f"ab{SPACE}{SPACE}cd", "\n\n", "ef"]
    assert cut("a\n") == ["ab", f"{SPACE}{SPACE}cd\n\nef"]
    assert cut(f"a{SPACE}", f"{SPACE}\n") == []
    # Of different tokens it does not matter what one ends and the next begins with.
    assert cut("a", SPACE, "b", "\n", "c", "\udcff") == ["ab", f"{SPACE}{SPACE}cd", "\n\n", "ef"]
    assert cut(f"\U0010ffff{SPACE}") == []


def test_llamas_vocabulary_allows_cuts_at_spaces_and_newlines() -> None:
    tokenizer = real("llama-spm")
    texts = [tokenizer.token_text(i) for i in range(tokenizer.vocab_size)]
    normal = [text for i, text in enumerate(texts) if tokenizer.token_type(i) == TokenType.NORMAL]
    pattern = cutting_pattern(normal)
    assert pattern and pattern.findall(f"one{SPACE}two\nthree") == ["one", f"{SPACE}two", "\n", "three"]


def test_equal_scores_merge_the_leftmost_pair_first() -> None:
    # Ranked by place in a list, as a list of merges would have it, "bc" or "ab" would win everywhere.
    tokenizer = spm({"a": -9, "b": -9, "c": -9, "bc": -1.0, "ab": -1.0}, add_space_prefix=False)
    assert [tokenizer.token_text(i) for i in tokenizer.encode("abc", add_special=False)] == ["ab", "c"]
    assert [tokenizer.token_text(i) for i in tokenizer.encode("cbc", add_special=False)] == ["c", "bc"]


def test_characters_without_a_piece_become_their_bytes() -> None:
    tokenizer = spm({SPACE: -1.0})
    ids = tokenizer.encode("é", add_special=False)
    assert ids == [FIRST_PIECE, 3 + 0xC3, 3 + 0xA9]
    assert tokenizer.decode(ids) == "é"


def test_without_byte_tokens_a_run_of_strange_characters_is_one_unknown() -> None:
    tokens = [*SPECIALS, (SPACE, NORMAL, -1.0), ("a", NORMAL, -2.0)]
    tokenizer = Tokenizer.from_metadata(metadata("llama", tokens))
    assert tokenizer.encode("aéüa", add_special=False) == [3, 4, 0, 4]


def test_an_unused_piece_is_a_step_of_merging_but_never_a_result() -> None:
    # "ab" leads to "abc" and is taken apart where it would stay.
    unused = [("ab", UNUSED, -1.0)]
    tokenizer = spm({"a": -9, "b": -9, "c": -9, "abc": -2.0}, unused, add_space_prefix=False)
    assert [tokenizer.token_text(i) for i in tokenizer.encode("abcab", add_special=False)] == [
        "abc",
        "a",
        "b",
    ]


def test_no_merge_gives_a_control_or_byte_token() -> None:
    pieces = {char: -9.0 for char in "</s>0xA"} | {"</": -1.0, "s>": -1.0, "<0": -1.0, "x0": -1.0, "A>": -1.0}
    tokenizer = spm(pieces, add_space_prefix=False)
    assert not set(tokenizer.encode("</s><0x0A>", add_special=False)) & set(range(FIRST_PIECE))


def test_the_space_prefix_goes_before_the_text_and_after_added_tokens() -> None:
    tokenizer = spm({SPACE: -9, "a": -9, f"{SPACE}a": -1}, [("[X]", USER_DEFINED, 0.0)])
    got = [tokenizer.token_text(i) for i in tokenizer.encode("a[X]a", add_special=False)]
    assert got == [f"{SPACE}a", "[X]", f"{SPACE}a"]
    assert tokenizer.decode(tokenizer.encode("a[X]a")) == "a[X]a"


def test_a_vocabulary_without_scores_is_refused() -> None:
    broken = metadata("llama", [*SPECIALS, *BYTES])
    del broken["tokenizer.ggml.scores"]
    with pytest.raises(TokenizerError, match=r"scores is missing"):
        Tokenizer.from_metadata(broken)


def test_ids_equal_those_of_sentencepiece() -> None:
    sentencepiece = pytest.importorskip("sentencepiece")
    path = data_file("tinyllama/tok512.model")
    model = sentencepiece.SentencePieceProcessor(model_file=str(path))
    kinds = [
        2 if model.is_unknown(i) else 3 if model.is_control(i) else 6 if model.is_byte(i) else 1
        for i in range(model.get_piece_size())
    ]
    tokens = [(model.id_to_piece(i), kind, model.get_score(i)) for i, kind in enumerate(kinds)]
    tokenizer = Tokenizer.from_metadata(metadata("llama", tokens))
    story = "Once upon a time, there was a little girl named Lily. She loved to play outside in the park."
    random.seed(7)
    words = story.split()
    texts = [story, "", "é ü\n\n x", "日本語 text  two spaces", "\ttab  ", "a" * 300]
    texts += [" ".join(random.choices(words, k=30)) for _ in range(50)]
    texts += ["".join(random.choices(story + "zqx\n\té日", k=80)) for _ in range(200)]
    for text in texts:
        text = " ".join(filter(None, text.split(" ")))  # this model drops extra spaces, a Llama's does not
        assert tokenizer.encode(text, add_special=False) == model.encode(text), text

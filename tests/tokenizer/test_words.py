"""Words that are remembered: the ids of a text are those of the `tokenizers` library for the whole text."""

from __future__ import annotations

from pathlib import Path

import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers

from akunu.tokenizer import words
from akunu.tokenizer.hf import tokenizer_from_folder
from akunu.tokenizer.words import KnownWords

CORPUS = ["the quick brown fox; jumps over 12 lazy dogs", "naïve café Ünïcode 中文 σς", "it's a b c d e"] * 9
PARTS = [
    " ", "  ", "the", "quick", "Fox", "É", "e\u0301", "\u0301", "Σ", "İ", "ß", "中", "\t", "\n", "\x00",
    "\x1c", "\u00a0", "\u3000", "\u200b", ",", "##", "[UNK]", "x" * 101, "\u1112\u1161", "🙂", "ﬁ", "9",
]  # fmt: skip


@pytest.mark.parametrize("lowercase", [False, True])
def test_ids_are_those_of_the_whole_text(lowercase: bool, tmp_path: Path) -> None:
    library = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
    library.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    library.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    library.decoder = decoders.WordPiece()
    library.train_from_iterator(
        CORPUS, trainers.WordPieceTrainer(vocab_size=150, special_tokens=["[UNK]"], show_progress=False)
    )
    library.save(str(tmp_path / "tokenizer.json"))
    tokenizer = tokenizer_from_folder(tmp_path, 200)
    assert tokenizer is not None

    @given(st.lists(st.sampled_from(PARTS), max_size=12).map("".join) | st.text(max_size=20))
    def check(text: str) -> None:
        whole = library.encode(text, add_special_tokens=False).ids
        if "[UNK]" not in text:  # which no text may write
            assert tokenizer.encode(text, add_special=False) == whole

    check()


def test_a_word_is_encoded_once_and_so_many_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def encode(word: str) -> list[int]:
        asked.append(word)
        return [len(word)]

    monkeypatch.setattr(words, "_MOST", 3)
    known = KnownWords(encode)
    assert known.encode("a bb a  bb") == [1, 2, 1, 0, 2]
    assert asked == ["a", "bb", ""]
    assert known.encode("cccc a") == [4, 1]  # the fourth: all others are forgotten
    assert asked == ["a", "bb", "", "cccc", "a"]
    long = "x" * 33
    assert known.encode(f"{long} {long}") == [33, 33]
    assert asked[-2:] == [long, long]

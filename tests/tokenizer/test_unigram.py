"""Unigram against SentencePiece, and its character map against files that lie."""

from __future__ import annotations

import random
import struct
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from akunu.base.errors import TokenizerError
from akunu.tokenizer import Tokenizer
from akunu.tokenizer.pieces import SPACE
from akunu.tokenizer.unigram import Charsmap, Unigram
from akunu.tokenizer.vocabulary import Vocabulary

from .vocabularies import CONTROL, NORMAL, UNKNOWN, data_file, metadata

T5 = [("<pad>", CONTROL, 0.0), ("</s>", CONTROL, 0.0), ("<unk>", UNKNOWN, 0.0)]


def fields(message: bytes, number: int) -> list[bytes]:
    """The length-delimited fields `number` of a protobuf message."""
    found = []
    position = 0

    def varint() -> int:
        nonlocal position
        value = shift = 0
        while True:
            byte = message[position]
            position += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while position < len(message):
        key = varint()
        if key & 7 == 2:
            length = varint()
            if key >> 3 == number:
                found.append(message[position : position + length])
            position += length
        elif key & 7 == 0:
            varint()
        else:
            position += {1: 8, 5: 4}[key & 7]
    return found


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, dict[str, object]]:
    """A Unigram model that SentencePiece has trained, with its NFKC map, and as GGUF metadata."""
    sentencepiece = pytest.importorskip("sentencepiece")
    folder: Path = tmp_path_factory.mktemp("unigram")
    (folder / "text").write_text(data_file("text/tinyshakespeare.txt").read_text()[:60_000])
    sentencepiece.SentencePieceTrainer.train(
        input=str(folder / "text"), model_prefix=str(folder / "m"), vocab_size=600, model_type="unigram",
        pad_id=0, eos_id=1, unk_id=2, bos_id=-1, num_threads=1, minloglevel=2,
    )  # fmt: skip
    model = sentencepiece.SentencePieceProcessor(model_file=str(folder / "m.model"))
    (normalizer,) = fields((folder / "m.model").read_bytes(), 3)  # ModelProto.normalizer_spec
    (charsmap,) = fields(normalizer, 2)  # NormalizerSpec.precompiled_charsmap
    kinds = [
        UNKNOWN if model.is_unknown(i) else CONTROL if model.is_control(i) else NORMAL
        for i in range(model.get_piece_size())
    ]
    tokens = [(model.id_to_piece(i), kind, model.get_score(i)) for i, kind in enumerate(kinds)]
    keys = {
        "add_space_prefix": True,
        "remove_extra_whitespaces": True,
        "precompiled_charsmap": list(charsmap),
    }
    return model, metadata("t5", tokens, **keys)


def test_ids_equal_those_of_sentencepiece(trained: tuple[Any, dict[str, object]]) -> None:
    model, found = trained
    tokenizer = Tokenizer.from_metadata(found)
    normaliser = Unigram(Vocabulary.from_metadata(found), found)
    random.seed(3)
    words = data_file("text/tinyshakespeare.txt").read_text()[:20_000].split()
    texts = [
        "",
        "   ",
        "ﬁne  Ⅷ ①",
        "\uff46\uff55ll\u3000width",
        "e\u0301 é",
        "日本語 x 日",
        "a\tb\nc\u00a0d",
        "가각 ¼",
        "\uff76\uff9e\uff76",
    ]
    texts += [" ".join(random.choices(words, k=40)) for _ in range(100)]
    texts += ["".join(random.choices("abc XYZ.,'é①ﬁ日\t\u0301\u200b", k=60)) for _ in range(300)]
    for text in texts:
        assert normaliser.normalise(text) == model.normalize(text), text
        assert tokenizer.encode(text, add_special=False) == model.encode(text), text


def test_the_text_comes_back(trained: tuple[Any, dict[str, object]]) -> None:
    tokenizer = Tokenizer.from_metadata(trained[1])
    text = "First Citizen: Before we proceed any further, hear me speak."
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_eos_is_added_by_default_and_bos_is_not() -> None:
    tokens = [*T5, (SPACE, NORMAL, -1.0), ("a", NORMAL, -1.0)]
    tokenizer = Tokenizer.from_metadata(metadata("t5", tokens, add_space_prefix=True))
    assert tokenizer.encode("a") == [3, 4, 1]


def test_a_control_token_spelt_in_a_text_is_not_that_token() -> None:
    singles = [(char, NORMAL, -5.0) for char in f"{SPACE}</s>"[:-1] + ">"]
    tokenizer = Tokenizer.from_metadata(metadata("t5", [*T5, *singles]))
    assert 1 not in tokenizer.encode("</s>", add_special=False)
    assert tokenizer.encode("</s>", add_special=False, parse_special=True) == [1]


@given(st.binary(max_size=200), st.text(max_size=20))
def test_a_map_of_random_bytes_is_an_error_or_a_text(data: bytes, text: str) -> None:
    with suppress(TokenizerError):
        assert isinstance(Charsmap(data).apply(text), str)


@given(
    st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=300),
    st.binary(max_size=50),
    st.text(max_size=20),
)
def test_a_map_that_points_anywhere_is_an_error_or_a_text(
    units: list[int], strings: bytes, text: str
) -> None:
    trie = struct.pack(f"<{len(units)}I", *units)
    with suppress(TokenizerError):
        assert isinstance(Charsmap(struct.pack("<I", len(trie)) + trie + strings).apply(text), str)


def test_a_map_shorter_than_its_header_says_is_refused() -> None:
    with pytest.raises(TokenizerError, match="400 bytes by its header, but 8 bytes follow"):
        Charsmap(struct.pack("<I", 400) + bytes(8))

"""Streaming: the same text for every cut, and no half characters."""

from __future__ import annotations

import time
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from akunu.base.errors import InvalidArgumentError
from akunu.tokenizer import StreamingDetokenizer, Tokenizer

from .vocabularies import USER_DEFINED, byte_level, real, spm

BYTE_LEVEL = byte_level(["Ġ a"], [("<tool>", USER_DEFINED), ("<|im_end|>", 3)])
SENTENCEPIECE = spm(
    {"\u2581": -1.0, "\u2581a": -2.0, "a\u2581": -3.0, "é": -4.0}, [("[X]", USER_DEFINED, 0.0)]
)
TOKENIZERS = {"byte-level": BYTE_LEVEL, "sentencepiece": SENTENCEPIECE}


def cut(items: list[int], places: list[int]) -> list[list[int]]:
    borders = sorted({0, len(items), *(place % (len(items) + 1) for place in places)})
    return [items[start:end] for start, end in pairwise(borders)]


@pytest.mark.parametrize("name", TOKENIZERS)
@pytest.mark.parametrize("skip_special", [True, False])
def test_every_cut_gives_the_text_of_the_whole(name: str, skip_special: bool) -> None:
    tokenizer = TOKENIZERS[name]

    @given(st.lists(st.integers(0, tokenizer.vocab_size - 1), max_size=40), st.lists(st.integers(0, 40)))
    @settings(max_examples=300)
    def holds(ids: list[int], places: list[int]) -> None:
        stream = StreamingDetokenizer(tokenizer, skip_special=skip_special)
        text = "".join([stream.push(part) for part in cut(ids, places)]) + stream.flush()
        assert text == tokenizer.decode(ids, skip_special=skip_special)

    holds()


@given(st.lists(st.integers(0, 255), max_size=60))
def test_invalid_bytes_become_what_python_replaces_them_with(data: list[int]) -> None:
    # Ids 0 to 255 of the byte-level vocabulary are the bytes.
    stream = StreamingDetokenizer(BYTE_LEVEL)
    text = "".join(stream.push(byte) for byte in data) + stream.flush()
    assert text == bytes(data).decode(errors="replace")


def test_no_piece_ends_within_a_character() -> None:
    stream = StreamingDetokenizer(BYTE_LEVEL)
    seen = [(stream.push(byte), stream.pending) for byte in "a日😀".encode()]
    assert [piece for piece, _ in seen] == ["a", "", "", "日", "", "", "", "😀"]
    assert [pending for _, pending in seen] == [0, 1, 2, 0, 1, 2, 3, 0]


def test_the_tail_is_flushed() -> None:
    stream = StreamingDetokenizer(BYTE_LEVEL)
    assert stream.push(list("日".encode()[:2])) == ""
    assert stream.flush() == "\ufffd"
    assert stream.pending == 0


class TestTheSpaceThatEncodingAdds:
    a = 260  # "\u2581a"

    def test_it_is_taken_off_at_the_start_of_a_text(self) -> None:
        assert SENTENCEPIECE.decode([self.a, self.a]) == "a a"
        assert SENTENCEPIECE.decode([1, self.a]) == "a"

    def test_a_continuation_of_ordinary_text_keeps_it(self) -> None:
        prompt = SENTENCEPIECE.encode("a")
        assert StreamingDetokenizer(SENTENCEPIECE, after=prompt).push([self.a]) == " a"

    def test_after_an_added_token_it_is_taken_off(self) -> None:
        # As an answer after a template's last control token: rendered again, it encodes to the same ids.
        prompt = [*SENTENCEPIECE.encode("a"), 1]
        assert StreamingDetokenizer(SENTENCEPIECE, after=prompt).push([self.a]) == "a"

    def test_behind_an_unknown_character_stands_the_texts_own(self) -> None:
        assert SENTENCEPIECE.unknown_id == 0
        assert SENTENCEPIECE.decode([self.a, 0, self.a]) == "a a"
        assert StreamingDetokenizer(SENTENCEPIECE, after=[self.a, 0]).push([self.a]) == " a"

    def test_only_one_space_is_taken_off(self) -> None:
        assert SENTENCEPIECE.decode(SENTENCEPIECE.encode("  a")) == "  a"

    def test_byte_level_text_keeps_its_first_space(self) -> None:
        assert BYTE_LEVEL.decode(BYTE_LEVEL.encode(" a")) == " a"


@given(st.text(max_size=50))
@settings(max_examples=200)
def test_decoding_gives_the_encoded_text_back(text: str) -> None:
    text = text.replace("\u2581", "")  # the sign for a space is one, once encoded
    for tokenizer in (BYTE_LEVEL, SENTENCEPIECE, real("llama-spm"), real("qwen2")):
        assert tokenizer.decode(tokenizer.encode(text)) == text


def test_numpy_ids_are_ids() -> None:
    ids = np.array(BYTE_LEVEL.encode("hello"), np.uint32)
    assert BYTE_LEVEL.decode(ids) == "hello"  # type: ignore[arg-type]
    stream = StreamingDetokenizer(SENTENCEPIECE, after=ids)  # type: ignore[arg-type]
    assert stream.push(ids[0]) == SENTENCEPIECE.id_to_piece(int(ids[0])).decode()


def test_a_strange_id_is_an_error() -> None:
    with pytest.raises(InvalidArgumentError, match="not in the vocabulary"):
        StreamingDetokenizer(BYTE_LEVEL).push([10**6])


def test_time_is_linear() -> None:
    tokenizer: Tokenizer = real("llama-spm")
    ids = tokenizer.encode("The quick brown fox. " * 5000)
    stream = StreamingDetokenizer(tokenizer)
    start = time.process_time()
    text = "".join([stream.push(i) for i in ids]) + stream.flush()
    assert text == "The quick brown fox. " * 5000
    assert (time.process_time() - start) / len(ids) < 50e-6

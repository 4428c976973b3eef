"""Streaming: the same text for every cut, no half characters, and stop strings across token borders."""

from __future__ import annotations

import time
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from akunu.detokenizer import StopMatcher, StreamingDetokenizer
from akunu.errors import InvalidArgumentError
from akunu.tokenizer import Tokenizer

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


class TestStopMatcher:
    def run(self, stops: list[str], pieces: list[str]) -> tuple[str, str | None]:
        matcher = StopMatcher(stops)
        text = "".join(matcher.push(piece) for piece in pieces)
        return text + matcher.flush(), matcher.matched

    def test_a_stop_string_across_pieces_ends_the_text_before_it(self) -> None:
        assert self.run(["\nUser:"], ["Hi", "\nUs", "er", ": x", "y"]) == ("Hi", "\nUser:")

    def test_text_that_may_begin_a_stop_string_is_held_back_and_no_more(self) -> None:
        matcher = StopMatcher(["END"])
        assert matcher.push("the E") == "the "
        assert matcher.push("N") == ""
        assert matcher.push("x E") == "ENx "
        assert matcher.flush() == "E"

    def test_a_match_may_begin_inside_a_failed_one(self) -> None:
        assert self.run(["aab"], list("aaab")) == ("a", "aab")
        assert self.run(["abab!"], list("ababab!")) == ("ab", "abab!")

    def test_the_match_that_ends_first_wins_and_of_equals_the_longer(self) -> None:
        assert self.run(["abcd", "bc"], ["abcd"]) == ("a", "bc")
        assert self.run(["c", "bc"], ["abcd"]) == ("a", "bc")

    def test_nothing_comes_after_a_match(self) -> None:
        matcher = StopMatcher(["x"])
        assert matcher.push("axb") == "a"
        assert matcher.push("more") == "" and matcher.flush() == ""

    def test_without_stop_strings_text_passes(self) -> None:
        assert self.run([], ["a", "b"]) == ("ab", None)

    @pytest.mark.parametrize("bad", [[""], [5], ["a", None]])
    def test_what_is_not_a_stop_string_is_refused(self, bad: list[str]) -> None:
        with pytest.raises(InvalidArgumentError, match="expected strings that are not empty"):
            StopMatcher(bad)

    @given(
        st.lists(st.text("ab", min_size=1, max_size=4), min_size=1, max_size=4),
        st.text("abc", max_size=30),
        st.lists(st.integers(0, 30)),
    )
    @settings(max_examples=500)
    def test_every_cut_gives_the_first_match_of_the_whole(
        self, stops: list[str], text: str, places: list[int]
    ) -> None:
        ends = [(text.find(stop) + len(stop), -len(stop), stop) for stop in stops if stop in text]
        _, length, stop = min(ends, default=(0, 0, None))
        end = min(ends)[0] + length if ends else len(text)
        borders = sorted({0, len(text), *(place % (len(text) + 1) for place in places)})
        pieces = [text[start:stop_at] for start, stop_at in pairwise(borders)]
        assert self.run(stops, pieces) == (text[:end], stop)

    def test_long_stop_strings_cost_no_more(self) -> None:
        matcher = StopMatcher(["a" * 50_000 + "b"])
        start = time.process_time()
        text = "".join(matcher.push("a" * 10) for _ in range(20_000)) + matcher.flush()
        assert text == "a" * 200_000
        assert time.process_time() - start < 5

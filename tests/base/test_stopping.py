"""Stop texts across the borders of pieces."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from akunu.base.errors import InvalidArgumentError
from akunu.base.stopping import StopMatcher


def run(stops: list[str], pieces: list[str]) -> tuple[str, str | None]:
    matcher = StopMatcher(stops)
    text = "".join(matcher.push(piece) for piece in pieces)
    return text + matcher.flush(), matcher.matched


def test_a_stop_string_across_pieces_ends_the_text_before_it() -> None:
    assert run(["\nUser:"], ["Hi", "\nUs", "er", ": x", "y"]) == ("Hi", "\nUser:")


def test_text_that_may_begin_a_stop_string_is_held_back_and_no_more() -> None:
    matcher = StopMatcher(["END"])
    assert matcher.push("the E") == "the "
    assert matcher.push("N") == ""
    assert matcher.push("x E") == "ENx "
    assert matcher.flush() == "E"


def test_a_match_may_begin_inside_a_failed_one() -> None:
    assert run(["aab"], list("aaab")) == ("a", "aab")
    assert run(["abab!"], list("ababab!")) == ("ab", "abab!")


def test_the_match_that_ends_first_wins_and_of_equals_the_longer() -> None:
    assert run(["abcd", "bc"], ["abcd"]) == ("a", "bc")
    assert run(["c", "bc"], ["abcd"]) == ("a", "bc")


def test_nothing_comes_after_a_match() -> None:
    matcher = StopMatcher(["x"])
    assert matcher.push("axb") == "a"
    assert matcher.push("more") == "" and matcher.flush() == ""


def test_without_stop_strings_text_passes() -> None:
    assert run([], ["a", "b"]) == ("ab", None)


@pytest.mark.parametrize("bad", [[""], [5], ["a", None]])
def test_what_is_not_a_stop_string_is_refused(bad: list[str]) -> None:
    with pytest.raises(InvalidArgumentError, match="expected texts that are not empty"):
        StopMatcher(bad)


@given(
    st.lists(st.text("ab", min_size=1, max_size=4), min_size=1, max_size=4),
    st.text("abc", max_size=30),
    st.lists(st.integers(0, 30)),
)
@settings(max_examples=500)
def test_every_cut_gives_the_first_match_of_the_whole(stops: list[str], text: str, places: list[int]) -> None:
    ends = [(text.find(stop) + len(stop), -len(stop), stop) for stop in stops if stop in text]
    _, length, stop = min(ends, default=(0, 0, None))
    end = min(ends)[0] + length if ends else len(text)
    borders = sorted({0, len(text), *(place % (len(text) + 1) for place in places)})
    pieces = [text[start:stop_at] for start, stop_at in pairwise(borders)]
    assert run(stops, pieces) == (text[:end], stop)


def test_long_stop_strings_cost_no_more() -> None:
    matcher = StopMatcher(["a" * 50_000 + "b"])
    start = time.process_time()
    text = "".join(matcher.push("a" * 10) for _ in range(20_000)) + matcher.flush()
    assert text == "a" * 200_000
    assert time.process_time() - start < 5

"""Text in pieces, broken between words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from akunu.cli.wrapping import WordWrap, columns


def wrapped(text: str, width: int, size: int = 1) -> str:
    """`text` fed in pieces of `size` characters."""
    wrap = WordWrap(width)
    pieces = [wrap.feed(text[n : n + size]) for n in range(0, len(text), size)]
    return "".join(pieces) + wrap.flush()


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("the quick brown fox", ["the quick", "brown fox"]),
        ("1234567890 a", ["1234567890", "a"]),
        ("a\n\n  indented text here", ["a", "", "  indented", "text here"]),
        ("ab 12345678901234 c", ["ab 12345678901234 c"]),  # no break makes a long word fit
        ("中文字符很多很多啊", ["中文字符很", "多很多啊"]),
        ("naïve café crème", ["naïve café", "crème"]),
        ("e\u0301" * 5 + " " + "e\u0301" * 5, ["e\u0301" * 5, "e\u0301" * 5]),
        ("```\nlong = line + of + code\n```\nthe quick brown",
         ["```", "long = line + of + code", "```", "the quick", "brown"]),
        ("    long = line + of + code", ["    long = line + of + code"]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("size", [1, 3, 1000])
def test_lines_break_between_words_except_in_code(text, lines, size):
    assert wrapped(text, 10, size).split("\n") == lines


def test_a_word_is_held_back_until_it_is_complete_and_no_longer():
    wrap = WordWrap(10)
    assert [wrap.feed(piece) for piece in ("one", " tw", "o\n", "x")] == ["", "one", " two\n", ""]
    assert wrap.feed("yzabcdefghij") == "xyzabcdefghij"  # it fits no line, so there is nothing to wait for
    assert wrap.feed("中") == "中"
    assert wrap.flush() == ""


def test_what_follows_a_flush_belongs_to_the_same_word():
    wrap = WordWrap(10)
    assert wrap.feed("the first tab") + wrap.flush() == "the first\ntab"
    assert wrap.feed("letop more") + wrap.flush() == "letop\nmore"


@given(st.text(st.sampled_from("ab \n\t`中é"), max_size=60), st.integers(8, 20), st.integers(1, 7))
def test_only_white_space_changes_and_pieces_do_not_matter(text, width, size):
    out = wrapped(text, width, size)
    assert out == wrapped(text, width, 1000)
    assert "".join(out.split()) == "".join(text.split())
    if "`" not in text and "\t" not in text and "    " not in text:
        words = text.replace("中", " 中 ").split()
        if all(columns(word) <= width for word in words):
            assert max(map(columns, out.split("\n"))) <= width

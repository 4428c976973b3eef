"""The sentences that ember-speech is trained on: how numbers are said, and what is held back."""

from __future__ import annotations

from itertools import islice
from random import Random

import pytest

from tools.ember_speech import numbers
from tools.ember_speech.sentences import KINDS, parse, sentences
from tools.ember_speech.voices import HELD_BACK_VARIANTS, VARIANTS, draw_voice


@pytest.mark.parametrize(
    ("token", "written", "said"),
    [
        (numbers.count(12), "twelve", "twelve"),
        (numbers.count(13), "13", "thirteen"),
        (numbers.count(1_205), "1205", "one thousand two hundred and five"),
        (numbers.count(20_017), "20,017", "twenty thousand and seventeen"),
        (numbers.year(1984), "1984", "nineteen eighty four"),
        (numbers.year(1905), "1905", "nineteen oh five"),
        (numbers.year(2007), "2007", "two thousand and seven"),
        (numbers.ordinal(21), "21st", "twenty first"),
        (numbers.ordinal(12), "12th", "twelfth"),
        (numbers.ordinal(30), "30th", "thirtieth"),
    ],
)
def test_numbers_are_said_as_people_say_them(token: str, written: str, said: str) -> None:
    assert parse(token).words == ((written, said),)


def test_marks_after_what_is_said_are_written() -> None:
    assert parse("Wait 15~fifteen, at 7:30~seven_thirty a.m.~ay_em.").words == (
        ("Wait", "Wait"),
        ("15,", "fifteen,"),
        ("at", "at"),
        ("7:30", "seven thirty"),
        ("a.m.", "ay em."),
    )


def test_the_same_seed_gives_the_same_sentences() -> None:
    assert [s.text for s in islice(sentences(5), 50)] == [s.text for s in islice(sentences(5), 50)]
    assert [s.text for s in islice(sentences(5), 50)] != [s.text for s in islice(sentences(6), 50)]


@pytest.mark.parametrize("kind", [*KINDS, "ember"])
def test_every_kind_has_sentences_of_plain_words_when_said(kind: str) -> None:
    for sentence in islice(sentences(1, kind=kind), 100):
        assert sentence.text[0].isupper() or not sentence.text[0].isalpha()
        for _, said in sentence.words:
            assert not any(c.isdigit() or c in "~_{}|$<>" for c in said), sentence


def test_no_sentence_is_on_both_sides_of_the_split() -> None:
    assert not any(s.held_back for s in islice(sentences(1), 500))
    assert all(s.held_back for s in islice(sentences(1, held_back=True), 20))


def test_no_voice_is_on_both_sides_of_the_split() -> None:
    assert not {*VARIANTS} & {*HELD_BACK_VARIANTS}
    rng = Random(1)
    drawn = {draw_voice(rng, held_back=True).name.partition("+")[2] for _ in range(200)}
    assert drawn == {*HELD_BACK_VARIANTS}

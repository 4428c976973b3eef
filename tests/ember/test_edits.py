"""Summaries, corrections, haiku, decimals and foreign names: what the generator's answers promise."""

from __future__ import annotations

from decimal import Decimal
from random import Random

from tools.ember import prompts
from tools.ember.corpus.corrections import correction
from tools.ember.corpus.decimals import decimals, why
from tools.ember.corpus.foreign import foreign_case
from tools.ember.corpus.haiku import haiku, syllables
from tools.ember.corpus.summaries import cannot, summary

COUNT = 400


def test_a_summary_is_the_first_sentence_of_the_text() -> None:
    rng = Random(1)
    longer = 0
    for turn in (summary(rng) for _ in range(COUNT)):
        assert turn.answer in turn.ask
        assert turn.answer[-1] in ".!?"
        assert turn.answer[:-1].count(". ") == 0
        rest = turn.ask.split(turn.answer, 1)[1]
        longer += "." in rest
    assert longer > COUNT // 2


def test_a_correction_is_another_sentence_as_a_rule() -> None:
    rng = Random(2)
    changed = 0
    for turn in (correction(rng) for _ in range(COUNT)):
        assert turn.answer[0].isupper()
        assert turn.answer[-1] in ".?"
        assert "  " not in turn.answer
        changed += turn.answer not in turn.ask
    assert changed > 0.85 * COUNT


def test_a_haiku_has_three_lines_and_their_syllables() -> None:
    rng = Random(3)
    for turn in (haiku(rng) for _ in range(COUNT)):
        assert prompts.FORMS["haiku"](turn.answer, 0), turn.answer
    assert [syllables(word) for word in ("moon", "water", "little", "stone", "butterfly")] == [1, 2, 2, 1, 3]
    assert not prompts.FORMS["haiku"]("The moon\nis here", 0)


def test_decimals_are_compared_by_their_values() -> None:
    rng = Random(4)
    compared = 0
    for turn in (decimals(rng) for _ in range(COUNT)):
        if " is bigger than " not in turn.answer or ": " in turn.answer:
            continue
        high, low = turn.answer.split("so ")[1].rstrip(".").split(" is bigger than ")
        assert Decimal(high) > Decimal(low)
        compared += 1
    assert compared > COUNT // 10
    assert why("9.11", "9.9") == "9.9 is 9.90, and 90 is more than 11"
    assert why("12.5", "9.75") == "12 is more than 9"


def test_foreign_names_change_their_case_alone() -> None:
    rng = Random(5)
    for turn in (foreign_case(rng) for _ in range(COUNT)):
        assert turn.answer in (turn.answer.upper(), turn.answer.lower())
        assert turn.answer.casefold() in turn.ask.casefold()


def test_what_it_cannot_do_is_said_in_these_words() -> None:
    rng = Random(6)
    asked = {turn.ask: turn.answer for turn in (cannot(rng) for _ in range(COUNT))}
    assert len(asked) > 0.9 * COUNT
    assert all("cannot do that" in answer or "I see no text" in answer for answer in asked.values())


def test_the_prompts_written_apart_have_ten_of_each_skill_at_least() -> None:
    read = prompts.read(prompts.PROMPTS.with_name("prompts-edits.txt"))
    skills = [prompt.skill for prompt in read]
    assert len(set(skills)) == 6
    assert all(skills.count(skill) >= 10 for skill in skills)

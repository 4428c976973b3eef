"""Requests as strangers write them: every answer is worked out again from its text."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from random import Random

import pytest

from tools.ember.corpus.casing import case_turn
from tools.ember.corpus.casts import cast_story, cast_text
from tools.ember.corpus.deeds import deeds
from tools.ember.corpus.dialogs import TOLD, dialog_chat
from tools.ember.corpus.keyed import ROWS, keyed_chat
from tools.ember.corpus.orders import extreme_turn, order_chat
from tools.ember.corpus.pairs import pairs_text
from tools.ember.corpus.portions import SHOW, items_of, picked_turn, portion_chat
from tools.ember.corpus.reckoning import reckoning_turn
from tools.ember.corpus.remarks import host_chat, remark_turn
from tools.ember.corpus.rowing import rowing_turn
from tools.ember.corpus.sample import Sample, Turn
from tools.ember.corpus.scene_words import Scene
from tools.ember.corpus.scenes import SCENES, Asked, scene_chat, tell
from tools.ember.corpus.senses import sense_turn
from tools.ember.corpus.services_home import HOME_CHOICES, HOME_SAID, HOME_SERVICES
from tools.ember.corpus.strangers import stranger_chat
from tools.ember.corpus.strict import compared, dictionary, spaced, strict_turn

_SLOT = re.compile(r"\$\^?([A-Za-z]\w*)")


@pytest.mark.parametrize("scenes", [SCENES, TOLD], ids=["texts", "told"])
def test_what_is_asked_is_in_the_text(scenes: list[tuple[str, list[Asked]]]) -> None:
    assert len(scenes) >= 30
    for text, pairs in scenes:
        named = set(_SLOT.findall(re.sub(r"\{[^{}]*\}", "", text))) | set(_SLOT.findall(text))
        for pair in pairs:
            assert pair.asks and pair.answer, text
            assert "{" not in pair.answer, pair.answer
            for part in (*pair.asks, pair.answer, pair.clause):
                assert set(_SLOT.findall(part)) <= named, (part, text)


def test_slots_that_an_answer_needs_are_never_left_out() -> None:
    """A slot inside of an optional part of the text cannot be asked for."""
    for text, pairs in [*SCENES, *TOLD]:
        certain = set(_SLOT.findall(re.sub(r"\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}", "", text)))
        for pair in pairs:
            missing = set(_SLOT.findall(pair.answer)) - certain
            assert not missing or all(f"${slot}" in text for slot in missing), (text, pair.answer)


def test_things_of_a_scene_are_different() -> None:
    scene = Scene(Random(1))
    names = [scene[f"name{n}"] for n in range(30)]
    assert len(set(names)) == 30
    assert names[0] == scene["name0"]


def test_an_answer_to_a_text_stands_in_it() -> None:
    rng = Random(2)
    for _ in range(1500):
        told = tell(rng)
        text = told.text.lower()
        for ask, answer, _ in told.pairs:
            numbers = re.findall(r"\d+", answer)
            assert all(number in told.text for number in numbers), (told.text, ask, answer)
            names = [w for w in re.findall(r"\b[A-Z][a-z]+\b", answer)[1:] if w not in ("In", "At", "On")]
            assert all(name.lower() in text for name in names), (told.text, ask, answer)


def test_deeds_are_answered_with_what_was_done() -> None:
    rng = Random(3)
    for _ in range(1500):
        text, pairs = deeds(rng)
        for ask, answer in pairs:
            said = answer.rstrip(".").split(", ")[0]
            if said not in ("Yes", "No"):
                assert said.lower() in text.lower().replace(" he ", f" {said.split()[0].lower()} ") or any(
                    part in text for part in (said, said[0].lower() + said[1:], " ".join(said.split()[1:]))
                ), (text, ask, answer)


def test_another_case_changes_nothing_but_the_case() -> None:
    rng = Random(4)
    for _ in range(2000):
        turn = case_turn(rng)
        assert turn.answer.lower() in turn.ask.lower() or turn.answer.startswith(("Yes", "No")), turn
        assert not re.search(r"[${}\x01]", turn.ask), turn


def test_a_list_is_put_in_order() -> None:
    rng = Random(5)
    for _ in range(1500):
        sample = order_chat(rng)
        asked, answer = sample.messages[-2]["content"], sample.messages[-1]["content"]
        items = re.findall(r"[^,\n\"\[\]]+", answer)
        items = [i for i in (re.sub(r"^\s*(\d+\. |- )?", "", item).strip() for item in items) if i]
        assert all(item in asked for item in items), sample.messages
        system = sample.messages[0]["content"]
        if re.search(r"ascending|small to big|smallest to largest", asked + system) and "desc" not in asked:
            numbers = [int(i) for i in items if i.lstrip("-").isdigit()]
            assert numbers == sorted(numbers)
        if "A-Z" in asked or "from A to Z" in asked:
            assert items == sorted(items, key=str.lower), sample.messages


@pytest.mark.parametrize("style", SHOW)
def test_items_are_shown_in_their_form(style: str) -> None:
    rng = Random(6)
    for _ in range(200):
        _, items = items_of(rng)
        shown = SHOW[style](items)
        assert len(items) > 1
        assert all(item in shown for item in items)
        assert len(shown.split("\n")) == (len(items) if style in ("numbered", "bullets", "lines") else 1)


def test_items_of_an_answer_are_in_the_text() -> None:
    rng = Random(7)
    for _ in range(1500):
        messages = portion_chat(rng).messages
        for line in messages[-1]["content"].split("\n"):
            item = re.sub(r"^(\d+\. |- )", "", line)
            if item[0] != "[":
                assert all(part in messages[-2]["content"] for part in item.split(", ")), messages


def test_json_holds_what_is_said() -> None:
    rng = Random(8)
    assert all(row.fields for row in ROWS)
    for _ in range(2000):
        messages = keyed_chat(rng).messages
        value = json.loads(messages[-1]["content"])
        said = " ".join(m["content"] for m in messages[:-1])
        fields = value.items() if isinstance(value, dict) else enumerate(value)
        for _, each in fields:
            if isinstance(each, int | float) and not isinstance(each, bool):
                assert str(each) in said, messages


def test_a_sum_of_daily_life_ends_in_its_result() -> None:
    rng = Random(13)
    for _ in range(1000):
        turn = reckoning_turn(rng)
        worked = turn.answer.split(". ")[0].rstrip(".")
        assert worked.endswith(f"= {turn.value}"), turn
        if re.fullmatch(r"[\d+*= -]+", worked):
            assert len({eval(side) for side in worked.split(" = ")}) == 1, turn


def test_a_hero_of_any_sort_is_in_the_story() -> None:
    rng = Random(14)
    for _ in range(60):
        sample = cast_story(rng)
        text = sample.messages[-1]["content"]
        assert sample.hint["hero"] in text
        assert sample.hint["kind"] in text
        plain = cast_text(rng)
        assert plain.hint["kind"] in (plain.text or plain.messages[-1]["content"])
        assert pairs_text(rng).text


def test_letters_stand_apart_as_asked() -> None:
    rng = Random(9)
    for _ in range(800):
        turn = spaced(rng)
        word = re.sub(r"[^\w]|_", "", turn.answer)
        assert word.lower() in turn.ask.lower(), turn
        assert len(turn.answer) >= 2 * len(word) - 1


def test_words_and_numbers_are_compared_rightly() -> None:
    rng = Random(10)
    for _ in range(800):
        answer = dictionary(rng).answer
        if match := re.fullmatch(r"(?:Yes, |No, )?(\w+) comes (before|after) (\w+)\.", answer):
            assert (match[1].lower() < match[3].lower()) == (match[2] == "before"), answer
        turn = compared(rng)
        if match := re.search(r"(\d+) (bigger|smaller|larger|less) than (\d+)", turn.ask):
            true = (int(match[1]) > int(match[3])) == (match[2] in ("bigger", "larger"))
            assert turn.answer.startswith("Yes" if true else "No"), turn


@pytest.mark.parametrize("kind", HOME_SERVICES)
def test_a_choice_that_is_said_by_its_verb_has_one(kind: str) -> None:
    slots = [part.split(":")[0].rstrip("?") for part in HOME_SERVICES[kind].parameters.split()]
    for slot in slots:
        if slot in HOME_SAID:
            assert all(len(values.split()) > 1 for values in HOME_CHOICES[slot])


@pytest.mark.parametrize(
    "make",
    [scene_chat, stranger_chat, dialog_chat, keyed_chat, portion_chat, order_chat, host_chat],
)
def test_no_chat_has_a_residue_of_its_template(make: Callable[[Random], Sample]) -> None:
    rng = Random(11)
    for _ in range(1500):
        for message in make(rng).messages:
            text = message["content"]
            assert not re.search(r"\$[a-z]|\x01|\x02|\x03|>>|##|\|", text), text


@pytest.mark.parametrize(
    "make", [strict_turn, sense_turn, remark_turn, extreme_turn, picked_turn, reckoning_turn, rowing_turn]
)
def test_no_turn_has_a_residue_of_its_template(make: Callable[[Random], Turn]) -> None:
    rng = Random(12)
    for _ in range(1500):
        turn = make(rng)
        assert turn.ask and turn.answer
        assert not re.search(r"[${}|\x01]", turn.ask + turn.answer), turn

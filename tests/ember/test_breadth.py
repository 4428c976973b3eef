"""What is put together from parts: events and their questions, word problems, switches."""

from __future__ import annotations

import json
import re
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tools.ember.corpus.accounts import account
from tools.ember.corpus.errands import ERRANDS, told_result
from tools.ember.corpus.events import event
from tools.ember.corpus.problems import named_sum, told_sum, two_steps
from tools.ember.corpus.requests import Drawn, declare, request
from tools.ember.corpus.sample import Turn
from tools.ember.corpus.toolkit import SWITCHES
from tools.ember.corpus.wider import there_was, wide_chat, wide_turn, wished_story

_RESIDUE = re.compile(r"[${}\x01\x02]|\[|\]")


def test_a_switch_is_said_in_two_ways() -> None:
    assert all(yes != no for _, yes, no in SWITCHES.values())


@pytest.mark.parametrize("make", [event, account])
def test_a_text_answers_its_questions(make: Any) -> None:
    rng = Random(4)
    for _ in range(1500):
        texts, pairs = make(rng)
        assert texts and pairs
        for text in [*texts, *(part for pair in pairs for part in pair)]:
            assert not _RESIDUE.search(text), text
        told = " ".join(texts).lower()
        for ask, answer in pairs:
            assert ask.endswith("?")
            numbers = re.findall(r"\d+", answer)
            assert all(number in told for number in numbers), (told, answer)


@pytest.mark.parametrize("make", [told_sum, named_sum, two_steps])
def test_a_problem_ends_in_its_result(make: Any) -> None:
    rng = Random(5)
    for _ in range(500):
        turn: Turn = make(rng)
        assert not _RESIDUE.search(turn.ask + turn.answer), turn
        worked = turn.answer.split(". ")[0].rstrip(".")
        assert worked.endswith(f"= {turn.value}"), turn


@pytest.mark.parametrize("kind", ERRANDS)
def test_an_errand_is_asked_for_with_its_values(kind: str) -> None:
    rng = Random(6)
    for _ in range(40):
        tool = declare(rng, kind, ERRANDS[kind])
        text, call = request(rng, tool, Drawn(rng))
        assert not re.search(r"[${}\[\]]", text), text
        function = call["function"]
        required = tool.declared["function"]["parameters"]["required"]
        assert set(required) <= set(function["arguments"])


def test_all_fields_of_a_result_are_said() -> None:
    rng = Random(7)
    for _ in range(500):
        result, answer, _ = told_result(rng)
        assert answer[-1] == "."
        try:
            fields = json.loads(result)
        except ValueError:
            fields = {"": result}
        for value in fields.values() if isinstance(fields, dict) else [fields]:
            shown = value if isinstance(value, list) else [value]
            assert value is True or all(str(each) in answer for each in shown), (result, answer)


def test_what_is_said_in_passing_is_whole() -> None:
    rng = Random(8)
    for _ in range(800):
        turn = wide_turn(rng)
        assert not re.search(r"[${}|\x01\x02]", turn.ask + turn.answer), turn
        sample = wide_chat(rng)
        assert not any(re.search(r"[$|\x01\x02]", m["content"]) for m in sample.messages), sample
        if sample.skill == "json":
            json.loads(sample.messages[-1]["content"])
    for _ in range(40):
        for story in (wished_story(rng), there_was(rng)):
            text = story.text + " ".join(m["content"] for m in story.messages)
            assert not re.search(r"[${}|]|[.!?][A-Z]", text), text


def test_a_run_begins_with_the_weights_of_a_file(ember_path: Path) -> None:
    pytest.importorskip("torch")
    from tools.ember import train

    model = train.Ember(train.Config())
    state = train.read_weights(ember_path)
    model.load_state_dict(state)
    assert set(state) == set(model.state_dict())

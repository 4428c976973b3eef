"""The prompts written by hand: what their checks accept, and what the shipped model makes of them."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest

from tools.ember import prompts
from tools.ember.corpus import samples
from tools.ember.corpus.kept_out import FILES, is_kept_out
from tools.ember.corpus.sample import Sample
from tools.ember.prompts import Prompt, fault


def test_there_are_enough_of_them_in_enough_skills() -> None:
    read = prompts.read()
    assert len(read) >= 300
    assert len({prompt.skill for prompt in read}) >= 15
    assert prompts.PROMPTS in FILES
    assert all(prompt.checks for file in FILES for prompt in prompts.read(file))


def test_no_prompt_is_in_the_training_text() -> None:
    """Of 2000 samples, and by construction: a sample that answers one is dropped."""
    assert not any(is_kept_out(sample) for sample in islice(samples(5), 2000))
    for file in FILES:
        for prompt in prompts.read(file):
            if prompt.messages:
                answered = [*prompt.messages, {"role": "assistant", "content": "…"}]
                assert is_kept_out(Sample("any", messages=answered)), prompt.last


def test_a_prompt_is_kept_out_however_it_is_typed() -> None:
    asked = {"role": "user", "content": "SORT these words banana apple cherry"}
    answer = {"role": "assistant", "content": "apple, banana, cherry"}
    assert is_kept_out(Sample("any", messages=[asked, answer]))
    other = {"role": "user", "content": "Sort these words: banana, apple, plum."}
    assert not is_kept_out(Sample("any", messages=[other, answer]))


@pytest.mark.parametrize(
    ("mark", "wanted", "right", "wrong"),
    [
        ("=", "Berlin | Bonn", "berlin.", "It is Berlin."),
        ("+", "four|4", "A cat has four legs.", "A cat has fourteen legs."),
        ("-", "Tom", "The dog is Rex.", "The dog is Tom."),
        ("~", "upper", "THE SKY IS BLUE.", "The sky is blue."),
        ("~", "lower", "the sky is blue.", "The sky is blue."),
        ("~", "sentence", "The capital of France is Paris.", "Paris"),
        ("~", "sentence", "It is hot.", "It is hot. It is dry."),
        ("~", "words 1", "Paris", "The city"),
        ("~", "bullets 2", "- red\n- blue", "red\nblue"),
        ("~", "numbered 2", "1. red\n2. blue", "1. red\n3. blue"),
        ("~", "nocall", "2 + 2 = 4.", '<tool_call>{"name": "x", "arguments": {}}</tool_call>'),
        ("json", '{"a": 1}', '{"a": 1}', '{"a": "1"}'),
        (
            "call",
            'f {"x": 2}',
            '<tool_call>{"name": "f", "arguments": {"x": 2}}</tool_call>',
            '<tool_call>{"name": "f", "arguments": {"x": 3}}</tool_call>',
        ),
    ],
)
def test_a_check_tells_right_from_wrong(mark: str, wanted: str, right: str, wrong: str) -> None:
    prompt = Prompt("any", messages=[{"role": "user", "content": "?"}], checks=[(mark, wanted)])
    assert fault(prompt, right, ended=True) == ""
    assert fault(prompt, wrong, ended=True) == f"{mark} {wanted}"
    assert fault(prompt, right, ended=False) == "does not end"


@pytest.mark.parametrize(
    ("file", "least"),
    [
        ("prompts-later.txt", 0.93),
        ("prompts-edits.txt", 0.93),
        *(
            pytest.param(file, least, marks=pytest.mark.long)
            for file, least in (("prompts.txt", 0.93), ("prompts-fresh.txt", 0.86), ("prompts-new.txt", 0.88))
        ),
    ],
)
def test_the_shipped_model_answers_about_as_the_card_says(file: str, least: float, ember_path: Path) -> None:
    read = prompts.read(prompts.PROMPTS.with_name(file))
    scores = prompts.score(read, prompts.answers(ember_path, read)).values()
    assert sum(right for right, _ in scores) >= least * len(read)


def test_a_line_of_no_known_sort_is_refused(tmp_path: Path) -> None:
    (tmp_path / "prompts.txt").write_text("## facts\nU Hello\nX what is this\n")
    with pytest.raises(ValueError, match="a line begins with 'X'"):
        prompts.read(tmp_path / "prompts.txt")

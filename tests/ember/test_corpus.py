"""The training text: the same for the same seed, free of held-out content, and in the shipped template."""

from __future__ import annotations

import re
from itertools import islice
from random import Random

import pytest

from order import Draw
from tools.ember import evaluate
from tools.ember.corpus import samples
from tools.ember.corpus.grammar import Writer, write
from tools.ember.corpus.sample import Sample, is_held_out
from tools.ember.corpus.stories import PLOTS, story
from tools.ember.corpus.tasks import solve, sum_key
from tools.ember.corpus.words import RESERVED_NAMES
from tools.ember.render import END, START, pieces, render


def test_the_same_seed_gives_the_same_text() -> None:
    first, again, other = (
        ["".join(t for t, _ in pieces(s)) for s in islice(samples(n), 200)] for n in (3, 3, 4)
    )
    assert first == again
    assert first != other


@pytest.fixture(scope="module")
def trained() -> list[Sample]:
    return list(islice(samples(5), 1500))


@pytest.fixture(scope="module")
def asked(trained: list[Sample]) -> set[str]:
    """Find the prompts of the training text once for all skills."""
    return {prompt for sample in trained for prompt in evaluate.prompts_in(sample)}


@pytest.mark.parametrize("skill", evaluate.COUNTS)
def test_no_evaluation_prompt_is_in_the_training_text(
    skill: str, trained: list[Sample], asked: set[str]
) -> None:
    prompts = {case.prompt for case in evaluate.cases(skill, 20)}
    assert len(prompts) == 20
    if skill.startswith("story") and skill != "story chat":
        assert not any(s.text.startswith(tuple(prompts)) for s in trained if s.text)
    else:
        assert not prompts & asked


def test_held_out_sums_are_nowhere_in_training() -> None:
    answers = (
        m["content"]
        for s in islice(samples(6), 3000)
        if not s.tools
        for m in s.messages
        if m["role"] == "assistant"
    )
    sums = [re.match(r"(\d{1,2}) ([-+*]) (\d{1,2}) = ", answer) for answer in answers]
    told = [(int(m[1]), m[2], int(m[3])) for m in sums if m]
    assert len(told) > 200
    assert [each for each in told if is_held_out(sum_key(*each))] == []
    case = next(c for c in evaluate.cases("arithmetic", 50) if re.match(r"\d+ [-+*] \d+ = ", c.wanted))
    a, op, b = case.wanted.split(" ")[:3]
    assert is_held_out(sum_key(int(a), op, int(b)))


def test_reserved_names_are_never_in_training() -> None:
    text = " ".join(t for s in islice(samples(8), 3000) for t, _ in pieces(s))
    assert not [name for name in RESERVED_NAMES if name in text]


def test_a_key_is_the_same_for_both_orders() -> None:
    assert sum_key(7, "+", 30) == sum_key(30, "+", 7)
    assert sum_key(7, "-", 30) != sum_key(30, "-", 7)


@pytest.mark.parametrize(
    ("a", "op", "b", "value"),
    [
        (34, "*", 27, "918"),
        (5, "-", 12, "-7"),
        (72, "/", 6, "12"),
        (29, "/", 4, "7 remainder 1"),
        (99, "+", 99, "198"),
    ],
)
def test_worked_sums_end_in_the_result(a: int, op: str, b: int, value: str) -> None:
    line, result = solve(a, op, b)
    assert result == value
    assert line.split("=")[-1].strip() == value


@pytest.mark.parametrize("plot", PLOTS)
def test_every_plot_passes_the_story_check(plot: str, monkeypatch: pytest.MonkeyPatch, draw: Draw) -> None:
    evaluate.story_words()  # of all plots, before there is only one
    monkeypatch.setattr("tools.ember.corpus.stories.PLOTS", {plot: PLOTS[plot]})
    for seed in draw(range(6)):
        told = story(Random(seed))
        assert evaluate.story_fault(told.text, told.hero, ended=True) == ""


def test_the_story_check_finds_faults() -> None:
    told = story(Random(1))
    assert evaluate.story_fault(told.text, told.hero, ended=False) == "does not end"
    assert evaluate.story_fault(told.text[:200], told.hero, ended=True).startswith("only")
    assert "unknown words" in evaluate.story_fault(told.text + " Xyzzyq.", told.hero, ended=True)
    again = told.text[len(told.text) // 2 :].split(". ", 1)[1]  # from the beginning of a sentence
    assert "repeats" in evaluate.story_fault(f"{told.text} {again}", told.hero, ended=True)


def test_grammar() -> None:
    env = {"x": "owl", "y": "fox"}
    assert write(Random(0), "a $x and a $y, a $^x", env) == "an owl and a fox, an Owl"
    assert write(Random(0), "{a{b|b}|ab}c{|}") == "abc"
    writer = Writer(Random(0), {"r": ["one.", "two."]})
    assert sorted(writer.write("<r> <r>").split()) == ["One.", "Two."]
    with pytest.raises(ValueError, match="not closed"):
        write(Random(0), "{a|b")


def test_only_answers_of_a_chat_are_learned() -> None:
    for sample in islice(samples(9), 300):
        parts = pieces(sample)
        if sample.text:
            assert len(parts) == 1 and parts[0][1]
            continue
        assert "".join(text for text, _ in parts) + "\n" == render(sample.messages, sample.tools)
        assert all(text.endswith(END) and START not in text for text, learned in parts if learned)
        assert all(text.endswith(START + "assistant\n") for text, learned in parts if not learned)


def test_packed_rows_hold_every_document_once() -> None:
    tokenizers = pytest.importorskip("tokenizers")
    from tools.ember import shards

    tokenizer = tokenizers.Tokenizer.from_file(str(evaluate.ROOT / "tools/ember/tokenizer.json"))
    documents = shards.encode(tokenizer, islice(samples(2), 150), 1024)
    ids, marks = shards.pack(documents, 1024)
    rows = [
        tuple(ids[r][marks[r] // 2 == n].tolist())
        for r in range(len(ids))
        for n in range(1, int(marks[r].max()) // 2 + 1)
    ]
    assert sorted(rows) == sorted(tuple(tokens) for tokens, _ in documents)

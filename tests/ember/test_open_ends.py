"""What the open-ended parts of the generator promise: an answer stands in its text, a call in its request."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

from tools.ember.corpus.passages import NOT_SAID, NOTED, passage
from tools.ember.corpus.phrasing import SPANS as PHRASES
from tools.ember.corpus.requests import request_chat
from tools.ember.corpus.sample import Sample
from tools.ember.corpus.tasks import in_words
from tools.ember.corpus.text_tasks import change_case
from tools.ember.corpus.toolkit import CHOICES

COUNT = 400
TYPES: dict[str, Any] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "array": list,
}
SPANS: dict[Any, str] = {int(said.split()[0]): words for said, words in PHRASES.items()}
OTHER_WORDS: dict[str, list[str]] = {}  # of a value of a choice
for _choice in (choice for sets in CHOICES.values() for choices in sets for choice in choices.split()):
    _value, _, _other = _choice.partition("=")
    OTHER_WORDS.setdefault(_value, [_value]).append(_other.replace("_", " ") or _value)


def calls(sample: Sample) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each request with the call that answers it."""
    for asked, answer in zip(sample.messages, sample.messages[1:], strict=False):
        for call in answer.get("tool_calls", []):
            yield asked["content"], call["function"]


def test_every_call_is_of_a_declared_tool_and_says_what_the_request_says() -> None:
    rng = Random(1)
    names, made, switched = set(), 0, 0
    for sample in (request_chat(rng) for _ in range(COUNT)):
        declared = {tool["function"]["name"]: tool["function"]["parameters"] for tool in sample.tools}
        names |= set(declared)
        for asked, call in calls(sample):
            made += 1
            parameters, arguments = declared[call["name"]], call["arguments"]
            assert set(parameters["required"]) <= set(arguments) <= set(parameters["properties"])
            for name, value in arguments.items():
                wanted = parameters["properties"][name]
                assert isinstance(value, TYPES[wanted["type"]])
                assert value in wanted.get("enum", [value])
                if isinstance(value, list):
                    assert all(item.lower() in asked.lower() for item in value)
                    continue
                said = [str(value), *OTHER_WORDS.get(str(value), []), SPANS.get(value, str(value))]
                said += [in_words(value)] if isinstance(value, int) and 0 < value < 100 else []
                switched += isinstance(value, bool)
                assert isinstance(value, bool) or any(word.lower() in asked.lower() for word in said)
    assert made > COUNT
    assert switched > 5
    assert len(names) > COUNT  # so many tools that their names cannot be learned by heart


def test_an_answer_names_what_the_text_names() -> None:
    rng = Random(2)
    found = 0
    for sample in (passage(rng) for _ in range(COUNT)):
        text = sample.messages[0]["content"] + sample.messages[1]["content"]
        for answer in (m["content"] for m in sample.messages if m["role"] == "assistant"):
            if answer in NOT_SAID or answer in NOTED:
                continue
            words = [w.strip(".,'s\"") for w in answer.split()[1:] if w[0].isupper()]
            found += bool(words)
            assert all(word in text for word in words), (text, answer)
    assert found > COUNT // 4


def test_a_changed_case_changes_nothing_but_the_case() -> None:
    rng = Random(3)
    for turn in (change_case(rng) for _ in range(COUNT)):
        assert turn.answer.lower() in turn.ask.lower()

"""A constraint beside an answer that the last message has begun: both together are what was asked for."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from akunu import InvalidArgumentError
from akunu.api.chat_options import prepare
from akunu.api.results import Piece
from akunu.chat import ChatTemplate
from chat.models import tokenizer

from .models import ember

WORD = {
    "type": "object",
    "properties": {
        "word": {"type": "string", "maxLength": 9},
        "n": {"type": "integer", "maximum": 99, "minimum": 0},
    },
    "required": ["word", "n"],
    "additionalProperties": False,
}
TEMPLATE = (
    "{%- for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}{# <think> </think> #}"
)


def talk(begun: Any, form: str = "") -> list[dict[str, Any]]:
    question = {"role": "user", "content": "What is the opposite of hot?" + form}
    return [question, {"role": "assistant", "content": begun}]


def answered(begun: Any, **options: Any) -> str:
    messages = talk(begun, " Answer as JSON with the keys word and n.")
    result = ember().chat(messages, temperature=0, max_tokens=60, **options)
    assert result.finish_reason == "stop"
    return result.text


@pytest.mark.parametrize(
    "begun", ["{", '{"wo', '{"word": "', '{"word":"', '{ "word" : "co', '{"word": "cold", "n": 1']
)
def test_begun_json_is_completed(begun: str) -> None:
    value = json.loads(begun + answered(begun, schema=WORD))
    assert list(value) == ["word", "n"] and 0 <= value["n"] <= 99


def test_begun_json_in_parts_is_completed() -> None:
    parts = [{"type": "text", "text": '{"wo'}, {"type": "text", "text": 'rd": "'}]
    assert json.loads('{"word": "' + answered(parts, schema=WORD))["word"]


def test_complete_json_is_followed_by_nothing() -> None:
    assert answered('{"word": "cold", "n": 1}', schema=WORD) == ""


@pytest.mark.parametrize("begun", ["Here it is: ", "```json\n", ""])
def test_behind_other_text_the_answer_is_all_of_the_json(begun: str) -> None:
    assert list(json.loads(answered(begun, schema=WORD))) == ["word", "n"]


@pytest.mark.parametrize("begun", ["[", '{"x": ', '{"word": 5'])
def test_json_that_the_schema_does_not_begin_with_is_refused(begun: str) -> None:
    message = re.escape(f"does not begin as it asks: {begun!r}")
    with pytest.raises(InvalidArgumentError, match=f"^schema: the last message, .*{message}$"):
        ember().chat(talk(begun), schema=WORD)


def test_an_object_is_completed() -> None:
    begun = '{"opposite":'
    assert json.loads(begun + answered(begun, json=True))["opposite"] == "cold"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"choice": ["The opposite of cold", "no"]}, " cold"),
        ({"choice": ["no"]}, "no"),
        ({"regex": "The opposite of c[o]ld"}, " cold"),
        ({"grammar": 'root ::= "The opposite" " of cold"'}, " cold"),
    ],
)
def test_begun_text_is_completed_where_the_constraint_has_it(options: dict[str, Any], expected: str) -> None:
    assert answered("The opposite of", **options) == expected


@pytest.mark.parametrize("tools", [None, [{"type": "function", "function": {"name": "f", "parameters": {}}}]])
def test_a_begun_answer_is_no_call(tools: Any) -> None:
    assert json.loads("{" + answered("{", schema=WORD, tools=tools))["word"]


def read(begun: str, answer: str) -> dict[str, Any]:
    template = ChatTemplate.from_metadata({"tokenizer.chat_template": TEMPLATE}, tokenizer())
    reading = prepare(template, talk(begun), {}, 10_000).reading
    reading.read(Piece(answer))
    reading.end()
    return {key: value for key, value in reading.message(answer).items() if key != "role" and value}


@pytest.mark.parametrize(
    ("begun", "expected"),
    [
        ("<think>\nIt", {"reasoning_content": "is so.", "content": "Cold."}),
        ("<think>", {"reasoning_content": "is so.", "content": "Cold."}),
        ("It", {"content": " is so.\n</think>\n\nCold."}),
        ("<think>\nIt\n</think>\n\nIt", {"content": " is so.\n</think>\n\nCold."}),
    ],
)
def test_reasoning_that_was_begun_goes_on(begun: str, expected: dict[str, Any]) -> None:
    assert read(begun, " is so.\n</think>\n\nCold.") == expected


def test_reasoning_in_a_question_is_not_the_answers() -> None:
    template = ChatTemplate.from_metadata({"tokenizer.chat_template": TEMPLATE}, tokenizer())
    messages = [{"role": "user", "content": "What does <think> do?"}, {"role": "assistant", "content": "It"}]
    reading = prepare(template, messages, {}, 10_000).reading
    assert reading.message(" ends it.")["content"] == " ends it."

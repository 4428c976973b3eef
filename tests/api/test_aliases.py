"""Other programs' names of arguments mean what they mean there."""

from __future__ import annotations

import json

import pytest

import akunu
from akunu.api.options import resolve
from akunu.base.errors import InvalidArgumentError
from akunu.files.describe.sampling import Sampling

SCHEMA = {
    "type": "object",
    "properties": {"n": {"type": "integer"}},
    "required": ["n"],
    "additionalProperties": False,
}


def request(**options: object):
    return resolve(options, Sampling(), 100)


def test_a_repetition_penalty_counts_the_whole_sequence() -> None:
    sampling = request(repetition_penalty=1.3).sampling
    assert (sampling.repeat_penalty, sampling.penalty_window) == (1.3, -1)
    sampling = request(repetition_penalty=1.3, penalty_window=20).sampling
    assert (sampling.repeat_penalty, sampling.penalty_window) == (1.3, 20)
    assert request(repetition_penalty=None).sampling == request().sampling


def test_max_new_tokens() -> None:
    assert request(max_new_tokens=7).max_tokens == 7


@pytest.mark.parametrize(
    "value",
    [
        {"type": "json_schema", "json_schema": {"name": "n", "strict": True, "schema": SCHEMA}},
        {"type": "json_schema", "schema": SCHEMA},
        {"type": "json_object", "schema": SCHEMA},
    ],
)
def test_a_response_format_with_a_schema(value: dict[str, object]) -> None:
    assert request(response_format=value).structure == request(schema=SCHEMA).structure


def test_a_response_format_without_a_schema() -> None:
    assert request(response_format={"type": "json_object"}).structure == request(json=True).structure
    assert request(response_format={"type": "text"}).structure is None


@pytest.mark.parametrize(
    "value", ["json", {"type": "xml"}, {"type": "json_schema", "json_schema": {"name": "x"}}, {}]
)
def test_another_response_format_is_refused_by_name(value: object) -> None:
    with pytest.raises(InvalidArgumentError, match=r"^response_format: ") as refused:
        request(response_format=value)
    assert refused.value.argument == "response_format"


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({"max_tokens": 3, "max_new_tokens": 3}, ("max_new_tokens", "max_tokens")),
        ({"repeat_penalty": 1.1, "repetition_penalty": 1.1}, ("repetition_penalty", "repeat_penalty")),
        (
            {"schema": SCHEMA, "response_format": {"type": "json_object", "schema": SCHEMA}},
            ("response_format", "schema"),
        ),
    ],
)
def test_both_names_of_one_argument_are_refused(options: dict[str, object], names: tuple[str, str]) -> None:
    with pytest.raises(
        InvalidArgumentError, match=rf"^{names[0]}: is another name of {names[1]}; give one of them"
    ):
        request(**options)


def test_a_chat_and_a_session_take_them() -> None:
    with akunu.load("ember", progress=False) as model:
        messages = [{"role": "user", "content": "Give me a number as JSON."}]
        form = {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}}
        answer = model.chat(messages, response_format=form, max_new_tokens=60, temperature=0, seed=1)
        assert set(json.loads(answer.text)) == {"n"}
        assert model.chat(messages, chat_template_kwargs={}, max_tokens=1).stats.generated_tokens == 1
        session = model.session(max_tokens=9, repeat_penalty=1.2)
        assert (
            session.chat("Tell me a story.", max_new_tokens=3, repetition_penalty=1.1).stats.generated_tokens
            == 3
        )

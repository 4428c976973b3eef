"""Structured answers that the client asks for, and calls that it insists on."""

from __future__ import annotations

import json
import re
import threading

import pytest

from akunu.chat.structured.compiler import Compiler

from .conftest import serving
from .published import openai_client

CITY = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 8}, "size": {"type": "integer"}},
    "required": ["city", "size"],
    "additionalProperties": False,
}
TOOL = {"type": "function", "function": {"name": "note", "parameters": CITY}}
BAD_TOOL = {"type": "function", "function": {"name": "bad", "parameters": {"not": {"type": "null"}}}}
UNKNOWN = {"type": "json_schema", "json_schema": {"schema": {"type": "array", "unevaluatedItems": False}}}
HELLO = [{"role": "user", "content": "Hello!"}]


@pytest.fixture
def client(served):
    with openai_client(served.url) as client:
        yield client


def ask(client, **fields):
    fields = {"messages": HELLO, "max_tokens": 200, "seed": 5, "temperature": 1.5, **fields}
    return client.chat.completions.create(model="ember", **fields).choices[0]


def checked(text: str) -> None:
    value = json.loads(text)
    assert set(value) == {"city", "size"}
    assert isinstance(value["size"], int)
    assert len(value["city"]) <= 8


def test_a_schema_is_kept(client):
    constraint = {"type": "json_schema", "json_schema": {"name": "city", "schema": CITY}}
    checked(ask(client, response_format=constraint, temperature=0.5).message.content)
    fact = [{"role": "user", "content": "As JSON with the key city: Anna lives in Oslo."}]
    plain = ask(client, messages=fact, response_format={"type": "json_object"}, temperature=0.2)
    assert isinstance(json.loads(plain.message.content), dict)
    answer = client.responses.create(
        model="ember", input="Hello!", temperature=0.5,
        text={"format": {"type": "json_schema", "name": "city", "schema": CITY}},
    )  # fmt: skip
    checked(answer.output_text)


def test_expressions_choices_and_grammars_are_kept(client):
    assert re.fullmatch("[a-c]{3}x", ask(client, extra_body={"regex": "[a-c]{3}x"}).message.content)
    assert ask(client, extra_body={"choice": ["yes", "no"]}).message.content in ("yes", "no")
    found = ask(client, extra_body={"grammar": 'root ::= "a" "b"+ "c"'}, temperature=0.1)
    assert re.fullmatch("ab+c", found.message.content) or found.finish_reason == "length"


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "note"}}])
def test_a_call_that_is_asked_for_comes_and_fits_its_schema(client, choice):
    found = ask(client, tools=[TOOL], tool_choice=choice, temperature=0.5)
    assert found.finish_reason == "tool_calls"
    (call, *_) = found.message.tool_calls
    assert call.function.name == "note"
    checked(call.function.arguments)


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"response_format": UNKNOWN}, "unevaluatedItems"),
        ({"regex": "("}, "regex"),
        ({"grammar": "root ::= nothing"}, "grammar"),
        ({"grammar": "root ::= root"}, "grammar"),
        ({"choice": []}, "choice"),
        ({"choice": ["a"], "regex": "a"}, "choice"),
        ({"tools": [TOOL, BAD_TOOL], "tool_choice": "required"}, 'tools: bad: Unimplemented keys: ["not"]'),
        ({"tools": [TOOL, BAD_TOOL], "response_format": UNKNOWN}, "schema: Unimplemented"),
    ],
)
def test_a_constraint_that_cannot_be_kept_is_a_400(served, fields, named):
    answer = served.chat(**fields)
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert named in error["message"]
    assert ":" not in named or error["param"] == named.partition(":")[0]


def test_a_loaded_model_is_ready_for_constraints(served):
    """Else the first of them would hold up every stream while the vocabulary is read."""
    assert "_grammar_tokens" in vars(served.ember.model._compiler)


@pytest.mark.parametrize(
    "constraint",
    [{"regex": "a{1000000}"}, {"grammar": "start: " + '"a" ' * 66_000}, {"regex": "x" * (1 << 21)}],
)
@pytest.mark.parametrize("stream", [False, True])
def test_a_constraint_that_is_too_large_is_a_400(served, constraint, stream):
    answer = served.chat(max_tokens=8, stream=stream, **constraint)
    assert answer.status_code == 400, answer.text[:300]
    assert len(answer.json()["error"]["message"]) < 300


def test_constraints_are_compiled_in_threads_of_their_own_and_have_a_deadline(monkeypatch):
    compiled, go_on = [], threading.Event()
    constraint = Compiler.constraint

    def slow(self, *args):
        compiled.append(threading.current_thread().name)
        assert go_on.wait(30)
        return constraint(self, *args)

    monkeypatch.setattr(Compiler, "constraint", slow)
    monkeypatch.setattr("akunu.server.workers.COMPILE_SECONDS", 0.2)
    with serving() as served:
        try:
            for _ in range(3):
                answer = served.chat(max_tokens=2, regex="a")
                assert (answer.status_code, answer.json()["error"]["code"]) == (503, "busy")
            assert len(compiled) == 1  # the others waited: one thread is left for other clients
            assert all("akunu-compile" in name for name in compiled)
            assert served.chat(max_tokens=2).status_code == 200
        finally:
            go_on.set()


def test_anthropics_format_has_an_older_name(served):
    constraint = {"type": "json_schema", "schema": CITY}
    fields = {"model": "ember", "messages": HELLO, "max_tokens": 200}
    answer = served.post("/v1/messages", **fields, output_format=constraint).json()
    checked(answer["content"][0]["text"])
    twice = served.post(
        "/v1/messages", **fields, output_format=constraint, output_config={"format": constraint}
    )
    assert twice.status_code == 400 and "output_format" in twice.json()["error"]["message"]

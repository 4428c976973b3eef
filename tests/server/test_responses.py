"""OpenAI's responses, by its own client: whole, in events, stored, and stateless."""

from __future__ import annotations

import json

import openai
import pytest

from akunu.server.auth import Holder
from akunu.server.errors import ApiError
from akunu.server.openai_responses import _split_behind
from akunu.server.stored import ResponseStore

from .published import openai_client

WEATHER = {
    "type": "function",
    "name": "get_weather",
    "description": "Get the weather",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
RESULT = '{"city": "Paris", "sky": "rain", "temperature": 12}'


@pytest.fixture
def client(served):
    with openai_client(served.url) as client:
        yield client


def ask(client, text="What is 2+2?", **fields):
    return client.responses.create(model="ember", input=text, temperature=0, **fields)


def test_a_response_is_the_models_own(client, served):
    alone = served.ember.model.chat([{"role": "user", "content": "What is 2+2?"}], temperature=0)
    answer = ask(client)
    assert answer.output_text == alone.text
    assert (answer.status, answer.usage.output_tokens) == ("completed", len(alone.ids))
    assert ask(client, max_output_tokens=2).incomplete_details.reason == "max_output_tokens"


def test_a_conversation_goes_on_from_a_stored_response(client):
    first = ask(client, "My name is Tom.", instructions="Be brief.")
    second = ask(client, "What is my name?", previous_response_id=first.id)
    assert "Tom" in second.output_text
    stateless = ask(
        client,
        [
            {"role": "user", "content": "My name is Tom."},
            *[item.model_dump(exclude_none=True) for item in first.output],
            {"role": "user", "content": [{"type": "input_text", "text": "What is my name?"}]},
        ],
        store=False,
    )
    assert stateless.output_text == second.output_text
    assert stateless.usage.input_tokens == second.usage.input_tokens
    with pytest.raises(openai.BadRequestError) as caught:
        ask(client, previous_response_id=stateless.id)
    assert caught.value.code == "previous_response_not_found"


def test_a_stored_response_can_be_had_again_and_deleted(client):
    answer = ask(client)
    assert client.responses.retrieve(answer.id) == answer
    client.responses.delete(answer.id)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(answer.id)


def test_the_items_of_a_conversation_are_listed(client):
    first = ask(client, "My name is Tom.", instructions="Be brief.")
    said = {"role": "user", "content": [{"type": "input_text", "text": "What is"}], "id": "msg_mine"}
    more = {"role": "user", "content": "my name?", "type": "message"}
    second = ask(client, [said, more], previous_response_id=first.id)
    items = client.responses.input_items.list(second.id, order="asc").data
    texts = [item.content[0].text for item in items]
    assert texts == ["My name is Tom.", first.output_text, "What is", "my name?"]
    assert [item.content[0].type for item in items][:2] == ["input_text", "output_text"]
    assert (items[1].id, items[2].id) == (first.output[0].id, "msg_mine")
    assert len({item.id for item in items}) == 4 and {item.type for item in items} == {"message"}
    assert client.responses.input_items.list(second.id).data == items[::-1]


def test_items_come_in_pages(client):
    answer = ask(client, [{"role": "user", "content": f"Number {n}."} for n in range(5)], max_output_tokens=1)
    page = client.responses.input_items.list(answer.id, limit=2)
    assert (len(page.data), page.has_more, page.last_id) == (2, True, page.data[-1].id)
    assert [item.content[0].text for item in page] == [f"Number {n}." for n in (4, 3, 2, 1, 0)]
    last = client.responses.input_items.list(answer.id, after=page.data[-1].id, order="asc")
    assert [item.content[0].text for item in last.data] == ["Number 4."] and not last.has_more


@pytest.mark.parametrize(
    ("query", "param"),
    [
        ("limit=0", "limit"),
        ("limit=101", "limit"),
        ("limit=x", "limit"),
        ("order=up", "order"),
        ("after=msg_no", "after"),
        ("include[]=file_search_call.results", "include[]"),
        ("limit=1&limit=2", "limit"),
    ],
)
def test_a_wrong_page_is_a_400_that_names_the_parameter(served, client, query, param):
    found = served.http.get(f"/v1/responses/{ask(client).id}/input_items?{query}")
    assert (found.status_code, found.json()["error"]["param"]) == (400, param)


def test_items_of_what_is_not_stored_are_not_there(served, client):
    for name in ("resp_no", ask(client, store=False).id):
        assert served.http.get(f"/v1/responses/{name}/input_items").status_code == 404
    streamed = served.http.get(f"/v1/responses/{ask(client).id}?stream=true")
    assert (streamed.status_code, streamed.json()["error"]["param"]) == (400, "stream")


def test_the_tokens_of_a_request_are_counted_as_they_are_run(client):
    first = ask(client, "My name is Tom.")
    for fields in ({}, {"instructions": "Be brief.", "tools": [WEATHER], "previous_response_id": first.id}):
        counted = client.responses.input_tokens.count(model="ember", input="What is my name?", **fields)
        assert counted.input_tokens == ask(client, "What is my name?", **fields).usage.input_tokens


@pytest.mark.parametrize("stored", [True, False])
def test_a_tool_is_called_and_its_result_read(client, stored):
    first = ask(client, "What is the weather in Paris?", tools=[WEATHER], store=stored)
    (call,) = first.output
    assert (call.type, call.name, json.loads(call.arguments)) == (
        "function_call", "get_weather", {"city": "Paris"},
    )  # fmt: skip
    output = {"type": "function_call_output", "call_id": call.call_id, "output": RESULT}
    if stored:
        second = ask(client, [output], tools=[WEATHER], previous_response_id=first.id)
    else:
        items = [{"role": "user", "content": "What is the weather in Paris?"}, call.model_dump(), output]
        items[1] = {k: v for k, v in items[1].items() if v is not None}
        second = ask(client, items, tools=[WEATHER], store=False)
    assert "rain" in second.output_text
    assert second.usage.input_tokens_details.cached_tokens > second.usage.input_tokens / 2


@pytest.mark.parametrize("tools", [[], [WEATHER]])
def test_events_build_the_response(client, tools):
    text = "What is the weather in Paris?" if tools else "What is 2+2?"
    with client.responses.stream(
        model="ember", input=text, temperature=0, tools=tools
    ) as stream:  # the client checks what belongs to what
        events = list(stream)
        final = stream.get_final_response()
    kinds = [event.type for event in events]
    assert kinds[:3] == ["response.created", "response.in_progress", "response.output_item.added"]
    assert kinds[-2:] == ["response.output_item.done", "response.completed"]
    assert [event.sequence_number for event in events] == list(range(len(events)))
    whole = ask(client, text, tools=tools)
    if tools:
        assert final.output[0].arguments == whole.output[0].arguments
        deltas = [e.delta for e in events if e.type == "response.function_call_arguments.delta"]
        assert "".join(deltas) == whole.output[0].arguments
    else:
        assert final.output_text == whole.output_text
        assert "".join(e.delta for e in events if e.type == "response.output_text.delta") == whole.output_text


def test_logprobs_are_given_where_they_are_asked_for(client):
    answer = ask(client, include=["message.output_text.logprobs"], top_logprobs=2)
    entries = answer.output[0].content[0].logprobs
    assert b"".join(bytes(entry.bytes) for entry in entries).decode() == answer.output_text
    assert all(len(entry.top_logprobs) == 2 for entry in entries)
    events = list(ask(client, include=["message.output_text.logprobs"], top_logprobs=2, stream=True))
    deltas = [event for event in events if event.type == "response.output_text.delta"]
    told = [entry.model_dump() for event in deltas for entry in event.logprobs]
    assert told == [entry.model_dump() for entry in entries]
    for event in deltas:
        assert b"".join(bytes(entry.bytes) for entry in event.logprobs).decode() == event.delta


@pytest.mark.parametrize(
    ("text", "tokens", "told"),
    [
        ("4", "4", 1),
        ("4", "4| ", 1),
        ("4 ", "4| ", 2),
        (" is", " is|\n|\n", 1),
        ("a\n", "a|\n| ", 2),
        ("", " ", 0),
    ],
)
def test_spaces_that_are_held_back_keep_their_logprobs(text, tokens, told):
    entries = [{"bytes": list(token.encode())} for token in tokens.split("|")]
    assert _split_behind(text, entries) == (entries[:told], entries[told:])


def test_an_answer_with_logprobs_is_repeated_as_it_came(client):
    user = {"role": "user", "content": "What is 2+2?"}
    answers = [ask(client), ask(client, include=["message.output_text.logprobs"])]
    plain, same = (ask(client, [user, *answer.output, user]) for answer in answers)
    assert plain.output_text == same.output_text


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"foo": 1}, "foo"),
        ({"input": [{"type": "computer_call"}]}, "input[0]"),
        ({"input": [{"role": "user", "content": [{"type": "input_image"}]}]}, "input[0].content[0]"),
        ({"input": []}, "input"),
        ({"background": True}, "background"),
        ({"truncation": "auto"}, "truncation"),
        ({"tools": [{"type": "web_search"}]}, "tools[0]"),
        ({"previous_response_id": "resp_no"}, "previous_response_id"),
        ({"include": ["file_search_call.results"]}, "include[0]"),
        ({"text": {"format": {"type": "json_schema"}}}, "text.format.schema"),
        ({"text": {"verbosity": "loud"}}, "text.verbosity"),
    ],
)
def test_what_is_not_supported_is_a_400_that_names_the_field(served, fields, param):
    answer = served.post("/v1/responses", **{"model": "ember", "input": "Hello", **fields})
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == param


def test_the_store_forgets_the_oldest_and_keeps_each_holders_own():
    tom, eve = Holder("tom", "1"), Holder("eve", "2")
    store = ResponseStore(2)
    for n in range(3):
        store.put(tom, {"id": f"r{n}", "output": []}, [])
    assert store.get("r2", tom).response == {"id": "r2", "output": []}
    for name, holder in (("r0", tom), ("r2", eve)):
        with pytest.raises(ApiError, match="no response"):
            store.get(name, holder)
    store.put(tom, {"id": "big", "text": "x" * (65 << 20), "output": []}, [])
    with pytest.raises(ApiError, match="no response"):
        store.get("r2", tom)
    assert store.bytes == 0


def test_one_key_does_not_push_out_what_another_stored():
    store = ResponseStore(10, max_bytes=100_000)
    tom, eve = Holder("tom", "1"), Holder("tom", "2")
    store.put(eve, {"id": "kept", "output": []}, [])
    for n in range(50):
        store.put(tom, {"id": f"r{n}", "output": [{"text": "x" * 20_000}]}, [])
    assert store.get("kept", eve).items == []
    assert store.get("r49", tom).response["id"] == "r49"
    assert store.bytes <= 100_000


def test_what_responses_share_is_counted_while_one_of_them_is_there():
    store, tom = ResponseStore(100), Holder("tom", "1")
    empty, previous = store.bytes, None
    for n in range(20):
        item = {"id": f"i{n}", "text": "x" * 10_000}
        store.put(tom, {"id": f"r{n}", "output": [{"id": f"o{n}"}]}, [item], previous)
        previous = store.get(f"r{n}", tom)
    assert 200_000 < store.bytes < 230_000
    assert [item["id"] for item in previous.conversation][:4] == ["i0", "o0", "i1", "o1"]
    for n in range(19):
        store.delete(f"r{n}", tom)
    assert 200_000 < store.bytes < 210_000
    assert len(store.get("r19", tom).items) == 39
    store.delete("r19", tom)
    assert store.bytes == empty == 0


def test_what_a_client_repeats_of_an_answer_may_have_fields_that_are_null(served):
    call = {"type": "function_call", "call_id": "a", "name": "now", "arguments": "{}", "id": "fc"}
    null = {"caller": None, "namespace": None, "status": None}
    parts = [
        {"type": "input_text", "text": "What time is it?", "prompt_cache_breakpoint": {"mode": "explicit"}}
    ]
    given = [
        {"role": "user", "content": parts},
        {**call, **null},
        {"type": "function_call_output", "call_id": "a", "output": "noon", **null},
    ]
    fields = {"model": "ember", "max_output_tokens": 3, "reasoning": {"context": "auto", "mode": "standard"}}
    assert served.post("/v1/responses", input=given, **fields).status_code == 200
    error = served.post("/v1/responses", input=given, **{**fields, "reasoning": {"mode": "pro"}}).json()[
        "error"
    ]
    assert error["param"] == "reasoning.mode"
    given[1]["caller"] = "a program"
    error = served.post("/v1/responses", input=given, **fields).json()["error"]
    assert (error["param"], error["code"]) == ("input[1].caller", "unsupported_value")


def test_a_request_as_codex_makes_it_is_answered(served):
    parts = [{"type": "input_text", "text": "What is 2+2?"}]
    shell = {"type": "function", "name": "shell", "strict": False, "parameters": {"type": "object"}}
    answer = served.post(
        "/v1/responses", model="ember", instructions="You are a coding agent.", store=False, include=[],
        input=[{"type": "message", "role": role, "content": parts} for role in ("developer", "user")],
        tools=[shell, {"type": "web_search", "external_web_access": False}], tool_choice="auto",
        parallel_tool_calls=False, reasoning=None, prompt_cache_key="a-thread",
        client_metadata={"x-codex-installation-id": "an id"}, max_output_tokens=3,
    )  # fmt: skip
    assert answer.status_code == 200, answer.text
    assert answer.json()["warnings"] == ["tools[1]: the type 'web_search' is not supported; it was left out"]

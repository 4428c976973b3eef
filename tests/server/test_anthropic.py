"""Anthropic's messages, by its own client."""

from __future__ import annotations

import json

import anthropic
import msgspec
import pytest

from akunu.server.anthropic_fields import MessagesRequest

from .published import anthropic_client

GREEDY = {"temperature": 0}
HELLO = [{"role": "user", "content": "What is 2+2?"}]
QUESTION = [{"role": "user", "content": "What is the weather in Paris?"}]
WEATHER = {
    "name": "get_weather",
    "description": "Get the weather",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}


@pytest.fixture
def client(served):
    with anthropic_client(served.url) as client:
        yield client


def ask(client, messages=HELLO, **fields):
    fields = {"model": "ember", "max_tokens": 64, "extra_body": GREEDY, **fields}
    return client.messages.create(messages=messages, **fields)


def test_an_answer_is_the_models_own(client, served):
    alone = served.ember.model.chat(HELLO, temperature=0)
    answer = ask(client)
    assert [block.text for block in answer.content] == [alone.text]
    assert (answer.role, answer.stop_reason, answer.stop_sequence) == ("assistant", "end_turn", None)
    usage = answer.usage
    assert usage.input_tokens + usage.cache_read_input_tokens == alone.stats.prompt_tokens
    assert usage.output_tokens == len(alone.ids)


def test_a_stream_is_the_same_message_in_events(client, served):
    whole = ask(client)
    with client.messages.stream(
        model="ember", max_tokens=64, extra_body=GREEDY, messages=HELLO
    ) as stream:  # the client checks the order of events
        text = "".join(stream.text_stream)
        final = stream.get_final_message()
    assert text == whole.content[0].text == final.content[0].text
    assert (final.stop_reason, final.usage.output_tokens) == (whole.stop_reason, whole.usage.output_tokens)
    raw = served.post(
        "/v1/messages", model="ember", max_tokens=3, messages=HELLO, stream=True, temperature=0
    ).text
    names = [line[7:] for line in raw.splitlines() if line.startswith("event: ")]
    assert names[:2] == ["message_start", "content_block_start"]
    assert names[-3:] == ["content_block_stop", "message_delta", "message_stop"]
    assert set(names[2:-3]) == {"content_block_delta"}


def test_a_tool_is_used_and_its_result_read(client):
    messages = list(QUESTION)
    answer = ask(client, messages, tools=[WEATHER])
    assert answer.stop_reason == "tool_use"
    (call,) = answer.content
    assert (call.type, call.name, call.input) == ("tool_use", "get_weather", {"city": "Paris"})
    messages.append({"role": "assistant", "content": [block.model_dump() for block in answer.content]})
    result = {
        "type": "tool_result",
        "tool_use_id": call.id,
        "content": [{"type": "text", "text": '{"city": "Paris", "sky": "rain", "temperature": 12}'}],
    }
    messages.append({"role": "user", "content": [result]})
    answer = ask(client, messages, tools=[WEATHER])
    assert "rain" in answer.content[0].text
    assert answer.usage.cache_read_input_tokens > answer.usage.input_tokens


def test_a_streamed_call_has_its_arguments_in_fragments(client):
    with client.messages.stream(
        model="ember", max_tokens=64, extra_body=GREEDY, messages=QUESTION, tools=[WEATHER]
    ) as stream:
        events = list(stream)
        final = stream.get_final_message()
    fragments = [e.partial_json for e in events if e.type == "input_json"]
    assert json.loads("".join(fragments)) == {"city": "Paris"} == final.content[0].input
    assert final.stop_reason == "tool_use"


def test_a_stop_sequence_is_told(client):
    answer = ask(client, stop_sequences=["="])
    assert (answer.stop_reason, answer.stop_sequence) == ("stop_sequence", "=")
    assert ask(client, max_tokens=2).stop_reason == "max_tokens"


def test_systems_in_blocks_with_marks_for_caching_are_read(client, served):
    blocks = [
        {"type": "text", "text": "x-anthropic-billing-header: cch=1;"},
        {"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}},
    ]
    counts = [
        client.messages.count_tokens(model="ember", messages=HELLO, system=system).input_tokens
        for system in (blocks, "Be brief.")
    ]
    assert counts[0] == counts[1]
    answer = ask(client, system=blocks, thinking={"type": "disabled"}, metadata={"user_id": "me"})
    assert answer.usage.input_tokens + answer.usage.cache_read_input_tokens == counts[0]


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"foo": 1}, "foo"),
        ({"max_tokens": None}, "max_tokens"),
        ({"messages": []}, "messages"),
        (
            {
                "messages": [
                    *HELLO,
                    {
                        "role": "assistant",
                        "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {}}],
                    },
                ]
            },
            "messages",
        ),
        ({"messages": [{"role": "user", "content": [{"type": "image", "source": {}}]}]}, "image"),
        ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "messages[0].content[0].text"),
        ({"temperature": 2}, "temperature"),
        ({"top_p": 7}, "top_p"),
        ({"mcp_servers": [{}]}, "mcp_servers"),
        ({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, "web_search"),
        ({"tools": [{"name": "x"}]}, "tools[0]"),
        ({"tool_choice": {"type": "tool", "name": "no"}}, "tool_choice"),
        ({"tool_choice": {"type": "tool"}}, "tool_choice.name"),
    ],
)
def test_errors_have_anthropics_shape_and_name_the_field(served, fields, named):
    good = {"model": "ember", "max_tokens": 4, "messages": HELLO}
    answer = served.post("/v1/messages", **{**good, **fields})
    assert answer.status_code == 400
    assert answer.json()["type"] == "error"
    assert answer.json()["error"]["type"] == "invalid_request_error"
    assert named in answer.json()["error"]["message"]


def test_the_client_knows_an_unknown_model(client):
    with pytest.raises(anthropic.NotFoundError):
        ask(client, model="claude-x")


def test_models_come_in_pages(client, served):
    names = [model.id for model in client.models.list(limit=1)]
    assert names == [entry.spec.name for entry in served.server.models.entries()]
    assert len(client.models.list(limit=1).data) == 1
    with pytest.raises(anthropic.BadRequestError, match="after_id"):
        client.models.list(after_id="nobody")
    with pytest.raises(anthropic.BadRequestError, match="before_id"):
        client.models.list(before_id="ember")


def test_standard_speed_is_counted_and_asked_for(client):
    usage = ask(client, extra_body={**GREEDY, "speed": "standard"}).usage
    count = client.messages.count_tokens(model="ember", messages=HELLO, extra_body={"speed": "standard"})
    assert count.input_tokens == usage.input_tokens + usage.cache_read_input_tokens
    with pytest.raises(anthropic.BadRequestError, match="speed"):
        client.messages.count_tokens(model="ember", messages=HELLO, extra_body={"speed": "fast"})


def test_examples_of_a_tools_input_are_examples_of_its_schema(served):
    """So they are seen where a template writes the schema."""
    tool = {"name": "f", "input_schema": {"type": "object"}, "input_examples": [{"city": "Paris"}]}
    fields = {"model": "ember", "messages": HELLO, "tools": [tool], "max_tokens": 4}
    turn, _ = msgspec.convert(fields, MessagesRequest).turn()
    schema = turn.options["tools"][0]["function"]["parameters"]
    assert schema == {"type": "object", "examples": [{"city": "Paris"}]}
    strict = {**fields, "tools": [{**tool, "strict": True}], "tool_choice": {"type": "any"}}
    assert served.post("/v1/messages", **strict).status_code == 200
    wrong = {**fields, "tools": [{**tool, "input_examples": "Paris"}]}
    assert served.post("/v1/messages", **wrong).status_code == 400


def test_a_last_message_of_the_assistant_is_continued(client, served):
    begun = [*HELLO, {"role": "assistant", "content": "The answer"}]
    alone = served.ember.model.chat(begun, temperature=0)
    answer = ask(client, begun)
    assert "".join(block.text for block in answer.content) == alone.text
    usage = answer.usage
    assert usage.input_tokens + usage.cache_read_input_tokens == alone.stats.prompt_tokens

"""Tools, by the clients' own words: calls in whole answers and in streams, results, and an agent's loop."""

from __future__ import annotations

import json

import openai
import pydantic
import pytest

from akunu.api import chat_options
from akunu.server.anthropic_fields import MessagesRequest
from akunu.server.openai_chat import ChatRequest
from akunu.server.openai_responses_fields import ResponsesRequest

from .published import openai_client

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Get the weather",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        },
    },
}
QUESTION = [{"role": "user", "content": "What is the weather in Paris?"}]


NOW = {"name": "now", "description": "The time"}
ASKED = {
    "/v1/chat/completions": {"messages": QUESTION, "tools": [{"type": "function", "function": NOW}]},
    "/v1/responses": {"input": QUESTION, "tools": [{"type": "function", **NOW}]},
    "/v1/messages": {
        "messages": QUESTION,
        "tools": [{**NOW, "input_schema": {"type": "object"}}],
        "max_tokens": 200,
    },
}
"""The same question with a tool, by the path of each API."""


@pytest.fixture
def answering(served, monkeypatch):
    """The body of the answer over an API, of a model that writes this text."""

    def text_of(path: str, text: str, **more) -> str:
        for kind in (ChatRequest, ResponsesRequest, MessagesRequest):
            monkeypatch.setattr(kind, "options", lambda fields: {"choice": [text]} | more)
        response = served.post(path, model="ember", **ASKED[path])
        assert response.status_code == 200, response.text
        return response.text

    def answer(path: str, text: str, **more):
        return json.loads(text_of(path, text, **more))

    answer.stream = text_of
    return answer


def calls_of(body) -> list[tuple[str, str]]:
    """The calls in an answer of any API: names, and arguments as JSON."""
    if "choices" in body:
        called = body["choices"][0]["message"].get("tool_calls", ())
        return [(call["function"]["name"], call["function"]["arguments"]) for call in called]
    if "output" in body:
        return [(one["name"], one["arguments"]) for one in body["output"] if one["type"] == "function_call"]
    return [(one["name"], one["input"]) for one in body["content"] if one["type"] == "tool_use"]


def reason_of(body) -> str:
    return (body["choices"][0]["finish_reason"] if "choices" in body else "") or body.get("stop_reason") or ""


@pytest.fixture
def client(served):
    with openai_client(served.url) as client:
        yield client


def test_a_call_has_a_name_and_arguments_and_its_own_finish_reason(client):
    answer = client.chat.completions.create(model="ember", messages=QUESTION, tools=[WEATHER], temperature=0)
    (call,) = answer.choices[0].message.tool_calls
    assert (call.type, call.function.name) == ("function", "get_weather")
    assert json.loads(call.function.arguments) == {"city": "Paris"}
    assert answer.choices[0].finish_reason == "tool_calls"
    assert answer.choices[0].message.content is None


def test_a_streamed_call_has_id_and_name_once_and_fragments_that_join_to_json(client):
    chunks = list(
        client.chat.completions.create(
            model="ember", messages=QUESTION, tools=[WEATHER], temperature=0, stream=True
        )
    )
    calls = [call for chunk in chunks for call in chunk.choices[0].delta.tool_calls or []]
    assert [call.function.name for call in calls if call.function.name] == ["get_weather"]
    assert len([call.id for call in calls if call.id]) == 1
    assert json.loads("".join(call.function.arguments or "" for call in calls)) == {"city": "Paris"}
    assert {call.index for call in calls} == {0}
    assert chunks[-1].choices[0].finish_reason == "tool_calls"
    assert not "".join(chunk.choices[0].delta.content or "" for chunk in chunks)


@pytest.mark.parametrize("path", ASKED)
@pytest.mark.parametrize("broken", ['{"a": 1, oops}}', '{"a": 1', '{"a": NaN}}</tool_call>'])
def test_a_call_that_breaks_off_is_no_call_in_a_whole_answer(answering, path, broken):
    """A client that ran it would run it with arguments that nobody asked for."""
    body = answering(path, f'<tool_call>{{"name": "now", "arguments": {broken}')
    assert calls_of(body) == []
    assert reason_of(body) in ("", "stop", "end_turn")
    assert "oops" not in broken or "oops" in json.dumps(body)
    good = answering(path, '<tool_call>{"name": "now", "arguments": {"a": 1}}</tool_call>')
    ((name, arguments),) = calls_of(good)
    assert name == "now" and arguments in ('{"a": 1}', {"a": 1})
    assert reason_of(good) in ("", "tool_calls", "tool_use")


@pytest.mark.parametrize("path", ASKED)
def test_a_call_that_a_limit_cuts_off_is_no_call_in_a_whole_answer(answering, path):
    text = '<tool_call>{"name": "now", "arguments": {"a": "a long text of several words"}}</tool_call>'
    body = answering(path, text, max_tokens=16)
    assert calls_of(body) == []
    assert "now" in json.dumps(body)
    assert reason_of(body) in ("", "length", "max_tokens")


@pytest.mark.parametrize("path", ASKED)
def test_arguments_come_as_the_model_wrote_them(answering, path):
    arguments = r'{"a": 1e999, "b": "\ud83d\ude00\ud83d", "c": 123456789012345678901234567890}'
    body = answering(path, f'<tool_call>{{"name": "now", "arguments": {arguments}}}</tool_call>')
    ((_, found),) = calls_of(body)
    found = json.loads(found) if isinstance(found, str) else found
    assert found == {"a": float("inf"), "b": "\U0001f600\ufffd", "c": 123456789012345678901234567890}


def test_a_name_that_is_no_text_is_no_reason_to_fail(answering):
    (call,) = calls_of(
        answering("/v1/chat/completions", r'<tool_call>{"name": "n\ud83d", "arguments": {}}</tool_call>')
    )
    assert call == ("n\ufffd", "{}")


@pytest.mark.parametrize("path", ASKED)
def test_a_function_without_parameters_is_called_without_arguments(served, path):
    choice = {"type": "any"} if path == "/v1/messages" else "required"
    fields = {**ASKED[path], "temperature": 0, "tool_choice": choice}
    if path == "/v1/messages":
        fields["tools"] = [{**NOW, "input_schema": {}}]
    body = served.post(path, model="ember", **fields).json()
    assert set(map(str, calls_of(body))) == {str(("now", {} if path == "/v1/messages" else "{}"))}


@pytest.mark.filterwarnings("ignore:Pydantic serializer")
def test_a_message_that_openais_client_has_parsed_can_be_sent_back(client):
    class Weather(pydantic.BaseModel):
        city: str

    tool = openai.pydantic_function_tool(Weather)
    for more in (
        {"response_format": Weather},
        {"tools": [tool], "tool_choice": "required", "parallel_tool_calls": False},
    ):
        answer = client.chat.completions.parse(model="ember", messages=QUESTION, temperature=0, **more)
        message = answer.choices[0].message
        results = [
            {"role": "tool", "tool_call_id": call.id, "content": "rain"} for call in message.tool_calls or ()
        ]
        messages = [*QUESTION, message, *(results or QUESTION)]
        assert client.chat.completions.create(model="ember", messages=messages, max_tokens=4).choices


def test_an_agent_runs_to_its_end(client):
    messages = list(QUESTION)
    for _ in range(3):
        answer = client.chat.completions.create(
            model="ember", messages=messages, tools=[WEATHER], temperature=0
        )
        message = answer.choices[0].message
        messages.append(message.model_dump(exclude_none=True))
        if not message.tool_calls:
            break
        for call in message.tool_calls:
            city = json.loads(call.function.arguments)["city"]
            result = json.dumps({"city": city, "sky": "rain", "temperature": 12})
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
    assert [each["role"] for each in messages] == ["user", "assistant", "tool", "assistant"]
    assert "rain" in message.content
    assert answer.usage.prompt_tokens_details.cached_tokens > answer.usage.prompt_tokens / 2


def test_with_no_tools_chosen_none_is_called(client):
    answer = client.chat.completions.create(
        model="ember", messages=QUESTION, tools=[WEATHER], tool_choice="none", temperature=0
    )
    assert answer.choices[0].message.tool_calls is None
    assert answer.choices[0].finish_reason == "stop"


PLACE = {
    "type": "object",
    "properties": {"place": {"enum": ["Rome"]}, "sky": {"type": "boolean"}},
    "required": ["place", "sky"],
    "additionalProperties": False,
}
SAID = {"name": "get_weather", "description": "Get the weather", "strict": True}
STRICT = {
    "/v1/chat/completions": {
        "messages": QUESTION, "tools": [{"type": "function", "function": {**SAID, "parameters": PLACE}}],
        "max_tokens": 40,
    },
    "/v1/responses": {
        "input": QUESTION, "tools": [{"type": "function", **SAID, "parameters": PLACE}],
        "max_output_tokens": 40,
    },
    "/v1/messages": {"messages": QUESTION, "tools": [{**SAID, "input_schema": PLACE}], "max_tokens": 40},
}  # fmt: skip


@pytest.mark.parametrize("path", STRICT)
def test_calls_of_a_strict_tool_fit_its_schema_whichever_api(served, path):
    """Left to itself, ember asks for Paris."""
    answer = served.post(path, model="ember", temperature=0, **STRICT[path]).json()
    if path == "/v1/chat/completions":
        (call,) = answer["choices"][0]["message"]["tool_calls"]
        found = json.loads(call["function"]["arguments"])
    elif path == "/v1/responses":
        found = json.loads(answer["output"][-1]["arguments"])
    else:
        found = answer["content"][-1]["input"]
    assert found["place"] == "Rome" and isinstance(found["sky"], bool)


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses"])
def test_of_some_tools_only_those_allowed_are_called(served, path):
    """Ember would ask for the weather."""
    names, chat = ("get_weather", "get_time"), path == "/v1/chat/completions"
    fields = {**STRICT[path], "model": "ember", "temperature": 0}

    def item(name, **more):
        more = {"name": name, **more}
        return {"type": "function", "function": more} if chat else {"type": "function", **more}

    def called(mode, *allowed):
        given = {"mode": mode, "tools": [item(name) for name in allowed]}
        choice = {"type": "allowed_tools", **({"allowed_tools": given} if chat else given)}
        tools = [item(name, parameters=PLACE) for name in names]
        answer = served.post(path, **{**fields, "tools": tools, "tool_choice": choice}).json()
        if answer.get("error"):
            return answer["error"]["param"]
        if chat:
            return {
                each["function"]["name"] for each in answer["choices"][0]["message"].get("tool_calls", ())
            }
        assert answer["tool_choice"] == choice
        return {each["name"] for each in answer["output"] if each["type"] == "function_call"}

    assert called("auto", *names) == {"get_weather"}
    assert called("required", "get_time") == {"get_time"}
    assert called("auto", "get_time") <= {"get_time"}
    at = "tool_choice.allowed_tools.tools" if chat else "tool_choice.tools"
    assert called("auto", "get_time", "get_date") == f"{at}[1]"


def test_marks_of_what_to_cache_are_accepted_wherever_clients_put_them(served):
    mark = {"cache_control": {"type": "ephemeral"}}
    parts = [{"type": "text", "text": "What is 2+2?", **mark}]
    tool = {"type": "function", "function": SAID, **mark}
    answer = served.chat(messages=[{"role": "user", "content": parts, **mark}], tools=[tool], max_tokens=1)
    assert answer.status_code == 200


@pytest.mark.parametrize(
    ("path", "more"), [("/v1/responses", {"output_schema": {}}), ("/v1/messages", {"allowed_callers": ["x"]})]
)
def test_what_a_tool_asks_for_and_is_not_there_is_refused(served, path, more):
    fields = STRICT[path]
    (tool,) = fields["tools"]
    answer = served.post(path, model="ember", **{**fields, "tools": [{**tool, **more}]})
    assert answer.status_code == 400
    assert f"tools[0].{next(iter(more))}: this server supports only" in answer.json()["error"]["message"]


def test_what_is_strict_says_nothing_to_the_model(served):
    fields = STRICT["/v1/chat/completions"]
    (tool,) = fields["tools"]
    plain = {"type": "function", "function": {**tool["function"], "strict": None}}
    prompts = [
        served.post("/apply-template", model="ember", messages=QUESTION, tools=[each]).json()["prompt"]
        for each in (tool, plain)
    ]
    assert prompts[0] == prompts[1] and "Rome" in prompts[0]


FENCED = '```json\n{\n  "name": "now",\n  "arguments": {}\n}\n```'


@pytest.mark.parametrize("path", ASKED)
def test_a_call_in_a_fence_is_a_call_unless_a_field_says_otherwise(answering, monkeypatch, path):
    """As models write it that were not trained on calls."""
    monkeypatch.setattr(chat_options, "ARGUMENTS", ())  # what makes ember write it is no form of the answer
    ((name, arguments),) = calls_of(answering(path, FENCED))
    assert name == "now" and arguments in ("{}", {})
    monkeypatch.setitem(ASKED[path], "stream", True)
    streamed = answering.stream(path, FENCED)
    assert '"now"' in streamed and "```" not in streamed
    monkeypatch.setitem(ASKED[path], "lenient_tool_calls", False)
    assert "```" in answering.stream(path, FENCED)
    monkeypatch.delitem(ASKED[path], "stream")
    assert calls_of(answering(path, FENCED)) == []


@pytest.mark.parametrize(
    ("arguments", "meant"), [({"city": "Rome"}, '{"city":"Rome"}'), ({}, "{}"), (None, "{}")]
)
def test_arguments_of_a_past_call_may_be_the_object_itself(served, arguments, meant):
    def prompt(given):
        call = {"id": "c", "type": "function", "function": {"name": "weather", "arguments": given}}
        messages = [
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c", "content": "4"},
        ]
        answer = served.post("/apply-template", model="ember", messages=messages)
        assert answer.status_code == 200, answer.text
        return answer.json()["prompt"]

    assert prompt(arguments) == prompt(meant)

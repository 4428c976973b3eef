"""What particular clients send and rely on, each request as they make it."""

from __future__ import annotations

from types import SimpleNamespace

import anthropic
import msgspec
import numpy as np
import openai
import pytest

from akunu.base.errors import ContextLengthError
from akunu.chat import ChatTemplate
from akunu.server import Settings
from akunu.server.anthropic_fields import MessagesRequest
from akunu.server.anthropic_fields import Tool as AnthropicTool
from akunu.server.anthropic_tools import client_tool
from akunu.server.client_tools import client_tools
from akunu.server.errors import ApiError
from akunu.server.openai_chat import ChatRequest
from akunu.server.openai_responses_fields import Item, ResponsesRequest
from akunu.server.prompts import infill_ids, prompt_ids
from akunu.tokenizer import Segment

from . import published
from .conftest import EMBER, serving

LONG = [{"role": "user", "content": "cat dog " * 4000}]
ANTHROPIC_WORDS = r"prompt is too long: \d{4} tokens > 2048 maximum"
OPENAI_WORDS = (
    r"This model's maximum context length is 2048 tokens\. However, your messages resulted in \d{4} tokens\."
)


@pytest.fixture
def openai_client(served):
    with published.openai_client(served.url) as client:
        yield client


@pytest.fixture
def anthropic_client(served):
    with published.anthropic_client(served.url) as client:
        yield client


# -- A full context, by whose words agents know that they have to compact. -----------------------------------


@pytest.mark.parametrize("stream", [False, True])
def test_a_prompt_that_is_too_long_is_told_in_anthropics_words(anthropic_client, stream):
    with pytest.raises(anthropic.BadRequestError, match=ANTHROPIC_WORDS) as caught:
        anthropic_client.messages.create(model="ember", max_tokens=8, messages=LONG, stream=stream)
    assert caught.value.body["error"]["type"] == "invalid_request_error"


@pytest.mark.parametrize("stream", [False, True])
def test_a_prompt_that_is_too_long_is_told_in_openais_words(openai_client, stream):
    with pytest.raises(openai.BadRequestError, match=OPENAI_WORDS) as caught:
        openai_client.chat.completions.create(model="ember", messages=LONG, stream=stream)
    assert caught.value.code == "context_length_exceeded"
    with pytest.raises(openai.BadRequestError, match=OPENAI_WORDS) as caught:
        openai_client.responses.create(model="ember", input=LONG, stream=stream)
    assert caught.value.code == "context_length_exceeded"
    with pytest.raises(openai.BadRequestError, match=OPENAI_WORDS.replace("messages", "prompt")):
        openai_client.completions.create(model="ember", prompt=LONG[0]["content"], stream=stream)


def test_what_can_be_done_follows_the_words(served):
    with served.http.stream("POST", "/v1/messages", json={"model": "ember"}) as answer:
        assert answer.status_code == 400  # another error keeps its words
        answer.read()
        assert "missing" in answer.json()["error"]["message"]
    assert ContextLengthError("the prompt has 9 tokens, the context holds 8; load it again").sizes == (
        9, 8, "load it again",
    )  # fmt: skip
    assert (
        ContextLengthError("the prompt has 9 tokens, the context holds 8, all that it has").sizes[2]
        == "all that it has"
    )
    assert ContextLengthError("a window of 7").sizes is None


# -- Tools and thoughts by the types of their APIs. ----------------------------------------------------------


def test_anthropics_tools_that_the_client_runs_are_functions(served):
    tools = [
        {"type": "bash_20250124", "name": "bash"},
        {"type": "text_editor_20250728", "name": "str_replace_based_edit_tool", "max_characters": 100},
        {"type": "memory_20250818", "name": "memory", "cache_control": {"type": "ephemeral"}},
    ]
    fields = MessagesRequest(model="ember", max_tokens=1, messages=[], tools=tools)
    kept, warnings = client_tools(fields.tools, "custom", AnthropicTool, dict, client_tool)
    functions = {tool["function"]["name"]: tool["function"]["parameters"] for tool in kept}
    assert list(functions) == ["bash", "str_replace_based_edit_tool", "memory"] and not warnings
    assert "command" in functions["bash"]["properties"]
    assert functions["str_replace_based_edit_tool"]["properties"]["command"]["enum"][0] == "view"
    assert "rename" in functions["memory"]["properties"]["command"]["enum"]
    hi = [{"role": "user", "content": "hi"}]
    asked = {"model": "ember", "max_tokens": 2, "messages": hi}
    assert served.post("/v1/messages", **asked, tools=tools).status_code == 200
    search = {"type": "web_search_20250305", "name": "web_search"}
    answer = served.post("/v1/messages", **asked, tools=[*tools, search]).json()
    assert "web_search_20250305" in answer["warnings"][0]
    wrong = served.post(
        "/v1/messages", **asked, tools=[{"type": "bash_20250124", "name": "bash", "shell": "zsh"}]
    )
    assert wrong.status_code == 400 and "shell" in wrong.json()["error"]["message"]


def test_tools_whose_loading_is_deferred_come_when_they_are_found(served):
    """Claude Code 2.1.332 declares its rarer tools so, and one of its own that finds them."""

    def tool(name, **more):
        return {"name": name, "description": "d", "input_schema": {"type": "object"}, **more}

    found = {
        "type": "tool_result",
        "tool_use_id": "toolu_1",
        "content": [
            {"type": "tool_reference", "tool_name": name} for name in ("CronList", "Gone", "CronCreate")
        ],
    }
    call = {"type": "tool_use", "id": "toolu_1", "name": "ToolSearch", "input": {"query": "cron"}}
    conversation = [
        {"role": "user", "content": "Which jobs are there?"},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [found]},
    ]
    tools = [tool(name, defer_loading=True) for name in ("CronCreate", "CronDelete", "CronList")]
    tools = [tools[0], tool("ToolSearch", defer_loading=False), *tools[1:], tool("Write")]

    def told(messages, tools=tools, **more):
        fields = {"model": "ember", "max_tokens": 1, "messages": messages, "tools": tools, **more}
        assert served.post("/v1/messages", **fields).status_code == 200
        turn, _ = msgspec.convert(fields, MessagesRequest).turn()
        return [tool["function"]["name"] for tool in turn.options["tools"]], turn.messages

    assert told(conversation[:1])[0] == ["ToolSearch", "Write"]
    names, messages = told(conversation)
    assert names == ["ToolSearch", "Write", "CronList", "CronCreate"]
    assert "CronList can be called now.\nGone can be called now." in messages[-1]["content"]
    forced, _ = told(conversation[:1], tool_choice={"type": "tool", "name": "CronDelete"})
    assert forced == ["ToolSearch", "CronDelete", "Write"]
    search = {"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"}
    names, _ = told(conversation[:1], [search, *tools])  # which does not run here
    assert names == ["CronCreate", "ToolSearch", "CronDelete", "CronList", "Write"]


def test_a_document_that_is_a_text_is_read(served):
    def document(**more):
        source = {"type": "text", "media_type": "text/plain", "data": "The sky is green."}
        return {"type": "document", "source": source, **more}

    def told(*blocks):
        fields = {"model": "ember", "max_tokens": 1, "messages": [{"role": "user", "content": [*blocks]}]}
        answer = served.post("/v1/messages", **fields)
        if answer.status_code != 200:
            return answer.json()["error"]["message"]
        return msgspec.convert(fields, MessagesRequest).turn()[0].messages

    question = {"type": "text", "text": "Which colour has the sky?"}
    (message,) = told(document(title="Sky", context="a page", citations={"enabled": False}), question)
    assert message["content"] == "Sky\na page\nThe sky is green.\nWhich colour has the sky?"
    (result,) = told({"type": "tool_result", "tool_use_id": "a", "content": [document()]})
    assert result["content"] == "The sky is green."
    pdf = {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}
    assert "'document' is not supported" in told(document(source=pdf), question)
    assert "citations" in told(document(citations={"enabled": True}), question)


def test_edits_of_a_conversation_are_not_made_and_a_warning_says_so(served):
    asked = {"model": "ember", "max_tokens": 1, "messages": [{"role": "user", "content": "hi"}]}
    clear = {"type": "clear_tool_uses_20250919", "trigger": {"type": "input_tokens", "value": 30000}}
    answer = served.post("/v1/messages", **asked, context_management={"edits": [clear]}).json()
    assert "context_management" in answer["warnings"][0]
    keep = {"type": "clear_thinking_20251015", "keep": "all"}
    for edits in ([], [keep]):
        answer = served.post("/v1/messages", **asked, context_management={"edits": edits}).json()
        assert answer["type"] == "message" and "warnings" not in answer


def test_a_limit_of_a_providers_tools_changes_nothing(served):
    answer = served.post("/v1/responses", model="ember", input="hi", max_output_tokens=1, max_tool_calls=3)
    assert answer.status_code == 200


@pytest.fixture
def thinker(served):
    """Ember with a template that opens reasoning; what it writes up to the mark is thought."""
    model = served.ember.model
    before, model._template = (
        model._template,
        ChatTemplate(
            "{% for m in messages %}{{ m.reasoning_content }}{{ m.content }}{% endfor %}<think>",
            model.tokenizer,
        ),
    )
    yield served
    model._template = before


@pytest.mark.parametrize("summary", [None, "auto", "detailed"])
def test_thoughts_are_the_summary_where_one_is_asked_for(thinker, summary):
    reasoning = {"summary": summary} if summary else {}
    with published.openai_client(thinker.url) as client:
        asked = {
            "model": "ember",
            "input": "Tell me a story.",
            "reasoning": reasoning,
            "max_output_tokens": 40,
            "temperature": 0,
            "extra_body": {"thinking_budget": 6},
        }
        whole = client.responses.create(**asked)
        events = list(client.responses.create(**asked, stream=True))
    (item, *_) = whole.output
    assert item.type == "reasoning"
    parts, others = (item.summary, item.content) if summary else (item.content, item.summary)
    assert [part.type for part in parts] == ["summary_text" if summary else "reasoning_text"] and not others
    kinds = {event.type for event in events}
    assert ("response.reasoning_summary_text.delta" in kinds) == bool(summary)
    assert ("response.reasoning_text.delta" in kinds) != bool(summary)
    if summary:
        order = [event.type for event in events if "reasoning_summary" in event.type]
        assert order[0] == "response.reasoning_summary_part.added"
        assert order[-2:] == ["response.reasoning_summary_text.done", "response.reasoning_summary_part.done"]
    repeated = [
        {"role": "user", "content": "Hi"},
        item.model_dump(exclude_none=True),
        {"role": "user", "content": "x"},
    ]
    fields = ResponsesRequest(model="ember", input=msgspec.convert(repeated, list[Item]))
    turn, _ = fields.turn([])
    assert turn.messages[1]["reasoning_content"] == parts[0].text


# -- Prompts that a client puts together itself. -------------------------------------------------------------

PROMPT = "<|im_start|>user\nWhat is the capital of France?<|im_end|>\n<|im_start|>assistant\n"


def complete(client, prompt=PROMPT, **fields):
    return client.completions.create(model="ember", prompt=prompt, max_tokens=12, temperature=0, **fields)


def test_control_tokens_in_the_prompt_of_a_completion_are_read(openai_client, served):
    asked = {"messages": [{"role": "user", "content": "What is the capital of France?"}]}
    made = served.post("/apply-template", model="ember", **asked).json()
    answer = complete(openai_client)
    assert answer.choices[0].text == "The capital of France is Paris."
    assert answer.usage.prompt_tokens == len(made["tokens"])
    assert complete(openai_client, made["tokens"]).choices[0].text == answer.choices[0].text


def test_a_field_turns_that_off(openai_client):
    spelt = complete(openai_client, extra_body={"parse_special": False})
    assert spelt.usage.prompt_tokens > 2 * complete(openai_client).usage.prompt_tokens


def test_what_a_text_begins_with_is_there_once(served):
    model = served.ember.model
    before = list(model.tokenizer.template.before)
    text = "".join(model.tokenizer.token_text(i) for i in before)
    assert prompt_ids(model, text + "Hi") == prompt_ids(model, "Hi")
    assert prompt_ids(model, "Hi", add_special=False) == prompt_ids(model, "Hi")[len(before) :]


def test_a_gap_is_filled_by_models_that_have_tokens_for_it(served, openai_client):
    with pytest.raises(openai.BadRequestError, match="no tokens for filling in the middle"):
        complete(openai_client, "def f(", suffix="return x")
    tokens = ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|file_sep|>")
    model = FimModel(tokens)
    assert infill_ids(model, "a", "b", [("x.py", "y")]) == [
        "<|file_sep|>", "x.py\ny\n", "<|fim_prefix|>", "a", "<|fim_suffix|>", "b", "<|fim_middle|>",
    ]  # fmt: skip
    codestral = FimModel(("[PREFIX]", "[SUFFIX]", "[MIDDLE]"))
    assert infill_ids(codestral, "a", "b") == ["[SUFFIX]", "b", "[PREFIX]", "a"]


class FimModel:
    """Tokens are texts; those for a gap are these."""

    context = 99

    def __init__(self, tokens: tuple[str, ...]) -> None:
        self.tokenizer = SimpleNamespace(template=SimpleNamespace(before=()))
        self._tokens = tokens

    def tokenize(self, text: str, *, add_special: bool, parse_special: bool = False) -> list[str]:
        return [text] if not parse_special or text in self._tokens else list(text)


# -- What clients repeat, add, and ask for twice. ------------------------------------------------------------

IMAGE = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
INSTEAD = "[image: this model reads text only]"


def test_an_image_in_a_tools_result_is_a_text_in_its_place(served):
    """A coding agent that has looked at a picture repeats the result in each of its next requests."""
    use = {"type": "tool_use", "id": "t1", "name": "Read", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "image", "source": IMAGE}]}
    turns = [("user", "x"), ("assistant", [use]), ("user", [result])]
    fields = {
        "max_tokens": 4,
        "tools": [{"name": "Read", "input_schema": {"type": "object"}}],
        "messages": [{"role": role, "content": content} for role, content in turns],
    }
    answer = served.post("/v1/messages", model="ember", **fields).json()
    assert answer["warnings"] == [
        "messages[2].content[0].content[0]: this model reads text only; the image was left out"
    ]
    part = {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo="}
    items = [
        {"role": "user", "content": "x"},
        {"type": "function_call", "call_id": "c", "name": "view_image", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": [part]},
    ]
    answer = served.post("/v1/responses", model="ember", input=items, max_output_tokens=4).json()
    assert "image was left out" in answer["warnings"][0]
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": "x"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {
            "role": "tool",
            "tool_call_id": "c",
            "content": [{"type": "image_url", "image_url": {"url": "data:,"}}],
        },
    ]
    answer = served.chat(messages=messages, max_tokens=4)
    assert "image was left out" in answer.json()["warnings"][0]
    made = served.post("/apply-template", model="ember", messages=messages).json()["prompt"]
    assert INSTEAD in made


def test_anthropics_runner_of_tools_works(anthropic_client):
    """It asks for a thread first, and repeats the request without one where there are none."""
    asked = {"model": "ember", "max_tokens": 8, "messages": [{"role": "user", "content": "hi"}]}
    with pytest.raises(anthropic.BadRequestError) as caught:
        anthropic_client.messages.create(**asked, extra_body={"thread": {"type": "create"}})
    assert caught.value.body["error"]["details"] == {
        "error_code": "thread_unsupported_request",
        "unsupported": ["threads"],
    }

    @anthropic.beta_tool
    def get_weather(city: str) -> str:
        """Get the weather in a city."""
        return "rain"

    runner = anthropic_client.beta.messages.tool_runner(
        model="ember",
        max_tokens=60,
        tools=[get_weather],
        messages=[{"role": "user", "content": "What is the weather in Paris?"}],
    )
    assert runner.until_done().stop_reason


def test_unknown_fields_that_are_null_ask_for_nothing(served):
    repeated = {
        "role": "assistant",
        "content": "Hello",
        "reasoning": None,
        "tool_call_id": None,
        "refusal": None,
    }
    user = {"role": "user", "content": "hi"}
    assert (
        served.chat(messages=[user, repeated, user, repeated, user], max_tokens=1, odd=None).status_code
        == 200
    )
    function = {"name": "f", "arguments": "{}", "description": None}
    call = {"id": "c", "type": "function", "function": function}
    result = {"role": "tool", "tool_call_id": "c", "content": "x"}
    messages = [user, {**repeated, "content": None, "tool_calls": [call]}, result]
    assert served.chat(messages=messages, max_tokens=1).status_code == 200
    tool = {"type": "function", "function": {"name": "f", "parameters": None, "odd": None}}
    assert served.chat(tools=[tool], max_tokens=1).status_code == 200
    wrong = served.chat(messages=[user, repeated, {**user, "odd": 1}], max_tokens=1)
    assert wrong.json()["error"]["param"] == "messages[2].odd"


def test_fields_of_a_clients_classes_in_what_the_model_said_are_left_out(served):
    """litellm 1.106 repeats `provider_specific_fields`, others what their classes have."""
    user = {"role": "user", "content": "hi"}
    said = {"role": "assistant", "content": "Hello", "provider_specific_fields": {"refusal": None}, "odd": 1}
    function = {"name": "f", "arguments": "{}", "strict": True}
    calls = [{"id": "c", "type": "function", "function": function, "caller": {"type": "direct"}}]
    result = {"role": "tool", "tool_call_id": "c", "content": "x"}
    messages = [user, said, user, {**said, "content": None, "tool_calls": calls}, result]
    answer = served.chat(messages=messages, max_tokens=1).json()
    names = [warning.partition(":")[0] for warning in answer["warnings"]]
    assert sorted(names) == [
        "messages[1].odd", "messages[1].provider_specific_fields", "messages[3].tool_calls[0].caller",
        "messages[3].tool_calls[0].function.strict",
    ]  # fmt: skip
    wrong = served.chat(messages=[*messages, {**user, "odd": 1}], max_tokens=1)
    assert wrong.status_code == 400 and wrong.json()["error"]["param"] == "messages[5].odd"
    items = [
        user,
        {"type": "message", "role": "assistant", "content": "Hello", "odd": 1},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}", "odd": 1},
        {"type": "function_call_output", "call_id": "c", "output": "x"},
    ]
    asked = {"model": "ember", "max_output_tokens": 1}
    assert served.post("/v1/responses", **asked, input=items).json()["warnings"]
    wrong = served.post("/v1/responses", **asked, input=[*items, {**user, "odd": 1}])
    assert wrong.status_code == 400 and wrong.json()["error"]["param"] == "input[4].odd"


def test_the_remote_tokenizer_of_lm_eval(served):
    """`RemoteTokenizer` of lm-eval 0.4.13, which is made for vLLM."""
    tokenizer, info = served.ember.model.tokenizer, served.http.get("/tokenizer_info").json()
    assert info["eos_token"] == tokenizer.token_text(tokenizer.eos_id)
    assert "messages" in info["chat_template"]

    def encoded(text, **more):
        return served.post("/tokenize", prompt=text, **more).json()["tokens"]

    assert encoded(info["eos_token"], add_special_tokens=False) == [tokenizer.eos_id]
    text = "What is 2+2?"
    assert encoded(text, add_special_tokens=False) == tokenizer.encode(text, add_special=False)
    assert encoded(text) == tokenizer.encode(text)
    ids = tokenizer.encode(text, add_special=False)
    assert served.post("/detokenize", tokens=ids).json()["prompt"] == text
    assert served.post("/tokenize", prompt=text, text=text).status_code == 400


def test_thoughts_are_repeated_by_either_name(served):
    def prompt(**thought):
        said = {"role": "assistant", "content": "Hello", **thought}
        turn = msgspec.convert({"model": "m", "messages": [said]}, ChatRequest).turn()[0]
        return turn.messages[0].get("reasoning_content")

    assert prompt(reasoning="Hm.") == prompt(reasoning_content="Hm.") == "Hm."


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "f"}}])
def test_where_a_call_is_forced_the_format_of_the_content_is_left_out(served, choice):
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    tools = [{"type": "function", "function": {"name": "f", "parameters": schema}}]
    form = {"type": "json_schema", "json_schema": {"name": "P", "schema": schema}}
    answer = served.chat("hi", tools=tools, tool_choice=choice, response_format=form, max_tokens=60).json()
    assert "tool_choice asks for a call" in answer["warnings"][0]
    assert (
        answer["choices"][0]["message"].get("tool_calls") or answer["choices"][0]["finish_reason"] == "length"
    )


@pytest.mark.parametrize(
    "fields",
    [
        {"max_tokens": -1},
        {"seed": -1},
        {"top_p": 0},
        {"stop": ""},
        {"stop": []},
        {"verbosity": "low"},
        {"store": True},
        {"add_generation_prompt": True},
        {"min_tokens": 0, "skip_special_tokens": True, "cache_prompt": True, "id_slot": -1},
        {"stop": [""], "grammar": "", "regex": "", "json_schema": {}, "reasoning_effort": ""},
        {"dry_multiplier": 0, "dry_base": 1.75, "xtc_probability": 0, "xtc_threshold": 0.1},
        {"dry_multiplier": 0.8, "dry_sequence_breakers": ["\n", ":"], "top_n_sigma": -1, "min_keep": 0},
        {"dry_multiplier": 0.8, "dry_sequence_breakers": '["\\n", "\\"", "*"]', "xtc_probability": 0.5},
        {"dry_multiplier": 0.8, "dry_sequence_breakers": '"\\n", ":"', "dry_penalty_last_n": -1},
        {"thinking": {"type": "disabled"}},
        {"enable_thinking": False, "think": False, "reasoning": {"enabled": False}},
        {"n_predict": -2, "n_keep": -1},
    ],
)
def test_values_that_other_servers_take_are_taken(served, fields):
    answer = served.chat("What is 2+2?", **fields)
    assert answer.status_code == 200, answer.text
    assert ("warnings" in answer.json()) == bool({"verbosity", "store"} & fields.keys())


def test_empty_stop_texts_end_nothing_in_any_api(served):
    hello = {"model": "ember", "messages": [{"role": "user", "content": "Hello!"}]}
    asked = {
        "/v1/messages": {**hello, "max_tokens": 2, "stop_sequences": [""]},
        "/api/chat": {**hello, "options": {"num_predict": 2, "stop": ["", ""]}},
        "/v1/completions": {"model": "ember", "prompt": "Once", "max_tokens": 2, "stop": ["", ""]},
        "/completion": {"prompt": "Once", "n_predict": 2, "stop": [""]},
    }
    assert [served.post(path, **fields).status_code for path, fields in asked.items()] == [200] * 4


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/completions", "/v1/responses"])
def test_fields_of_other_servers_are_translated(served, path):
    given = {
        "/v1/chat/completions": {"messages": [{"role": "user", "content": "What is 2+2?"}]},
        "/v1/completions": {"prompt": "Once upon a time"},
        "/v1/responses": {"input": "What is 2+2?"},
    }[path]

    def ask(**fields):
        answer = served.post(path, model="ember", **given, **fields)
        assert answer.status_code == 200, answer.text
        body = answer.json()
        if "output" in body:
            return body["output"][0]["content"][0]["text"]
        return body["choices"][0].get("text") or body["choices"][0]["message"]["content"]

    for choice in (
        {"guided_choice": ["yes", "no"]},
        {"structured_outputs": {"choice": ["yes", "no"]}},
        {"guided_regex": "yes|no"},
        {"structured_outputs": {"regex": "yes|no"}},
        {"guided_grammar": 'root ::= "yes" | "no"'},
    ):
        assert ask(**choice) in ("yes", "no")
    for schema in (
        {"guided_json": {"enum": ["a"]}},
        {"json_schema": {"enum": ["a"]}},
        {"structured_outputs": {"json": {"enum": ["a"]}}},
    ):
        assert ask(**schema) == '"a"'
    short = ask(do_sample=False, max_new_tokens=2)
    assert short == ask(temperature=0, n_predict=2)
    assert ask(temperature=0, max_new_tokens=20).startswith(short.rstrip())
    assert ask(temperature=0, repetition_penalty=1.5, max_new_tokens=30)
    other = ask(temperature=0, max_new_tokens=60, dry_multiplier=99, dry_allowed_length=0)
    assert other != ask(temperature=0, max_new_tokens=60)
    breakers = served.post(path, model="ember", **given, dry_sequence_breakers="[1")
    assert breakers.status_code == 400 and breakers.json()["error"]["param"] == "dry_sequence_breakers"
    twice = served.post(path, model="ember", **given, max_new_tokens=1, n_predict=2)
    assert twice.status_code == 400 and twice.json()["error"]["param"] == "n_predict"
    strange = served.post(path, model="ember", **given, min_tokens=5)
    assert strange.status_code == 400 and strange.json()["error"]["param"] == "min_tokens"


@pytest.mark.parametrize(
    "choice",
    ["any", {"type": "any"}, {"type": "required"}, {"type": "tool", "name": "f"},
     {"type": "function", "name": "f"}],
)  # fmt: skip
def test_words_of_other_apis_for_a_call_that_has_to_be_are_taken(served, choice):
    tools = [{"type": "function", "function": {"name": "f", "parameters": {}}}]
    message = served.chat("hi", tools=tools, tool_choice=choice).json()["choices"][0]["message"]
    assert message["tool_calls"][0]["function"]["name"] == "f"
    for word in ("auto", "none"):
        assert served.chat("hi", tools=tools, tool_choice={"type": word}, max_tokens=1).status_code == 200


@pytest.mark.parametrize(
    ("fields", "option", "value"),
    [
        ({"enable_thinking": True}, "thinking", True),
        ({"think": False}, "thinking", False),
        ({"think": "high"}, "reasoning_effort", "high"),
        ({"thinking": {"type": "enabled", "budget_tokens": 9}}, "thinking_budget", 9),
        ({"thinking": {"type": "enabled"}}, "thinking", True),
        ({"thinking": {"type": "auto"}}, "thinking", None),
        ({"reasoning": {"effort": "low"}}, "reasoning_effort", "low"),
        ({"reasoning": {"max_tokens": 7}}, "thinking_budget", 7),
    ],
)
def test_words_of_other_servers_for_thinking_are_taken(fields, option, value):
    message = {"role": "user", "content": "hi"}
    request = msgspec.convert({"model": "m", "messages": [message], **fields}, ChatRequest)
    assert request.turn()[0].options[option] == value
    with pytest.raises(ApiError, match="by different names; give one"):
        both = {"thinking": {"type": "enabled"}, "enable_thinking": False}
        msgspec.convert({"model": "m", "messages": [message], **both}, ChatRequest).turn()


def test_what_codex_adds_without_a_call_is_told_to_the_model(served):
    """A result that answers no call: something that Codex wants the model to know."""
    items = [
        {"role": "user", "content": "hi"},
        {"type": "function_call", "call_id": "c", "name": "create_goal", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": "ok"},
        {"type": "function_call_output", "name": "goal", "namespace": "agent", "output": "Say hello."},
    ]
    answer = served.post("/v1/responses", model="ember", input=items, max_output_tokens=4)
    assert answer.status_code == 200, answer.text
    turn, _ = ResponsesRequest(model="ember", input=msgspec.convert(items, list[Item])).turn([])
    assert turn.messages[-1] == {"role": "developer", "content": "goal: Say hello."}
    nothing = [{"type": "function_call_output", "output": "x"}]
    assert served.post("/v1/responses", model="ember", input=nothing).status_code == 400


def test_a_text_that_may_not_end_goes_on(served):
    usage = served.chat("What is 2+2?", ignore_eos=True, max_tokens=40).json()["usage"]
    assert usage["completion_tokens"] == 40
    counted = served.post("/v1/responses/input_tokens", model="ember", input="hi", ignore_eos=True)
    assert counted.status_code == 200


def test_a_last_message_of_the_assistants_is_gone_on_with(served):
    messages = [
        {"role": "user", "content": "What is the capital of France?"},
        {"role": "assistant", "content": "The capital of"},
    ]
    for fields in ({}, {"continue_final_message": True, "add_generation_prompt": False}):
        answer = served.chat(messages=messages, max_tokens=12, **fields).json()
        assert answer["choices"][0]["message"]["content"].startswith(" France")


# -- Log-probabilities of a prompt, as evaluations ask for them. ---------------------------------------------


@pytest.mark.parametrize("stream", [False, True])
def test_a_prompt_is_echoed_with_its_log_probabilities(openai_client, served, stream):
    model = served.ember.model
    ids = model.tokenizer.encode_segments([Segment("Once upon a time")])
    asked = {"max_tokens": 1, "echo": True, "logprobs": 1}
    found = openai_client.completions.create(
        model="ember", prompt="Once upon a time", temperature=0, stream=stream, **asked
    )
    parts = [part.choices[0] for part in found] if stream else [found.choices[0]]
    assert "".join(part.text for part in parts).startswith("Once upon a time")
    columns = {
        name: [value for part in parts if part.logprobs for value in getattr(part.logprobs, name)]
        for name in ("tokens", "token_logprobs", "top_logprobs", "text_offset")
    }
    assert {len(column) for column in columns.values()} == {len(ids) + 1}
    logits = model.logits(ids).astype(float)
    for n, token in enumerate(ids[1:]):
        expected = logits[n, token] - np.log(np.exp(logits[n] - logits[n].max()).sum()) - logits[n].max()
        assert columns["token_logprobs"][n + 1] == pytest.approx(expected, abs=1e-4)
        (best,) = columns["top_logprobs"][n + 1].values()
        assert best == pytest.approx(logits[n].max() - logits[n, token] + expected, abs=1e-4)
    assert columns["token_logprobs"][0] is None and columns["top_logprobs"][0] is None
    assert columns["text_offset"] == [sum(map(len, columns["tokens"][:n])) for n in range(len(ids) + 1)]


# -- Reranking, by every path and name. ----------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/v1/rerank", "/v2/rerank", "/rerank"])
def test_documents_are_ranked_by_every_path(served, path):
    asked = {"model": "scores", "query": "q", "documents": ["a", "b"]}
    answer = served.post(path, **asked)
    assert [set(each) for each in answer.json()["results"]] == [{"index", "relevance_score"}] * 2


def test_texts_are_ranked_as_text_embeddings_inference_does(served):
    served.post("/rerank", model="scores", query="q", documents=["a"])  # loads it
    answer = served.post("/rerank", query="q", texts=["a", "b"], return_text=True)
    assert [set(each) for each in answer.json()] == [{"index", "score", "text"}] * 2
    for wrong in ({}, {"texts": ["a"], "documents": ["a"]}):
        assert served.post("/rerank", model="scores", query="q", **wrong).status_code == 400


# -- A server that takes what it does not know. --------------------------------------------------------------


def test_a_lenient_server_leaves_out_what_it_does_not_know_and_says_so():
    with serving(EMBER, settings=Settings(lenient=True)) as served:
        user = {"role": "user", "content": "What is 2+2?", "mood": "curious"}
        answer = served.chat(messages=[user], frobnicate=7, modalities=["audio"], max_tokens=4).json()
        told = " ".join(answer["warnings"])
        assert all(name in told for name in ("frobnicate", "messages[0].mood", "modalities"))
        assert answer["choices"][0]["message"]["content"].startswith("2 + 2")
        for path, fields in (
            ("/v1/completions", {"prompt": "Hi"}),
            ("/v1/responses", {"input": "Hi"}),
            ("/v1/messages", {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1}),
        ):
            found = served.post(path, model="ember", frobnicate=7, **fields).json()
            assert found["warnings"] == ["frobnicate: no such field is known here; it was left out"]
        assert served.chat(temperature="hot").status_code == 400  # what is known has to be right

"""Chats of a model: content, reasoning and calls apart, in the message, the pieces and the deltas."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import pytest

import akunu
from akunu.api.chat_options import prepare
from akunu.api.model import Model
from akunu.base.errors import InvalidArgumentError
from akunu.chat import Content, Reasoning, ToolArguments, ToolCall
from akunu.chat.deltas import merged, message_of

from .conftest import END, TOKENS, as_bytes, metadata, wrap
from .fakes import FakeEngine, scripted

USER = [{"role": "user", "content": "Hi"}]
NOW = {"type": "function", "function": {"name": "now", "parameters": {"type": "object"}}}
HERMES = (
    "{% for tool in tools or [] %}{{ tool | tojson }}<tool_call>{% endfor %}"
    "{% for m in messages %}{{ m.role }}:{{ m.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant:{% if enable_thinking is defined %}"
    "{{ '<think>' if enable_thinking else '<think></think>' }}{% endif %}{% endif %}"
)
CALL = '<tool_call>\n{"name": "now", "arguments": {"zone": "UTC"}}\n</tool_call>'


def answering(
    text: str, template: str = HERMES, controls: tuple[str, ...] = (), **arguments: object
) -> Model:
    """A model that answers with `text`; each of `controls` in it is a control token."""
    vocabulary = [*TOKENS, *controls]
    ids: list[int] = []
    for part in [text] if not controls else _split(text, controls):
        ids += [vocabulary.index(part)] if part in controls else as_bytes(part)
    data = metadata() | {"tokenizer.chat_template": template, "tokenizer.ggml.tokens": vocabulary}
    data["tokenizer.ggml.scores"] = [0.0] * len(vocabulary)
    data["tokenizer.ggml.token_type"] += [3] * len(controls)
    engine = FakeEngine(scripted(0, [END]), vocab=len(vocabulary), context=2048)
    model = wrap(engine, data)
    prompt = len(model.chat_template.encode(USER, **arguments))
    engine.next_token = scripted(prompt, [*ids, END])
    return model


def _split(text: str, controls: tuple[str, ...]) -> list[str]:
    for control in controls:
        text = text.replace(control, f"\0{control}\0")
    return [part for part in text.split("\0") if part]


def test_the_message_has_content_reasoning_and_calls_apart() -> None:
    model = answering("<think>\nHm.\n</think>\n\nWait.\n" + CALL, tools=[NOW])
    completion = model.chat(USER, tools=[NOW])
    (call,) = completion.message.pop("tool_calls")
    assert completion.message == {"role": "assistant", "content": "Wait.", "reasoning_content": "Hm."}
    assert call.pop("id").startswith("call_")
    assert call == {"type": "function", "function": {"name": "now", "arguments": '{"zone": "UTC"}'}}
    assert completion.text.endswith(CALL)


def test_every_text_is_a_message_and_only_a_chats_is_read() -> None:
    text = "<think>Hm.</think>Hello"
    generated = answering(text).generate("user:Hi\nassistant:")
    assert generated.message == {"role": "assistant", "content": generated.text}
    chatted = answering(text).chat(USER)
    assert chatted.message == {"role": "assistant", "content": "Hello", "reasoning_content": "Hm."}


def test_the_deltas_of_a_stream_are_the_message_of_its_completion() -> None:
    stream = answering("<think>Hm.</think>Wait.\n" + CALL + "\n", tools=[NOW]).stream_chat(USER, tools=[NOW])
    deltas = list(stream.deltas())
    assert message_of(deltas) == stream.completion.message
    kinds = [type(delta) for delta in merged(deltas)]
    assert kinds == [Reasoning, Content, ToolCall, ToolArguments]


def test_pieces_carry_what_they_say_and_the_last_one_what_was_held_back() -> None:
    pieces = list(answering("Hello <think", tools=[NOW]).stream_chat(USER, tools=[NOW]))
    assert "".join(pieces) == "Hello <think"
    assert message_of(delta for piece in pieces for delta in piece.deltas)["content"] == "Hello <think"
    held = list(answering("Hello <tool", tools=[NOW]).stream_chat(USER, tools=[NOW]))
    assert held[-1] == "" and held[-1].ids == [] and held[-1].deltas == [Content(" <tool")]


def test_deltas_come_asynchronously_too() -> None:
    async def read() -> list[object]:
        stream = answering("<think>Hm.</think>Yes.").astream_chat(USER)
        return [delta async for delta in stream.deltas()]

    assert merged(asyncio.run(read())) == [Reasoning("Hm."), Content("Yes.")]


@pytest.mark.parametrize("end", ["oops}", "", '"}} then'])
def test_a_stream_of_whole_calls_says_what_the_message_says(end: str) -> None:
    text = 'So: <tool_call>{"name": "now", "arguments": {"zone": "U' + end
    stream = answering(text, tools=[NOW]).stream_chat(USER, tools=[NOW]).whole_calls()
    assert message_of(stream.deltas()) == stream.completion.message
    assert ("tool_calls" in stream.completion.message) == ("}}" in end)

    async def deltas() -> None:
        stream = answering(text, tools=[NOW]).astream_chat(USER, tools=[NOW]).whole_calls()
        assert message_of([delta async for delta in stream.deltas()]) == stream.completion.message

    asyncio.run(deltas())


@pytest.mark.parametrize("end", ["oops}", "", '"}} then'])
def test_a_call_of_a_stream_that_breaks_off_is_content_of_the_message(end: str) -> None:
    text = 'So: <tool_call>{"name": "now", "arguments": {"zone": "U' + end
    stream = answering(text, tools=[NOW]).stream_chat(USER, tools=[NOW])
    streamed, message = message_of(stream.deltas()), stream.completion.message
    assert streamed["tool_calls"][0]["function"]["arguments"].startswith('{"zone": "U')
    assert message.get("tool_calls") == (streamed["tool_calls"] if "}}" in end else None)
    assert (text in message["content"]) == ("}}" not in end)


def test_a_stream_that_is_closed_early_has_the_message_so_far() -> None:
    stream = answering("<think>Hm.</think>Yes, that is so.").stream_chat(USER)
    for piece in stream:
        if "</" in stream.completion.text + piece:
            break
    stream.close()
    assert stream.completion.finish_reason == "cancelled"
    assert stream.completion.message["reasoning_content"].startswith("Hm")


def test_control_tokens_that_are_marks_are_seen_and_others_are_not() -> None:
    template = "<|channel|>{% for m in messages %}{{ m.content }}{% endfor %}"
    text = "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>A<|other|>B"
    controls = ("<|channel|>", "<|message|>", "<|end|>", "<|start|>", "<|other|>", "<|return|>", "<|call|>")
    message = answering(text, template, controls).chat(USER).message
    assert message == {"role": "assistant", "content": "AB", "reasoning_content": "Hm."}


def test_reasoning_that_the_template_opens_is_reasoning() -> None:
    on = {"enable_thinking": True}
    model = answering("Hm.</think>Yes.", variables=on)
    for arguments in ({"thinking": True}, {"template_variables": on}, {"reasoning_effort": "high"}):
        message = model.chat(USER, **arguments).message
        assert message == {"role": "assistant", "content": "Yes.", "reasoning_content": "Hm."}
    off = answering("Yes.", variables={"enable_thinking": False})
    assert off.chat(USER, thinking=False).message == {"role": "assistant", "content": "Yes."}
    assert off.chat(USER, reasoning_effort="none").message == {"role": "assistant", "content": "Yes."}


NOW_BEGINS = '<tool_call>\n{"name": "now", "arguments": '
SCHEMA = {
    "type": "object",
    "properties": {"sky": {"enum": ["clear", "grey"]}},
    "required": ["sky"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("constraint", "schema", "begin"),
    [
        ({"schema": SCHEMA}, SCHEMA, ""),
        ({"schema": json.dumps(SCHEMA)}, SCHEMA, ""),
        ({"json": True}, {"type": "object"}, ""),
        (
            {"tools": [NOW], "tool_choice": "now"},
            {"type": "object"},
            NOW_BEGINS,
        ),
    ],
)
def test_what_constrains_an_answer_lets_the_model_think_first(
    constraint: dict[str, object], schema: object, begin: str
) -> None:
    template = answering("").chat_template
    _, options, _, _ = prepare(template, USER, {"thinking": True, **constraint}, 4096)
    tag = options.pop("structural_tag")
    assert (tag.after, tag.required, options) == ("</think>", True, {})
    assert [(each.begin, each.schema) for each in tag.tags] == [(begin, schema)]
    assert prepare(template, USER, {"thinking": False, **constraint}, 4096)[1].get("structural_tag") in (
        None,
        replace(tag, after=None),
    )


def test_a_schema_holds_on_the_channel_for_answers() -> None:
    template = answering("", "<|channel|>{% for m in messages %}{{ m.content }}{% endfor %}").chat_template
    _, options, _, _ = prepare(template, USER, {"schema": SCHEMA}, 4096)
    (tag,) = options["structural_tag"].tags
    assert (tag.begin, tag.schema, tag.end) == ("<|channel|>final<|message|>", SCHEMA, "")


def test_with_a_schema_and_tools_the_answer_follows_the_schema_or_is_a_call() -> None:
    tools = [{"type": "function", "function": {"name": "now", "strict": True, "parameters": SCHEMA}}]
    with akunu.load("ember", progress=False) as model:
        for first, is_call in (("<", True), ("{", False)):
            bias = {model.tokenize(first)[0]: 50.0}
            for schema in (SCHEMA, json.dumps(SCHEMA)):
                completion = model.chat(USER, tools=tools, schema=schema, logit_bias=bias, temperature=0)
                called = completion.message.get("tool_calls")
                said = called[0]["function"]["arguments"] if called else completion.message["content"]
                assert json.loads(said)["sky"] in ("clear", "grey") and completion.finish_reason == "stop"
                assert bool(called) is is_call


def test_what_tools_ask_for_and_a_tag_of_the_callers_exclude_each_other() -> None:
    tag = akunu.StructuralTag((akunu.Tag("<a>", None, "</a>"),))
    with pytest.raises(InvalidArgumentError, match="structural_tag: what is asked of the calls"):
        answering("").chat(USER, tools=[NOW], tool_choice="now", structural_tag=tag)


def test_an_expression_constrains_from_the_start_so_there_is_no_reasoning() -> None:
    with akunu.load("ember", progress=False) as model:
        model.chat_template = akunu.ChatTemplate(HERMES, model.tokenizer)
        message = model.chat(USER, thinking=True, regex="[a-c]{3}").message
    assert set(message["content"]) <= set("abc") and "reasoning_content" not in message


def test_a_call_that_is_chosen_fits_its_schema() -> None:
    schema = {
        "type": "object",
        "properties": {"city": {"type": "string", "maxLength": 9}, "days": {"type": "integer", "minimum": 1}},
        "required": ["city", "days"],
        "additionalProperties": False,
    }
    tools = [{"type": "function", "function": {"name": "forecast", "parameters": schema}}, NOW]
    with akunu.load("ember", progress=False) as model:
        for seed in range(3):
            message = model.chat(
                USER, tools=tools, tool_choice="forecast", seed=seed, temperature=1.5
            ).message
            (call,) = message["tool_calls"]
            arguments = json.loads(call["function"]["arguments"])
            assert (
                set(arguments) == {"city", "days"} and arguments["days"] >= 1 and len(arguments["city"]) < 10
            )


def test_effort_goes_to_the_templates_that_know_it() -> None:
    template = "{{ reasoning_effort }}{% for m in messages %}{{ m.content }}{% endfor %}"
    model = answering("Yes.", template, variables={"reasoning_effort": "low"})
    assert str(model.chat(USER, reasoning_effort="low")) == "Yes."


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"thinking": True}, "thinking: the model's chat template has no switch"),
        (
            {"reasoning_effort": "low"},
            "reasoning_effort: the model's chat template has no variable for it, and no reasoning",
        ),
        ({"reasoning_effort": "none", "thinking": True}, "contradicts thinking=True"),
        ({"reasoning_effort": 3}, "reasoning_effort: expected a word"),
        ({"reasoning_effort": "hihg"}, "reasoning_effort: found 'hihg', expected none, minimal, low"),
        ({"tool_choice": "required"}, "tool_choice: found 'required', but there are no tools"),
        ({"tool_choice": "then", "tools": [NOW]}, "'then', expected auto, none, required, or one"),
        (
            {"tool_choice": {"type": "function", "function": {"name": "now"}}, "tools": [NOW]},
            r"tool_choice: found \{'type': .*, expected auto, none, required, or one",
        ),
        (
            {"parallel_tool_calls": "no", "tools": [NOW]},
            "parallel_tool_calls: found 'no', expected True or False",
        ),
        ({"tool_choice": "", "tools": [NOW]}, "tool_choice: found '', expected auto, none, required, or one"),
        ({"tools": "now"}, "tools: expected a list"),
        ({"tool": [NOW]}, "unknown argument tool"),
    ],
)
def test_what_cannot_be_honoured_is_refused(arguments: dict[str, object], message: str) -> None:
    template = "{{ tools }}{% for m in messages %}{{ m.content }}{% endfor %}"
    with pytest.raises(InvalidArgumentError, match=message):
        answering("Yes.", template).chat(USER, **arguments)


def test_without_tools_or_with_none_chosen_a_call_is_content() -> None:
    model = answering(CALL)
    assert model.chat(USER).message["content"] == CALL
    assert model.chat(USER, tools=[NOW], tool_choice="none").message["content"] == CALL


def test_a_conversation_goes_on_with_the_message() -> None:
    model = answering("Yes.")
    messages = [*USER, model.chat(USER).message, {"role": "user", "content": "Sure?"}]
    prompt = model.chat_template.render(messages)
    assert "".join(segment.text for segment in prompt).startswith("user:Hi\nassistant:Yes.\nuser:Sure?")


def test_ember_calls_a_tool_and_answers_from_its_result() -> None:
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    function = {"name": "get_weather", "description": "Get the weather in a city.", "parameters": schema}
    tools = [{"type": "function", "function": function}]
    with akunu.load("ember", progress=False) as model:
        messages = [{"role": "user", "content": "What is the weather in Paris?"}]
        message = model.chat(messages, tools=tools, temperature=0).message
        (call,) = message["tool_calls"]
        assert message["content"] is None
        assert call["function"]["name"] == "get_weather"
        assert json.loads(call["function"]["arguments"]) == {"city": "Paris"}
        result = {"role": "tool", "tool_call_id": call["id"], "content": '{"weather": "sunny"}'}
        answer = model.chat([*messages, message, result], tools=tools, temperature=0)
        assert "sunny" in answer.message["content"]
        assert answer.stats.cached_tokens > 0

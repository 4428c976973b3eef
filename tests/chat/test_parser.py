"""Answers to messages: what each family writes is read, however the text arrives, and nothing is lost."""

from __future__ import annotations

import itertools
import json
import re
import sys
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from akunu.chat.deltas import Content, Delta, Reasoning, ToolArguments, ToolCall, merged, message_of
from akunu.chat.families import FAMILIES, PLAIN
from akunu.chat.family import Family
from akunu.chat.parser import OutputParser

from .answers import ANSWERS, MALFORMED, TOOLS, Answer, Call
from .parsers import parser_of

BY_NAME = {family.name: family for family in (*FAMILIES, PLAIN)}
PIECES = [
    "\n", " ", "x", "{", "}", "[", "]", '"', "\\", ",", ":", "name", '{"name": "now", "arguments": ', "{}",
    "arguments", "now", "weather", "city", "=", "(", ")", "'", "<think>", "</think>", "<tool_call>",
    "</tool_call>", "<function=now>", "</function>", "<parameter=city>", "</parameter>", "[TOOL_CALLS]",
    "[ARGS]", "<|tool_call|>", "<|tool_call>", "call:now", '<|"|>', "null", "1e5", "<tool_call|>",
    "<|tool_call_start|>", "<|tool_call_end|>", "<|channel|>analysis",
    "<|channel|>commentary to=functions.now", "<|message|>", "<|end|>", "<|start|>assistant",
    "<|python_tag|>", "<|chann", "\u00e9", "True", "-", "\\u12", "functools",
]  # fmt: skip


def parsed(parser: OutputParser, pieces: Any) -> list[Delta]:
    """All deltas, joined; the ids of calls replaced by their numbers, since they are random."""
    deltas = [delta for piece in pieces for delta in parser.feed(piece)] + parser.end()
    return [ToolCall(d.index, str(d.index), d.name) if isinstance(d, ToolCall) else d for d in merged(deltas)]


def cut(text: str, places: list[int]) -> list[str]:
    ends = sorted({place % (len(text) + 1) for place in places} | {0, len(text)})
    return [text[start:end] for start, end in pairwise(ends)]


def calls(message: dict[str, Any]) -> list[Call]:
    functions = [call["function"] for call in message.get("tool_calls", ())]
    return [(function["name"], json.loads(function["arguments"])) for function in functions]


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("answer", ANSWERS)
def test_what_each_family_writes_is_read(answer: Answer, whole: bool) -> None:
    message = message_of(parsed(parser_of(BY_NAME[answer.family], TOOLS, whole=whole), [answer.text]))
    assert calls(message) == list(answer.calls)
    assert message.get("reasoning_content", "") == answer.reasoning
    assert (message["content"] or "") == answer.content


@pytest.mark.table
@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize(("name", "text"), [answer[:2] for answer in ANSWERS] + MALFORMED)
def test_one_character_at_a_time_gives_the_same_as_all_at_once(name: str, text: str, whole: bool) -> None:
    family = BY_NAME[name]
    assert parsed(parser_of(family, TOOLS, whole=whole), text) == parsed(
        parser_of(family, TOOLS, whole=whole), [text]
    )


@given(
    st.sampled_from([*FAMILIES, PLAIN]),
    st.lists(st.sampled_from(PIECES), max_size=24).map("".join),
    st.lists(st.integers(0, 1000), max_size=12),
    st.booleans(),
    st.booleans(),
)
def test_no_text_is_an_error_and_no_cut_makes_a_difference(
    family: Family, text: str, places: list[int], thinking: bool, whole: bool
) -> None:
    deltas = parsed(parser_of(family, TOOLS, thinking, whole=whole), cut(text, places))
    assert deltas == parsed(parser_of(family, TOOLS, thinking, whole=whole), [text])
    if whole:
        calls(message_of(deltas))  # their arguments are JSON


@given(
    st.sampled_from(ANSWERS),
    st.tuples(st.integers(0, 1000), st.integers(0, 1000)),
    st.sampled_from([*PIECES, ""]),
)
def test_a_stream_says_what_the_whole_says_but_for_arguments_that_break_off(
    answer: Answer, places: tuple[int, int], piece: str
) -> None:
    """Whatever is taken out of an answer, or put into it."""
    start, end = sorted(place % (len(answer.text) + 1) for place in places)
    text = answer.text[:start] + piece + answer.text[end:]
    family = BY_NAME[answer.family]
    streamed, whole = (
        message_of(parsed(parser_of(family, TOOLS, whole=each), [text])) for each in (False, True)
    )
    try:
        calls(streamed)
    except ValueError:
        return
    assert streamed == whole


@pytest.mark.parametrize(("name", "text"), MALFORMED)
def test_a_malformed_call_is_content_as_it_was_written(name: str, text: str) -> None:
    assert parsed(parser_of(BY_NAME[name], TOOLS), [text]) == [Content(text)]


def test_a_call_that_breaks_off_in_its_arguments_stays_as_far_as_it_came() -> None:
    text = 'So: <tool_call>{"name": "weather", "arguments": {"city": "Paris", oops}}</tool_call>'
    assert parsed(parser_of(BY_NAME["hermes"], TOOLS), [text]) == [
        Content("So:"),
        ToolCall(0, "0", "weather"),
        ToolArguments(0, '{"city": "Paris", '),
        Content("oops}}</tool_call>"),
    ]
    assert parsed(parser_of(BY_NAME["hermes"], TOOLS, whole=True), [text]) == [Content(text)]


def test_a_good_call_after_a_bad_one_is_read() -> None:
    text = '<tool_call>{"nam <tool_call>{"name": "now", "arguments": {}}</tool_call>'
    message = message_of(parsed(parser_of(BY_NAME["hermes"], TOOLS, whole=True), [text]))
    assert message["content"] == '<tool_call>{"nam'
    assert calls(message) == [("now", {})]


def test_a_call_is_named_before_its_arguments_are_complete() -> None:
    parser = parser_of(BY_NAME["hermes"], TOOLS)
    (call, arguments) = parser.feed('<tool_call>{"name": "weather", "arguments": {"city": "Par')
    assert isinstance(call, ToolCall) and (call.index, call.name) == (0, "weather")
    assert arguments == ToolArguments(0, '{"city": "Par')
    assert parser.feed('is"}}') == [ToolArguments(0, 'is"}')]


def test_text_is_given_as_soon_as_it_can_be_no_mark() -> None:
    parser = parser_of(BY_NAME["hermes"], TOOLS)
    assert parser.feed("See <tool") == [Content("See")]
    assert parser.feed("box> ") == [Content(" <toolbox>")]
    assert parser.end() == [Content(" ")]


def test_reasoning_that_the_prompt_has_opened_is_reasoning() -> None:
    family = BY_NAME["hermes"]
    assert family.opens_reasoning("<|im_start|>assistant\n<think>\n")
    assert not family.opens_reasoning("<|im_start|>assistant\n<think>\n\n</think>\n\n")
    text = "Hm.\n</think>\n\nHello!"
    assert parsed(parser_of(family, TOOLS, True), [text]) == [Reasoning("Hm."), Content("Hello!")]
    assert parsed(parser_of(family, TOOLS, True), ["Hm, "]) == [Reasoning("Hm, ")]


def test_without_tools_what_looks_like_a_call_is_content() -> None:
    for answer in ANSWERS:
        message = message_of(parsed(parser_of(BY_NAME[answer.family]), [answer.text]))
        assert "tool_calls" not in message
        assert message.get("reasoning_content", "") == answer.reasoning
        assert not answer.calls or message["content"]


def test_ids_of_calls_differ_and_are_of_the_form_that_the_family_takes() -> None:
    text = "[TOOL_CALLS]now[ARGS]{}[TOOL_CALLS]now[ARGS]{}"
    ids = [d.id for d in parser_of(BY_NAME["mistral"], TOOLS).feed(text) if isinstance(d, ToolCall)]
    assert len(set(ids)) == 2 and all(len(i) == 9 and i.isalnum() for i in ids)


def test_strings_are_json_whatever_the_model_puts_into_them() -> None:
    text = '{"name": "weather", "arguments": {"city": "a\tb\nc\\d\\\'\\u00e9\\u12\\x41", "days": True,}}'
    message = message_of(parsed(parser_of(BY_NAME["hermes"], TOOLS), "<tool_call>" + text))
    assert calls(message) == [("weather", {"city": "a\tb\nc\\d'\u00e9\\u12A", "days": True})]


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (r"\ud83d\ude00", "\U0001f600"),
        (r"\ud83d", "\ufffd"),
        (r"\ude00", "\ufffd"),
        (r"\ud83d\u0041", "\ufffdA"),
        (r"\ud83d\ud83d\ude00", "\ufffd\U0001f600"),
        (r"\ud83dx", "\ufffdx"),
    ],
)
def test_half_a_surrogate_pair_is_no_character(written: str, read: str) -> None:
    """Readers of JSON refuse it, and it cannot be sent as UTF-8."""
    arguments = f'{{"city": "{written}"}}'
    for form, whole in itertools.product((arguments, json.dumps(arguments)), (False, True)):
        text = f'<tool_call>{{"name": "w{written}", "arguments": {form}}}'
        for pieces in ([text], text):
            message = message_of(parsed(parser_of(BY_NAME["hermes"], TOOLS, whole=whole), pieces))
            assert calls(message) == [("w" + read, {"city": read})]
            json.dumps(message).encode()
            (call,) = message["tool_calls"]
            assert not re.search(r"\\ud[89ab]..(?!\\ud[c-f])", call["function"]["arguments"])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("hermes", '<tool_call>{"name": "now", "arguments": %s}</tool_call>'),
        ("qwen coder", "<function=weather><parameter=either>%s</parameter></function>"),
    ],
)
def test_a_number_may_have_any_number_of_digits(name: str, text: str) -> None:
    """Python itself refuses to read more than 4,300 of them; a model that repeats itself writes them."""
    either = {"anyOf": [{"type": "string"}, {"type": "integer"}]}
    parameters = {"type": "object", "properties": {"either": either}}
    tools = [{"type": "function", "function": {"name": "weather", "parameters": parameters}}]
    digits = "1" * 5000
    message = message_of(parsed(parser_of(BY_NAME[name], tools), [text % digits]))
    if name == "hermes":
        assert message["content"] == text % digits
    else:
        assert message["tool_calls"][0]["function"]["arguments"] == f'{{"either": {digits}}}'


def test_the_type_of_an_untyped_value_is_that_of_the_schema_wherever_it_says_so() -> None:
    texts = {"type": "string", "enum": ["1", "2"]}
    properties: dict[str, Any] = {
        "ref": {"$ref": "#/$defs/texts", "description": "one or two"},
        "optional": {"anyOf": [{"$ref": "#/$defs/texts"}, {"type": "null"}]},
        "all": {"allOf": [{"$ref": "#/$defs/texts"}]},
        "enum": {"enum": ["1", "2"]},
        "const": {"const": "1"},
        "number": {"$ref": "#/$defs/number"},
        "itself": {"$ref": "#/properties/itself"},
        "nowhere": {"$ref": "#/nowhere"},
    }
    parameters = {"properties": properties, "$defs": {"texts": texts, "number": {"type": "integer"}}}
    tools = [{"type": "function", "function": {"name": "act", "parameters": parameters}}]
    text = "".join(f"<parameter={name}>\n1\n</parameter>\n" for name in properties)
    message = message_of(
        parsed(parser_of(BY_NAME["qwen coder"], tools), [f"<function=act>\n{text}</function>"])
    )
    numbers = dict.fromkeys(("number", "itself", "nowhere"), 1)
    assert calls(message) == [("act", dict.fromkeys(properties, "1") | numbers)]


def test_reading_takes_time_in_proportion_to_the_text() -> None:
    """As steps of the interpreter, not as time: twice the text, about twice the steps."""

    def steps(n: int) -> int:
        parser = parser_of(BY_NAME["hermes"], TOOLS)
        count = 0

        def tracer(*_: object) -> Any:
            nonlocal count
            count += 1
            return tracer

        sys.settrace(tracer)
        try:
            parsed(
                parser,
                '<tool_call>{"name": "weather", "arguments": {"city": "' + "x " * n + '"}}' + "y\n" * n,
            )
        finally:
            sys.settrace(None)
        return count

    assert steps(800) < 2.5 * steps(400)

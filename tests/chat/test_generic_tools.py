"""Templates that leave tools, calls or results out: they are written in one format, and read back from it."""

from __future__ import annotations

import json
import warnings
from typing import Any

import pytest

from akunu.base.errors import AkunuError
from akunu.chat import ChatTemplate
from akunu.chat.deltas import message_of

from .models import text, tokenizer
from .parsers import parser_of
from .shapes import ASK, CALL, CALLING, CLEAR, HI, RESULT, SYSTEM, TEMPLATES, WEATHER

LOOP = "{% for m in messages %}"
ROLES = LOOP + "<{{ m.role }}>{{ m.content }}{% endfor %}"
THREE = (
    LOOP
    + "{% if m.role in ['system', 'user', 'assistant'] %}<{{ m.role }}>{{ m.content }}{% endif %}{% endfor %}"
)
TURNS = (
    LOOP
    + "{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('take turns') }}{% endif %}"
    "<{{ m.role }}>{{ m.content }}{% endfor %}"
)
REFUSES = "{% if tools %}{{ raise_exception('no tools') }}{% endif %}" + ROLES
TOOLS_ONLY = "{% if tools %}<tools>{{ tools | tojson }}{% endif %}" + ROLES
RESPONSES = (
    "{% if tools %}{{ tools | tojson }}{% endif %}"
    + LOOP
    + "{% if m.role != 'tool' %}<{{ m.role }}>{{ m.content }}"
    "{% for c in m.tool_calls or [] %}call:{{ c.function.name }}"
    "{{ c.function.arguments | tojson }}{% endfor %}"
    "{% for r in m.tool_responses or [] %}response:{{ r.name }}{{ r.response }}{% endfor %}"
    "{% endif %}{% endfor %}"
)
CALLED = '<tool_call>\n{"name": "weather", "arguments": {"city": "Paris", "days": 2}}\n</tool_call>'
RESPONSE = '<tool_response>\n{"sky": "clear"}\n</tool_response>'
WHOLE = [SYSTEM, ASK, CALLING, RESULT, CLEAR, HI]


def template(source: str) -> ChatTemplate:
    return ChatTemplate(TEMPLATES.get(source, source), tokenizer())


def rendered(source: str, messages: list[dict[str, Any]], **options: Any) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return text(template(source).render(messages, **options))


@pytest.mark.parametrize("source", ["chatml", "gemma-3", "deepseek-r1", ROLES, THREE, REFUSES, TURNS])
def test_a_whole_conversation_with_tools_is_written(source: str) -> None:
    messages = WHOLE[1:] if source == TURNS else WHOLE
    found = rendered(source, messages, tools=[WEATHER])
    assert all(
        part in found for part in ("Be kind." if source != TURNS else "", CALLED, RESPONSE, "It is clear.")
    )
    definition = found[found.index("<tools>\n") + 8 : found.index("\n</tools>")]
    assert json.loads(definition) == WEATHER["function"]
    order = ["<tools>", "weather in Paris", '<tool_call>\n{"name": "weather"', RESPONSE, "It is clear.", "Hi"]
    places = [found.rindex(part) for part in order]
    assert places == sorted(places)


@pytest.mark.parametrize("source", ["chatml", "gemma-3", ROLES])
def test_what_is_written_is_read_back(source: str) -> None:
    found = template(source)
    parser = parser_of(found.family_for([WEATHER]), [WEATHER], whole=True)
    message = message_of([*parser.feed("I look.\n" + CALLED), *parser.end()])
    (call,) = message["tool_calls"]
    assert message["content"] == "I look."
    assert "I look.\n" + CALLED in rendered(source, [ASK, message, RESULT], tools=[WEATHER])
    assert json.loads(call["function"]["arguments"]) == {"city": "Paris", "days": 2}


def test_what_the_template_writes_itself_it_writes() -> None:
    assert "<tool_call>" not in rendered("llama-3", WHOLE, tools=[WEATHER])
    found = rendered(TOOLS_ONLY, WHOLE, tools=[WEATHER])
    assert found.startswith('<tools>[{"')  # its own description
    assert CALLED in found and "<user>" + RESPONSE in found
    assert template(TOOLS_ONLY).family_for([WEATHER]) is template(TOOLS_ONLY).family_for(None)


def test_several_results_are_one_message_and_the_user_goes_on_in_it() -> None:
    calls = [{**CALL, "id": "a"}, {**CALL, "id": "b"}]
    results = [{**RESULT, "tool_call_id": n, "content": n} for n in "ab"]
    found = rendered(TURNS, [ASK, {**CALLING, "tool_calls": calls}, *results, HI], tools=[WEATHER])
    assert found.count("<user>") == 2
    assert found.endswith("<tool_response>\na\n</tool_response>\n<tool_response>\nb\n</tool_response>\n\nHi")


def test_results_go_where_the_template_has_them() -> None:
    """As in Gemma 4, whose results are part of the message that called."""
    nameless = {key: value for key, value in RESULT.items() if key != "name"}
    found = rendered(RESPONSES, [ASK, CALLING, nameless, CLEAR], tools=[WEATHER])
    assert "response:weather{'sky': 'clear'}" in found
    assert "tool_response>" not in found
    plain = rendered(RESPONSES, [ASK, CALLING, {**RESULT, "content": "clear"}], tools=[WEATHER])
    assert plain.endswith("response:weatherclear")


def test_a_warning_says_so_once() -> None:
    found = template(ROLES)
    with pytest.warns(UserWarning, match="leaves out tools and calls and results of calls: they are written"):
        found.render(WHOLE, tools=[WEATHER])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found.render(WHOLE, tools=[WEATHER])
        template("hermes-3").render(WHOLE, tools=[WEATHER])
        template(ROLES).render([SYSTEM, HI])


@pytest.mark.parametrize("messages", [[ASK], [ASK, CALLING, RESULT]])
def test_a_switch_refuses_what_the_template_leaves_out(messages: list[dict[str, Any]]) -> None:
    with pytest.raises(AkunuError, match="leaves"):
        template(THREE).render(messages, tools=[WEATHER], generic_tools=False)
    assert template(THREE).family_for([WEATHER], generic=False) is template(THREE).family


def test_what_messages_spell_is_no_control_token() -> None:
    """In a result and in the description of a tool, as everywhere."""
    tool = json.loads(json.dumps(WEATHER).replace("weather", "<|im_end|>", 1))
    found = template("chatml")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        segments = found.render([ASK, CALLING, {**RESULT, "content": "<|im_end|>"}], tools=[tool])
        quiet = found.render([ASK, CALLING, {**RESULT, "content": "x"}], tools=[WEATHER])
    ends = tokenizer().encode("<|im_end|>", parse_special=True)
    assert found.encode_segments(segments).count(ends[0]) == found.encode_segments(quiet).count(ends[0])

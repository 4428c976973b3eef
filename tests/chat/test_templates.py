"""Templates of every family: rendered as by Transformers, and conversations that grow at their ends only."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from akunu.base.errors import AkunuError
from akunu.chat import template as template_module
from akunu.chat.deltas import message_of
from akunu.chat.families import FAMILIES, PLAIN

from .models import text
from .parsers import parser_of
from .shapes import (
    ASK,
    CALL_ID,
    CONVERSATIONS,
    HI,
    NOW,
    RESULT,
    SYSTEM,
    TEMPLATES,
    WEATHER,
    expected,
    template,
)

EXPECTED = expected()
FAMILY = {
    "chatml": "plain",
    "deepseek-r1": "deepseek",
    "gemma-3": "plain",
    "glm-4.7": "glm",
    "gemma-4": "gemma 4",
    "granite-3.3": "granite",
    "granite-4": "hermes",
    "harmony": "harmony",
    "hermes-3": "hermes",
    "lfm-2": "lfm 2",
    "llama-3": "llama 3",
    "minimax-m2": "minimax",
    "mistral": "mistral",
    "mistral-lists": "mistral with lists",
    "olmo-3": "olmo 3",
    "phi-4-mini": "phi 4",
    "qwen-2.5": "hermes",
    "qwen-3": "hermes",
    "qwen-3.5": "qwen coder",
    "seed-oss": "seed oss",
}
ARGUMENTS = '{"city": "Paris", "days": 2}'
JSON_CALL = f'<tool_call>\n{{"name": "weather", "arguments": {ARGUMENTS}}}\n</tool_call>'
CALLS = {
    "glm-4.7": "Look.</think><tool_call>weather<arg_key>city</arg_key><arg_value>Paris</arg_value>"
    "<arg_key>days</arg_key><arg_value>2</arg_value></tool_call>",
    "gemma-4": '<|tool_call>call:weather{city:<|"|>Paris<|"|>,days:2}<tool_call|>',
    "granite-3.3": '<|tool_call|>[{"name": "weather", "arguments": {"city": "Paris", "days": 2}}]',
    "granite-4": JSON_CALL,
    "harmony": ' to=functions.weather<|channel|>commentary json<|message|>{"city": "Paris", "days": 2}',
    "hermes-3": JSON_CALL,
    "lfm-2": "<|tool_call_start|>[weather(city='Paris', days=2)]<|tool_call_end|>",
    "llama-3": '{"name": "weather", "parameters": {"city": "Paris", "days": 2}}',
    "minimax-m2": 'Look.\n</think>\n\n\n<minimax:tool_call>\n<invoke name="weather">\n<parameter name="city">'
    'Paris</parameter>\n<parameter name="days">2</parameter>\n</invoke>\n</minimax:tool_call>',
    "mistral": '[TOOL_CALLS]weather[ARGS]{"city":"Paris","days":2}',
    "mistral-lists": f'[TOOL_CALLS] [{{"name": "weather", "arguments": {ARGUMENTS}, "id": "call00001"}}]',
    "olmo-3": '<function_calls>weather(city="Paris", days=2)</function_calls>',
    "phi-4-mini": '<|tool_call|>{"name": "weather", "arguments": {"city": "Paris", "days": 2}}<|/tool_call|>',
    "qwen-2.5": JSON_CALL,
    "qwen-3": "<think>\nLook.\n</think>\n\n" + JSON_CALL.replace(ARGUMENTS, '{"city":"Paris","days":2}'),
    "qwen-3.5": "Look.\n</think>\n\n<tool_call>\n<function=weather>\n<parameter=city>\nParis\n</parameter>\n"
    "<parameter=days>\n2\n</parameter>\n</function>\n</tool_call>",
    "seed-oss": "<seed:think>Look.</seed:think><seed:tool_call>\n<function=weather>\n"
    "<parameter=city>Paris</parameter>\n"
    "<parameter=days>2</parameter>\n</function>\n</seed:tool_call>",
}
"""What a model writes to call, as its template writes it later."""
ANSWERS = {"harmony": "<|channel|>final<|message|>Hello!"}
LOSE_THE_END_OF_THE_PROMPT = {
    "deepseek-r1": "<think>\n",
    "glm-4.7": "<think>",
    "gemma-4": "<|channel>thought\n<channel|>",
    "minimax-m2": "<think>\n",
    "qwen-3.5": "<think>\n",
}
"""What the prompt for an answer ends with, and the answer does not keep when the user goes on."""

BEFORE_AN_ANSWER = {"mistral-lists": " ", "glm-4.7": "</think>"}
"""What an earlier answer begins with besides."""


@pytest.fixture(autouse=True)
def frozen(monkeypatch: pytest.MonkeyPatch) -> None:
    class Frozen(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Frozen:
            return cls(*NOW.timetuple()[:6])

    monkeypatch.setattr(template_module, "datetime", Frozen)


def test_every_template_has_its_expectations() -> None:
    assert set(EXPECTED) == set(TEMPLATES) == set(FAMILY)
    assert all(set(found) == set(CONVERSATIONS) for found in EXPECTED.values())


@pytest.mark.parametrize("name", TEMPLATES)
def test_conversations_are_rendered_as_by_transformers(name: str) -> None:
    found = template(name)
    for title, (messages, arguments) in CONVERSATIONS.items():
        if EXPECTED[name][title] is None:
            with pytest.raises(AkunuError):
                found.render(messages, **arguments, generic_tools=False)
        else:
            assert text(found.render(messages, **arguments, generic_tools=False)) == EXPECTED[name][title], (
                title
            )


@pytest.mark.long
def test_the_expectations_are_those_of_transformers() -> None:
    pytest.importorskip("transformers")
    from .make_renderings import renderings

    assert renderings() == EXPECTED


@pytest.mark.parametrize("name", TEMPLATES)
def test_the_family_is_found_from_the_template(name: str) -> None:
    assert template(name).family.name == FAMILY[name]


def test_every_family_has_a_template_or_is_ours() -> None:
    assert {family.name for family in (*FAMILIES, PLAIN)} - set(FAMILY.values()) == {"hermes on one line"}


@pytest.mark.parametrize("name", TEMPLATES)
def test_the_next_turn_begins_with_the_prompt_and_the_answer(name: str) -> None:
    """So the KV cache of one turn serves the next, as far as the format allows."""
    found = template(name)
    prompt = text(found.render([SYSTEM, HI]))
    written = ANSWERS.get(name, "Hello!")
    message = message_of(parser_of(found.family).feed(written))
    later = text(found.render([SYSTEM, HI, message, ASK]))
    lost = LOSE_THE_END_OF_THE_PROMPT.get(name, "")
    assert prompt.endswith(lost)
    start = prompt.removesuffix(lost) + BEFORE_AN_ANSWER.get(name, "") + written
    assert later.startswith(start)
    assert later.rstrip().startswith(prompt.rstrip()) is not bool(lost)


@pytest.mark.parametrize("name", CALLS)
def test_what_follows_a_call_begins_with_the_prompt_and_the_call(name: str) -> None:
    """An agent's next step runs the tool's result alone: the call comes out as the model wrote it."""
    found = template(name)
    variables = {"enable_thinking": True} if name == "gemma-4" else None
    prompt = text(found.render([ASK], tools=[WEATHER], variables=variables))
    parser = parser_of(found.family, [WEATHER], found.family.opens_reasoning(prompt), whole=True)
    message = message_of([*parser.feed(CALLS[name]), *parser.end()])
    (call,) = message["tool_calls"]
    assert call["function"]["name"] == "weather"
    call["id"] = CALL_ID
    later = text(found.render([ASK, message, RESULT], tools=[WEATHER], variables=variables))
    assert later.startswith(prompt + CALLS[name])
    assert RESULT["content"].replace('"', "") in later.replace("\\", "").replace('"', "")

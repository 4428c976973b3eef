"""Templates of every family: rendered as by Transformers, and conversations that grow at their ends only."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from akunu.base.errors import AkunuError
from akunu.chat import ChatTemplate
from akunu.chat import template as template_module
from akunu.chat.deltas import message_of
from akunu.chat.families import FAMILIES, PLAIN, family_of

from .models import text, tokenizer
from .parsers import parser_of
from .shapes import (
    ASK,
    CALL_ID,
    CALLING,
    CLEAR,
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
    "command-r7b": "command r",
    "deepseek-3.2": "deepseek 3.2",
    "deepseek-4": "deepseek 4",
    "deepseek-4.1": "deepseek 4.1",
    "deepseek-r1": "deepseek",
    "ernie-4.5": "ernie",
    "exaone-4": "hermes on one line",
    "gemma-3": "plain",
    "glm-4.7": "glm",
    "gemma-4": "gemma 4",
    "granite-3.3": "granite",
    "granite-4": "hermes",
    "harmony": "harmony",
    "hermes-3": "hermes",
    "hunyuan": "hunyuan",
    "hunyuan-3": "hunyuan 3",
    "kimi-k2": "kimi",
    "kimi-k3": "kimi 3",
    "lfm-2": "lfm 2",
    "llama-3": "llama 3",
    "minimax-m2": "minimax",
    "minimax-m3": "minimax 3",
    "mistral": "mistral",
    "mistral-lists": "mistral with lists",
    "muse": "muse",
    "nemotron-3": "qwen coder",
    "nemotron-nano-2": "nemotron nano 2",
    "olmo-3": "olmo 3",
    "phi-4-mini": "phi 4",
    "qwen-2.5": "hermes",
    "qwen-3": "hermes",
    "qwen-3.5": "qwen coder",
    "seed-oss": "seed oss",
    "smollm-3": "plain",
}
ARGUMENTS = '{"city": "Paris", "days": 2}'
JSON_CALL = f'<tool_call>\n{{"name": "weather", "arguments": {ARGUMENTS}}}\n</tool_call>'
CALLS = {
    "command-r7b": '<|START_THINKING|>Look.<|END_THINKING|><|START_ACTION|>[\n    {"tool_call_id": "0", '
    f'"tool_name": "weather", "parameters": {ARGUMENTS}}}\n]<|END_ACTION|>',
    "deepseek-3.2": 'Look.</think>\n\n<｜DSML｜function_calls>\n<｜DSML｜invoke name="weather">\n'
    '<｜DSML｜parameter name="city" string="true">Paris</｜DSML｜parameter>\n<｜DSML｜parameter name="days" '
    'string="false">2</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>',
    "deepseek-4": '\n\n<｜DSML｜tool_calls>\n<｜DSML｜invoke name="weather">\n'
    '<｜DSML｜parameter name="city" string="true">Paris</｜DSML｜parameter>\n<｜DSML｜parameter name="days" '
    'string="false">2</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>',
    "deepseek-4.1": '\n\n<｜DSML｜ calls>\n<｜DSML｜ invoke name="weather">\n'
    '<｜DSML｜ parameter name="city" string="true">Paris</｜DSML｜ parameter>\n<｜DSML｜ parameter '
    'name="days" string="false">2</｜DSML｜ parameter>\n</｜DSML｜ invoke>\n</｜DSML｜ calls>',
    "ernie-4.5": "Look.\n</think>\n\n" + JSON_CALL,
    "exaone-4": "Look.\n</think>\n\n" + JSON_CALL.replace("\n", ""),
    "hunyuan": f'<tool_calls>[{{"name": "weather", "arguments": {ARGUMENTS}}}]</tool_calls>',
    "hunyuan-3": "<tool_calls:opensource>\n<tool_call:opensource>weather<tool_sep:opensource>\n"
    "<arg_key:opensource>city</arg_key:opensource>\n<arg_value:opensource>Paris</arg_value:opensource>\n"
    "<arg_key:opensource>days</arg_key:opensource>\n<arg_value:opensource>2</arg_value:opensource>\n"
    "</tool_call:opensource>\n</tool_calls:opensource>",
    "kimi-k2": "<|tool_calls_section_begin|><|tool_call_begin|>functions.weather:0"
    f"<|tool_call_argument_begin|>{ARGUMENTS}<|tool_call_end|><|tool_calls_section_end|>",
    "kimi-k3": "Look.<|close|>think<|sep|><|open|>response<|sep|><|close|>response<|sep|><|open|>tools<|sep|>"
    '<|open|>call tool="weather" index="1"<|sep|><|open|>argument key="city" type="string"<|sep|>Paris'
    '<|close|>argument<|sep|><|open|>argument key="days" type="number"<|sep|>2<|close|>argument<|sep|>'
    "<|close|>call<|sep|><|close|>tools<|sep|>",
    "muse": " to=self<|message|>Look.<|eom|><|start|>assistant to=weather<|message|><atem:function_calls>\n"
    '<atem:invoke name="weather">\n<atem:parameter name="city">Paris</atem:parameter>\n'
    '<atem:parameter name="days">2</atem:parameter>\n</atem:invoke>\n</atem:function_calls>',
    "nemotron-3": "Look.\n</think>\n<tool_call>\n<function=weather>\n<parameter=city>\nParis\n</parameter>\n"
    "<parameter=days>\n2\n</parameter>\n</function>\n</tool_call>",
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
    "minimax-m3": "<mm:think>Look.</mm:think>]<]minimax[>[<tool_call>\n]<]minimax[>["
    '<invoke name="weather">]<]minimax[>[<city>Paris]<]minimax[>[</city>]<]minimax[>[<days>2'
    "]<]minimax[>[</days>]<]minimax[>[</invoke>\n]<]minimax[>[</tool_call>",
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
ANSWERS = {
    "command-r7b": "<|START_RESPONSE|>Hello!<|END_RESPONSE|>",
    "ernie-4.5": "<response>\nHello!\n</response>",
    "harmony": "<|channel|>final<|message|>Hello!",
    "hunyuan": "<answer>\nHello!\n</answer>",
    "muse": " to=user<|message|>Hello!",
}
LOSE_THE_END_OF_THE_PROMPT = {
    "deepseek-3.2": "<think>",
    "deepseek-r1": "<think>\n",
    "ernie-4.5": "<think>\n",
    "exaone-4": "<think>\n\n</think>\n\n",
    "nemotron-3": "\n",
    "nemotron-nano-2": "<think>\n",
    "glm-4.7": "<think>",
    "gemma-4": "<|channel>thought\n<channel|>",
    "minimax-m2": "<think>\n",
    "qwen-3.5": "<think>\n",
}
"""What the prompt for an answer ends with, and the answer does not keep when the user goes on."""

BEFORE_AN_ANSWER = {
    "deepseek-3.2": "</think>",
    "mistral-lists": " ",
    "glm-4.7": "</think>",
    "kimi-k3": "<|close|>think<|sep|><|open|>response<|sep|>",
    "minimax-m3": "</mm:think>",
    "nemotron-3": "</think>",
}
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


def test_every_family_has_a_template() -> None:
    assert {family.name for family in (*FAMILIES, PLAIN)} <= set(FAMILY.values())


def test_a_template_without_marks_is_of_the_family_whose_marks_the_vocabulary_has() -> None:
    """LFM2.5's writes tools and no more."""
    source = "{% if tools %}{{ tools | tojson }}{% endif %}{% for m in messages %}{{ m.content }}{% endfor %}"
    found = {token: family_of(source, {token, "</s>"}).name for token in CONTROLS}
    assert found == CONTROLS
    assert family_of(TEMPLATES["hermes-3"], set(CONTROLS)).name == "hermes"


CONTROLS = {
    "<|tool_call_start|>": "lfm 2",
    "<|tool_calls_section_begin|>": "kimi",
    "<TOOLCALL>": "nemotron nano 2",
    "[TOOL_CALLS]": "plain",  # whose models think between marks of their own
    "<|python_tag|>": "plain",  # whose calls need no mark
    "<|channel|>": "plain",
}


CALL_AS_TEXT = "call:{{ c.function.name }}{{ c.function.arguments }}"
SCANNED = (
    "{% for m in messages if m.role != 'tool' %}<{{ m.role }}>{{ m.content or '' }}"
    "{% for c in m.tool_calls or [] %}" + CALL_AS_TEXT + "{% for r in messages if r.role == 'tool' %}"
    "{% if r.tool_call_id == c.id %}{{ '\\nresult of ' + c.function.name + r.content }}{% endif %}"
    "{% endfor %}{% endfor %}{% endfor %}"
)
"""Gemma 4's: it looks for the results of a call, and leaves out those of none."""
SPLIT = (
    "{% for m in messages %}<{{ m.role }}>{% if m.role == 'assistant' and not loop.last %}"
    "{{ m.content.split('</think>')[-1] }}{% else %}{{ m.content or '' }}{% endif %}"
    "{% for c in m.tool_calls or [] %}" + CALL_AS_TEXT + "{% endfor %}{% endfor %}"
)
"""QwQ's: the content of a message may be nothing at the end alone."""


@pytest.mark.parametrize("source", [SCANNED, SPLIT])
def test_a_conversation_with_calls_is_written_by_templates_that_take_it_in_one_form_alone(
    source: str,
) -> None:
    found = ChatTemplate(source, tokenizer())
    written = text(found.render([SYSTEM, ASK, CALLING, RESULT, CLEAR, HI], tools=[], generic_tools=False))
    assert 'call:weather{"city": "Paris", "days": 2}' in written
    assert [part in written for part in ("Be kind.", '{"sky": "clear"}', "It is clear.", "Hi")] == [True] * 4


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
    assert later.rstrip().startswith(prompt.rstrip()) is not bool(lost.strip())


@pytest.mark.parametrize("name", CALLS)
def test_what_follows_a_call_begins_with_the_prompt_and_the_call(name: str) -> None:
    """An agent's next step runs the tool's result alone: the call comes out as the model wrote it."""
    found = template(name)
    variables = {"enable_thinking": True} if name in ("exaone-4", "gemma-4") else None
    prompt = text(found.render([ASK], tools=[WEATHER], variables=variables))
    parser = parser_of(found.family, [WEATHER], found.family.opens_reasoning(prompt), whole=True)
    message = message_of([*parser.feed(CALLS[name]), *parser.end()])
    (call,) = message["tool_calls"]
    assert call["function"]["name"] == "weather"
    call["id"] = CALL_ID
    later = text(found.render([ASK, message, RESULT], tools=[WEATHER], variables=variables))
    assert later.startswith(prompt + CALLS[name])
    assert RESULT["content"].replace('"', "") in later.replace("\\", "").replace('"', "")

"""Arguments of a call in another dress fit the schema once the call has begun, and nothing else changes."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

from akunu.api.chat_options import prepare
from akunu.chat.loose_calls import late_arguments
from akunu.chat.structured.late import Late
from akunu.chat.tools import Tools

from .models import ember

PARAMETERS = {
    "type": "object",
    "properties": {"city": {"type": "string", "pattern": "^[A-Z][a-z]{2,8}$"}, "days": {"type": "integer"}},
    "required": ["city"],
    "additionalProperties": False,
}
TOOLS = [
    {"type": "function", "function": {"name": "get_weather", "parameters": PARAMETERS}},
    {"type": "function", "function": {"name": "now"}},
]
REASONING = ("<think>", "</think>")
MESSAGES = [{"role": "user", "content": "What is the weather in Paris?"}]


def late(opened: bool = False) -> Late:
    return ember()._compiler.late(late_arguments(Tools(TOOLS), REASONING, opened), None)


def told(state: Late, text: str) -> Late:
    state.advance(ember().tokenize(text, add_special=False))
    return state


def allowed(state: Late, text: str) -> bool:
    """Whether the text may come next, in some tokens."""
    state = state.fork()
    for token in state._view.encode(text):
        mask = state.mask()
        if mask is not None and not mask[token // 32] >> token % 32 & 1:
            return False
        state.advance([token])
    return True


BEGUN = [
    '{"name": "get_weather", "arguments":',
    '```json\n{\n  "name": "get_weather",\n  "arguments":',
    '<tools>\n{"name": "get_weather", "parameters":',
    '```json\n[{"name":"get_weather","arguments":',
    '{{"name": "get_weather", "arguments":',
    '<tool_call>\n{{"name": "get_weather", "arguments":',
    '<think>\nHm, {"name": "now"}.\n</think>\n\n{"name": "get_weather", "arguments":',
    '{"name": "now", "arguments": {}}\n{"name": "get_weather", "arguments":',
]


@pytest.mark.parametrize("begun", BEGUN)
def test_the_arguments_of_a_call_that_has_begun_fit_the_schema(begun: str) -> None:
    state = told(late(), begun)
    assert state.ahead == 1
    for text in (' {"city": "Paris"}}', '{\n    "city": "Oslo",\n    "days": 3\n  }\n}'):
        assert allowed(state, text), text
    for text in (' {"city": 7}', ' {"town"', ' "Paris"', " {}", ' {"city": "p'):
        assert not allowed(state, text), text
    after = told(state, ' {"city": "Paris"}}')
    assert after.mask() is None and not after.finished  # what follows is free again


def test_a_token_that_goes_on_after_the_end_of_a_call_may_end_it() -> None:
    """Where the model's own last token is forbidden, the likeliest of the others may be one more digit."""
    state = told(late(), BEGUN[0] + ' {"city": "Paris"}')
    view = state._view
    (end,), (more,) = view.encode("}"), view.encode("}}")
    mask = state.mask()
    assert mask is not None
    assert [mask[token // 32] >> token % 32 & 1 for token in (end, more)] == [1, 1]
    for token in (end, more):
        after = state.fork()
        after.advance([token])
        assert after.mask() is None
        assert not allowed(told(after, '\n{"name": "get_weather", "arguments":'), ' {"city": 7}')


@pytest.mark.parametrize("begun", ["<tools>", "<tools>\n", "<think>\nHm.\n</think>\n\n<tools>\n"])
def test_an_object_follows_the_tag_of_tools(begun: str) -> None:
    state = told(late(), begun)
    for text in ('{"name": "now", "arguments":', '\n{{"name": "get_weather", "arguments":'):
        assert allowed(state, text), text
    for text in ('<function name="now"', "\n  now", '{"name": "later"', '{"city"'):
        assert not allowed(state, text), text
    assert not allowed(told(state, '{"name": "get_weather", "arguments":'), ' {"city": 7}')


@pytest.mark.parametrize(
    "text",
    [
        "Write <tools>",
        "<tools> are what",
        "To call it, write",
        'The call is {"name": "get_weather", "arguments":',
        '{"city": "Paris", "name": "get_weather", "arguments":',
        '```python\nprint({"name": "get_weather", "arguments":',
        '{"name": "get_weather", "arguments": ["Paris"',
        "{" + " " * 500,
    ],
)
def test_any_other_text_is_free(text: str) -> None:
    state = told(late(), text)
    assert state.mask() is None
    assert state.forced() == []


def test_steps_are_chains_once_the_text_is_no_call() -> None:
    assert late().ahead == 1
    assert told(late(), "Paris").ahead == math.inf


def test_in_the_reasoning_that_the_prompt_has_opened_nothing_begins() -> None:
    assert told(late(opened=True), '{"name": "get_weather", "arguments":').mask() is None
    closed = told(late(opened=True), 'Hm.</think>\n\n{"name": "get_weather", "arguments":')
    assert not allowed(closed, ' {"city": 7}')


def test_what_is_drawn_by_chance_has_arguments_that_fit() -> None:
    """The best token each time, but for a beginning that the model would not write itself."""
    state, rng = told(late(), BEGUN[0]), np.random.default_rng(5)
    text = b""
    for _ in range(200):
        mask = state.mask()
        if mask is None:
            break
        choices = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little"))
        token = int(rng.choice(choices))
        text += state._view.pieces[token]
        state.advance([token])
    found: Any = json.JSONDecoder().raw_decode(text.decode(errors="replace").strip())[0]
    assert set(found) <= {"city", "days"} and found["city"][:1].isupper()


@pytest.mark.parametrize(
    ("options", "loose"),
    [
        ({}, True),
        ({"lenient_tool_calls": False}, False),
        ({"tool_choice": "required"}, False),
        ({"tool_choice": "none"}, False),
        ({"schema": {"type": "object"}}, False),
        ({"regex": "a+"}, False),
        ({"parallel_tool_calls": False}, True),
    ],
)
def test_it_holds_where_tools_may_be_called_and_the_answer_has_no_constraint(
    options: dict[str, Any], loose: bool
) -> None:
    _, _, reading, _ = prepare(ember().chat_template, MESSAGES, {"tools": TOOLS, **options}, 4096)
    assert (reading.late is not None, reading.loose > 0) == (loose, loose)


def test_a_schema_of_which_no_constraint_can_be_made_leaves_the_output_free() -> None:
    tools = [{"name": "odd", "parameters": {"type": "object", "minProperties": 3}}]
    state = ember()._compiler.late(late_arguments(Tools(tools), REASONING, False), None)
    assert told(state, '{"name": "odd", "arguments":').mask() is None


@pytest.mark.parametrize(
    "begun", ["<tool_call>\n{", "<tools>{", '<tools>\n```json\n{\n  "', "<tool_call>\n[{"]
)
def test_between_tags_an_object_names_one_of_the_tools(begun: str) -> None:
    state = told(late(), begun)
    rest = {'<tools>\n```json\n{\n  "': 'name": "'}.get(begun, '"name": "')
    for text in ("get_weather", "now"):
        assert allowed(state, f'{rest}{text}", "arguments":'), text
    for text in (f'{rest}get_time"', f'{rest}"', rest.replace("name", "city")):
        assert not allowed(state, text), text
    state = told(state, f'{rest}get_weather", "arguments":')
    assert allowed(state, ' {"city": "Paris"}}') and not allowed(state, ' {"city": 7}')


@pytest.mark.parametrize(
    "begun", ['{"name": "run", "arguments":', '```json\n{\n  "name": "run",\n  "arguments":']
)
def test_a_call_of_no_tool_is_given_up_for_one_of_a_tool(begun: str) -> None:
    state = told(late(), begun)
    again = ' null}\n{"name": "'
    assert not allowed(state, ' {"city": "Paris"}') and not allowed(state, again + "run")
    state = told(state, again + 'get_weather", "arguments":')
    assert allowed(state, ' {"city": "Paris"}}') and not allowed(state, ' {"city": 7}')
    assert told(state, ' {"city": "Paris"}}').mask() is None


def test_an_object_that_is_no_call_is_free() -> None:
    """Many have a name: `package.json` begins with it."""
    for text in ('```json\n{\n  "name": "my-app",\n  "version": "1.0"', '{"name": "Ada", "age":'):
        assert told(late(), text).mask() is None

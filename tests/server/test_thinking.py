"""Thinking over HTTP: how much of it there is, and where it is told from the answer."""

from __future__ import annotations

import pytest

from akunu.chat import ChatTemplate

from .conftest import serving
from .published import anthropic_client, openai_client

OPENED = "{% for m in messages %}{{ m.content }}{% endfor %}{{ '<think>' if enable_thinking != false }}"
HELLO = [{"role": "user", "content": "Tell me a story."}]


@pytest.fixture(scope="module")
def thinker():
    """A server whose model thinks first."""
    with serving() as served:
        served.ember.model.chat_template = ChatTemplate(OPENED, served.ember.model.tokenizer)
        yield served


@pytest.mark.parametrize("stream", [False, True])
def test_the_budget_of_anthropics_client_is_what_is_thought(thinker, stream):
    client = anthropic_client(thinker.url)
    fields = {
        "model": "ember", "max_tokens": 60, "messages": [{"role": "user", "content": "Tell me a story."}],
        "thinking": {"type": "enabled", "budget_tokens": 9}, "extra_body": {"temperature": 0},
    }  # fmt: skip
    if stream:
        with client.messages.stream(**fields) as events:
            answer = events.get_final_message()
    else:
        answer = client.messages.create(**fields)
    assert [block.type for block in answer.content][:1] == ["thinking"]
    # The space before its first word is not told, but is that word's token's.
    assert 1 <= len(thinker.ember.model.tokenize(f" {answer.content[0].thinking}")) <= 10


@pytest.mark.parametrize("extra", [{"thinking_budget": 9}, {"reasoning_effort": "none"}])
def test_openais_client_limits_thinking_or_switches_it_off(thinker, extra):
    client = openai_client(thinker.url)
    answer = client.chat.completions.create(
        model="ember", messages=HELLO, max_tokens=60, seed=1, extra_body=extra
    )
    thought = answer.usage.completion_tokens_details.reasoning_tokens
    # A piece that has more than thoughts is counted by its text, which may have a token more than were drawn.
    assert (0 < thought <= 10) if "thinking_budget" in extra else thought == 0
    assert ("reasoning_content" in answer.choices[0].message.model_extra) == ("thinking_budget" in extra)


@pytest.mark.parametrize("thinking", [{"type": "enabled", "budget_tokens": 1024}, {"type": "adaptive"}])
def test_agents_that_ask_any_model_to_think_get_an_answer_without(served, thinking):
    client = anthropic_client(served.url)
    fields = {"model": "ember", "messages": HELLO, "thinking": thinking, "output_config": {"effort": "high"}}
    answer = client.messages.create(max_tokens=2000, **fields)
    assert [block.type for block in answer.content] == ["text"]
    assert client.messages.count_tokens(**fields).input_tokens > 0


def test_a_budget_is_refused_where_nothing_is_thought(served):
    answer = served.chat(thinking_budget=5)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "thinking_budget")


def test_a_model_that_does_not_think_may_be_told_not_to(served):
    assert served.chat(reasoning_effort="none", max_tokens=1).status_code == 200
    fields = {"model": "ember", "input": "Hello", "max_output_tokens": 1}
    assert served.post("/v1/responses", reasoning={"effort": "none"}, **fields).status_code == 200
    for effort in ("low", "max"):
        error = served.chat(reasoning_effort=effort).json()["error"]
        assert (error["param"], error["code"]) == ("reasoning_effort", "invalid_value")

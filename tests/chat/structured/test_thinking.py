"""Reasoning that has had its tokens is closed, and the answer goes on."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from akunu import InvalidArgumentError
from akunu.chat import ChatTemplate
from akunu.chat.families import FAMILIES, PLAIN
from akunu.chat.family import Family
from akunu.chat.structured.thinking import Thinking
from chat.parsers import parser_of

from .models import ember

OPENED = (
    "{% for m in messages %}{{ m.content }}{% endfor %}{% if enable_thinking != false %}<think>{% endif %}"
)
MESSAGES = [{"role": "user", "content": "Hi"}]


def ids_of(view, text: str) -> list[int]:
    return [i for part in view.split(text) for i in ([part] if isinstance(part, int) else view.encode(part))]


@pytest.fixture
def thinker():
    model = ember()
    before, model._template = model._template, ChatTemplate(OPENED, model.tokenizer)
    yield model
    model._template = before


@pytest.mark.parametrize("tokens", [0, 1, 7, 40])
@pytest.mark.parametrize("logprobs", [None, 1])
def test_reasoning_of_the_prompt_is_closed_after_its_tokens(thinker, tokens, logprobs):
    view = thinker._compiler._view
    endless = dict.fromkeys(thinker.tokenizer.end_of_generation_ids, -math.inf)
    answer = thinker.chat(
        MESSAGES, thinking_budget=tokens, max_tokens=80, seed=3, logprobs=logprobs, logit_bias=endless
    )
    closing = ids_of(view, "\n</think>\n\n")
    assert answer.ids[tokens : tokens + len(closing)] == closing
    assert len(answer.ids) == 80
    assert (
        answer.message["content"].strip() == thinker.detokenize(answer.ids[tokens + len(closing) :]).strip()
    )
    if tokens > 1:
        assert answer.message["reasoning_content"].strip() == thinker.detokenize(answer.ids[:tokens]).strip()


def test_what_is_thought_before_does_not_depend_on_the_budget_and_steps_are_chains(thinker):
    free = thinker.chat(MESSAGES, max_tokens=60, seed=5, temperature=1)
    steps = thinker.stats().steps
    bound = thinker.chat(MESSAGES, thinking_budget=50, max_tokens=60, seed=5, temperature=1)
    assert bound.ids[:50] == free.ids[:50]
    assert thinker.stats().steps - steps < 45  # several tokens in a step, though there is something to watch


def test_after_the_closing_comes_the_constraint_that_was_asked_for(thinker):
    schema = {
        "type": "object",
        "properties": {"x": {"type": "boolean"}},
        "required": ["x"],
        "additionalProperties": False,
    }
    answer = thinker.chat(MESSAGES, thinking_budget=6, max_tokens=90, schema=schema)
    _, _, content = answer.text.partition("</think>")
    assert json.loads(content).keys() == {"x"}
    assert answer.finish_reason == "stop"
    assert answer.message["content"] == content


@pytest.mark.parametrize("effort", ["minimal", "low", "medium", "high"])
def test_an_effort_that_the_template_does_not_know_is_a_budget(thinker, effort):
    from akunu.api.chat_options import prepare
    from akunu.chat.switches import EFFORTS

    reading = prepare(thinker.chat_template, MESSAGES, {"reasoning_effort": effort}, 4096)[2]
    assert (reading.budget.tokens if reading.budget else None) == EFFORTS.get(effort)


def test_a_budget_is_a_number_of_tokens(thinker):
    with pytest.raises(InvalidArgumentError, match=r"thinking_budget: found -1, expected"):
        thinker.chat(MESSAGES, thinking_budget=-1)


def test_there_is_no_budget_for_a_model_that_does_not_think():
    with pytest.raises(InvalidArgumentError, match="thinking_budget: models with this chat template do not"):
        ember().chat(MESSAGES, thinking_budget=5)


@pytest.mark.parametrize("family", [*FAMILIES, PLAIN], ids=lambda family: family.name)
def test_what_closes_reasoning_is_read_as_its_end(family: Family):
    budget = family.thinking_budget(3, opened=False)
    view = ember()._compiler._view
    state = Thinking(view, budget, None)
    thought = ids_of(view, "a b c d e f")
    text = ids_of(view, budget.begin)
    state.advance(text)
    while not state.forced():
        assert state.mask() is None and state.ahead >= 1
        text.append(thought.pop(0))
        state.advance(text[-1:])
    closing = state.forced()
    for token in closing:
        mask = np.unpackbits(state.mask().view(np.uint8), bitorder="little")
        assert np.flatnonzero(mask).tolist() == [token]
        state.advance([token])
    assert state.mask() is None and not state.forced() and state.ahead == float("inf")
    said = b"".join(view.pieces[i] for i in [*text, *closing]).replace(b"\xff", b"").decode()
    parser = parser_of(family, thinking=False)
    message = [*parser.feed(said + "Hello"), *parser.end()]
    kinds = {type(delta).__name__: delta.text for delta in message}
    assert kinds["Content"] == "Hello"
    assert kinds["Reasoning"].startswith("a")


def test_an_answer_that_does_not_think_or_ends_its_thoughts_is_left_alone():
    view = ember()._compiler._view
    budget = PLAIN.thinking_budget(4, opened=False)
    plain = Thinking(view, budget, None)
    plain.advance(ids_of(view, "Hello there, how are you today?"))
    early = Thinking(view, budget, None)
    early.advance(ids_of(view, "<think>a</think>"))
    early.advance(ids_of(view, "Once upon a time there was a cat that sat."))
    assert plain.forced() == early.forced() == []
    assert plain.ahead == early.ahead == float("inf")

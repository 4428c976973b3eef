"""Chat completions, by OpenAI's own client."""

from __future__ import annotations

import openai
import pytest

from .published import openai_client

HELLO = [{"role": "user", "content": "What is 2+2?"}]


@pytest.fixture
def client(served):
    with openai_client(served.url) as client:
        yield client


def test_an_answer_is_the_models_own(client, served):
    alone = served.ember.model.chat(HELLO, temperature=0)
    answer = client.chat.completions.create(model="ember", messages=HELLO, temperature=0)
    assert answer.choices[0].message.content == alone.text
    assert answer.choices[0].message.role == "assistant"
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage.completion_tokens == len(alone.ids)
    assert answer.usage.prompt_tokens == alone.stats.prompt_tokens
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens


def test_a_stream_has_the_same_text_the_role_once_and_usage_last(client):
    whole = client.chat.completions.create(model="ember", messages=HELLO, temperature=0)
    chunks = list(
        client.chat.completions.create(
            model="ember", messages=HELLO, temperature=0, stream=True, stream_options={"include_usage": True}
        )
    )
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == whole.choices[0].message.content
    assert [c.choices[0].delta.role for c in chunks if c.choices and c.choices[0].delta.role] == ["assistant"]
    assert [c.choices[0].finish_reason for c in chunks if c.choices][-1] == "stop"
    assert chunks[-1].choices == []
    assert chunks[-1].usage.completion_tokens == whole.usage.completion_tokens
    assert len({chunk.id for chunk in chunks}) == 1


def test_without_being_asked_a_stream_has_no_usage(client):
    chunks = client.chat.completions.create(model="ember", messages=HELLO, max_tokens=3, stream=True)
    assert all(chunk.usage is None for chunk in chunks)


def test_a_seed_repeats_a_text_and_several_answers_differ_by_their_seeds(client):
    def ask(**fields):
        messages = [{"role": "user", "content": "Write a story."}]
        answer = client.chat.completions.create(model="ember", messages=messages, max_tokens=24, **fields)
        return [choice.message.content for choice in answer.choices]

    first, second, third = ask(seed=7, n=3, temperature=1.5)
    assert [first] == ask(seed=7, temperature=1.5)
    assert [second] == ask(seed=8, temperature=1.5)
    assert len({first, second, third}) == 3


def test_several_answers_stream_side_by_side_and_the_prompt_counts_once(client):
    chunks = list(
        client.chat.completions.create(
            model="ember", messages=HELLO, n=3, seed=1, stream=True, max_tokens=9,
            stream_options={"include_usage": True},
        )
    )  # fmt: skip
    texts = {}
    for chunk in chunks:
        for choice in chunk.choices:
            texts[choice.index] = texts.get(choice.index, "") + (choice.delta.content or "")
    whole = client.chat.completions.create(model="ember", messages=HELLO, n=3, seed=1, max_tokens=9)
    assert [texts[i] for i in range(3)] == [choice.message.content for choice in whole.choices]
    assert chunks[-1].usage.prompt_tokens == whole.usage.prompt_tokens
    assert whole.usage.completion_tokens > 9


def test_after_the_highest_seed_comes_0(client):
    def ask(**fields):
        choices = client.chat.completions.create(
            model="ember", messages=HELLO, max_tokens=9, **fields
        ).choices
        return [choice.message.content for choice in choices]

    assert ask(n=2, seed=2**64 - 1) == ask(seed=2**64 - 1) + ask(seed=0)


@pytest.mark.parametrize("stream", [False, True])
def test_logprobs_are_those_of_the_model(client, served, stream):
    alone = served.ember.model.chat(HELLO, temperature=0, logprobs=2)
    fields = {"model": "ember", "messages": HELLO, "temperature": 0, "logprobs": True, "top_logprobs": 2}
    if stream:
        chunks = client.chat.completions.create(stream=True, **fields)
        entries = [e for c in chunks if c.choices[0].logprobs for e in c.choices[0].logprobs.content]
    else:
        entries = client.chat.completions.create(**fields).choices[0].logprobs.content
    assert [entry.logprob for entry in entries] == [token.logprob for token in alone.logprobs]
    assert b"".join(bytes(entry.bytes) for entry in entries).decode() == alone.text
    assert all(len(entry.top_logprobs) == 2 for entry in entries)


def test_stop_texts_limits_and_biases_are_honoured(client, served):
    def ask(**fields):
        return client.chat.completions.create(model="ember", messages=HELLO, temperature=0, **fields)

    assert ask(max_tokens=2).choices[0].finish_reason == "length"
    assert ask(max_completion_tokens=2).usage.completion_tokens == 2
    assert ask(stop=["="]).choices[0].message.content == "2 + 2 "
    first = served.ember.model.chat(HELLO, temperature=0, max_tokens=1).ids[0]
    assert not ask(logit_bias={str(first): -100}).choices[0].message.content.startswith("2")


def test_more_tokens_than_there_is_room_for_are_no_error(client):
    answer = client.chat.completions.create(model="ember", messages=HELLO, temperature=0, max_tokens=10**6)
    assert answer.choices[0].finish_reason == "stop"


def test_a_prompt_that_does_not_fit_is_a_400_with_both_numbers(client):
    with pytest.raises(openai.BadRequestError, match=r"2048 tokens.*\d{4} tokens") as caught:
        client.chat.completions.create(model="ember", messages=[{"role": "user", "content": "word " * 4000}])
    assert caught.value.code == "context_length_exceeded"


def test_extensions_work_through_the_client(client, served):
    alone = served.ember.model.chat(HELLO, top_k=1, min_p=0.5, seed=3)
    answer = client.chat.completions.create(
        model="ember", messages=HELLO, seed=3, extra_body={"top_k": 1, "min_p": 0.5}
    )
    assert answer.choices[0].message.content == alone.text


def test_a_model_goes_by_its_name_and_its_aliases_alone(client):
    assert client.chat.completions.create(model="gpt-4o", messages=HELLO, max_tokens=1).model == "gpt-4o"
    for wrong in ("embe", "Ember", "gpt"):
        with pytest.raises(openai.NotFoundError, match="there is ember"):
            client.chat.completions.create(model=wrong, messages=HELLO)


def test_models_are_listed(client):
    assert next(iter(client.models.list())).id == "ember"
    assert client.models.retrieve("ember").owned_by == "akunu"
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("nothing")


def test_a_developer_is_the_system_and_parts_are_joined(client):
    plain = [{"role": "system", "content": "Be brief.\n\nBe kind."}, *HELLO]
    parts = [
        {"role": "system", "content": "Be brief."},
        {
            "role": "developer",
            "content": [{"type": "text", "text": "Be "}, {"type": "text", "text": "kind."}],
        },
        *HELLO,
    ]
    usage = [
        client.chat.completions.create(model="ember", messages=messages, max_tokens=1).usage.prompt_tokens
        for messages in (plain, parts)
    ]
    assert usage[0] == usage[1]


def test_a_message_of_the_client_can_be_sent_back(client):
    answer = client.chat.completions.create(model="ember", messages=HELLO, temperature=0).choices[0].message
    messages = [*HELLO, answer.model_dump(), {"role": "user", "content": "And 3+3?"}]
    again = client.chat.completions.create(model="ember", messages=messages, temperature=0)
    assert again.usage.prompt_tokens_details.cached_tokens > 10


def test_the_line_that_an_agent_changes_each_time_does_not_cost_the_prefix(client):
    def ask(n):
        system = f"x-anthropic-billing-header: cc_version=2.1; cch={n};\n" + "You are a helpful agent. " * 8
        messages = [{"role": "system", "content": system}, *HELLO]
        return client.chat.completions.create(model="ember", messages=messages, max_tokens=1).usage

    ask(1)
    usage = ask(2)
    assert usage.prompt_tokens_details.cached_tokens >= usage.prompt_tokens - 1


def test_completions_of_texts_and_ids(client, served):
    model = served.ember.model
    ids = model.tokenize("Once upon a time")
    alone = model.generate("Once upon a time", temperature=0, max_tokens=8)
    for prompt in ("Once upon a time", ids):
        answer = client.completions.create(model="ember", prompt=prompt, temperature=0, max_tokens=8)
        assert answer.choices[0].text == alone.text
    several = client.completions.create(
        model="ember", prompt=["Once upon a time", "The old"], temperature=0, max_tokens=8, n=2, echo=True
    )
    assert [choice.index for choice in several.choices] == [0, 1, 2, 3]
    assert several.choices[1].text == "Once upon a time" + alone.text
    assert several.choices[2].text.startswith("The old")


@pytest.mark.parametrize("stream", [False, True])
def test_completions_have_columns_of_logprobs(client, served, stream):
    alone = served.ember.model.generate("The cat", temperature=0, max_tokens=6, logprobs=3)
    answer = client.completions.create(
        model="ember", prompt="The cat", temperature=0, max_tokens=6, logprobs=3, stream=stream
    )
    found = [c.choices[0] for c in (answer if stream else [answer])]
    values = [value for choice in found if choice.logprobs for value in choice.logprobs.token_logprobs]
    tokens = [token for choice in found if choice.logprobs for token in choice.logprobs.tokens]
    assert values == [token.logprob for token in alone.logprobs]
    assert "".join(tokens) == alone.text == "".join(choice.text for choice in found)
    assert found[-1].finish_reason == "length"


def test_a_begun_answer_is_continued(client, served):
    begun = [HELLO[0], {"role": "assistant", "content": "The answer"}]
    alone = served.ember.model.chat(begun, temperature=0)
    closed = served.ember.model.chat(begun, temperature=0, continue_final_message=False)
    assert alone.stats.prompt_tokens < closed.stats.prompt_tokens
    for fields in ({}, {"continue_final_message": True, "add_generation_prompt": False}):
        body = {"model": "ember", "messages": begun, "temperature": 0, **fields}
        answer = served.post("/v1/chat/completions", **body).json()
        assert answer["choices"][0]["message"]["content"] == alone.text
    refused = served.post("/v1/chat/completions", model="ember", messages=HELLO, continue_final_message=True)
    assert refused.status_code == 400 and "continue_final_message" in refused.text


def test_stop_token_ids_end_an_answer_and_minus_one_is_no_limit(client, served):
    alone = served.ember.model.chat(HELLO, temperature=0)
    fields = {"model": "ember", "messages": HELLO, "temperature": 0, "max_tokens": -1, "seed": -1}
    answer = served.post("/v1/chat/completions", stop_token_ids=[alone.ids[1]], **fields).json()
    assert answer["choices"][0]["finish_reason"] == "stop"
    assert answer["usage"]["completion_tokens"] == alone.ids.index(alone.ids[1])

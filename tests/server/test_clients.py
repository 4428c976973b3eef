"""What particular clients send and rely on, each request as they make it."""

from __future__ import annotations

import anthropic
import openai
import pytest

from akunu.base.errors import ContextLengthError

LONG = [{"role": "user", "content": "cat dog " * 4000}]
ANTHROPIC_WORDS = r"prompt is too long: 80\d\d tokens > 2048 maximum"
OPENAI_WORDS = (
    r"This model's maximum context length is 2048 tokens\. However, your messages resulted in 80\d\d tokens\."
)


@pytest.fixture
def openai_client(served):
    with openai.OpenAI(base_url=f"{served.url}/v1", api_key="any", max_retries=0) as client:
        yield client


@pytest.fixture
def anthropic_client(served):
    with anthropic.Anthropic(base_url=served.url, api_key="any", max_retries=0) as client:
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
    assert ContextLengthError("a window of 7").sizes is None

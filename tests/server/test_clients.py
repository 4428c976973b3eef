"""What particular clients send and rely on, each request as they make it."""

from __future__ import annotations

from types import SimpleNamespace

import anthropic
import openai
import pytest

from akunu.base.errors import ContextLengthError
from akunu.server.prompts import infill_ids, prompt_ids

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


# -- Prompts that a client puts together itself. -------------------------------------------------------------

PROMPT = "<|im_start|>user\nWhat is the capital of France?<|im_end|>\n<|im_start|>assistant\n"


def complete(client, prompt=PROMPT, **fields):
    return client.completions.create(model="ember", prompt=prompt, max_tokens=12, temperature=0, **fields)


def test_control_tokens_in_the_prompt_of_a_completion_are_read(openai_client, served):
    asked = {"messages": [{"role": "user", "content": "What is the capital of France?"}]}
    made = served.post("/apply-template", model="ember", **asked).json()
    answer = complete(openai_client)
    assert answer.choices[0].text == "The capital of France is Paris."
    assert answer.usage.prompt_tokens == len(made["tokens"])
    assert complete(openai_client, made["tokens"]).choices[0].text == answer.choices[0].text


def test_a_field_turns_that_off(openai_client):
    spelt = complete(openai_client, extra_body={"parse_special": False})
    assert spelt.usage.prompt_tokens > 2 * complete(openai_client).usage.prompt_tokens


def test_what_a_text_begins_with_is_there_once(served):
    model = served.ember.model
    before = list(model.tokenizer.template.before)
    text = "".join(model.tokenizer.token_text(i) for i in before)
    assert prompt_ids(model, text + "Hi") == prompt_ids(model, "Hi")
    assert prompt_ids(model, "Hi", add_special=False) == prompt_ids(model, "Hi")[len(before) :]


def test_a_gap_is_filled_by_models_that_have_tokens_for_it(served, openai_client):
    with pytest.raises(openai.BadRequestError, match="no tokens for filling in the middle"):
        complete(openai_client, "def f(", suffix="return x")
    tokens = ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|file_sep|>")
    model = FimModel(tokens)
    assert infill_ids(model, "a", "b", [("x.py", "y")]) == [
        "<|file_sep|>", "x.py\ny\n", "<|fim_prefix|>", "a", "<|fim_suffix|>", "b", "<|fim_middle|>",
    ]  # fmt: skip
    codestral = FimModel(("[PREFIX]", "[SUFFIX]", "[MIDDLE]"))
    assert infill_ids(codestral, "a", "b") == ["[SUFFIX]", "b", "[PREFIX]", "a"]


class FimModel:
    """Tokens are texts; those for a gap are these."""

    def __init__(self, tokens: tuple[str, ...]) -> None:
        self.tokenizer = SimpleNamespace(template=SimpleNamespace(before=()))
        self._tokens = tokens

    def tokenize(self, text: str, *, add_special: bool, parse_special: bool = False) -> list[str]:
        return [text] if not parse_special or text in self._tokens else list(text)

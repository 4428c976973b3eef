"""Whatever is sent, the server says what is wrong with it: nothing is a 500, and nothing is left running."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .conftest import wait_until

LENGTHS = ("max_tokens", "max_completion_tokens", "max_output_tokens", "n", "n_predict", "keep_alive")
CHAT = {"model": "ember", "messages": [{"role": "user", "content": "Hi"}]}
GOOD = {
    "/v1/chat/completions": {**CHAT, "max_tokens": 2},
    "/v1/completions": {"model": "ember", "prompt": "Hi", "max_tokens": 2},
    "/v1/responses": {"model": "ember", "input": "Hi", "max_output_tokens": 2},
    "/v1/messages": {**CHAT, "max_tokens": 2},
    "/v1/messages/count_tokens": CHAT,
    "/tokenize": {"model": "ember", "text": "Hi"},
    "/detokenize": {"model": "ember", "tokens": [5]},
    "/apply-template": CHAT,
    "/v1/embeddings": {"model": "vectors", "input": "Hi"},
    "/v1/rerank": {"model": "scores", "query": "Hi", "documents": ["Hello"]},
    "/rerank": {"model": "scores", "query": "Hi", "texts": ["Hello"]},
    "/completion": {"model": "ember", "prompt": "Hi", "n_predict": 2},
    "/api/chat": {**CHAT, "options": {"num_predict": 2}},
    "/api/generate": {"model": "ember", "prompt": "Hi", "options": {"num_predict": 2}},
    "/api/embed": {"model": "vectors", "input": "Hi"},
}
WORDS = ("ember", "user", "tool", "auto", "required", "function", "text", "<|im_end|>", "\udc00", "\x00")
KEYS = ("type", "role", "content", "name", "function", "text", "id", "input")
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(), st.text(max_size=8),
    st.sampled_from(WORDS),
)  # fmt: skip


def nested(inner):
    keys = st.text(max_size=4) | st.sampled_from(KEYS)
    return st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3)


VALUES = st.recursive(SCALARS, nested, max_leaves=6)


def fields_of(served, path: str) -> list[str]:
    document = served.http.get("/openapi.json").json()
    body = document["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]
    return list(document["components"]["schemas"][body["$ref"].rsplit("/", 1)[-1]]["properties"])


def bombard(served, path: str, examples: int) -> None:
    names = [name for name in fields_of(served, path) if name not in LENGTHS]

    @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.dictionaries(st.sampled_from(names), VALUES, max_size=3))
    def send(changes):
        body = json.dumps({**GOOD[path], **changes})
        answer = served.http.post(path, content=body.encode(), headers={"content-type": "application/json"})
        assert answer.status_code in (200, 400, 404, 503), (answer.status_code, answer.text, body)
        if answer.status_code != 200:
            error = answer.json()["error"]  # a text, in Ollama's API
            assert error if path.startswith("/api/") else error["message"]

    send()


@pytest.mark.parametrize("path", GOOD)
def test_hostile_fields_are_refused_or_honoured(quiet, path):
    bombard(quiet, path, 15)


@pytest.mark.long
@pytest.mark.parametrize("path", GOOD)
def test_many_hostile_fields_are_refused_or_honoured(quiet, path):
    bombard(quiet, path, 80)


@pytest.mark.long
def test_requests_made_from_the_description_find_no_500(quiet):
    import schemathesis

    schema = schemathesis.openapi.from_url(f"{quiet.url}/openapi.json")
    for found in schema.get_all_operations():
        operation = found.ok()
        if operation.path in ("/admin/load", "/admin/unload"):  # for models that others test with
            continue

        @settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
        @given(operation.as_strategy())
        def send(case):
            assert case.call(base_url=quiet.url).status_code < 500

        send()
    wait_until(lambda: quiet.ember.queued == 0)

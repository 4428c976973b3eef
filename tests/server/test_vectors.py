"""Embeddings and reranking over HTTP, beside models that write."""

from __future__ import annotations

import base64
import threading

import httpx
import numpy as np
import openai
import pytest

from akunu.server import Settings

from .conftest import Served, serving, wait_until

TEXTS = ["The cat sits on the mat.", "hello world", "x"]
DOCUMENTS = ["cats eat mice", "rome is a city", "the dog sits"]


@pytest.fixture(scope="module")
def client(served: Served) -> openai.OpenAI:
    http = httpx.Client(trust_env=False, verify=False)
    return openai.OpenAI(base_url=f"{served.url}/v1", api_key="any", max_retries=0, http_client=http)


def model_of(served: Served, name: str):
    served.post("/admin/load", model=name).raise_for_status()
    return served.server.models.find(name).loaded


def test_openais_client_gets_the_vectors_of_the_model(served, client):
    model = model_of(served, "vectors")
    expected = model.embed(TEXTS)
    for form in (openai.omit, "float"):  # the client asks for base64 by itself, and takes it apart
        answer = client.embeddings.create(model="vectors", input=TEXTS, encoding_format=form)
        assert [each.index for each in answer.data] == [0, 1, 2]
        found = np.array([each.embedding for each in answer.data], np.float32)
        np.testing.assert_array_equal(found, expected)
    tokens = sum(len(model.tokenize(text)) for text in TEXTS)
    assert (answer.usage.prompt_tokens, answer.usage.total_tokens) == (tokens, tokens)
    assert answer.model == "vectors"


def test_inputs_are_a_text_texts_ids_or_lists_of_ids(served, client):
    model = model_of(served, "vectors")
    ids = [model.tokenize(text) for text in TEXTS]
    for given, expected in (
        (TEXTS[0], TEXTS[:1]),
        (ids[0], ids[:1]),
        (ids, ids),
        ([TEXTS[0], ids[1]], TEXTS[:2]),
    ):
        answer = client.embeddings.create(model="vectors", input=given)
        found = np.array([each.embedding for each in answer.data], np.float32)
        np.testing.assert_array_equal(found, model.embed(expected))


def test_dimensions_prompts_and_cut_texts_are_those_of_the_model(served):
    model = model_of(served, "vectors")

    def ask(**fields) -> np.ndarray:
        answer = served.post("/v1/embeddings", model="vectors", encoding_format="base64", **fields)
        (vector,) = answer.json()["data"]
        return np.frombuffer(base64.b64decode(vector["embedding"]), "<f4")

    np.testing.assert_array_equal(ask(input="a cat", dimensions=7), model.embed("a cat", dimensions=7)[0])
    np.testing.assert_array_equal(ask(input="a cat", prompt="query"), model.embed("query: a cat")[0])
    with pytest.warns(UserWarning, match="cut"):
        expected = model.embed("a " * 100, truncate=True)[0]
    np.testing.assert_array_equal(ask(input="a " * 100, truncate=True), expected)


@pytest.mark.parametrize(
    ("path", "fields", "status", "param", "words"),
    [
        ("embeddings", {"input": []}, 400, "input", "one or more"),
        ("embeddings", {"input": [1, "x"]}, 400, "input", "expected a text, token ids"),
        ("embeddings", {"input": ["x", []]}, 400, "input", "one or more"),
        ("embeddings", {"input": [[5], [-1]]}, 400, "input", "number 1: token ids: found -1, expected"),
        ("embeddings", {"input": "a " * 100}, 400, None, "tokens, the model takes 80"),
        ("embeddings", {"input": "x", "dimensions": 5000}, 400, "dimensions", "found 5000, expected"),
        ("embeddings", {"input": "x", "prompt_name": "passage"}, 400, "prompt_name", "there is query"),
        ("embeddings", {"input": "x", "encoding_format": "int8"}, 400, "encoding_format", "int8"),
        ("embeddings", {"input": "x", "model": "ember"}, 400, "model", "ember is a text model, for /v1/chat"),
        ("embeddings", {"input": "x", "model": "scores"}, 400, "model", "is a reranker, for /v1/rerank"),
        ("embeddings", {"input": "x", "model": "other"}, 404, "model", "there is ember, vectors, scores"),
        ("rerank", {"query": "x", "documents": []}, 400, "documents", "length >= 1"),
        ("rerank", {"query": "x", "documents": [3]}, 400, "documents[0]", "expected"),
        ("rerank", {"query": "a " * 90, "documents": ["a"], "truncate": True}, 400, None, "no room"),
        ("rerank", {"query": "x", "documents": ["a"], "top_n": 0}, 400, "top_n", ">= 1"),
        ("rerank", {"query": "x", "documents": ["a"], "instruction": "i"}, 400, "instruction", "takes none"),
        ("rerank", {"query": "x", "documents": ["a"], "model": "vectors"}, 400, "model", "an embedding"),
        ("completions", {"prompt": "x"}, 400, "model", "expected a text model"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_refused_by_name(served, path, fields, status, param, words):
    answer = served.post(f"/v1/{path}", **{"model": "scores" if path == "rerank" else "vectors", **fields})
    error = answer.json()["error"]
    assert (answer.status_code, error["param"]) == (status, param), error
    assert words in error["message"]


def test_documents_come_back_best_first(served):
    model = model_of(served, "scores")
    scores = model.rerank("what do cats eat", DOCUMENTS)
    order = sorted(range(3), key=lambda i: -scores[i])
    answer = served.post("/v1/rerank", model="scores", query="what do cats eat", documents=DOCUMENTS).json()
    assert answer["results"] == [{"index": i, "relevance_score": scores[i]} for i in order]
    assert answer["usage"]["total_tokens"] == answer["usage"]["prompt_tokens"] > 0
    some = served.post(
        "/v1/rerank", model="scores", query="what do cats eat", top_n=2, return_documents=True,
        documents=[{"text": text} for text in DOCUMENTS],
    ).json()  # fmt: skip
    assert [(each["index"], each["document"]["text"]) for each in some["results"]] == [
        (i, DOCUMENTS[i]) for i in order[:2]
    ]


def test_models_say_what_they_are_when_they_are_loaded(served):
    model_of(served, "vectors")
    cards = {card["id"]: card for card in served.http.get("/v1/models").json()["data"]}
    assert cards["vectors"]["kind"] == "an embedding model"
    shown = {each["id"]: each for each in served.http.get("/admin/engine").json()["models"]}
    assert shown["vectors"]["kind"] == "an embedding model"
    assert served.post("/admin/table", model="vectors").status_code == 400
    assert served.post("/tokenize", model="vectors", text="hello world").json()["count"] == 4


def test_tokens_of_vectors_are_counted(served):
    def counted() -> float:
        lines = served.http.get("/metrics").text.splitlines()
        name = 'akunu_prompt_tokens_total{model="vectors"} '
        return sum(float(line.removeprefix(name)) for line in lines if line.startswith(name))

    before = counted()
    usage = served.post("/v1/embeddings", model="vectors", input=TEXTS).json()["usage"]
    assert counted() - before == usage["prompt_tokens"] > 0


def test_calls_end_when_nobody_waits_for_them_and_the_next_one_runs(encoders):
    with serving(encoders[0], settings=Settings(max_seconds=1)) as served:
        late = served.post("/v1/embeddings", model="vectors", input=["the cat sits on the mat"] * 100_000)
        assert (late.status_code, late.json()["error"]["code"]) == (504, "timeout")
        wait_until(lambda: served.server.models.find("vectors").users == 0)
        assert served.server.models.find("vectors").loaded.stats.prompts < 100_000
        assert served.post("/v1/embeddings", model="vectors", input="x").status_code == 200


def test_calls_that_run_when_the_server_ends_are_a_503(encoders):
    with serving(encoders[0]) as served:
        registry = served.server.models
        found = []
        body = {"model": "vectors", "input": ["the cat sits on the mat"] * 100_000}
        client = threading.Thread(target=lambda: found.append(served.post("/v1/embeddings", **body)))
        client.start()
        wait_until(lambda: registry.find("vectors").model and registry.find("vectors").loaded.stats.steps)
        registry.cancel()
        client.join(60)
        assert (found[0].status_code, found[0].json()["error"]["code"]) == (503, "shutting_down")


def test_a_full_queue_of_calls_is_a_503(encoders):
    with serving(encoders[0], settings=Settings(max_queue=0)) as served:
        entry = served.server.models.find("vectors")
        entry.queue["someone"] = entry.spec.parallel
        answer = served.post("/v1/embeddings", model="vectors", input="x")
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "queue_full")

"""Streams of a key with many, whose tokens are joined: each API says what it says to one that is alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from akunu.api.scheduling import sharing
from akunu.server import Keys, Settings

from .conftest import Served, serving

TALE = [{"role": "user", "content": "Tell me a story"}]
MANY, OTHER = {"x-api-key": "manysecret1"}, {"x-api-key": "othersecret"}
COMMON = {"model": "ember", "temperature": 0, "stream": True}
ASKED: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"messages": TALE, "max_tokens": 40, "logprobs": True, "top_logprobs": 2,
                             "stream_options": {"include_usage": True}},
    "/v1/completions": {"prompt": "Once upon a time", "max_tokens": 40, "logprobs": 2, "stop": ["zzzz"],
                        "stream_options": {"include_usage": True}},
    "/v1/responses": {"input": "Tell me a story", "max_output_tokens": 40, "top_logprobs": 2,
                      "include": ["message.output_text.logprobs"]},
    "/v1/messages": {"messages": TALE, "max_tokens": 40},
    "/api/chat": {"messages": TALE, "options": {"num_predict": 40, "temperature": 0}, "logprobs": True},
}  # fmt: skip


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    path = tmp_path_factory.mktemp("keys") / "keys"
    path.write_text("manysecret1 many\nothersecret other\n")
    with serving(settings=Settings(keys=Keys.from_file(path))) as served:
        yield served


def read(served: Served, path: str, headers: dict[str, str]) -> list[dict[str, Any]]:
    body = ASKED[path] | (COMMON if path != "/api/chat" else {"model": "ember", "stream": True})
    text = served.http.post(path, json=body, headers=headers).text
    lines = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith(("data: ", "{"))]
    return [json.loads(line) for line in lines if line != "[DONE]"]


def said(path: str, events: list[dict[str, Any]]) -> dict[str, Any]:
    """What a stream said: its text, its tokens with log-probabilities, why it ended and what it counted."""
    if path.startswith("/v1/c"):
        choices = [choice for event in events for choice in event["choices"]]
        texts = [choice.get("text") or choice.get("delta", {}).get("content") or "" for choice in choices]
        told = [choice["logprobs"] for choice in choices if choice.get("logprobs")]
        tokens = [each for one in told for each in (one.get("content") or one.get("token_logprobs") or ())]
        end = [choice["finish_reason"] for choice in choices if choice["finish_reason"]]
        counts = [event["usage"]["completion_tokens"] for event in events if event.get("usage")]
        return {"text": "".join(texts), "tokens": tokens, "end": end, "counts": counts}
    if path == "/v1/responses":
        deltas = [event for event in events if event["type"] == "response.output_text.delta"]
        whole = events[-1]["response"]
        tokens = [each for event in deltas for each in event["logprobs"]]
        assert whole["output"][0]["content"][0]["text"] == "".join(event["delta"] for event in deltas)
        counts = whole["usage"]["output_tokens"]
        text = "".join(event["delta"] for event in deltas)
        return {"text": text, "tokens": tokens, "end": events[-1]["type"], "counts": counts}
    if path == "/v1/messages":
        texts = [e["delta"]["text"] for e in events if e["type"] == "content_block_delta"]
        (end,) = [event for event in events if event["type"] == "message_delta"]
        return {"text": "".join(texts), "end": end["delta"], "counts": end["usage"]["output_tokens"]}
    texts = [event["message"]["content"] for event in events]
    tokens = [each for event in events for each in event.get("logprobs") or ()]
    end = events[-1]
    return {"text": "".join(texts), "tokens": tokens, "end": end["done_reason"], "counts": end["eval_count"]}


@pytest.mark.parametrize("path", ASKED)
def test_many_streams_of_a_key_say_what_one_says_alone(
    path: str, keyed: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = said(path, read(keyed, path, OTHER))
    assert alone["text"] and alone["counts"]
    monkeypatch.setattr(sharing, "TURN_SECONDS", 1e9)
    monkeypatch.setattr(sharing, "MOST_SECONDS", 1e9)
    with ThreadPoolExecutor(5) as pool:
        many = list(pool.map(lambda _: read(keyed, path, MANY), range(5)))
    assert [said(path, each) for each in many] == [alone] * 5

"""What Open WebUI 0.12.4 asked of a server, as an OpenAI connection and as an Ollama one.

`open_webui.json` has its requests as they came: chats with each of its parameters, an image, a tool and its
result, titles, follow-ups, tags, what it embeds, and the statuses that are right. What is refused is named.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

CASES = json.loads(Path(__file__).with_name("open_webui.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", CASES, ids=[f"{n}-{case['path']}" for n, case in enumerate(CASES)])
def test_open_webui_gets_the_answer_that_it_reads(served, case):
    body = case["body"]
    answer = served.post(case["path"], **body)
    assert answer.status_code == case["status"], answer.text
    if case["status"] == 400:
        told = answer.json()["error"]
        assert told["message"] if case["path"].startswith("/v1/") else told
    elif body.get("stream"):
        last = answer.text.strip().splitlines()[-1]
        assert last == "data: [DONE]" if case["path"].startswith("/v1/") else json.loads(last)["done"]
    else:
        assert "error" not in answer.json() or answer.json()["error"] is None


def test_open_webui_finds_the_models(served):
    listed = served.http.get("/v1/models").json()["data"]
    tags = served.http.get("/api/tags").json()["models"]
    assert [model["id"] for model in listed] == [model["model"] for model in tags]
    for model in tags:
        assert {"name", "model", "digest", "size", "details", "modified_at"} <= model.keys()
    assert served.http.get("/api/ps").json()["models"][0]["expires_at"]

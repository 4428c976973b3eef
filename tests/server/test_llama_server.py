"""llama-server's own routes, as its clients use them."""

from __future__ import annotations

import json

import pytest

PROMPT = "<|im_start|>user\nWhat is the capital of France?<|im_end|>\n<|im_start|>assistant\n"


def test_a_completion_is_the_models_own(served):
    answer = served.post("/completion", prompt=PROMPT, temperature=0, n_predict=12, cache_prompt=True).json()
    assert answer["content"] == "The capital of France is Paris."
    assert (answer["stop"], answer["stop_type"], answer["model"]) == (True, "eos", "ember")
    assert answer["tokens_predicted"] == answer["timings"]["predicted_n"] > 0
    ids = served.post("/apply-template", model="ember", messages=[{"role": "user", "content": "Hi"}]).json()
    assert served.post("/completion", prompt=ids["tokens"], n_predict=1).json()["tokens_evaluated"] == len(
        ids["tokens"]
    )
    cut = served.post("/completion", model="ember", prompt="Once", temperature=0, n_predict=3).json()
    assert cut["stop_type"] == "limit"
    word = served.post("/completion", prompt=PROMPT, temperature=0, stop=["France"]).json()
    assert (word["stop_type"], word["stopping_word"], word["content"]) == (
        "word",
        "France",
        "The capital of ",
    )


def test_a_stream_is_events_of_pieces(served):
    raw = served.post("/completion", prompt=PROMPT, temperature=0, stream=True).text
    events = [json.loads(line[6:]) for line in raw.splitlines() if line.startswith("data: ")]
    assert "".join(each["content"] for each in events) == "The capital of France is Paris."
    assert [each["stop"] for each in events] == [False] * (len(events) - 1) + [True]


def test_a_schema_holds(served):
    answer = served.post("/completion", prompt="A", json_schema={"enum": ["x"]}).json()
    assert answer["content"] == '"x"'


def test_a_gap_needs_tokens_for_it(served):
    answer = served.post("/infill", input_prefix="def f(", input_suffix="return x")
    assert answer.status_code == 400 and "fill-in-the-middle" in answer.json()["error"]["message"]
    assert served.post("/infill", input_prefix="def f(").json()["error"]["param"] == "input_suffix"


def test_the_properties_of_a_model_are_told(served):
    for query in ("", "?model=ember"):
        found = served.http.get(f"/props{query}").json()
        assert found["default_generation_settings"]["n_ctx"] == served.ember.model.context
        assert found["total_slots"] == served.ember.model.stats.parallel
        assert "im_start" in found["chat_template"] and found["modalities"]["vision"] is False
    assert served.http.get("/props?model=nobody").status_code == 404


def test_the_slots_are_listed_without_their_texts(served):
    found = served.http.get("/slots").json()
    assert len(found) == served.ember.model.stats.parallel
    assert {each["is_processing"] for each in found} == {False}
    assert not any("prompt" in each for each in found)


def test_the_routers_routes_are_there(served):
    assert served.http.get("/models").json()["data"][0]["id"] == "ember"
    assert served.post("/models/load", model="vectors").json()["loaded"] is True
    assert served.post("/models/unload", model="vectors").json()["loaded"] is False


@pytest.mark.parametrize("path", ["/models/load", "/models/unload"])
def test_loading_is_for_those_who_may(tmp_path, path):
    from akunu.server import Settings
    from akunu.server.auth import Keys

    from .conftest import EMBER, serving

    file = tmp_path / "keys"
    file.write_text("sesame-sesame alice\n")
    with serving(EMBER, settings=Settings(keys=Keys.from_file(file))) as served:
        headers = {"authorization": "Bearer sesame-sesame"}
        assert served.http.post(path, json={"model": "ember"}, headers=headers).status_code == 403

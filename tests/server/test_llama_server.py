"""llama-server's own routes, as its clients use them."""

from __future__ import annotations

import json

import pytest

from akunu.server import llama_completion
from akunu.server.llama_completion import InfillRequest

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


def test_what_an_editor_asks_for_is_filled_in(served, monkeypatch):
    """The request of llama.vim and llama.vscode, with all of its fields."""
    monkeypatch.setattr(llama_completion, "infill_ids", lambda *_: [300, 301])
    body = {
        "input_prefix": "def f():\n", "input_suffix": "\n", "prompt": "    ", "n_indent": 0,
        "input_extra": [{"filename": "a.py", "text": "x = 1", }], "n_predict": 8, "stop": [], "stream": False,
        "top_k": 40, "top_p": 0.9, "samplers": ["top_k", "top_p", "infill"], "cache_prompt": True,
        "t_max_prompt_ms": 500, "t_max_predict_ms": 1000,
        "response_fields": ["content", "timings/prompt_n", "truncated", "tokens_cached", "nothing/there"],
    }  # fmt: skip
    answer = served.post("/infill", **body)
    assert answer.status_code == 200, answer.text
    assert list(answer.json()) == ["content", "timings/prompt_n", "truncated", "tokens_cached"]
    refused = served.post("/infill", **body | {"samplers": ["top_k", "luck"]})
    assert refused.status_code == 400 and refused.json()["error"]["param"] == "samplers"


@pytest.mark.parametrize(
    ("text", "seconds", "end"),
    [
        ("  a\n  b\n", 0.0, None),
        ("  a\n  b\n\n c", 0.0, 8),
        ("a\n    ", 0.0, None),
        ("a", 5.0, None),
        ("a\n  b", 5.0, 5),
    ],
    ids=["goes on", "less indented", "not known yet", "late without a line", "late"],
)
def test_a_gap_ends_with_its_block_or_its_time(text, seconds, end):
    fields = InfillRequest(input_prefix="", input_suffix="", n_indent=2, t_max_predict_ms=1000)
    assert fields.end(text, seconds) == end


def test_a_gap_that_ends_early_has_what_was_before_it(served, monkeypatch):
    ids = served.post("/tokenize", content=PROMPT, parse_special=True).json()["tokens"]
    monkeypatch.setattr(llama_completion, "infill_ids", lambda *_: ids)
    monkeypatch.setattr(InfillRequest, "end", lambda self, text, _: 4 if len(text) > 8 else None)
    more = {"input_prefix": "", "input_suffix": "", "temperature": 0, "n_predict": 20, "ignore_eos": True}
    answer = served.post("/infill", **more, n_indent=1).json()  # it may be ahead of its reader by a chunk
    assert (answer["stop_type"], answer["content"][:4]) == ("limit", "The ")
    assert len(answer["content"]) <= 8 + 4


def test_samplers_that_are_not_named_are_off(served):
    drawn = {served.post("/completion", prompt=PROMPT, temperature=9, seed=n, n_predict=1).json()["content"]
             for n in range(8)}  # fmt: skip
    one = {"top_k": 1, "temperature": 9.0, "n_predict": 1}
    named = [
        {
            served.post("/completion", prompt=PROMPT, **one, seed=n, samplers=names).json()["content"]
            for n in range(8)
        }
        for names in (["top_k", "temperature"], ["temperature"])
    ]
    assert len(drawn) > 1 and len(named[0]) == 1 and len(named[1]) > 1


@pytest.mark.parametrize("bias", [{" capital": -100, "The": False}, [[" capital", -100], ["The", False]]])
def test_a_bias_may_be_of_texts(served, bias):
    options = {"prompt": PROMPT, "temperature": 0, "n_predict": 8}
    assert served.post("/completion", **options).json()["content"].startswith("The capital")
    answer = served.post("/completion", **options, logit_bias=bias).json()
    assert not {"The", "capital"} & set(answer["content"].split())
    forbidden = dict(answer["generation_settings"]["logit_bias"])
    assert sorted(set(forbidden.values())) == [-9999.0, -100.0]


def test_several_prompts_are_answered_together(served):
    prompts = [PROMPT, [300, "a text", 301], "Once"]
    options = {"temperature": 0, "n_predict": 6}
    answers = served.post("/completion", prompt=prompts, **options, return_tokens=True).json()
    alone = [served.post("/completion", prompt=each, **options).json() for each in prompts]
    assert [each["content"] for each in answers] == [each["content"] for each in alone]
    assert [each["index"] for each in answers] == [0, 1, 2] and all(each["tokens"] for each in answers)
    events = served.post("/completion", prompt=prompts, **options, stream=True).text
    pieces = [json.loads(line[6:]) for line in events.splitlines() if line.startswith("data: ")]
    for n, each in enumerate(answers):
        of_it = [piece for piece in pieces if piece["index"] == n]
        assert "".join(piece["content"] for piece in of_it) == each["content"]
        assert [piece["stop"] for piece in of_it] == [False] * (len(of_it) - 1) + [True]
    for wrong in ([], [[300], 300], ["a"] * 17):
        assert served.post("/completion", prompt=wrong).json()["error"]["param"] == "prompt"


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


LONG = [300 + n % 1500 for n in range(1500)]


def streamed(served, path: str, **fields) -> list[dict]:
    text = served.post(path, **fields, stream=True).text
    data = [line[6:] for line in text.splitlines() if line.startswith("data: ")]
    return [json.loads(each) for each in data if each != "[DONE]"]


ROUTES = {
    "/completion": {"prompt": LONG, "n_predict": 3},
    "/v1/completions": {"model": "ember", "prompt": LONG, "max_tokens": 3},
    "/v1/chat/completions": {
        "model": "ember",
        "max_tokens": 3,
        "messages": [{"role": "user", "content": "word " * 1500}],
    },
    "/v1/responses": {"model": "ember", "max_output_tokens": 3, "input": "words " * 1500},
}


@pytest.mark.parametrize("path", ROUTES)
def test_a_stream_tells_how_far_its_prompt_is_read(quiet, path):
    events = streamed(quiet, path, **ROUTES[path], return_progress=True)
    told = [event["prompt_progress"] for event in events if "prompt_progress" in event]
    assert told[0]["processed"] == told[0]["cache"]
    assert told[-1]["processed"] == told[-1]["total"] >= 1500
    read = [each["processed"] for each in told]
    assert read == sorted(set(read)), "each report has more than the one before"
    assert len({each["total"] for each in told}) == 1


@pytest.mark.parametrize("path", ROUTES)
def test_progress_is_told_where_it_is_wanted(quiet, path):
    assert not any("prompt_progress" in event for event in streamed(quiet, path, **ROUTES[path]))
    answer = quiet.post(path, **ROUTES[path], return_progress=True)
    assert answer.status_code == 200 and "prompt_progress" not in answer.text


def test_each_of_several_answers_tells_its_progress(quiet):
    chat = {**ROUTES["/v1/chat/completions"], "n": 3, "temperature": 1, "timings_per_token": True}
    events = streamed(quiet, "/v1/chat/completions", **chat, return_progress=True)
    for n in range(3):
        own = [event for event in events if event["choices"][0]["index"] == n]
        told = [event["prompt_progress"] for event in own if "prompt_progress" in event]
        assert told[0]["processed"] == told[0]["cache"] and told[-1]["processed"] == told[-1]["total"]
        assert [event["timings"]["predicted_n"] for event in own if "timings" in event] == [3]


def test_who_waits_for_progress_may_go_away(quiet):
    request = {**ROUTES["/v1/completions"], "stream": True, "return_progress": True, "prompt": LONG[::-1]}
    with quiet.http.stream("POST", "/v1/completions", json=request) as answer:
        assert "prompt_progress" in next(answer.iter_text())


@pytest.mark.parametrize("path", ROUTES)
def test_the_times_of_an_output_are_told(quiet, path):
    limit = "max_output_tokens" if path == "/v1/responses" else "max_tokens"
    fields = {name: value for name, value in ROUTES[path].items() if name not in (limit, "n_predict")}
    fields |= {limit: 4, "ignore_eos": True, "timings_per_token": True}
    events = streamed(quiet, path, **fields)
    written = [event["timings"]["predicted_n"] for event in events if "timings" in event]
    assert written == sorted(written) and written[-1] == 4 and len(set(written)) > 1
    last = [event["timings"] for event in events if "timings" in event][-1]
    assert last["prompt_n"] + last["cache_n"] >= 1500
    assert all(value >= 0 for value in last.values())
    if path != "/v1/responses":
        assert quiet.post(path, **fields).json()["timings"]["predicted_n"] == 4


def test_llama_servers_own_page_is_answered(quiet):
    """What its page sends (llama.cpp of November 2026) with all settings of its form, and without a model."""
    body = {
        "messages": [{"role": "user", "content": "Write a haiku."}], "stream": True, "return_progress": True,
        "sse_ping_interval": 1, "reasoning_format": "auto", "reasoning_control": True, "temperature": 0.8,
        "max_tokens": 12, "dynatemp_range": 0, "dynatemp_exponent": 1, "top_k": 40, "top_p": 0.95,
        "min_p": 0.05, "xtc_probability": 0, "xtc_threshold": 0.1, "typ_p": 1, "repeat_last_n": 64,
        "repeat_penalty": 1, "presence_penalty": 0, "frequency_penalty": 0, "dry_multiplier": 0,
        "dry_base": 1.75, "dry_allowed_length": 2, "dry_penalty_last_n": -1, "backend_sampling": False,
        "samplers": ["top_k", "typ_p", "top_p", "min_p", "temperature"], "timings_per_token": True,
        "thinking_budget_tokens": -1, "chat_template_kwargs": {"enable_thinking": False},
    }  # fmt: skip
    with quiet.http.stream("POST", "/v1/chat/completions", json=body) as answer:
        answer.read()
        events = [json.loads(line[6:]) for line in answer.iter_lines() if line.startswith("data: {")]
    assert answer.status_code == 200, answer.text
    assert {event["model"] for event in events} == {"ember"}
    assert events[-1]["timings"]["predicted_n"] > 0
    refused = quiet.post("/v1/chat/completions", **body | {"samplers": ["luck"]})
    assert refused.status_code == 400 and refused.json()["error"]["param"] == "samplers"


@pytest.mark.parametrize(
    ("path", "body", "first"),
    [
        ("chat/completions", {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1}, "ember"),
        ("completions", {"prompt": "Once", "max_tokens": 1}, "ember"),
        ("responses", {"input": "Hi", "max_output_tokens": 1}, "ember"),
        ("embeddings", {"input": "Hi"}, "vectors"),
    ],
)
def test_a_request_may_leave_the_model_out(served, path, body, first):
    answer = served.post(f"/v1/{path}", **body)
    assert answer.status_code == 200 and answer.json()["model"] == first

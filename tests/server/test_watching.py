"""What those see who run the server: metrics, the engines, tokens and prompts, the description."""

from __future__ import annotations

import re
import time

import msgspec
from prometheus_client.parser import text_string_to_metric_families

from akunu.api.results import Piece
from akunu.server import Settings
from akunu.server.metrics import GenerationMeter, Meters
from akunu.server.models import Registry
from akunu.server.routes import ENDPOINTS

from .conftest import serving, wait_until
from .test_cancel import ENDLESS, port_of, post_raw


def test_metrics_count_what_happened(served):
    def value(name: str, **labels: str) -> float:
        text = served.http.get("/metrics").text
        want = ",".join(f'{key}="{label}"' for key, label in labels.items())
        found = re.search(rf"^{name}{{{re.escape(want)}}} (\S+)$", text, re.MULTILINE)
        return float(found[1]) if found else 0.0

    names = (
        "akunu_prompt_tokens_total", "akunu_cached_tokens_total", "akunu_generated_tokens_total",
        "akunu_time_to_first_token_seconds_count", "akunu_engine_steps_total",
    )  # fmt: skip
    before = [value(name, model="ember") for name in names]
    usage = served.chat("What is 2+2?", max_tokens=5).json()["usage"]
    after = [value(name, model="ember") for name in names]
    grown = [b - a for a, b in zip(before, after, strict=True)]
    cached = usage["prompt_tokens_details"]["cached_tokens"]
    assert grown[:4] == [usage["prompt_tokens"], cached, usage["completion_tokens"], 1]
    assert grown[4] >= 2
    assert value("akunu_requests_total", route="/v1/chat/completions", status="200") >= 1
    assert value("akunu_engine_pages", model="ember") > 0
    served.http.get("/no/such/path/at/all")
    assert "no/such" not in served.http.get("/metrics").text


def test_the_engine_shows_its_texts(quiet):
    def texts():
        return quiet.http.get("/admin/engine").json()["models"][0]["sequences"]

    sock = post_raw(port_of(quiet), "/v1/completions", {**ENDLESS, "n": 2})
    wait_until(lambda: [text["state"] for text in texts()] == ["decoding"] * 2)
    found = quiet.http.get("/admin/engine").json()["models"][0]
    assert (found["id"], found["parallel"], found["context"]) == ("ember", 8, 2048)
    assert found["pages"]["used"] > 0
    assert sum(found["pages"][name] for name in ("used", "cached", "free")) == found["pages"]["total"]
    assert found["sequences"][0]["prompt_tokens"] == len(quiet.ember.model.tokenize("Once upon a time"))
    sock.close()
    wait_until(lambda: texts() == [])


def test_the_table_of_a_token_is_timed_between_steps(served):
    commands = served.post("/admin/table", model="ember").json()["commands"]
    assert len(commands) > 10
    assert all(command["microseconds"] > 0 for command in commands)
    assert served.post("/admin/table").status_code == 400


def test_texts_and_ids_go_both_ways(served):
    ids = served.post("/tokenize", model="ember", text="Hello, <|im_end|> world!").json()
    assert ids["count"] == len(ids["tokens"])
    text = served.post("/detokenize", model="ember", tokens=ids["tokens"]).json()["text"]
    assert text == "Hello, <|im_end|> world!"
    assert served.post("/detokenize", model="ember", tokens=[10**9]).status_code == 400


def test_a_template_is_applied(served):
    messages = [{"role": "user", "content": "Hi"}]
    answer = served.post("/apply-template", model="ember", messages=messages).json()
    assert answer["prompt"] == "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    assert answer["tokens"] == served.ember.model.chat_template.encode(messages)


def test_the_description_has_every_route_and_every_field(served):
    document = served.http.get("/openapi.json").json()
    found = {(method.upper(), path) for path, methods in document["paths"].items() for method in methods}
    assert found == {(each.method, each.path.replace(":path", "")) for each in ENDPOINTS}
    for each in ENDPOINTS:
        if each.body is not None:
            path = document["paths"][each.path.replace(":path", "")][each.method.lower()]
            reference = path["requestBody"]["content"][each.media]["schema"]["$ref"]
            fields = document["components"]["schemas"][reference.rpartition("/")[2]]["properties"]
            assert set(fields) == {field.encode_name for field in msgspec.structs.fields(each.body)}


class Counted:
    """The metrics of a server, by name and labels."""

    def __init__(self, served) -> None:
        families = text_string_to_metric_families(served.http.get("/metrics").text)
        self._values = {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in families
            for sample in family.samples
        }

    def __call__(self, name: str, **labels: str) -> float:
        return self._values.get((name, frozenset(labels.items())), 0.0)


def test_tokens_that_come_together_are_counted_one_by_one(workers):
    meters = Meters(Registry((), 1, None, workers))
    meter = GenerationMeter(meters, "m", time.monotonic())
    for piece in (Piece("a", [1]), Piece("b"), Piece("cde", [2, 3, 4]), Piece("f", [5])):
        time.sleep(0.01)
        meter.piece(piece)
    found = {s.name: s.value for family in meters.between_tokens.collect() for s in family.samples}
    assert found["akunu_inter_token_seconds_count"] == 4
    assert found["akunu_inter_token_seconds_sum"] >= 0.03  # all the time since the first


def test_a_prompt_that_is_refused_is_no_prompt_that_was_run(served):
    before = Counted(served)
    refused = served.post("/v1/completions", model="ember", prompt="x " * 3000)
    assert refused.status_code == 400
    after = Counted(served)
    assert after("akunu_prompt_tokens_total", model="ember") == before(
        "akunu_prompt_tokens_total", model="ember"
    )
    for reason, more in (("error", 1), ("cancelled", 0)):
        grown = [count("akunu_generations_total", model="ember", reason=reason) for count in (before, after)]
        assert grown[1] - grown[0] == more


def test_what_an_engine_counted_stays_when_its_model_is_unloaded():
    with serving() as served:

        def steps() -> float:
            return Counted(served)("akunu_engine_steps_total", model="ember")

        served.chat(max_tokens=2)
        first = steps()
        assert first > 0
        served.post("/admin/unload", model="ember").raise_for_status()
        assert steps() == first
        assert Counted(served)("akunu_engine_pages", model="ember") == 0
        served.post("/admin/load", model="ember").raise_for_status()
        assert steps() == first
        served.chat(max_tokens=2)
        assert steps() > first


def test_requests_are_counted_by_route_whatever_they_name(served):
    route = {"route": "/v1/models/{name}"}
    before = Counted(served)
    assert served.http.get("/v1/models/ember").status_code == 200
    assert served.http.get("/v1/models/none").status_code == 404
    after = Counted(served)
    for status in ("200", "404"):
        assert after("akunu_requests_total", status=status, **route) == 1 + before(
            "akunu_requests_total", status=status, **route
        )
    assert after("akunu_request_seconds_count", **route) == 2 + before("akunu_request_seconds_count", **route)


def test_a_model_that_idled_leaves_the_server_ready():
    with serving(settings=Settings(idle_seconds=0.1)) as served:
        wait_until(lambda: served.ember.model is None)
        assert served.http.get("/ready").status_code == 200
        assert served.chat(max_tokens=2).status_code == 200

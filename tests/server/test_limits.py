"""Who may use the server, how much of it, and how it ends."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import os
import signal
import subprocess
import sys
import threading
import time

import anthropic
import httpx
import openai
import pytest

from akunu.base.errors import InvalidArgumentError, ModelFileError
from akunu.server import Keys, ModelSpec, Settings
from akunu.server.auth import Holder, key_digest
from akunu.server.errors import ApiError
from akunu.server.limits import RateLimit

from .conftest import EMBER, serving, wait_until

BEARER = "authorization"


def keys(*names: str) -> Keys:
    return Keys(Holder(name, key_digest(name)) for name in names)


def test_a_key_opens_the_server_and_nothing_else_does():
    with serving(settings=Settings(keys=keys("secret-1", "secret-2"))) as served:
        for headers, status in (
            ({}, 401),
            ({BEARER: "Bearer wrong"}, 401),
            ({BEARER: "Basic secret-1"}, 401),
            ({"x-api-key": ""}, 401),
            ({BEARER: "Bearer secret-1"}, 200),
            ({"x-api-key": "secret-2"}, 200),
        ):
            assert served.http.get("/v1/models", headers=headers).status_code == status
        assert served.http.get("/v1/models").json()["error"]["code"] == "invalid_api_key"
        denied = served.http.post("/v1/messages", json={})
        assert denied.json()["error"]["type"] == "authentication_error"
        assert served.http.get("/health").status_code == served.http.get("/ready").status_code == 200


def test_administration_needs_a_key_of_its_own_where_there_are_keys():
    with serving(settings=Settings(keys=keys("user-key"), admin_keys=keys("admin-key"))) as served:
        for key, status in (("user-key", 401), ("admin-key", 200)):
            answer = served.http.get("/admin/models", headers={BEARER: f"Bearer {key}"})
            assert answer.status_code == status
        assert served.http.get("/v1/models", headers={BEARER: "Bearer admin-key"}).status_code == 200
    with serving(settings=Settings(keys=keys("user-key"))) as served:
        answer = served.http.get("/admin/models", headers={BEARER: "Bearer user-key"})
        assert answer.status_code == 403


def test_a_request_has_the_priority_of_its_key_at_most(tmp_path):
    file = tmp_path / "keys"
    file.write_text("quick-key quick priority=3\nplain-key plain\nslow-key1 slow priority=-2\n")
    with serving(settings=Settings(keys=Keys.from_file(file))) as served:
        seen = []
        scheduler = served.ember.model._scheduler
        submit = scheduler.submit
        scheduler.submit = lambda text: (seen.append(text.priority), submit(text))
        for key, wanted in (("quick-key", None), ("quick-key", 1), ("plain-key", 8), ("slow-key1", None)):
            fields = {} if wanted is None else {"priority": wanted}
            headers = {BEARER: f"Bearer {key}"}
            body = {"model": "ember", "prompt": "x", "max_tokens": 1, **fields}
            assert served.http.post("/v1/completions", json=body, headers=headers).status_code == 200
        assert seen == [3, 1, 0, -2]
        body["priority"] = 9
        assert served.http.post("/v1/completions", json=body, headers=headers).status_code == 400


def test_key_files_hold_keys_and_hashes(tmp_path):
    file = tmp_path / "keys"
    digest = hashlib.sha256(b"hashed-key").hexdigest()
    file.write_text(f"# comment\n\nplain-key tom\nsha256:{digest} eve\n")
    found = Keys.from_file(file)
    known = [found.holder(key) for key in ("plain-key", "hashed-key", digest, None)]
    assert [holder and holder.name for holder in known] == ["tom", "eve", None, None]
    for wrong in ("short\n", "", "sha256:12\n", f"hashed-key\nsha256:{digest}\n"):
        file.write_text(wrong)
        with pytest.raises(InvalidArgumentError):
            Keys.from_file(file)


def test_a_name_of_another_machine_and_other_origins_are_refused(served):
    assert served.http.get("/v1/models", headers={"host": "evil.example"}).status_code == 403
    answer = served.http.get("/v1/models", headers={"origin": "https://evil.example"})
    assert "access-control-allow-origin" not in answer.headers
    with serving(settings=Settings(cors_origins=("https://good.example",))) as open_:
        for origin, allowed in (("https://good.example", True), ("https://evil.example", False)):
            answer = open_.http.get("/v1/models", headers={"origin": origin})
            assert ("access-control-allow-origin" in answer.headers) == allowed


def test_the_log_names_whose_request_was_refused(caplog):
    settings = Settings(keys=keys("secret-1"), requests_per_minute=1)
    with serving(settings=settings) as served, caplog.at_level(logging.INFO, "akunu.server"):
        for status in (200, 429):
            answer = served.http.get("/v1/models", headers={BEARER: "Bearer secret-1"})
            assert answer.status_code == status
        served.http.get("/admin/models", headers={BEARER: "Bearer secret-1"})
        lines: list[str] = []

        def all_there() -> bool:  # a line is written after the answer
            lines[:] = [line for line in caplog.messages if " key=" in line]
            return len(lines) >= 3

        wait_until(all_there)
    assert len(lines) == 3
    assert all(" key=secret-1 " in line for line in lines)


def test_a_rate_is_kept_and_says_when_to_come_again():
    with serving(settings=Settings(requests_per_minute=2)) as served:
        answers = [served.http.get("/v1/models") for _ in range(3)]
        assert [answer.status_code for answer in answers] == [200, 200, 429]
        assert 1 <= int(answers[-1].headers["retry-after"]) <= 30
        assert served.http.get("/health").status_code == 200


def test_an_allowance_refills_evenly_and_clients_are_forgotten():
    now = [0.0]
    limit = RateLimit(60, lambda: now[0])
    for _ in range(60):
        limit.take("a")
    with pytest.raises(ApiError):
        limit.take("a")
    limit.take("b")
    now[0] = 1.01
    limit.take("a")
    for n in range(2000):
        now[0] += 1
        limit.take(str(n))
    assert len(limit._buckets) < 1100


def test_a_body_that_is_too_large_is_a_413():
    with serving(settings=Settings(max_body=1000)) as served:
        answer = served.chat("x" * 2000)
        assert (answer.status_code, answer.json()["error"]["type"]) == (413, "invalid_request_error")
        chunked = served.http.post(
            "/v1/chat/completions", content=(b" " * 500 for _ in range(9)),
            headers={"content-type": "application/json"},
        )  # fmt: skip
        assert chunked.status_code == 413


def test_the_log_names_requests_and_has_no_text_of_them(served, caplog):
    with caplog.at_level(logging.INFO, "akunu.server"):
        answer = served.chat("A secret that is told", max_tokens=3)
        wait_until(lambda: any("chat/completions" in line for line in caplog.messages))
    (line,) = [line for line in caplog.messages if "chat/completions" in line]
    assert line.startswith(answer.headers["x-request-id"])
    assert "model=ember" in line
    assert "generated=3" in line
    assert "secret" not in caplog.text


def test_models_come_when_they_are_asked_for_and_go_when_others_need_the_room():
    specs = [ModelSpec(name=name, path="ember", threads=1) for name in ("a", "b", "c")]
    with serving(*specs, settings=Settings(max_models=2)) as served:

        def loaded():
            models = served.http.get("/admin/models").json()["models"]
            return {model["id"] for model in models if model["loaded"]}

        for name in "abab":
            assert served.chat(model=name, max_tokens=1).status_code == 200
        assert loaded() == {"a", "b"}
        assert served.chat(model="c", max_tokens=1).status_code == 200
        assert loaded() == {"b", "c"}
        assert served.post("/admin/unload", model="b").json()["loaded"] is False
        assert served.post("/admin/load", model="a").json()["memory"]["weights"] > 0
        assert loaded() == {"a", "c"}
        assert served.post("/admin/load", model="/etc/passwd").status_code == 404


@pytest.mark.parametrize(("most", "left"), [(None, "abcdef"), (2, "ef")])
def test_models_that_are_loaded_at_the_start_are_loaded_once_and_stay(most, left, caplog):
    specs = [ModelSpec(name=name, path="ember", threads=1, preload=True) for name in "abcdef"]
    settings = Settings(max_models=most)
    with caplog.at_level(logging.INFO, "akunu.server"), serving(*specs, settings=settings) as served:
        asyncio.run(served.server.models.preload())  # as `akunu serve` does before it says that it is ready
        models = served.http.get("/admin/models").json()["models"]
        assert "".join(model["id"] for model in models if model["loaded"]) == left
        loads = [line for line in caplog.messages if line.startswith("loaded ")]
        assert len(loads) == len(specs), loads
        assert served.http.get("/ready").status_code == 200


def test_a_model_that_idles_is_unloaded():
    with serving(settings=Settings(idle_seconds=0.2)) as served:
        wait_until(lambda: served.ember.model is None)
        assert served.chat(max_tokens=1).status_code == 200


def test_what_is_wrong_with_a_model_is_said_and_not_tried_again(tmp_path, caplog):
    """By libraries, which repeat a request that ends in a 5xx unless they are told not to."""
    (tmp_path / "damaged.gguf").write_bytes(b"GGUF" + bytes(20))
    specs = [ModelSpec(name=name, path=str(tmp_path / f"{name}.gguf")) for name in ("damaged", "missing")]
    with serving(EMBER, *specs) as served:
        for name in ("damaged", "missing"):
            caplog.clear()
            said = rf"model: {name} cannot be loaded: .*{name}\.gguf"
            asked = {"model": name, "max_tokens": 1, "messages": [{"role": "user", "content": "Hi"}]}
            with (
                openai.OpenAI(base_url=f"{served.url}/v1", api_key="-") as client,
                pytest.raises(openai.InternalServerError, match=said) as refused,
            ):
                client.chat.completions.create(**asked)
            assert refused.value.code == "model_not_loaded"
            with (
                anthropic.Anthropic(base_url=served.url, api_key="-") as other,
                pytest.raises(anthropic.InternalServerError, match=said),
            ):
                other.messages.create(**asked)
            assert len([line for line in caplog.messages if "cannot be loaded" in line]) == 2


def test_a_model_that_cannot_be_had_now_may_be_tried_again(monkeypatch):
    def find(*_, **__):
        raise ModelFileError("user/repo: cannot be fetched") from httpx.ConnectError("no route")

    monkeypatch.setattr("akunu.server.preloading.FoundModel", find)
    with serving(ModelSpec(name="ember", path="user/repo")) as served:
        answer = served.chat(max_tokens=1)
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "model_not_loaded")
    assert "x-should-retry" not in answer.headers


def test_an_engine_that_makes_no_step_while_readers_wait_is_ill():
    with serving(settings=Settings(stall_seconds=0.1)) as served:
        with served.ember.model._scheduler.exclusive():
            thread = threading.Thread(target=served.chat, kwargs={"max_tokens": 1})
            thread.start()
            wait_until(lambda: httpx.get(f"{served.url}/health", trust_env=False).status_code == 503)
        thread.join(30)
        assert served.http.get("/health").status_code == 200


ENDLESS = {"model": "ember", "prompt": "a", "regex": "(a|b){1500}", "max_tokens": 1800, "stream": True}


@contextlib.contextmanager
def a_process(*options):
    """`akunu serve` as a process, and its address."""
    code = "from akunu.cli import main; import sys; sys.exit(main(sys.argv[1:]))"
    process = subprocess.Popen(
        [sys.executable, "-c", code, "serve", "--port", "0", "-t", "1", *options],
        stderr=subprocess.PIPE, text=True, env={**os.environ, "NO_COLOR": "1"},
    )  # fmt: skip
    try:
        while "[ember at " not in (line := process.stderr.readline()):
            assert process.poll() is None
        yield process, line.split()[-1].rstrip("]\n")
    finally:
        process.kill()
        process.stderr.close()


def read_all(url, lines):
    with (
        httpx.Client(timeout=60, trust_env=False) as http,
        http.stream("POST", f"{url}/v1/completions", json=ENDLESS) as answer,
    ):
        lines.append(first := [])
        first += (line for line in answer.iter_lines() if line)


@pytest.mark.parametrize(("drain", "signals"), [("60", 2), ("0", 1)])
def test_texts_that_have_to_end_end_in_order_those_that_wait_too(drain, signals):
    with a_process("--parallel", "2", "--drain", drain) as (process, url):
        streams = []
        threads = [threading.Thread(target=read_all, args=(url, streams)) for _ in range(6)]
        for thread in threads:
            thread.start()
        wait_until(lambda: 'waiting{model="ember"} 4.0' in httpx.get(f"{url}/metrics", trust_env=False).text)
        for _ in range(signals):
            process.send_signal(signal.SIGINT)
            time.sleep(0.05)  # a signal that is pending already is not a second one
        for thread in threads:
            thread.join(30)
        assert process.wait(30) == 130
        assert "Traceback" not in process.stderr.read()
        assert len(streams) == 6
        assert all(lines[-1] == "data: [DONE]" for lines in streams)
        assert all('"finish_reason":"length"' in lines[-2] for lines in streams)


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_told_to_end_it_lets_requests_end_and_loses_nothing(stop):
    with a_process("--drain", "20") as (process, url):
        fields = {
            "model": "ember",
            "prompt": "Once upon a time",
            "max_tokens": 300,
            "seed": 1,
            "stream": True,
        }
        with (
            httpx.Client(timeout=60, trust_env=False) as http,
            http.stream("POST", f"{url}/v1/completions", json=fields) as answer,
        ):
            lines = answer.iter_lines()
            next(lines)
            process.send_signal(stop)
            rest = [line for line in lines if line]
        assert rest[-1] == "data: [DONE]"
        assert '"finish_reason":"stop"' in rest[-2] or '"finish_reason":"length"' in rest[-2]
        assert process.wait(30) == (0 if stop == signal.SIGTERM else 130)

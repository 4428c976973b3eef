"""Keys of strangers on one server: none learns what another asked, or gets what is another's."""

from __future__ import annotations

import contextlib
import hashlib
import json
import select
import socket

import pytest

from akunu.base.errors import InvalidArgumentError
from akunu.cli import main
from akunu.server import Keys, ModelSpec, Settings
from akunu.server.auth import Holder
from akunu.server.errors import ApiError
from akunu.server.limits import Guesses
from akunu.server.routes import ENDPOINTS

from .conftest import serving, wait_until
from .test_cancel import ENDLESS, port_of

SECRET = "The PIN of the vault is 4 8 1 5 and nobody may know it, whatever they say. " * 4


@pytest.fixture
def key_file(tmp_path):
    def written(text: str) -> Keys:
        path = tmp_path / "keys"
        path.write_text(text)
        return Keys.from_file(path)

    return written


def cached(served, key: str, path: str = "/v1/chat/completions") -> int:
    prompt = (
        {"prompt": SECRET}
        if path == "/v1/completions"
        else {"messages": [{"role": "user", "content": SECRET}]}
    )
    body = {"model": "ember", "max_tokens": 1, **prompt}
    usage = served.http.post(path, json=body, headers={"x-api-key": key}).json()["usage"]
    if path == "/v1/messages":
        return usage["cache_read_input_tokens"]
    return usage["prompt_tokens_details"]["cached_tokens"]


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/completions", "/v1/messages"])
def test_a_key_finds_only_what_it_cached_itself(key_file, path):
    keys = key_file("alicesecret1 alice\nbobsecret22 bob\n")
    with serving(settings=Settings(keys=keys)) as served:
        assert cached(served, "alicesecret1", path) == 0
        assert cached(served, "bobsecret22", path) == 0
        assert cached(served, "alicesecret1", path) > 32
        assert cached(served, "bobsecret22", path) > 32


def test_keys_that_say_so_share_their_cache_with_each_other_only(key_file):
    keys = key_file("alicesecret1 alice shared\nbobsecret22 shared\nevesecret333 eve\n")
    with serving(settings=Settings(keys=keys)) as served:
        assert cached(served, "alicesecret1") == 0
        assert cached(served, "bobsecret22") > 32
        assert cached(served, "evesecret333") == 0


def test_without_keys_there_is_one_cache():
    with serving() as served:
        assert cached(served, "any") == 0
        assert cached(served, "other") > 32


def test_keys_are_told_apart_by_their_hash_and_not_by_their_name(tmp_path, key_file):
    users = key_file("userkey111\nothersecret tom\n")
    admins = tmp_path / "admins"
    admins.write_text("adminkey22\nthirdsecret tom\n")
    with serving(settings=Settings(keys=users, admin_keys=Keys.from_file(admins))) as served:
        body = {"model": "ember", "input": "Only its own key may read this.", "max_output_tokens": 1}
        for key in ("adminkey22", "thirdsecret"):
            made = served.http.post("/v1/responses", json=body, headers={"x-api-key": key}).json()["id"]
            found = {
                asking: served.http.get(f"/v1/responses/{made}", headers={"x-api-key": asking}).status_code
                for asking in ("userkey111", "othersecret", "adminkey22", "thirdsecret")
            }
            assert found == {asking: 200 if asking == key else 404 for asking in found}


def test_lines_of_key_files_in_all_forms(key_file):
    digest = hashlib.sha256(b"hashed-key").hexdigest()
    lines = (
        "plainkey1", "plainkey2 priority=3", "plainkey3 tom priority=-2 shared", "plainkey4 shared",
        f"sha256:{digest} eve",
    )  # fmt: skip
    keys = key_file("\n".join(lines))
    found = [keys.holder(key) for key in ("plainkey1", "plainkey2", "plainkey3", "plainkey4", "hashed-key")]
    assert [(one.priority, one.shared) for one in found] == [
        (0, False), (3, False), (-2, True), (0, True), (0, False),
    ]  # fmt: skip
    assert [one.name for one in found if "key-" not in one.name] == ["tom", "eve"]
    assert len({one.id for one in found}) == len({one.name for one in found}) == 5
    for wrong in ("plainkey1 a b", "plainkey1 a shared priority=3", "plainkey1 a color=red"):
        with pytest.raises(InvalidArgumentError, match="line 1 is no key"):
            key_file(wrong)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"origin": "http://127.0.0.1:{port}"}, 200),
        ({"origin": "https://seen.by.a.proxy", "sec-fetch-site": "same-origin"}, 200),
        ({"sec-fetch-site": "none"}, 200),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://127.0.0.1:1"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}, 403),
    ],
)
@pytest.mark.parametrize("path", ["/v1/models", "/tokenize", "/admin/models", "/v1/audio/transcriptions"])
def test_what_a_page_of_another_origin_asks_for_is_refused(served, path, headers, status):
    port = served.url.rpartition(":")[2]
    headers = {name: value.format(port=port) for name, value in headers.items()}
    if path == "/tokenize":
        answer = served.http.post(path, json={"model": "ember", "text": "Hi"}, headers=headers)
    elif path.startswith("/v1/audio"):
        answer = served.http.post(path, files={"file": b""}, headers=headers)
        status = 400 if status == 200 else status
    else:
        answer = served.http.get(path, headers=headers)
    assert answer.status_code == status, answer.text


def test_a_link_of_another_site_leads_to_the_page(served):
    headers = {"sec-fetch-site": "cross-site"}
    assert served.http.get("/", headers={**headers, "sec-fetch-mode": "navigate"}).status_code == 200
    answer = served.http.get("/page/app.js", headers={**headers, "sec-fetch-mode": "no-cors"})
    assert answer.status_code == 403


def test_origins_that_are_named_may_ask():
    with serving(settings=Settings(cors_origins=("https://good.example",))) as served:
        for origin, status in (("https://good.example", 200), ("https://evil.example", 403)):
            headers = {"origin": origin, "sec-fetch-site": "cross-site"}
            assert served.http.get("/v1/models", headers=headers).status_code == status
    with serving(settings=Settings(cors_origins=("*",))) as served:
        assert served.http.get("/v1/models", headers={"sec-fetch-site": "cross-site"}).status_code == 200


def test_nothing_that_is_got_loads_a_model():
    specs = [ModelSpec(name=name, path="ember", threads=1) for name in ("ember", "second")]
    with serving(*specs) as served:
        for each in ENDPOINTS:
            if each.method == "GET":
                path = each.path.replace("{name:path}", "second").replace("{id}", "second")
                served.http.get(path, params={"model": "second"})
        assert served.http.get("/admin/table?model=second").status_code == 405
        assert [entry.model for entry in served.server.models.entries()] == [None, None]


def test_names_of_a_server_behind_a_proxy():
    def status(served, host: str) -> int:
        return served.http.get("/v1/models", headers={"host": host}).status_code

    with serving(settings=Settings(allow_hosts=("ai.example",))) as served:
        hosts = ("ai.example", "AI.example:443", "127.0.0.1", "b.example")
        assert [status(served, host) for host in hosts] == [200, 200, 200, 403]
    with serving(settings=Settings(local=False, allow_hosts=("ai.example",))) as served:
        assert [status(served, host) for host in ("ai.example", "b.example")] == [200, 403]
    with serving(settings=Settings(local=False)) as served:
        assert status(served, "b.example") == 200


@pytest.mark.parametrize(("trusted", "passed"), [((), 1), (("127.0.0.1",), 3)])
def test_who_asks_is_the_word_of_a_trusted_proxy_only(trusted, passed):
    with serving(settings=Settings(requests_per_minute=1, trusted_proxies=trusted)) as served:
        headers = [{"x-forwarded-for": f"10.0.0.{n}"} for n in range(3)]
        statuses = [served.http.get("/v1/models", headers=each).status_code for each in headers]
        assert statuses.count(200) == passed


def test_a_proxy_is_an_address():
    with pytest.raises(InvalidArgumentError, match="trusted_proxy"):
        Settings(trusted_proxies=("example.org",))


def test_wrong_keys_are_slowed_and_known_ones_are_not(key_file):
    keys = key_file("rightkey1 tom\nrightkey2 eve\n")
    with serving(settings=Settings(keys=keys)) as served:

        def status(key: str) -> int:
            return served.http.get("/v1/models", headers={"x-api-key": key}).status_code

        assert status("rightkey1") == 200
        tried = [status(f"wrong{n:05}") for n in range(40)]
        assert tried[:30] == [401] * 30
        assert 429 in tried
        assert status("rightkey1") == 200  # it is known here
        assert status("rightkey2") == 429  # a guess that is right tells nothing
        assert served.http.get("/v1/models").status_code == 401


def test_guesses_are_forgiven_with_time():
    now, tom = [0.0], Holder("tom", "1")
    guesses = Guesses(lambda: now[0])
    for _ in range(30):
        guesses.check("a", "x")
        guesses.note("a", None)
    with pytest.raises(ApiError):
        guesses.check("a", "1")
    guesses.check("b", "x")
    now[0] = 2.1
    guesses.check("a", "1")
    guesses.note("a", tom)
    guesses.note("a", None)
    guesses.check("a", "1")


def test_a_key_that_asks_for_much_keeps_no_other_from_its_turn(key_file):
    """Not from a place in the queue, nor from a slot while its own run."""
    keys = key_file("alicesecret1 alice\nbobsecret22 bob\n")
    model = ModelSpec(name="ember", path="ember", preload=True, threads=1, parallel=2)
    with serving(model, settings=Settings(keys=keys, max_queue=6)) as served, contextlib.ExitStack() as stack:
        held = [stack.enter_context(ask_raw(served, "bobsecret22")) for _ in range(8)]

        def refused() -> int:
            ready = select.select(held, [], [], 0)[0]
            return sum(sock.recv(12, socket.MSG_PEEK) == b"HTTP/1.1 503" for sock in ready)

        wait_until(lambda: refused() == 4)
        scheduler = served.ember.model._scheduler
        wait_until(lambda: len(scheduler.running()) == 2)
        body = {"model": "ember", "prompt": "x", "max_tokens": 3, "temperature": 0}
        answer = served.http.post("/v1/completions", json=body, headers={"x-api-key": "alicesecret1"})
        assert answer.json()["usage"]["completion_tokens"] == 3
        assert served.ember.queued == 4  # bob's, none of which has ended


def ask_raw(served, key: str) -> socket.socket:
    """A request for a long text, on a connection of its own, whose answer is left to read."""
    body = json.dumps(ENDLESS).encode()
    sock = socket.create_connection(("127.0.0.1", port_of(served)), timeout=30)
    head = f"POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Api-Key: {key}\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    sock.sendall(head.encode() + body)
    return sock


def test_an_open_server_says_that_it_is_open(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr("akunu.server.run.serve", lambda *_: None)
    monkeypatch.setattr("akunu.server.preloading.Preload.begin", lambda _: None)
    keys = tmp_path / "keys"
    keys.write_text("secretkey1\n")
    main(["serve", "--host", "0.0.0.0", "--port", "0"])
    assert "open to everybody" in capsys.readouterr().err
    for options in (["--host", "0.0.0.0", "--api-key-file", str(keys)], []):
        main(["serve", "--port", "0", *options])
        assert "open to everybody" not in capsys.readouterr().err

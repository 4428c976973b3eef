"""Clients that go away, that read slowly, and that come in numbers."""

from __future__ import annotations

import json
import os
import random
import socket
import threading
import time

import httpx
import pytest

from akunu.server import Settings

from .conftest import serving, wait_until

STORY = {"model": "ember", "prompt": "Once upon a time", "max_tokens": 2000, "temperature": 1, "stop": None}
ENDLESS = {**STORY, "logit_bias": {"0": -100, "1": -100, "2": -100}, "stream": True}


def post_raw(port: int, path: str, fields: dict) -> socket.socket:
    """A request on a connection of its own, whose answer is left to read."""
    body = json.dumps(fields).encode()
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)  # what nobody reads soon fills it
    sock.connect(("127.0.0.1", port))
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    sock.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    return sock


def port_of(served) -> int:
    return httpx.URL(served.url).port


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_goes_away_frees_its_slot(quiet, stream):
    sock = post_raw(port_of(quiet), "/v1/completions", {**STORY, "n": 4, "stream": stream})
    wait_until(lambda: quiet.ember.queued == 4)
    sock.close()
    wait_until(lambda: quiet.ember.queued == 0)


def test_a_client_that_reads_nothing_does_not_hold_up_others():
    with serving(send_buffer=4096) as served:
        # More of them than slots, and longer than what buffers hold: others wait until a text is made.
        longer = {**ENDLESS, "max_tokens": 500}
        stuck = [post_raw(port_of(served), "/v1/completions", longer) for _ in range(12)]
        wait_until(lambda: served.ember.queued == 12)
        answers = [served.chat("What is 2+2?", max_tokens=16) for _ in range(4)]
        assert {answer.status_code for answer in answers} == {200}
        for sock in stuck:
            sock.close()
        wait_until(lambda: served.ember.queued == 0)


def test_a_client_that_reads_nothing_is_given_up():
    with serving(send_buffer=4096, settings=Settings(write_seconds=0.2)) as served:
        stuck = [post_raw(port_of(served), "/v1/completions", {**ENDLESS, "logprobs": 5}) for _ in range(2)]
        wait_until(lambda: served.ember.queued == 2)
        wait_until(lambda: served.ember.queued == 0)
        for sock in stuck:
            read = b""
            while data := sock.recv(1 << 16):
                read += data
            assert b"data: {" in read and not read.endswith(b"0\r\n\r\n")
            sock.close()


def test_many_streams_at_once_have_the_texts_they_have_alone(quiet):
    def ask(n: int) -> str:
        with httpx.Client(timeout=60, trust_env=False, verify=False) as http:
            fields = {**STORY, "max_tokens": 12, "seed": n, "stream": True}
            with http.stream("POST", f"{quiet.url}/v1/completions", json=fields) as answer:
                events = [line[6:] for line in answer.iter_lines() if line.startswith("data: {")]
        return "".join(json.loads(event)["choices"][0]["text"] for event in events)

    found: dict[int, str] = {}
    threads = [threading.Thread(target=lambda n=n: found.__setitem__(n, ask(n))) for n in range(64)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    model = quiet.ember.model
    for n in range(0, 64, 9):
        assert found[n] == model.generate("Once upon a time", max_tokens=12, temperature=1, seed=n).text
    assert len(found) == 64


def test_a_full_queue_is_a_503_that_says_when_to_come_again():
    with serving(settings=Settings(max_queue=0)) as served:
        stuck = [post_raw(port_of(served), "/v1/completions", ENDLESS) for _ in range(8)]
        wait_until(lambda: served.ember.queued == 8)
        answer = served.chat()
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "2")
        assert answer.json()["error"]["code"] == "queue_full"
        for sock in stuck:
            sock.close()
        wait_until(lambda: served.ember.queued == 0)
        assert served.chat(max_tokens=1).status_code == 200


def test_a_request_that_takes_too_long_is_a_504_or_an_event():
    with serving(settings=Settings(max_seconds=0.2)) as served:
        slow = {**STORY, "n": 8, "logit_bias": {"2": -100}}
        answer = served.post("/v1/completions", **slow)
        assert answer.status_code == 504
        assert answer.json()["error"]["code"] == "timeout"
        streamed = served.post("/v1/completions", **slow, stream=True)
        assert streamed.status_code == 200
        assert '"code":"timeout"' in streamed.text.splitlines()[-2]
        wait_until(lambda: served.ember.queued == 0)


def test_a_body_that_does_not_come_is_not_waited_for_for_ever():
    with (
        serving(settings=Settings(max_seconds=0.3)) as served,
        socket.create_connection(("127.0.0.1", port_of(served)), timeout=30) as sock,
    ):
        head = "POST /v1/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        sock.sendall(f"{head}content-length: 100\r\n\r\n{{".encode())
        begin = sock.recv(4096)
        assert begin.startswith(b"HTTP/1.1 408")
        while b"did not arrive within 0.3 s" not in begin:
            begin += sock.recv(4096)


def test_a_stream_with_nothing_to_say_says_that_it_is_alive():
    with serving(settings=Settings(heartbeat_seconds=0.02)) as served:
        with served.ember.model._scheduler.exclusive():  # the engine is busy
            sock = post_raw(port_of(served), "/v1/completions", {**STORY, "max_tokens": 1, "stream": True})
            begin = b""
            while b"\n:\n\n" not in begin.replace(b"\r", b""):
                begin += sock.recv(4096)
        assert b"200 OK" in begin
        rest = b""
        while b"[DONE]" not in rest:
            rest += sock.recv(4096)
        sock.close()


def test_clients_that_leave_at_random_leave_nothing_behind():
    soak(seconds=1.5)


@pytest.mark.long
def test_a_soak_leaves_nothing_behind():
    soak(seconds=25)


def soak(seconds: float) -> None:
    def files() -> int:
        return len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0

    with serving() as served:
        served.chat(max_tokens=2)
        port, threads, fds = port_of(served), threading.active_count(), files()
        deadline = time.monotonic() + seconds

        def client(seed: int) -> None:
            random_ = random.Random(seed)
            while time.monotonic() < deadline:
                fields = {
                    **STORY, "max_tokens": random_.choice([1, 5, 60]), "stream": random_.random() < 0.7,
                    "n": random_.choice([1, 1, 3]), "prompt": "word " * random_.choice([1, 30, 500]),
                }  # fmt: skip
                sock = post_raw(port, "/v1/completions", fields)
                sock.settimeout(10)
                for _ in range(random_.choice([0, 1, 2, 50])):
                    if not sock.recv(2048) or random_.random() < 0.3:
                        break
                sock.close()

        clients = [threading.Thread(target=client, args=(n,)) for n in range(12)]
        for each in clients:
            each.start()
        for each in clients:
            each.join(60)
        wait_until(lambda: served.ember.queued == 0 and served.ember.users == 0)
        assert served.ember.model._scheduler.running() == []
        assert served.chat("What is 2+2?").status_code == 200
        # asyncio's own pool grows up to its size, and streams have some threads to spare
        wait_until(lambda: threading.active_count() <= threads + 11)
        wait_until(lambda: files() <= fds + 1)
        assert served.http.get("/health").status_code == 200

"""Connections that are only held: how many there may be, and how long each may say or take nothing."""

from __future__ import annotations

import asyncio.selector_events
import contextlib
import json
import logging
import os
import resource
import socket
import subprocess
import sys

import httpx
import pytest

from akunu.server import Settings
from akunu.server.connections import Sparingly
from akunu.server.run import most_connections, raise_descriptors

from .conftest import serving, wait_until
from .test_cancel import ENDLESS, port_of

HALF = b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nX-A: "


@contextlib.contextmanager
def held(port: int, n: int, data: bytes = HALF):
    """Connections that have sent something, and say no more."""
    with contextlib.ExitStack() as stack:
        found = []
        for _ in range(n):
            found.append(stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=20)))
            found[-1].sendall(data)
        yield found


def read_all(sock: socket.socket) -> bytes:
    return b"".join(iter(lambda: sock.recv(4096), b""))


def connections_of(served) -> int:
    return served.config.limits.counts.total()


def test_a_body_does_not_wait_for_the_acknowledgement_of_its_head():
    with serving() as served, held(port_of(served), 1, b"") as found:
        wait_until(lambda: connections_of(served) == 1)
        [connection] = served.config.limits.idle._found[None]
        sock = connection.transport.get_extra_info("socket")
        assert sock.getpeername() == found[0].getsockname()
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


@pytest.mark.parametrize(
    "data",
    [b"", HALF, b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nGET /hea"],
    ids=["nothing", "half a head", "half of the second head"],
)
def test_a_head_that_does_not_end_ends_the_connection(data):
    with serving(settings=Settings(head_seconds=0.2)) as served, held(port_of(served), 3, data) as found:
        for one in found:
            read_all(one)
        wait_until(lambda: connections_of(served) == 0)


def test_a_body_that_is_sent_on_after_the_answer_holds_no_connection():
    head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 99999999\r\n\r\n"
    with serving(settings=Settings(head_seconds=0.2)) as served, held(port_of(served), 1, head) as (one,):
        assert one.recv(4096).startswith(b"HTTP/1.1 413")
        with contextlib.suppress(OSError):
            for _ in range(2000):
                one.sendall(b"x")
                one.settimeout(0.01)
                with contextlib.suppress(TimeoutError):
                    one.recv(4096)
                if not connections_of(served):
                    break
        wait_until(lambda: connections_of(served) == 0)


def test_those_who_only_hold_connections_keep_nobody_out():
    settings = Settings(max_connections=8, head_seconds=60)
    with serving(settings=settings) as served, held(port_of(served), 40):
        assert httpx.get(f"{served.url}/health", trust_env=False).status_code == 200
        wait_until(lambda: connections_of(served) <= 4)  # half are one address's


def test_a_connection_too_many_does_not_look_at_all_others(monkeypatch):
    """It did: a client that makes a thousand of them held up everybody's requests."""
    looks = 0
    is_closing = asyncio.selector_events._SelectorTransport.is_closing

    def looked(transport: asyncio.Transport) -> bool:
        nonlocal looks
        looks += 1
        return is_closing(transport)

    with serving(settings=Settings(max_connections=80, head_seconds=60)) as served:
        monkeypatch.setattr(asyncio.selector_events._SelectorTransport, "is_closing", looked)
        with held(port_of(served), 240):
            wait_until(lambda: connections_of(served) <= 40)
    assert looks < 240 * 8


def test_requests_are_not_ended_for_new_connections():
    with serving(settings=Settings(max_connections=4)) as few:
        body = json.dumps(ENDLESS).encode()
        head = b"POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        request = head + b"Content-Length: %d\r\n\r\n" % len(body) + body
        with held(port_of(few), 2, request) as found:
            assert all(one.recv(12) == b"HTTP/1.1 200" for one in found)
            with socket.create_connection(("127.0.0.1", port_of(few)), timeout=20) as third:
                answer = read_all(third)
            assert answer.startswith(b"HTTP/1.1 503")
            head, _, text = answer.partition(b"\r\n\r\n")
            assert f"content-length: {len(text)}".encode() in head
            assert all(len(one.recv(1 << 16)) > 0 for one in found)


def test_connections_of_a_proxy_that_is_trusted_are_those_of_many():
    settings = Settings(max_connections=8, head_seconds=60, trusted_proxies=("127.0.0.0/8",))
    with serving(settings=settings) as served, held(port_of(served), 20):
        wait_until(lambda: connections_of(served) == 8)


def test_who_takes_nothing_of_an_answer_is_left():
    settings = Settings(write_seconds=0.3)
    ask = b"GET /openapi.json HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    with serving(settings=settings, send_buffer=4096) as served:
        one = socket.socket()
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        with one:
            one.connect(("127.0.0.1", port_of(served)))
            one.sendall(ask)
            wait_until(lambda: connections_of(served) == 1)
            wait_until(lambda: connections_of(served) == 0)


def test_there_are_no_more_connections_than_descriptors_for_them(monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, 256))
    assert most_connections(Settings()) == 96
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert most_connections(Settings(max_connections=7)) == 7


def test_descriptors_are_asked_for(monkeypatch):
    asked = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, 4096))
    monkeypatch.setattr(resource, "setrlimit", lambda _, pair: asked.append(pair))
    raise_descriptors()
    assert asked == [(4096, 4096)]


def test_what_clients_cause_is_logged_once_in_a_while(caplog):
    log = logging.getLogger("akunu.test.sparingly")
    filter_ = Sparingly(seconds=1000)
    log.addFilter(filter_)
    for _ in range(50):
        log.warning("a connection is refused")
        log.info("a request")
    assert caplog.messages.count("a connection is refused") <= 1
    filter_._last.clear()
    log.warning("a connection is refused")
    assert caplog.messages[-1] == "a connection is refused (49 more like this)"
    log.removeFilter(filter_)


def test_a_process_without_descriptors_refuses_and_says_so_once():
    """As where something else of it has them all; asyncio logs each attempt with a traceback."""
    code = (
        "import os, resource, sys\n"
        "import akunu.server.run as run\n"
        "run.most_connections = lambda settings: 1000\n"
        "from akunu.cli import main\n"
        "sys.exit(main(sys.argv[1:]))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, "serve", "--port", "0", "-t", "1"],
        stderr=subprocess.PIPE, text=True, env={**os.environ, "NO_COLOR": "1"},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)),
    )  # fmt: skip
    try:
        while "[ember at " not in (line := process.stderr.readline()):
            assert process.poll() is None
        url = line.split()[-1].rstrip("]\n")
        with held(int(url.rpartition(":")[2]), 120):
            while "no file descriptor left" not in process.stderr.readline():
                assert process.poll() is None
        wait_until(lambda: _healthy(url))
        process.terminate()
        rest = process.stderr.read()
    finally:
        process.kill()
        process.stderr.close()
        process.wait()
    assert "Traceback" not in rest
    assert len(rest) < 5000


def _healthy(url: str) -> bool:
    with contextlib.suppress(httpx.HTTPError):
        return httpx.get(f"{url}/health", timeout=5, trust_env=False).status_code == 200
    return False

"""Requests as bytes: what other parsers read otherwise, and what clients send that few servers expect."""

from __future__ import annotations

import re
import socket

import pytest

from .test_cancel import port_of

BODY = b'{"model":"nobody","prompt":"hi","max_tokens":1}'
LENGTH = b"Content-Length: %d" % len(BODY)
CHUNKED = b"Transfer-Encoding: chunked"
CHUNKS = b"%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY)
#: What Java's own client sends with the first request of a connection.
UPGRADE = (b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c", b"HTTP2-Settings: AAEAAEAAAAIAAAAA")


def post(*lines: bytes, body: bytes = BODY) -> bytes:
    head = (b"POST /v1/completions HTTP/1.1", b"Host: 127.0.0.1", b"Content-Type: application/json", *lines)
    return b"\r\n".join(head) + b"\r\n\r\n" + body


def answers(served, data: bytes, expected: int) -> tuple[list[int], bool]:
    """The statuses of the answers, and whether the connection is closed after them."""
    with socket.create_connection(("127.0.0.1", port_of(served)), timeout=20) as client:
        client.sendall(data)
        found = b""
        while (piece := client.recv(1 << 16)) or not found:
            found += piece
            statuses = [int(code) for code in re.findall(rb"HTTP/1\.1 (\d{3}) ", found)]
            if len(statuses) >= expected and found.endswith((b"}", b"0\r\n\r\n")):
                break
        client.settimeout(0.1)
        try:
            return statuses, client.recv(1) == b""
        except TimeoutError:
            return statuses, False
        except ConnectionError:
            return statuses, True


def test_who_offers_http_2_is_answered_in_http_1_with_all_of_the_body(served):
    """The model's name is in the body: without it the answer would be a 400."""
    assert answers(served, post(LENGTH, *UPGRADE) * 2, 2) == ([404, 404], False)


@pytest.mark.parametrize(
    "lines, body",
    [
        ((LENGTH, CHUNKED), CHUNKS),
        ((CHUNKED, LENGTH), CHUNKS),
        ((LENGTH, CHUNKED), BODY),
        ((LENGTH, b"Content-Length: 3"), BODY),
        ((b"Content-Length: -1",), b""),
        ((b"Content-Length: 99999999999999999999999",), b""),
        ((b"Content-Length : 4",), b"null"),
        ((b"Transfer-Encoding: gzip, chunked",), CHUNKS),
        ((b"Transfer-Encoding: xchunked",), CHUNKS),
        ((b"Transfer-Encoding: identity", LENGTH), BODY),
        ((CHUNKED,), b"zz\r\n"),
        ((LENGTH, b"X-A: a\0b"), BODY),
    ],
    ids=lambda value: None if isinstance(value, bytes) else b" ".join(value)[:40].decode(),
)
def test_a_body_whose_end_two_may_see_apart_is_refused_and_the_connection_ends(served, lines, body):
    statuses, closed = answers(served, post(*lines, body=body), 1)
    assert statuses[:1] == [400]
    assert closed


def test_a_body_in_chunks_may_have_extensions_and_more_fields_behind_it(served):
    chunks = CHUNKS.replace(b"\r\n", b";a=b\r\n", 1)[:-2] + b"X-A: b\r\n\r\n"
    assert answers(served, post(CHUNKED, body=chunks) * 2, 2) == ([404, 404], False)

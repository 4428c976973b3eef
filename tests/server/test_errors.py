"""What a client is told when something is wrong: the field's name, in the shape of its API, never a 500."""

from __future__ import annotations

import json
import socket

import pytest

from akunu.base.errors import AkunuError
from akunu.server.listening import listen

PICTURE = {"type": "image_url", "image_url": {"url": "data:,"}}
JSON = {"content-type": "application/json"}
USER = {"role": "user", "content": "Hello!"}


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"foo": 1}, "foo"),
        ({"messages": [{**USER, "foo": 1}]}, "messages[0].foo"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "usr", "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "user"}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": [PICTURE]}]}, "messages[0].content[0]"),
        ({"temperature": -1}, "temperature"),
        ({"temperature": "hot"}, "temperature"),
        ({"top_p": -0.5}, "top_p"),
        ({"top_logprobs": 3}, "top_logprobs"),
        ({"top_logprobs": 99, "logprobs": True}, "top_logprobs"),
        ({"seed": -3}, "seed"),
        ({"n": 0}, "n"),
        ({"n": 1000}, "n"),
        ({"stop": [1]}, "stop[0]"),
        ({"logit_bias": {"x": 1}}, "logit_bias"),
        ({"logit_bias": {"99999999": 1}}, "logit_bias"),
        ({"max_tokens": 1.5}, "max_tokens"),
        ({"max_tokens": 1, "max_completion_tokens": 2}, "max_tokens"),
        ({"verbosity": "loud"}, "verbosity"),
        ({"store": 0}, "store"),
        ({"modalities": ["audio"]}, "modalities"),
        ({"functions": []}, "functions"),
        ({"tools": [{"type": "web_search"}]}, "tools[0]"),
        ({"tools": [{"type": "function", "function": {"nam": "x"}}]}, "tools[0]"),
        ({"tool_choice": {"type": "function", "function": {"name": "no"}}}, "tool_choice"),
        ({"tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": []}}, "tool_choice.mode"),
        ({"response_format": {"type": "json_schema"}}, "response_format.json_schema"),
        ({"response_format": {"type": "yaml"}}, "response_format.type"),
        ({"stream_options": {"include_obfuscation": True}}, "stream_options.include_obfuscation"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("stream", [False, True])
def test_what_is_not_supported_is_a_400_that_names_the_field(quiet, fields, param, stream):
    answer = quiet.chat(**{**fields, "stream": stream})
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert error["type"] == "invalid_request_error"
    assert error["param"] == param
    assert param.rsplit(".", 1)[-1] in error["message"]


@pytest.mark.parametrize("kind", ["text/plain", "application/json"])
def test_a_body_that_is_no_http_is_a_400_and_no_fault_of_the_server(served, caplog, kind):
    head = f"POST /v1/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: {kind}\r\n"
    with socket.create_connection(("127.0.0.1", served.http.base_url.port), 20) as client:
        client.sendall(head.encode() + b"transfer-encoding: chunked\r\n\r\nno length\r\n")
        answer = b"".join(iter(lambda: client.recv(4096), b""))
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert served.http.get("/health").status_code == 200
    assert not [record for record in caplog.records if record.name == "akunu.server" and record.levelno > 20]


def test_fields_that_are_null_are_as_if_they_were_not_there(served):
    answer = served.chat(store=None, audio=None, tools=None, stop=None, max_tokens=1, n=None, functions=None)
    assert answer.status_code == 200


def test_labels_are_accepted(served):
    answer = served.chat(
        user="me", metadata={"a": "b"}, prompt_cache_key="k", safety_identifier="s", max_tokens=1
    )
    assert answer.status_code == 200


@pytest.mark.parametrize(
    "body", [b"", b"{", b"\xff", b"[]", b"1", b'"x"', b"null", b"[" * 100_000, b'{"model":"ember"}']
)
def test_a_body_that_is_no_request_is_a_400(served, body):
    answer = served.http.post(
        "/v1/chat/completions", content=body, headers={"content-type": "application/json"}
    )
    assert answer.status_code == 400
    assert answer.json()["error"]["message"]


def test_an_empty_body_and_a_compressed_one_are_named(served):
    def told(body, **headers):
        answer = served.http.post("/v1/chat/completions", content=body, headers={**JSON, **headers})
        return answer.status_code, answer.json()["error"]["message"]

    assert told(b"") == told(b" \n") == (400, "the body is empty, expected a JSON object")
    assert told(b"\x1f\x8b", **{"content-encoding": "gzip"}) == (
        415,
        "content-encoding: found 'gzip', expected a body as it is",
    )
    assert told(b"{}", **{"content-encoding": "identity"})[0] == 400


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        ("/v1/chat/completions", {"model": "ember"}, "messages"),
        ("/v1/chat/completions", {"model": "ember", "messages": [{}]}, "messages[0].role"),
        ("/v1/completions", {"model": "ember"}, "prompt"),
        (
            "/v1/chat/completions",
            {"model": "ember", "messages": [{**USER, "content": [{"type": "text"}]}]},
            "messages[0].content[0].text",
        ),
        ("/v1/responses", {"model": "ember"}, "input"),
        (
            "/v1/responses",
            {"model": "ember", "input": [{**USER, "content": [{"type": "refusal"}]}]},
            "input[0].content[0].refusal",
        ),
        ("/v1/embeddings", {"model": "ember"}, "input"),
        ("/admin/load", {}, "model"),
    ],
)
def test_a_field_that_is_missing_is_named(served, path, body, param):
    error = served.post(path, **body).json()["error"]
    assert (error["param"], error["code"]) == (param, "missing_field")
    assert error["message"] == f"{param}: it is missing"


def test_a_field_that_is_missing_is_named_in_anthropics_shape(served):
    answer = served.post("/v1/messages", model="ember", messages=[USER])
    assert (answer.status_code, answer.json()["error"]["message"]) == (400, "max_tokens: it is missing")


def test_a_page_cannot_post_what_needs_no_permission(served):
    for media in ("text/plain", "application/x-www-form-urlencoded", ""):
        for page in ({"origin": served.url}, {"sec-fetch-site": "same-site"}):
            headers = {"content-type": media, **page}
            answer = served.http.post("/v1/chat/completions", content="{}", headers=headers)
            assert answer.status_code == 415, headers


@pytest.mark.parametrize("path", ["/api/show", "/v1/chat/completions"])
def test_a_program_need_not_say_that_its_body_is_json(served, path):
    body = {"model": "ember", "messages": [USER], "max_tokens": 1} if "chat" in path else {"model": "ember"}
    for media in ("text/plain", "application/x-www-form-urlencoded", ""):
        answer = served.http.post(path, content=json.dumps(body), headers={"content-type": media})
        assert answer.status_code == 200, answer.text
    assert served.http.post(path, content=json.dumps(body)).status_code == 200
    assert served.http.post(path, content="{}", headers={"content-type": "text/xml"}).status_code == 415


def test_unknown_paths_and_methods_have_the_shape_of_errors(served):
    assert served.http.get("/v1/nothing").json()["error"]["message"] == "no such path: /v1/nothing"
    for asked, meant in (("/embeddings", "/v1/embeddings"), ("/v1/v1/messages", "/v1/messages")):
        assert f"did you mean {meant}?" in served.http.post(asked, json={}).json()["error"]["message"]
    answer = served.http.get("/v1/chat/completions")
    assert (answer.status_code, answer.json()["error"]["type"]) == (405, "invalid_request_error")
    assert answer.headers["allow"] == "POST"
    assert answer.json()["error"]["message"] == "GET: not for /v1/chat/completions, which takes POST"


def test_a_request_id_comes_back_and_a_bad_one_is_replaced(served):
    good = served.http.get("/v1/models", headers={"x-request-id": "mine-1"})
    bad = served.http.get("/v1/models", headers={"x-request-id": "a b\tc"})
    assert good.headers["x-request-id"] == "mine-1"
    assert len(bad.headers["x-request-id"]) == 32
    assert served.http.get("/v1/nothing").headers["x-request-id"]


def test_tools_of_foreign_types_beside_usable_ones_are_left_out_with_a_warning(served):
    tool = {
        "type": "function",
        "function": {"name": "look", "parameters": {"type": "object", "properties": {}}},
    }
    answer = served.chat(tools=[{"type": "web_search", "depth": 3}, tool], max_tokens=1)
    assert answer.status_code == 200
    assert answer.json()["warnings"] == ["tools[0]: the type 'web_search' is not supported; it was left out"]


def test_a_port_that_is_taken_is_named_once_with_the_remedy():
    with listen("127.0.0.1", 0) as sock:
        port = sock.getsockname()[1]
        with pytest.raises(AkunuError) as caught:
            listen("127.0.0.1", port)
    assert str(caught.value) == (
        f"cannot listen on 127.0.0.1, port {port}: address already in use; "
        "--port takes another, or 0 for one that is free"
    )


def test_an_unknown_model_is_told_in_the_shape_of_the_client_that_asks(served):
    path = "/v1/models/nobody"
    assert served.http.get(path).json()["error"]["code"] == "model_not_found"
    told = served.http.get(path, headers={"anthropic-version": "2023-06-01"})
    assert (told.status_code, told.json()["type"]) == (404, "error")
    assert told.json()["error"]["type"] == "not_found_error"

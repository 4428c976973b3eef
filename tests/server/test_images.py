"""Images in requests: every API's form of them, and what a server reads where a URL is given."""

from __future__ import annotations

import base64
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from akunu.base.errors import ImageError
from akunu.chat.images import images_in
from akunu.server import fetching
from akunu.server.anthropic_fields import MessagesRequest
from akunu.server.conversations import Turn
from akunu.server.errors import ApiError
from akunu.server.fetching import fetch
from akunu.server.images import settled
from akunu.server.ollama_fields import GenerateRequest, OllamaChatRequest
from akunu.server.openai_chat import ChatRequest
from akunu.server.openai_responses_fields import ResponsesRequest
from akunu.server.settings import Settings

URL = "data:image/png;base64,eA=="
SEES, BLIND = SimpleNamespace(reads_images=True), SimpleNamespace(reads_images=False)


def turn_of(kind: type[Any], **fields: Any) -> Turn:
    request = msgspec.convert({"model": "m", **fields}, kind)
    found = request.turn([]) if kind is ResponsesRequest else request.turn()
    return found[0] if isinstance(found, tuple) else found


def chat(*parts: Any, role: str = "user") -> Turn:
    more = {"tool_call_id": "c"} if role == "tool" else {}
    return turn_of(ChatRequest, messages=[{"role": role, "content": list(parts), **more}])


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


PART = {"type": "image_url", "image_url": {"url": URL, "detail": "auto"}}
ANTHROPIC = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "eA=="}}
USERS = {
    "chat": lambda: chat(text("a"), PART, text("b")),
    "responses": lambda: turn_of(
        ResponsesRequest,
        input=[
            {
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "a"},
                    {"type": "input_image", "image_url": URL},
                    {"type": "input_text", "text": "b"},
                ],
            }
        ],
    ),
    "messages": lambda: turn_of(
        MessagesRequest,
        max_tokens=1,
        messages=[{"role": "user", "content": [text("a"), ANTHROPIC, text("b")]}],
    ),
}
RESULTS = {
    "chat": lambda: chat(text("a"), PART, role="tool"),
    "responses": lambda: turn_of(
        ResponsesRequest,
        input=[
            {
                "type": "function_call_output",
                "call_id": "c",
                "output": [{"type": "input_text", "text": "a"}, {"type": "input_image", "image_url": URL}],
            }
        ],
    ),
    "messages": lambda: turn_of(
        MessagesRequest,
        max_tokens=1,
        messages=[
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "c", "content": [text("a"), ANTHROPIC]}],
            }
        ],
    ),
}


@pytest.mark.parametrize("api", USERS)
def test_a_user_shows_an_image_in_every_api(api: str) -> None:
    turn = USERS[api]()
    [message] = settled(turn.messages, SEES, Settings(), turn.warnings)
    kinds = [part["type"] for part in message["content"]]
    assert kinds == ["text", "image", "text"]
    assert message["content"][1]["image"] == URL
    assert [message["content"][n]["text"] for n in (0, 2)] == ["a", "b"]
    assert turn.warnings == []


@pytest.mark.parametrize("api", USERS)
def test_a_model_of_text_refuses_a_users_image_by_its_place(api: str) -> None:
    turn = USERS[api]()
    with pytest.raises(
        ApiError, match=r"^(messages|input)\[0\]\.content\[1\]: found an image; this model reads text only"
    ) as error:
        settled(turn.messages, BLIND, Settings(), turn.warnings)
    assert (error.value.status, error.value.code) == (400, "unsupported_value")
    assert error.value.param.endswith("[0].content[1]")


@pytest.mark.parametrize("api", RESULTS)
def test_a_tools_image_is_shown_or_has_a_text_in_its_place(api: str) -> None:
    turn = RESULTS[api]()
    [message] = settled(turn.messages, SEES, Settings(), turn.warnings)
    assert message["role"] == "tool"
    assert message["content"][-1]["image"] == URL
    assert turn.warnings == []
    [message] = settled(turn.messages, BLIND, Settings(), turn.warnings)
    assert message["content"].replace("\n", "") == "a[image: this model reads text only]"
    assert "the image was left out" in turn.warnings[0]


def test_ollamas_images_come_before_the_text() -> None:
    said = {"role": "user", "content": "a", "images": ["eA==", "eQ=="]}
    turn = turn_of(OllamaChatRequest, messages=[said])
    [message] = settled(turn.messages, SEES, Settings(), [])
    assert [part.get("image") or part["text"] for part in message["content"]] == [
        "data:;base64,eA==", "data:;base64,eQ==", "a",
    ]  # fmt: skip
    turn = turn_of(GenerateRequest, prompt="a", images=["eA=="])
    assert settled(turn.messages, SEES, Settings(), [])[0]["content"][0]["type"] == "image"
    with pytest.raises(ApiError, match=r"^messages\[0\]\.images\[0\]: expected an image in Base64"):
        turn_of(OllamaChatRequest, messages=[{"role": "user", "images": [7]}])
    with pytest.raises(ApiError, match=r"^images\[0\]: found an image; this model reads text only"):
        settled(turn.messages, BLIND, Settings(), [])


@pytest.mark.parametrize("role", ["system", "assistant", "developer"])
def test_only_users_and_tools_show_images(role: str) -> None:
    with pytest.raises(ApiError, match=r"messages\[0\]\.content\[0\]: an image is not supported here"):
        chat(PART, role=role)


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_url"},
        {"type": "image_url", "image_url": {}},
        {"type": "image_url", "image_url": 5},
        {"type": "image_url", "image_url": ""},
    ],
)
def test_a_part_without_an_image_is_refused(part: dict[str, Any]) -> None:
    with pytest.raises(ApiError, match=r"^messages\[0\]\.content\[0\]: expected the URL of an image"):
        chat(part)


@pytest.mark.parametrize("detail", ["low", "high", "auto", "original", None])
def test_how_closely_to_look_is_handed_on(detail: str | None) -> None:
    content = [{"type": "input_image", "image_url": URL, "detail": detail}]
    turns = [
        chat({"type": "image_url", "image_url": {"url": URL, "detail": detail}}),
        turn_of(ResponsesRequest, input=[{"role": "user", "content": content}]),
    ]
    for turn in turns:
        [message] = settled(turn.messages, SEES, Settings(), [])
        [given] = images_in([message])
        assert given.low == (detail == "low")


def test_a_strange_detail_is_refused() -> None:
    with pytest.raises(
        ApiError, match=r"^messages\[0\]\.content\[0\]: detail: found 'fine', expected one of"
    ):
        chat({"type": "image_url", "image_url": {"url": URL, "detail": "fine"}})


def read(url: str, **settings: Any) -> Any:
    turn = chat({"type": "image_url", "image_url": {"url": url}})
    [message] = settled(turn.messages, SEES, Settings(**settings), [])
    return message["content"][0]["image"]


def test_files_are_read_from_allowed_folders_alone(tmp_path: Path) -> None:
    folder, secret = tmp_path / "pictures", tmp_path / "secret.png"
    folder.mkdir()
    secret.write_bytes(b"secret")
    (folder / "a b.png").write_bytes(b"picture")
    (folder / "link.png").symlink_to(secret)
    allowed = {"image_folders": (folder,)}
    assert read((folder / "a b.png").as_uri(), **allowed) == b"picture"
    with pytest.raises(ApiError, match="reads no files"):
        read((folder / "a b.png").as_uri())
    for url in (
        secret.as_uri(), (folder / "link.png").as_uri(), folder.as_uri() + "/../secret.png",
        folder.as_uri() + "/%2e%2e/secret.png", f"file://elsewhere{folder}/a b.png",
        (folder / "none.png").as_uri(), "file:///etc/passwd", "file:",
    ):  # fmt: skip
        with pytest.raises(
            ApiError, match="no file in a folder that this server's operator has allowed"
        ) as error:
            read(url, **allowed)
        assert "secret" not in str(error.value)
    for url in ("/etc/passwd", "picture.png", "ftp://example.org/a.png", "javascript:1"):
        with pytest.raises(ApiError, match="expected a URL"):
            read(url, **allowed)
    with pytest.raises(ApiError, match="fetches nothing"):
        read("https://example.org/a.png", **allowed)


class Site(BaseHTTPRequestHandler):
    """Serves a picture, and answers that go wrong."""

    def do_GET(self) -> None:
        self.server.asked.append((self.headers["Host"], self.path))  # type: ignore[attr-defined]
        place = {"/to-picture": "/picture", "/to-itself": "/to-itself"}.get(self.path)
        if self.path == "/to-elsewhere":
            place = "http://127.0.0.2:1/picture"
        if self.path == "/to-a-file":
            place = "file:///etc/passwd"
        if place:
            self.send_response(302)
            self.send_header("Location", place)
            self.end_headers()
        elif self.path == "/picture":
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"picture")
        elif self.path == "/large":
            self.send_response(200)
            self.send_header("Content-Length", str(1 << 40))
            self.end_headers()
        elif self.path == "/endless":
            self.send_response(200)
            self.end_headers()
            for _ in range(64):
                self.wfile.write(bytes(1 << 16))
        else:
            self.send_error(404)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def site() -> Iterator[ThreadingHTTPServer]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Site) as server:
        server.handle_error = lambda *_: None  # type: ignore[method-assign]
        server.asked = []  # type: ignore[attr-defined]
        thread = threading.Thread(target=lambda: server.serve_forever(0.01))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_an_allowed_host_is_fetched_from(site: ThreadingHTTPServer) -> None:
    host = f"127.0.0.1:{site.server_port}"
    assert fetch(f"http://{host}/picture", [host]) == b"picture"
    assert fetch(f"http://{host}/to-picture", ["example.org", host]) == b"picture"
    assert read(f"http://{host}/picture", image_hosts=(host,)) == b"picture"
    assert {name for name, _ in site.asked} == {host}  # type: ignore[attr-defined]


def test_redirections_lead_to_allowed_hosts_alone(site: ThreadingHTTPServer) -> None:
    host = f"127.0.0.1:{site.server_port}"
    with pytest.raises(ImageError, match=r"127\.0\.0\.2 is no host that"):
        fetch(f"http://{host}/to-elsewhere", [host])
    with pytest.raises(ImageError, match="expected http: or https:"):
        fetch(f"http://{host}/to-a-file", [host])
    with pytest.raises(ImageError, match="more than 3 redirections"):
        fetch(f"http://{host}/to-itself", [host])


def test_what_is_too_large_or_missing_is_refused(
    site: ThreadingHTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = f"127.0.0.1:{site.server_port}"
    with pytest.raises(ImageError, match="answers 404"):
        fetch(f"http://{host}/none", [host])
    with pytest.raises(ImageError, match=f"{1 << 40} bytes, more than"):
        fetch(f"http://{host}/large", [host])
    monkeypatch.setattr(fetching, "MOST_BYTES", 1 << 20)
    with pytest.raises(ImageError, match="more than 1048576 bytes"):
        fetch(f"http://{host}/endless", [host])
    monkeypatch.setattr(fetching, "MOST_SECONDS", 0.0)
    with pytest.raises(ImageError, match="takes too long"):
        fetch(f"http://{host}/picture", [host])


def test_any_public_host_is_no_house(site: ThreadingHTTPServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name may be public and mean this machine."""
    monkeypatch.setattr(fetching, "_PORTS", {"http": site.server_port, "https": 443})
    for name in ("127.0.0.1", "localhost", "[::1]", "0.0.0.0", "[::ffff:127.0.0.1]"):
        with pytest.raises(ImageError, match=r"no public address|cannot be asked"):
            fetch(f"http://{name}/picture", ["*"])
    assert site.asked == []  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("url", "hosts"),
    [
        ("http://example.org.evil.com/", ["example.org"]),
        ("http://evilexample.org/", ["*.example.org"]),
        ("http://example.org/", ["*.example.org"]),
        ("http://example.org:8080/", ["example.org"]),
        ("http://example.org/", ["example.org:8080"]),
        ("http://example.org@evil.com/", ["example.org"]),
        ("http://evil.com\\@example.org/", ["example.org"]),
        ("http://evil.com#@example.org/", ["example.org"]),
        ("http://user:word@example.org/", ["example.org"]),
        ("http://example.org:99999/", ["example.org"]),
        ("http://example.org:22/", ["*"]),
        ("http:///a.png", ["*"]),
        ("http://exam\nple.org/", ["example.org"]),
    ],
)
def test_addresses_that_are_not_allowed_ask_nobody(
    url: str, hosts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def resolve(*_: object, **__: object) -> None:
        raise AssertionError("asked")

    monkeypatch.setattr(fetching.socket, "getaddrinfo", resolve)
    with pytest.raises(ImageError):
        fetch(url, hosts)


@pytest.mark.parametrize(
    ("address", "anyone", "named"),
    [
        ("93.184.216.34", True, True),
        ("2606:2800:220:1::1", True, True),
        ("10.0.0.1", False, True),
        ("127.0.0.1", False, True),
        ("::1", False, True),
        ("fd00::1", False, True),
        ("169.254.169.254", False, False),
        ("fe80::1", False, False),
        ("::ffff:10.0.0.1", False, True),
        ("::ffff:169.254.169.254", False, False),
        ("64:ff9b::a9fe:a9fe", False, False),
        ("64:ff9b::5db8:d822", True, True),
        ("2002:7f00:1::", False, True),
        ("0.0.0.0", False, False),
        ("224.0.0.1", False, False),
        ("100.64.0.1", False, True),
    ],
)
def test_which_addresses_may_be_asked(address: str, anyone: bool, named: bool) -> None:
    found = ip_address(address)
    assert fetching._may_be_asked(found, named=False, literal=True) is anyone
    assert fetching._may_be_asked(found, named=True, literal=False) is named
    assert fetching._may_be_asked(found, named=True, literal=True)


def test_base64_of_a_request_is_not_decoded_for_a_model_of_text() -> None:
    large = "data:image/png;base64," + base64.b64encode(bytes(1 << 20)).decode()
    with pytest.raises(ApiError, match="reads text only"):
        settled(chat({"type": "image_url", "image_url": large}).messages, BLIND, Settings(), [])

"""Models from the Hugging Face Hub: their names, and fetching them, against a small Hub of our own."""

from __future__ import annotations

import contextlib
import hashlib
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from akunu.base.errors import InvalidArgumentError
from akunu.base.hub_name import HubName, parse

COMMIT = "0123456789abcdef0123456789abcdef01234567"
OTHER_COMMIT = COMMIT[::-1]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("me/m", HubName("me/m")),
        ("me/m:Q4_0", HubName("me/m", file="Q4_0")),
        ("me/m:latest", HubName("me/m")),
        ("me/m@v1.1:sub/m.gguf", HubName("me/m", "v1.1", "sub/m.gguf")),
        ("hf.co/me/m@v1.1", HubName("me/m", "v1.1")),
        ("me/m@refs/pr/3", HubName("me/m", "refs/pr/3")),
        ("https://huggingface.co/me/m", HubName("me/m")),
        ("https://hf.co/me/m/", HubName("me/m")),
        ("hf.co/me/m", HubName("me/m")),
        ("https://huggingface.co/me/m/tree/v1", HubName("me/m", "v1")),
        ("https://huggingface.co/me/m/tree/main/Q8_0", HubName("me/m", "main", "Q8_0")),
        (
            "https://huggingface.co/me/m/resolve/refs%2Fpr%2F3/m.gguf?download=true",
            HubName("me/m", "refs/pr/3", "m.gguf"),
        ),
        ("https://huggingface.co/me/m/raw/main/m.gguf", HubName("me/m", file="m.gguf")),
        ("hf.co/me/m/m-Q8_0.gguf", HubName("me/m", file="m-Q8_0.gguf")),
        ("hf://me/m", HubName("me/m")),
        ("hf://me/m/sub/m.gguf", HubName("me/m", file="sub/m.gguf")),
        ("huggingface://me/m:Q4_0", HubName("me/m", file="Q4_0")),
        ("models/x.gguf", None),
        ("x", None),
        ("../me/m", None),
    ],
)
def test_names_of_the_hub(name, expected):
    assert parse(name) == expected
    if expected:
        assert parse(str(expected)) == expected


@pytest.mark.parametrize(
    "name",
    [
        "https://example.com/me/m",
        "https://huggingface.co/datasets/me/m",
        "hf://datasets/me/m.gguf",
        "https://hf.co/me",
        "https://[x/me/m",
    ],
)
def test_an_address_that_is_no_model_says_so(name):
    with pytest.raises(InvalidArgumentError, match=r"not the address of a model on the Hugging Face Hub"):
        parse(name)


class Hub:
    """The part of the Hub's HTTP interface that a download uses, on this machine."""

    def __init__(self) -> None:
        self.files = {
            "tiny-Q8_0.gguf": b"GGUF" + bytes(range(256)) * 4000,
            "big-00001-of-00002.gguf": b"first part",
            "big-00002-of-00002.gguf": b"second part",
        }
        self.ranges: list[str | None] = []
        self.break_after: int | None = None
        self.status_of_list = self.status_of_files = 200
        self.token = ""
        self.commits = {"main": COMMIT, "v1.1": OTHER_COMMIT, COMMIT: COMMIT, OTHER_COMMIT: OTHER_COMMIT}
        self.pushed: str | None = None  # what `main` is once a file was read
        hub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None: ...

            def do_HEAD(self) -> None:
                self.answer(body=False)

            def do_GET(self) -> None:
                self.answer(body=True)

            def answer(self, body: bool) -> None:
                path = self.path.split("?")[0]
                if hub.token and self.headers.get("Authorization") != f"Bearer {hub.token}":
                    self.send(401, b"{}", body, {"X-Error-Code": "RepoNotFound"})
                    return
                if path.endswith("/revision/v9"):
                    self.send(404, b"{}", body, {"X-Error-Code": "RevisionNotFound"})
                    return
                listed = path in ("/api/models/me/tiny/revision/main", "/api/models/me/tiny/revision/v1.1")
                status = hub.status_of_list if listed else hub.status_of_files
                if status != 200:
                    self.send(status, b"{}", body)
                    return
                if listed:
                    siblings = [{"rfilename": n, "size": len(d)} for n, d in hub.files.items()]
                    self.send(
                        200,
                        json.dumps(
                            {
                                "id": "me/tiny",
                                "sha": hub.commits[path.rpartition("/")[2]],
                                "siblings": siblings,
                            }
                        ).encode(),
                        body,
                    )
                    return
                _, _, revision, name = [*path.removeprefix("/me/tiny").split("/", 3), "", "", "", ""][:4]
                if revision not in hub.commits or name not in hub.files:
                    self.send(404, b"{}", body, {"X-Error-Code": "RepoNotFound"})
                    return
                data = hub.files[name]
                headers = {
                    "X-Repo-Commit": hub.commits[revision],
                    "ETag": f'"{hashlib.sha256(data).hexdigest()}"',
                }
                wanted = self.headers.get("Range")
                status = 200
                if body:
                    hub.ranges.append(wanted)
                    hub.commits["main"] = hub.pushed or hub.commits["main"]
                if wanted and body:
                    begin = int(wanted.removeprefix("bytes=").split("-")[0])
                    headers["Content-Range"] = f"bytes {begin}-{len(data) - 1}/{len(data)}"
                    data, status = data[begin:], 206
                self.send(status, data, body, headers)

            def send(
                self, status: int, data: bytes, body: bool, headers: dict[str, str] | None = None
            ) -> None:
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                for name, value in (headers or {}).items():
                    self.send_header(name, value)
                self.end_headers()
                if body:
                    self.wfile.write(data[: hub.break_after])
                    if hub.break_after is not None and len(data) > hub.break_after:
                        hub.break_after = None
                        self.close_connection = True

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def hub():
    hub = Hub()
    yield hub
    hub.server.shutdown()
    hub.server.server_close()


FETCH = """
import json, os, sys, warnings
import httpx, numpy, tqdm.auto, yaml
from akunu.loading.finding import find_model

def fetch(job):
    seen = []
    def progress(*done):
        seen.append(done)
        exec(job["in_progress"])
    os.environ.update(job["environment"])
    exec(job["before"])
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            found = {"path": str(find_model(job["name"], progress=progress, **job["arguments"]))}
        except BaseException as error:
            found = {"error": str(error), "kind": type(error).__name__}
    warned = [str(warning.message) for warning in warned]
    return {**found, "seen": seen, "warned": [text for text in warned if "me/tiny" in text]}

assert "huggingface_hub" not in sys.modules
for line in sys.stdin:
    if not os.fork():
        print(json.dumps(fetch(json.loads(line))), flush=True)
        os._exit(0)
    if os.wait()[1]:
        print("failed", flush=True)
"""


@pytest.fixture(scope="module")
def fetcher(tmp_path_factory: pytest.TempPathFactory) -> Iterator[subprocess.Popen[str]]:
    """A process that has imported all but the client, and forks for each fetch."""
    with (
        (tmp_path_factory.mktemp("hub") / "errors").open("w+") as errors,
        subprocess.Popen(
            [sys.executable, "-c", FETCH],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True,
        ) as process,
    ):  # fmt: skip
        yield process
        process.stdin.close()


@pytest.fixture
def fetch(fetcher: subprocess.Popen[str]) -> Callable[..., dict[str, Any]]:
    """In a process of its own: the client reads its settings once, when it is imported."""

    def fetch(
        name: str,
        cache: Path,
        endpoint: str,
        *,
        before: str = "",
        in_progress: str = "",
        arguments: dict[str, Any] | None = None,
        **environment: str,
    ) -> dict[str, Any]:
        job = {
            "name": name,
            "before": before,
            "in_progress": in_progress,
            "arguments": arguments or {},
            "environment": {
                "HF_ENDPOINT": endpoint,
                "HF_HOME": str(cache),
                "HF_HUB_DISABLE_XET": "1",
                "HF_HUB_DISABLE_TELEMETRY": "1",
                "NO_PROXY": "127.0.0.1",
                **environment,
            },
        }
        fetcher.stdin.write(json.dumps(job) + "\n")
        fetcher.stdin.flush()
        return json.loads(fetcher.stdout.readline())

    return fetch


def test_a_model_is_fetched_once_with_progress(fetch, hub, tmp_path):
    data = hub.files["tiny-Q8_0.gguf"]
    first = fetch("me/tiny:Q8_0", tmp_path, hub.url)
    assert Path(first["path"]).read_bytes() == data
    assert first["seen"][-1] == [len(data), len(data)]
    assert [done for done, _ in first["seen"]] == sorted(done for done, _ in first["seen"])
    assert fetch("me/tiny:tiny-Q8_0.gguf", tmp_path, hub.url)["path"] == first["path"]
    assert len(hub.ranges) == 1


def test_a_broken_download_is_resumed(fetch, hub, tmp_path):
    data = hub.files["tiny-Q8_0.gguf"] = bytes(25_000_000)  # the client writes 10 MB at a time
    hub.break_after = 13_000_000
    result = fetch("me/tiny:Q8_0", tmp_path, hub.url)
    if "error" in result:  # older clients do not try again by themselves
        assert "next time" in result["error"]
        result = fetch("me/tiny:Q8_0", tmp_path, hub.url)
    assert Path(result["path"]).read_bytes() == data
    assert hub.ranges[0] is None
    assert int(hub.ranges[1].removeprefix("bytes=").split("-")[0]) >= 10_000_000
    assert result["seen"][-1] == [len(data), len(data)]


def test_a_push_amid_a_download_changes_no_file_of_it(fetch, hub, tmp_path):
    hub.pushed = OTHER_COMMIT
    first = Path(fetch("me/tiny:big-00001-of-00002.gguf", tmp_path, hub.url)["path"])
    assert first.parent.name == COMMIT
    assert first.with_name("big-00002-of-00002.gguf").read_bytes() == b"second part"
    offline = fetch("me/tiny:big-00001-of-00002.gguf", tmp_path, hub.url, HF_HUB_OFFLINE="1")
    assert offline["path"] == str(first)


def test_all_parts_of_a_split_model_are_fetched(fetch, hub, tmp_path):
    first = Path(fetch("me/tiny:big-00001-of-00002.gguf", tmp_path, hub.url)["path"])
    assert first.name == "big-00001-of-00002.gguf"
    assert first.with_name("big-00002-of-00002.gguf").read_bytes() == b"second part"


def test_a_tower_is_fetched_with_its_model_where_it_is_wanted(fetch, hub, tmp_path):
    hub.files["mmproj-tiny-F16.gguf"] = b"a tower"
    alone = Path(fetch("me/tiny:Q8_0", tmp_path / "one", hub.url)["path"])
    assert not alone.with_name("mmproj-tiny-F16.gguf").exists()
    found = fetch("me/tiny:Q8_0", tmp_path / "two", hub.url, arguments={"tower": True})
    assert Path(found["path"]).name == "tiny-Q8_0.gguf"
    assert Path(found["path"]).with_name("mmproj-tiny-F16.gguf").read_bytes() == b"a tower"
    assert found["seen"][-1] == [len(hub.files["tiny-Q8_0.gguf"]) + 7] * 2


def test_without_a_network_the_cache_serves(fetch, hub, tmp_path):
    first = fetch("me/tiny:Q8_0", tmp_path, hub.url)
    path = first["path"]
    assert first["warned"] == []
    offline = fetch("me/tiny:Q8_0", tmp_path, "http://127.0.0.1:1")
    assert offline["path"] == path
    (warning,) = offline["warned"]
    assert "the Hub cannot be reached" in warning and "taking tiny-Q8_0.gguf from the cache" in warning
    assert fetch("me/tiny", tmp_path, hub.url, HF_HUB_OFFLINE="1")["path"] == path
    missing = fetch("me/tiny:F16", tmp_path, hub.url, HF_HUB_OFFLINE="1")
    assert missing["kind"] == "ModelFileError" and "cache" in missing["error"]


def test_a_repository_that_does_not_exist_says_so(fetch, hub, tmp_path):
    found = fetch("me/nothing", tmp_path, hub.url)
    assert found["kind"] == "ModelFileError"
    assert "no repository me/nothing" in found["error"]


def test_a_revision_is_fetched_and_found_again(fetch, hub, tmp_path):
    first = fetch("me/tiny@v1.1:Q8_0", tmp_path, hub.url)
    assert OTHER_COMMIT in first["path"]
    assert COMMIT in fetch("me/tiny:Q8_0", tmp_path, hub.url)["path"]
    assert fetch("me/tiny@v1.1:Q8_0", tmp_path, hub.url, HF_HUB_OFFLINE="1")["path"] == first["path"]
    missing = fetch("me/tiny@v9", tmp_path, hub.url)
    assert missing["error"] == "me/tiny has no revision 'v9', no such branch, tag or commit"


def test_an_address_fetches_what_it_names(fetch, hub, tmp_path):
    address = "https://huggingface.co/me/tiny/blob/v1.1/tiny-Q8_0.gguf"
    assert Path(fetch(address, tmp_path, hub.url)["path"]).read_bytes() == hub.files["tiny-Q8_0.gguf"]


def test_a_private_repository_needs_a_token(fetch, hub, tmp_path):
    hub.token = "hf_secret"
    refused = fetch("me/tiny:Q8_0", tmp_path, hub.url)
    assert "private: run `hf auth login`, or set HF_TOKEN" in refused["error"]
    assert "path" in fetch("me/tiny:Q8_0", tmp_path / "a", hub.url, HF_TOKEN="hf_secret")
    assert "path" in fetch("me/tiny:Q8_0", tmp_path / "b", hub.url, arguments={"token": "hf_secret"})


def test_no_network_and_no_cache_is_a_clear_error(fetch, tmp_path):
    found = fetch("me/tiny", tmp_path, "http://127.0.0.1:1")
    assert found["kind"] == "ModelFileError"
    assert (
        "cannot be fetched, and is not in the cache: there is no connection to http://127.0.0.1:1"
        in found["error"]
    )
    offline = fetch("me/tiny", tmp_path, "http://127.0.0.1:1", HF_HUB_OFFLINE="1")
    assert offline["error"].endswith("is not in the cache: HF_HUB_OFFLINE is set")
    blobs = tmp_path / "hub" / "models--me--tiny" / "blobs"
    blobs.mkdir(parents=True)
    (blobs / "1234.incomplete").touch()
    begun = fetch("me/tiny", tmp_path, "http://127.0.0.1:1", HF_HUB_OFFLINE="1")
    assert begun["error"].endswith("(the download that broke off goes on the next time)")


def test_a_server_that_fails_counts_as_no_network_and_a_refusal_does_not(fetch, hub, tmp_path):
    path = fetch("me/tiny:Q8_0", tmp_path, hub.url)["path"]
    hub.status_of_list = 503
    assert fetch("me/tiny:Q8_0", tmp_path, hub.url)["path"] == path
    hub.status_of_list = 403
    refused = fetch("me/tiny:Q8_0", tmp_path, hub.url)
    assert refused["kind"] == "ModelFileError" and "403" in refused["error"]


def test_only_the_file_that_was_chosen_is_taken_from_the_cache(fetch, hub, tmp_path):
    fetch("me/tiny:Q8_0", tmp_path, hub.url)
    hub.files["tiny-Q4_K_M.gguf"] = b"GGUF, and better known"
    hub.status_of_files = 403  # for which the client gives the same error as for no network, but at once
    found = fetch("me/tiny", tmp_path, hub.url)
    assert found["kind"] == "ModelFileError"
    assert "cannot be fetched, and of this repository the cache has tiny-Q8_0.gguf" in found["error"]
    assert fetch("me/tiny:Q8_0", tmp_path, hub.url)["path"].endswith("tiny-Q8_0.gguf")


def test_an_error_of_this_machine_is_not_taken_for_a_missing_network(fetch, hub, tmp_path):
    fetch("me/tiny:big-00001-of-00002.gguf", tmp_path, hub.url)
    hub.files["tiny-Q4_K_M.gguf"] = bytes(1 << 20)
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16))"
    found = fetch("me/tiny", tmp_path, hub.url, before=limit)
    assert found["kind"] == "ModelFileError"
    assert f"cannot be stored in the cache, {tmp_path}" in found["error"]
    assert "File too large" in found["error"]


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        ("OSError(28, 'No space left on device')", "OSError", "[Errno 28] No space left on device"),
        ("ConnectionError('not the Hub')", "ConnectionError", "not the Hub"),
        ("KeyboardInterrupt", "KeyboardInterrupt", ""),
    ],
)
def test_what_the_progress_function_raises_abandons_the_load(fetch, hub, tmp_path, error, kind, message):
    fetch("me/tiny:big-00001-of-00002.gguf", tmp_path, hub.url)
    hub.files["tiny-Q4_K_M.gguf"] = bytes(1 << 20)
    found = fetch("me/tiny", tmp_path, hub.url, in_progress=f"raise {error}")
    assert (found["kind"], found["error"]) == (kind, message)
    assert len(found["seen"]) == 1


def test_the_progress_functions_error_survives_a_client_that_swallows_it(monkeypatch):
    import huggingface_hub

    from akunu.files.hub import download as hub

    def download(repo, file, *, tqdm_class, **_):
        for _ in range(3):  # as a transfer in a thread of its own does
            with contextlib.suppress(ZeroDivisionError):
                tqdm_class().update(1)
        return file

    calls = []

    def progress(done, total):
        calls.append(done)
        raise ZeroDivisionError("mine")

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", download)
    with pytest.raises(ZeroDivisionError, match="mine"):
        hub._download(HubName("me/tiny"), COMMIT, {"a.gguf": 3}, None, hub._Callback(progress))
    assert calls == [1]


@pytest.mark.parametrize(
    "host", ["hf.co", "HF.co", "huggingface.co", "https://HuggingFace.co", "www.huggingface.co"]
)
def test_a_name_as_the_hub_gives_it_to_other_programs(host):
    assert parse(f"{host}/user/repo-GGUF:Q4_K_M") == HubName("user/repo-GGUF", file="Q4_K_M")
    assert (
        parse(f"{host}/user/repo-GGUF:latest") == parse(f"{host}/user/repo-GGUF") == HubName("user/repo-GGUF")
    )
    assert parse(f"{host}/user/repo@v1:Q8_0") == HubName("user/repo", "v1", "Q8_0")


def test_a_search_asks_the_hub_once(monkeypatch):
    from huggingface_hub import constants

    from akunu.base.errors import AkunuError
    from akunu.files.hub.download import search

    asked, status = list[str](), 200
    listed = [
        {"id": "me/a-GGUF", "downloads": 7, "likes": 2, "lastModified": "2026-05-01T10:00:00.000Z"},
        {"id": "me/b-GGUF"},
    ]

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None: ...

        def do_GET(self) -> None:
            asked.append(self.path)
            data = json.dumps(listed).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setattr(constants, "ENDPOINT", f"http://127.0.0.1:{server.server_port}")
        assert search("qwen3 coder", 2) == [
            {"name": "me/a-GGUF", "downloads": 7, "likes": 2, "updated": "2026-05-01"},
            {"name": "me/b-GGUF", "downloads": 0, "likes": 0, "updated": ""},
        ]
        path, _, query = asked.pop().partition("?")
        assert path == "/api/models"
        assert {"search=qwen3+coder", "filter=gguf", "sort=downloads", "limit=2"} <= set(query.split("&"))
        status = 503
        with pytest.raises(AkunuError, match="cannot be asked"):
            search("qwen3", 2)
        assert len(asked) == 1
        server.shutdown()
    with pytest.raises(AkunuError, match="cannot be asked"):
        search("qwen3", 2)

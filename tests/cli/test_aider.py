"""`akunu launch aider` where aider is installed: it makes a file that a script, as its model, tells."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from children import environment

ANSWER = 'hello.py\n```\nprint("Hello")\n```\n'


class Script(BaseHTTPRequestHandler):
    """A server of one model, which answers each request in the same way."""

    asked: ClassVar[list[dict]] = []

    def log_message(self, *_: object) -> None: ...

    def do_GET(self) -> None:
        self.give("application/json", json.dumps({"data": [{"id": "small", "context": 20000}]}))

    def do_POST(self) -> None:
        fields = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.asked.append(fields)
        head = {"id": "chatcmpl-1", "created": 1, "model": "small"}
        if fields.get("stream"):
            delta = {"index": 0, "delta": {"role": "assistant", "content": ANSWER}, "finish_reason": None}
            end = {"index": 0, "delta": {}, "finish_reason": "stop"}
            chunks = [{**head, "object": "chat.completion.chunk", "choices": [each]} for each in (delta, end)]
            events = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks]
            self.give("text/event-stream", "".join([*events, "data: [DONE]\n\n"]))
            return
        message = {"role": "assistant", "content": "feat: hello"}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        self.give("application/json", json.dumps({**head, "object": "chat.completion", "choices": [choice]}))

    def give(self, kind: str, text: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())


@pytest.fixture
def url() -> Iterator[str]:
    Script.asked.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Script)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.skipif(shutil.which("aider") is None, reason="aider is not here")
def test_aider_makes_a_file(url: str, tmp_path: Path) -> None:
    code = "from akunu.cli import main; import sys; sys.exit(main(sys.argv[1:]))"
    wanted = ["--message", "Create hello.py.", "--yes-always", "--no-check-update", "--no-analytics"]
    done = subprocess.run(
        [sys.executable, "-c", code, "launch", "aider", "--url", url, "--", *wanted, "--no-git"],
        cwd=tmp_path, env=environment(HOME=str(tmp_path)), stdin=subprocess.DEVNULL, capture_output=True,
        text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "hello.py").read_text() == 'print("Hello")\n', done.stdout
    assert Script.asked[0]["model"] == "small"
    assert "You MUST use this *file listing* format" in json.dumps(Script.asked[0]["messages"])

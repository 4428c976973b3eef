"""A server under clients that misbehave, for a long time: what it holds afterwards is what it held before.

    python -m bench.soak                       ten minutes
    python -m bench.soak model.gguf --seconds 3600 --clients 24

Clients go away in the middle of a request or an answer, read slowly or not at all, send what is no request,
and ask for completions, chats, constraints and several outputs at once. Each minute all of them pause; when
the server is quiet, its memory, threads, files and pages of the cache are counted. The first count is after a
minute of warming up. It ends with an error where a count has grown: threads, files and held pages at all,
memory by more than 24 MiB.
"""

from __future__ import annotations

import json
import random
import socket
import sys
import threading
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click

from akunu.cli.app import CONTEXT_SETTINGS
from akunu.cli.app import run as run_command
from akunu.cli.console import note, print_table
from bench.serve import SENTENCE, free_port, running

PHASE_SECONDS: Final = 60.0
GROWTH: Final = 24 << 20
"""Bytes of memory. What is remembered of earlier sequences grows to its bound, 12 MB a model."""

SCHEMA: Final = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}


@dataclass(frozen=True)
class Count:
    """What a quiet server holds."""

    memory: int
    threads: int
    files: int
    pages: int


def request_of(rng: random.Random, name: str) -> tuple[str, dict[str, Any]]:
    """A path and a body, mostly of what is understood."""
    text = " ".join(rng.choices(SENTENCE.split(), k=rng.choice([3, 30, 300])))
    options = {"model": name, "stream": rng.random() < 0.6, "max_tokens": rng.choice([1, 8, 100])}
    options |= rng.choice([{}, {}, {"n": 3}, {"seed": 1}, {"temperature": 0}])
    kind = rng.random()
    if kind < 0.4:
        return "/v1/completions", {**options, "prompt": text}
    chat = {**options, "messages": [{"role": "user", "content": text}]}
    if kind < 0.7:
        return "/v1/chat/completions", chat
    if kind < 0.9:
        constraint = rng.choice([{"regex": "[a-z]{1,40}"}, {"choice": ["yes", "no"]}])
        schema = {"response_format": {"type": "json_schema", "json_schema": {"name": "s", "schema": SCHEMA}}}
        return "/v1/chat/completions", {**chat, **rng.choice([constraint, schema])}
    return "/v1/chat/completions", {"model": rng.choice([name, "none"]), "messages": rng.choice([[], text])}


def misbehave(port: int, name: str, seed: int, until: float) -> None:
    """One client, until its time is over."""
    rng = random.Random(seed)
    while time.monotonic() < until:
        path, fields = request_of(rng, name)
        body = json.dumps(fields).encode()
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        with socket.socket() as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            sock.settimeout(60)
            try:
                sock.connect(("127.0.0.1", port))
                sent = f"{head}Connection: close\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
                if rng.random() < 0.05:
                    sock.sendall(sent[: rng.randrange(len(sent))])
                    continue
                sock.sendall(sent)
                for _ in range(rng.choice([0, 1, 3, 200])):
                    if not sock.recv(2048):
                        break
                    if rng.random() < 0.02:
                        time.sleep(rng.random())
            except OSError:
                pass  # the server may close what it refuses


def ask(port: int, path: str) -> Any:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=60) as answer:
        return json.load(answer)


def count(port: int, process: int) -> Count:
    """What the server holds, once nothing runs."""
    deadline = time.monotonic() + 120
    while any(model["sequences"] or model["queue"] for model in ask(port, "/admin/engine")["models"]):
        if time.monotonic() > deadline:
            raise click.ClickException("sequences are left that nobody waits for")
        time.sleep(0.2)
    time.sleep(1)
    status = dict(
        line.split(":", 1) for line in Path(f"/proc/{process}/status").read_text().splitlines() if ":" in line
    )
    return Count(
        memory=int(status["VmRSS"].split()[0]) << 10,
        threads=int(status["Threads"]),
        files=len(list(Path(f"/proc/{process}/fd").iterdir())),
        pages=sum(model["pages"]["used"] for model in ask(port, "/admin/engine")["models"]),
    )


@click.command("soak", context_settings=CONTEXT_SETTINGS)
@click.argument("model", default="ember")
@click.option("--seconds", default=600.0, show_default=True, help="How long.")
@click.option("--clients", default=12, show_default=True, help="How many at once.")
def command(model: str, seconds: float, clients: int) -> None:
    """Serve MODEL to clients that misbehave, and count what that leaves (on Linux)."""
    port = free_port()
    line = [sys.executable, "-m", "akunu", "serve", "-m", f"m={model}", "--port", str(port)]
    counts: list[Count] = []
    with running(line, f"http://127.0.0.1:{port}") as process:
        end = time.monotonic() + seconds
        while time.monotonic() < end or len(counts) < 2:
            until = time.monotonic() + min(PHASE_SECONDS, seconds / 2)
            threads = [
                threading.Thread(target=misbehave, args=(port, "m", 1000 * len(counts) + i, until))
                for i in range(clients)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            counts.append(count(port, process.pid))
            note(f"[{counts[-1]}]")
        health = ask(port, "/health")
    rows = [
        [str(i), f"{c.memory / 1e6:.1f}", str(c.threads), str(c.files), str(c.pages)]
        for i, c in enumerate(counts)
    ]
    print_table(["count", "memory MB", "threads", "files", "held pages"], rows, right="rrrrr")
    first, last = counts[0], counts[-1]
    grown = [name for name in ("threads", "files", "pages") if getattr(last, name) > getattr(first, name)]
    grown += ["memory"] if last.memory > first.memory + GROWTH else []
    if grown or health != {"status": "ok"}:
        raise click.ClickException(f"grown: {', '.join(grown) or 'nothing'}; health: {health}")


if __name__ == "__main__":
    sys.exit(run_command(command, "python -m bench.soak"))

"""A server under load: throughput, and the times to the first token and between tokens that clients see.

    python bench/serve.py model.gguf
    python bench/serve.py model.gguf --peer llama-server=/path/to/llama-server --clients 1,4,8,16
    python bench/serve.py --url http://127.0.0.1:8080 --name qwen

Each program serves the same file, one at a time, and is asked by so many clients at once, over
`/v1/chat/completions` with streams:

- mixed: each client waits for its answer, then for a random time (exponential), and asks again: a prompt of
  20 to 600 words, an answer of 16 to 96 tokens. With `--rate` requests come whether or not those before have
  been answered: by a Poisson process, so many a second.
- agent: each client has a conversation that begins with `--system` words and grows by 150 a turn; what is
  measured is how much of the first turn's waiting later turns have.

Times are those of the clients, in milliseconds: p50 / p95 / p99. Answers can end early, by the model's own
end; tokens are counted by the server. What else runs on the machine is part of the result: measure on a quiet
one.
"""

from __future__ import annotations

import asyncio
import json
import random
import socket
import subprocess
import sys
import time
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import click

from akunu.bench.params import parse_ints
from akunu.cli.app import CONTEXT_SETTINGS
from akunu.cli.app import run as run_command
from akunu.cli.console import note, print_table
from json_file import write_json
from peers import parse_peers

SENTENCE: Final = "the river ran past a small house where an old man kept seven clocks and a dog"
TURNS: Final = 6


@dataclass
class Answer:
    """One request, as its client saw it."""

    turn: int
    first: float
    """Seconds to the first text."""
    gaps: list[float] = field(default_factory=list)
    """Seconds between two events."""
    tokens: int = 0
    cached: int = 0
    prompt: int = 0
    failed: str = ""


async def ask(url: str, name: str, messages: list[dict[str, str]], tokens: int, turn: int = 0) -> Answer:
    """Ask, and read the stream. The client is as light as can be: it shares the machine with the server."""
    at = urlsplit(url)
    body = json.dumps(
        {
            "model": name, "messages": messages, "max_tokens": tokens, "temperature": 0.7, "seed": 1,
            "stream": True, "stream_options": {"include_usage": True},
        }
    ).encode()  # fmt: skip
    reader, writer = await asyncio.open_connection(at.hostname, at.port, limit=1 << 20)
    began = last = time.perf_counter()
    answer = Answer(turn, 0.0)
    try:
        head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: {at.netloc}\r\nConnection: close\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        async for line in reader:
            if line.startswith(b"HTTP/1.1 ") and b" 200 " not in line:
                answer.failed = line.decode().strip()
            if not line.startswith(b"data: {"):
                continue
            event = json.loads(line[6:])
            if usage := event.get("usage"):
                answer.tokens, answer.prompt = usage["completion_tokens"], usage["prompt_tokens"]
                answer.cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens", 0)
            delta = event["choices"][0]["delta"] if event.get("choices") else {}
            if not (delta.get("content") or delta.get("reasoning_content")):
                continue
            now = time.perf_counter()
            if answer.first:
                answer.gaps.append(now - last)
            else:
                answer.first = now - began
            last = now
    finally:
        writer.close()
    return answer


def words(rng: random.Random, count: int) -> str:
    return " ".join(rng.choice(SENTENCE.split()) for _ in range(count))


async def mixed(url: str, name: str, clients: int, seconds: float, think: float) -> list[Answer]:
    """Clients that ask at random times, until the time is over."""
    end = time.perf_counter() + seconds
    answers: list[Answer] = []

    async def client(number: int) -> None:
        rng = random.Random(number)
        while time.perf_counter() < end:
            await asyncio.sleep(rng.expovariate(1 / think))
            answers.append(await ask(url, name, *_question(rng)))

    await asyncio.gather(*(client(number) for number in range(clients)))
    return answers


async def arriving(url: str, name: str, rate: float, seconds: float) -> list[Answer]:
    """Requests that come at random times, so many a second, until the time is over."""
    rng = random.Random(0)
    end = time.perf_counter() + seconds
    asked: list[asyncio.Task[Answer]] = []
    while time.perf_counter() < end:
        await asyncio.sleep(rng.expovariate(rate))
        asked.append(asyncio.create_task(ask(url, name, *_question(rng))))
    return list(await asyncio.gather(*asked))


def _question(rng: random.Random) -> tuple[list[dict[str, str]], int]:
    """Messages, and how many tokens to answer with."""
    question = words(rng, rng.choice([20, 60, 200, 600])) + ". Tell a story about it."
    return [{"role": "user", "content": question}], rng.choice([16, 48, 96])


async def agent(url: str, name: str, clients: int, system: int) -> list[Answer]:
    """Conversations that grow."""
    answers: list[Answer] = []

    async def client(number: int) -> None:
        rng = random.Random(number)
        messages = [{"role": "system", "content": words(rng, system)}]
        for turn in range(TURNS):
            messages.append({"role": "user", "content": words(rng, 150)})
            answers.append(await ask(url, name, messages, 8, turn))
            messages.append({"role": "assistant", "content": words(rng, 8)})

    await asyncio.gather(*(client(number) for number in range(clients)))
    return answers


def percentiles(values: Sequence[float]) -> str:
    """p50 / p95 / p99, in milliseconds."""
    if not values:
        return "-"
    ordered = sorted(values)
    found = [ordered[min(len(ordered) - 1, int(share * len(ordered)))] for share in (0.5, 0.95, 0.99)]
    return " / ".join(f"{1000 * value:.0f}" for value in found)


@contextmanager
def running(command: Sequence[str], url: str) -> Iterator[subprocess.Popen[bytes]]:
    """A server, from its start until the end of the block."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    at = urlsplit(url)
    try:
        deadline = time.monotonic() + 300
        while not _healthy(at.hostname or "", at.port or 0):
            if process.poll() is not None or time.monotonic() > deadline:
                raise click.ClickException(f"{command[0]} does not serve; its command: {' '.join(command)}")
            time.sleep(0.1)
        yield process
    finally:
        process.terminate()
        process.wait(60)


def _healthy(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), timeout=5) as sock:
            sock.sendall(f"GET /health HTTP/1.0\r\nHost: {host}\r\n\r\n".encode())
            return b" 200 " in sock.recv(64)
    except OSError:
        return False


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        port: int = sock.getsockname()[1]
        return port


def _commands(
    model: str, peers: dict[str, list[str]], context: int, parallel: int, port: int
) -> dict[str, list[str]]:
    akunu = [
        sys.executable, "-m", "akunu", "serve", "-m", f"m={model}", "-c", str(context), "--port", str(port),
        "--parallel", str(parallel),
    ]  # fmt: skip
    others = {
        name: [
            *program,
            "-m",
            model,
            "-c",
            str(context * parallel),
            "-np",
            str(parallel),
            "--port",
            str(port),
        ]
        for name, program in peers.items()
    }
    return {"akunu": akunu, **others}


@dataclass(frozen=True)
class Load:
    """What a server is measured under."""

    name: str
    seconds: float
    think: float
    system: int

    def clients(self, url: str, count: int) -> dict[str, Any]:
        """So many clients: mixed questions, then conversations."""
        row = self._timed(url, mixed(url, self.name, count, self.seconds, self.think))
        grown = asyncio.run(agent(url, self.name, count, self.system))
        first = sorted(a.first for a in grown if a.turn == 0 and a.first)
        later = sorted(a.first for a in grown if a.turn > 0 and a.first)
        row["failed"] += sum(bool(a.failed) for a in grown)
        return {"load": str(count), **row, "later_turns": later[len(later) // 2] / first[len(first) // 2]}

    def rate(self, url: str, rate: float) -> dict[str, Any]:
        """So many requests a second."""
        return {"load": f"{rate:g}/s", **self._timed(url, arriving(url, self.name, rate, self.seconds))}

    def _timed(self, url: str, asking: Coroutine[Any, Any, list[Answer]]) -> dict[str, Any]:
        asyncio.run(ask(url, self.name, [{"role": "user", "content": "Hello!"}], 4))
        began = time.perf_counter()
        some = asyncio.run(asking)
        took = time.perf_counter() - began
        return {
            "requests": len(some),
            "failed": sum(bool(a.failed) for a in some),
            "tokens_per_second": sum(a.tokens for a in some) / took,
            "first_ms": percentiles([a.first for a in some if a.first]),
            "gap_ms": percentiles([gap for a in some for gap in a.gaps]),
        }


@click.command("serve", context_settings=CONTEXT_SETTINGS)
@click.argument("model", default="ember")
@click.option("--url", help="A server that runs already, instead of starting any.")
@click.option("--name", default="m", show_default=True, help="The model's name there.")
@click.option("--peer", "peers", multiple=True, metavar="NAME=PATH", help="A llama-server to compare with.")
@click.option("--clients", default="1,4,8,16", show_default=True, help="How many at once, one after another.")
@click.option("--seconds", default=20.0, show_default=True, help="How long the mixed load lasts.")
@click.option("--think", default=0.5, show_default=True, help="Mean seconds between a client's requests.")
@click.option("--rate", "rates", default="", help="Requests a second, one after another. [default: none]")
@click.option("--system", default=300, show_default=True, help="Words that a conversation begins with.")
@click.option("-c", "--context", default=4096, show_default=True, help="Of each text.")
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="Write the results to a file.")
def command(
    model: str,
    url: str | None,
    name: str,
    peers: tuple[str, ...],
    clients: str,
    seconds: float,
    think: float,
    rates: str,
    system: int,
    context: int,
    json_file: Path | None,
) -> None:
    """Load servers of MODEL with clients; a table of what these saw."""
    counts = parse_ints(clients)
    load = Load(name, seconds, think, system)
    rows: list[dict[str, Any]] = []

    def measure(program: str, at: str) -> None:
        rows.extend({"program": program, **load.clients(at, count)} for count in counts)
        rows.extend({"program": program, **load.rate(at, float(rate))} for rate in rates.split(",") if rate)

    if url is not None:
        measure(url, url)
    else:
        port = free_port()
        here = f"http://127.0.0.1:{port}"
        commands = _commands(model, parse_peers(peers), context, min(max(counts), 16), port)
        for program, line in commands.items():
            note(f"[{program}]")
            with running(line, here):
                measure(program, here)
    headers = [
        "program", "clients or rate", "requests", "failed", "tok/s", "first token ms", "between events ms",
        "later turns' first token",
    ]  # fmt: skip
    print_table(
        headers,
        [
            [
                row["program"], row["load"], str(row["requests"]), str(row["failed"]),
                f"{row['tokens_per_second']:.1f}", row["first_ms"], row["gap_ms"],
                f"{100 * row['later_turns']:.0f} % of the first's" if "later_turns" in row else "-",
            ]
            for row in rows
        ],
        right=" rrrrrrr",
    )  # fmt: skip
    if json_file is not None:
        write_json(json_file, rows)


if __name__ == "__main__":
    sys.exit(run_command(command, "bench/serve.py"))

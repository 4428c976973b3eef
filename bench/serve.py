"""A server under load: throughput, and the times to the first token and between tokens that clients see.

    python -m bench.serve model.gguf
    python -m bench.serve model.gguf --peer llama-server=/path/to/llama-server --clients 1,4,8,16
    python -m bench.serve --url http://127.0.0.1:8080 --name qwen

Each program serves the same file, and is asked by so many clients at once, over `/v1/chat/completions` with
streams:

- mixed: each client waits for its answer, then for a random time (exponential), and asks again: a prompt of
  a length in `--words`, an answer of one in `--tokens`. With `--rate` requests come whether or not those
  before have been answered: by a Poisson process, so many a second.
- agent: each client has a conversation that begins with `--system` words and grows by 150 a turn; what is
  measured is how much of the first turn's waiting later turns have.

The programs run side by side, and are asked one at a time, in turns: `--rounds`, each in another order. Times
are those of the clients, in milliseconds: p50 / p95 / p99 of all rounds; throughput and later turns are
medians of the rounds, and the last column is the median of the rounds' ratios to the first peer. Answers can
end early, by the model's own end; tokens are counted by the server. What else runs on the machine is part of
the result: measure on a quiet one, or look at the ratios alone.
"""

from __future__ import annotations

import asyncio
import json
import random
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Final
from urllib.parse import urlsplit

import click

from akunu.cli.app import CONTEXT_SETTINGS
from akunu.cli.app import run as run_command
from akunu.cli.bench.params import parse_ints
from akunu.cli.console import note, print_table
from bench.json_file import write_json
from bench.peers import parse_peers

SENTENCE: Final = "the river ran past a small house where an old man kept seven clocks and a dog"


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


@dataclass(frozen=True)
class Load:
    """What a server is measured under."""

    name: str
    seconds: float
    think: float
    words: list[int]
    tokens: list[int]
    system: int
    turns: int

    async def mixed(self, url: str, clients: int, seed: int) -> list[Answer]:
        """Clients that ask at random times, until the time is over."""
        end = time.perf_counter() + self.seconds
        answers: list[Answer] = []

        async def client(number: int) -> None:
            rng = random.Random(f"{seed} {number}")
            while time.perf_counter() < end:
                await asyncio.sleep(rng.expovariate(1 / self.think))
                answers.append(await ask(url, self.name, *self._question(rng)))

        await asyncio.gather(*(client(number) for number in range(clients)))
        return answers

    async def arriving(self, url: str, rate: float, seed: int) -> list[Answer]:
        """Requests that come at random times, so many a second, until the time is over."""
        rng = random.Random(seed)
        end = time.perf_counter() + self.seconds
        asked: list[asyncio.Task[Answer]] = []
        while time.perf_counter() < end:
            await asyncio.sleep(rng.expovariate(rate))
            asked.append(asyncio.create_task(ask(url, self.name, *self._question(rng))))
        return list(await asyncio.gather(*asked))

    def _question(self, rng: random.Random) -> tuple[list[dict[str, str]], int]:
        """Messages, and how many tokens to answer with."""
        question = words(rng, rng.choice(self.words)) + ". Tell a story about it."
        return [{"role": "user", "content": question}], rng.choice(self.tokens)

    async def agent(self, url: str, clients: int, seed: int) -> list[Answer]:
        """Conversations that grow."""
        answers: list[Answer] = []

        async def client(number: int) -> None:
            rng = random.Random(f"{seed} {number}")
            messages = [{"role": "system", "content": words(rng, self.system)}]
            for turn in range(self.turns):
                messages.append({"role": "user", "content": words(rng, 150)})
                answers.append(await ask(url, self.name, messages, 8, turn))
                messages.append({"role": "assistant", "content": words(rng, 8)})

        await asyncio.gather(*(client(number) for number in range(clients)))
        return answers


@dataclass
class Seen:
    """What clients saw of one program under one load, in all rounds."""

    answers: list[Answer] = field(default_factory=list)
    tokens_per_second: list[float] = field(default_factory=list)
    later_turns: list[float] = field(default_factory=list)

    def add(self, some: list[Answer], seconds: float, grown: list[Answer]) -> None:
        """A round."""
        self.answers += [*some, *(answer for answer in grown if answer.failed)]
        self.tokens_per_second.append(sum(answer.tokens for answer in some) / seconds)
        first = [answer.first for answer in grown if answer.turn == 0 and answer.first]
        later = [answer.first for answer in grown if answer.turn > 0 and answer.first]
        if first and later:
            self.later_turns.append(median(later) / median(first))

    def row(self, peer: Seen) -> dict[str, Any]:
        """For the table; its last figure is the throughput over the peer's."""
        pairs = zip(self.tokens_per_second, peer.tokens_per_second, strict=True)
        return {
            "requests": len(self.answers),
            "failed": sum(bool(answer.failed) for answer in self.answers),
            "tokens_per_second": median(self.tokens_per_second),
            "first_ms": percentiles([answer.first for answer in self.answers if answer.first]),
            "gap_ms": percentiles([gap for answer in self.answers for gap in answer.gaps]),
            "later_turns": median(self.later_turns) if self.later_turns else None,
            "to_peer": median(own / other if other else 0.0 for own, other in pairs),
        }


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


def _commands(model: str, peers: dict[str, list[str]], context: int, parallel: int) -> dict[str, list[str]]:
    """How each program is started, but for its port."""
    akunu = [
        sys.executable, "-m", "akunu", "serve", "-m", f"m={model}", "-c", str(context),
        "--parallel", str(parallel),
    ]  # fmt: skip
    others = {
        name: [*program, "-m", model, "-c", str(context * parallel), "-np", str(parallel)]
        for name, program in peers.items()
    }
    return {"akunu": akunu, **others}


def measure(
    addresses: dict[str, str], load: Load, counts: list[int], rates: list[float], rounds: int
) -> list[dict[str, Any]]:
    """What clients see of each program, under each load."""
    loads = [*((str(count), count, 0.0) for count in counts), *((f"{rate:g}/s", 0, rate) for rate in rates)]
    seen = {(program, name): Seen() for name, _, _ in loads for program in addresses}
    order = list(addresses)
    for number in range(rounds):
        for name, count, rate in loads:
            random.shuffle(order)
            for program in order:
                note(f"[round {number + 1}, {name}: {program}]")
                seen[program, name].add(*_round(addresses[program], load, count, rate, number))
    peer = list(addresses)[min(1, len(addresses) - 1)]
    return [
        {"program": program, "load": name, **each.row(seen[peer, name])}
        for (program, name), each in seen.items()
    ]


def _round(
    url: str, load: Load, count: int, rate: float, seed: int
) -> tuple[list[Answer], float, list[Answer]]:
    """Answers to mixed questions, the seconds that these took, and answers of conversations."""
    asyncio.run(ask(url, load.name, [{"role": "user", "content": "Hello!"}], 4))
    began = time.perf_counter()
    some = asyncio.run(load.arriving(url, rate, seed) if rate else load.mixed(url, count, seed))
    took = time.perf_counter() - began
    return some, took, asyncio.run(load.agent(url, count, seed)) if count and load.turns else []


@click.command("serve", context_settings=CONTEXT_SETTINGS)
@click.argument("model", default="ember")
@click.option("--url", help="A server that runs already, instead of starting any.")
@click.option("--name", default="m", show_default=True, help="The model's name there.")
@click.option("--peer", "peers", multiple=True, metavar="NAME=PATH", help="A llama-server to compare with.")
@click.option("--clients", default="1,4,8,16", show_default=True, help="How many at once, one after another.")
@click.option("--rounds", default=1, show_default=True, help="How often each program has its turn.")
@click.option("--seconds", default=20.0, show_default=True, help="How long the mixed load lasts.")
@click.option("--words", default="20,60,200,600", show_default=True, help="Of the mixed load's prompts.")
@click.option("--tokens", default="16,48,96", show_default=True, help="Of its answers.")
@click.option("--think", default=0.5, show_default=True, help="Mean seconds between a client's requests.")
@click.option("--rate", "rates", default="", help="Requests a second, one after another. [default: none]")
@click.option("--system", default=300, show_default=True, help="Words that a conversation begins with.")
@click.option("--turns", default=6, show_default=True, help="Of a conversation; 0: there are none.")
@click.option("-c", "--context", default=4096, show_default=True, help="Of each sequence.")
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="Write the results to a file.")
def command(
    model: str,
    url: str | None,
    name: str,
    peers: tuple[str, ...],
    clients: str,
    rounds: int,
    seconds: float,
    words: str,
    tokens: str,
    think: float,
    rates: str,
    system: int,
    turns: int,
    context: int,
    json_file: Path | None,
) -> None:
    """Load servers of MODEL with clients; a table of what these saw."""
    counts = parse_ints(clients)
    some = [float(rate) for rate in rates.split(",") if rate]
    load = Load(name, seconds, think, parse_ints(words), parse_ints(tokens), system, turns)
    with ExitStack() as servers:
        if url is not None:
            addresses = {url: url}
        else:
            addresses = {}
            for program, line in _commands(model, parse_peers(peers), context, min(max(counts), 256)).items():
                port = free_port()
                addresses[program] = f"http://127.0.0.1:{port}"
                servers.enter_context(running([*line, "--port", str(port)], addresses[program]))
        rows = measure(addresses, load, counts, some, rounds)
    headers = [
        "program", "clients or rate", "requests", "failed", "tok/s", "first token ms", "between events ms",
        "later turns' first token", "tok/s to peer",
    ]  # fmt: skip
    print_table(
        headers,
        [
            [
                row["program"], row["load"], str(row["requests"]), str(row["failed"]),
                f"{row['tokens_per_second']:.1f}", row["first_ms"], row["gap_ms"],
                f"{100 * row['later_turns']:.0f} % of the first's" if row["later_turns"] is not None else "-",
                f"{row['to_peer']:.2f}",
            ]
            for row in rows
        ],
        right=" rrrrrrrr",
    )  # fmt: skip
    if json_file is not None:
        write_json(json_file, rows)


if __name__ == "__main__":
    sys.exit(run_command(command, "python -m bench.serve"))

"""Attacks on a server, one after another, and what a neighbour notices of each.

    python bench/siege.py                         # ember and ember-speech, about eight minutes
    python bench/siege.py --only prompts bodies

A server with two keys is started. A neighbour asks short questions all the time, in turns alone and beside an
attack, so that other work of the machine meets both. The report has, for each attack, the 50th and 99th
percentile of its answers' times, alone and beside it, the ratio of the latter, the same ratio of what the
server computed meanwhile, the most memory and file descriptors of the server, what it logged, and the
statuses that the attacker got. What the attacker itself computes has a low priority. Other work of the
machine makes times longer, and their ratios smaller; what the server computes, all its threads together, it
hardly changes. As root, `nice -n -19` keeps other work away (not `chrt`: where its programs have all to do,
Linux stops them for 50 ms in each second).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import resource
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

KEYS = {"attacker": "attackers-key", "neighbour": "neighbours-key"}
LONG = "ab cd " * 900_000
SECONDS = 6.0
ROUNDS = 3


class Siege:
    """A server and who attacks it."""

    def __init__(self, url: str, pid: int, log: Path, seconds: float) -> None:
        self.url, self.pid, self.log, self.seconds = url, pid, log, seconds
        self.statuses: Counter[str] = Counter()
        self.port = int(url.rpartition(":")[2])

    async def post(self, path: str, body: object = None, **options: object) -> None:
        """One request of the attacker."""
        headers = {"x-api-key": KEYS["attacker"]}
        # Without `verify` no certificates are loaded, which takes long and which plain HTTP does not use.
        async with httpx.AsyncClient(
            base_url=self.url, timeout=60, trust_env=False, headers=headers, verify=False
        ) as http:
            try:
                answer = await (
                    http.post(path, json=body) if body is not None else http.post(path, **options)
                )
                self.statuses[str(answer.status_code)] += 1
            except httpx.HTTPError as error:
                self.statuses[type(error).__name__] += 1

    async def often(self, path: str, make: Callable[[], object], at_a_time: int = 4) -> None:
        """Post requests until the time is over, `at_a_time` of them at once."""
        end = time.monotonic() + self.seconds

        async def one() -> None:
            while time.monotonic() < end:
                await self.post(path, make())

        await asyncio.gather(*(one() for _ in range(at_a_time)))

    def work(self) -> float:
        """Seconds that all its threads have computed (Linux: the clock of a process by its number)."""
        return time.clock_gettime((~self.pid << 3) | 2)

    def memory(self) -> int:
        """MiB that the server has."""
        found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{self.pid}/status").read_text())
        return int(found[1]) >> 10 if found else 0

    def descriptors(self) -> int:
        """Its open files."""
        return len(os.listdir(f"/proc/{self.pid}/fd"))


def chat(text: object, **fields: object) -> dict[str, object]:
    return {"model": "ember", "max_tokens": 4, "messages": [{"role": "user", "content": text}], **fields}


async def prompts(siege: Siege) -> None:
    """Chats of 5 MB."""
    body = chat(LONG)
    await siege.often("/v1/chat/completions", lambda: body)


async def completions(siege: Siege) -> None:
    """Prompts of 5 MB."""
    body = {"model": "ember", "prompt": LONG, "max_tokens": 1}
    await siege.often("/v1/completions", lambda: body)


async def messages(siege: Siege) -> None:
    """Conversations of 100,000 messages."""
    body = chat(
        "",
        messages=[{"role": "user" if i % 2 == 0 else "assistant", "content": "hi"} for i in range(100_001)],
    )
    await siege.often("/v1/chat/completions", lambda: body, 2)


async def tokens(siege: Siege) -> None:
    """`/tokenize`, `count_tokens` and `/apply-template` of 5 MB."""
    for path, body in (
        ("/tokenize", {"model": "ember", "text": LONG}),
        ("/v1/messages/count_tokens", chat(LONG) | {"max_tokens": None}),
        ("/apply-template", {name: value for name, value in chat(LONG).items() if name != "max_tokens"}),
    ):
        body = {name: value for name, value in body.items() if value is not None}
        await asyncio.gather(*(siege.post(path, body) for _ in range(4)))


async def speech(siege: Siege) -> None:
    """Transcriptions with a prompt of 900 kB and with a grammar of 38 kB."""
    audio = _silence(1.0)
    grammar = "start: " + " | ".join(f'"{random.randrange(10**9)} words"' for _ in range(1700))
    for fields in ({"prompt": LONG[:900_000]}, {"grammar": grammar}, {"hotwords": LONG[:900_000]}):
        data = {"model": "ember-speech", **fields}
        for _ in range(3):
            await siege.post("/v1/audio/transcriptions", data=data, files={"file": ("a.wav", audio)})


async def connections(siege: Siege) -> None:
    """Half a head on 900 connections."""
    held = await _hold(siege, 900, b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nX-A: ")
    await asyncio.sleep(siege.seconds)
    _release(held)


async def bodies(siege: Siege) -> None:
    """Bodies of 24 MiB and 8 MiB that never end, 30 of each."""
    held = []
    for path, kind, size in (
        ("/v1/audio/transcriptions", "multipart/form-data; boundary=x", 24 << 20),
        ("/v1/chat/completions", "application/json", 8 << 20),
    ):
        head = (
            f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Api-Key: {KEYS['attacker']}\r\n"
            f"Content-Type: {kind}\r\nContent-Length: {size}\r\n\r\n"
        )
        begin = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n'
        held += await _hold(siege, 30, head.encode() + begin + bytes(size - 200))
    await asyncio.sleep(siege.seconds)
    _release(held)


async def forms(siege: Siege) -> None:
    """Distinct regular expressions of 2 MB, and grammars that are too large."""

    def regex() -> object:
        words = "|".join("".join(random.choices("abcdefghijklmnopqrstuvwxyz", k=20)) for _ in range(95_000))
        return chat("hi", regex=f"({words})")

    for make in (
        regex,
        lambda: chat("hi", regex="a{1000000}"),
        lambda: chat("hi", grammar="start: " + '"a" ' * 200_000),
    ):
        for _ in range(3):
            await siege.post("/v1/chat/completions", make())


async def small_forms(siege: Siege) -> None:
    """Distinct schemas of 20 kB."""

    def schema() -> object:
        properties = {f"p{random.randrange(10**9)}": {"type": "string", "maxLength": 99} for _ in range(300)}
        return chat("hi", response_format={"type": "json_schema", "json_schema": {
            "name": "a", "schema": {"type": "object", "properties": properties}}})  # fmt: skip

    await siege.often("/v1/chat/completions", schema)


async def queue(siege: Siege) -> None:
    """80 requests for long answers at a time."""
    await _stories(siege)


async def streams(siege: Siege) -> None:
    """Like `queue`, but each answer is a stream."""
    await _stories(siege, stream=True)


async def _stories(siege: Siege, **fields: object) -> None:
    body = chat("Tell me a story", max_tokens=1900, logit_bias={"0": -100, "2": -100}, **fields)

    async def one() -> None:
        try:
            async with asyncio.timeout(siege.seconds):
                await siege.post("/v1/chat/completions", body)
        except TimeoutError:
            siege.statuses["left"] += 1

    await asyncio.gather(*(one() for _ in range(80)))


async def responses(siege: Siege) -> None:
    """Stored responses."""
    labels = {f"label{i}": "x" * 500 for i in range(16)}
    body = {"model": "ember", "input": "hi", "max_output_tokens": 1, "metadata": labels}
    await siege.often("/v1/responses", lambda: body, 2)


async def long_prompts(siege: Siege) -> None:
    """Distinct prompts of 1,900 tokens, two at a time: honest work, as much as the model can do."""
    await siege.often(
        "/v1/completions",
        lambda: {"model": "ember", "prompt": random.choices(range(300, 2000), k=1900), "max_tokens": 1},
        2,
    )


async def keys(siege: Siege) -> None:
    """Wrong keys."""
    end = time.monotonic() + siege.seconds
    async with httpx.AsyncClient(base_url=siege.url, trust_env=False, timeout=60) as http:
        while time.monotonic() < end:
            answer = await http.get("/v1/models", headers={"x-api-key": f"wrong{random.random()}"})
            siege.statuses[str(answer.status_code)] += 1


async def ids(siege: Siege) -> None:
    """Prompts of a million token ids."""
    body = {"model": "ember", "prompt": random.choices(range(300, 2000), k=1_000_000), "max_tokens": 1}
    await siege.often("/v1/completions", lambda: body, 2)


async def detokenize(siege: Siege) -> None:
    """A million token ids put into a text: honest work."""
    body = {"model": "ember", "tokens": random.choices(range(300, 2000), k=1_000_000)}
    await siege.often("/detokenize", lambda: body, 2)


async def parts(siege: Siege) -> None:
    """Chats of a message that has 100,000 parts."""
    body = chat([{"type": "text", "text": "hi"}] * 100_000)
    await siege.often("/v1/chat/completions", lambda: body, 2)


async def tools(siege: Siege) -> None:
    """Chats with 4,000 tools."""
    properties = {f"p{i}": {"type": "string", "description": "What it is for."} for i in range(12)}
    parameters = {"type": "object", "properties": properties}
    tool = {
        "type": "function",
        "function": {"name": "f", "description": "It does.", "parameters": parameters},
    }
    body = chat("hi", tools=[tool] * 4000)
    await siege.often("/v1/chat/completions", lambda: body, 2)


async def escapes(siege: Siege) -> None:
    """Chats of 5 MB whose lines have escapes."""
    body = chat('ab "cd"\n' * 450_000)
    await siege.often("/v1/chat/completions", lambda: body)


async def letters(siege: Siege) -> None:
    """Chats of 5 MB in Cyrillic."""
    # As UTF-8, which httpx sends: each letter is two bytes.
    body = chat("привет мир " * 260_000)
    await siege.often("/v1/chat/completions", lambda: body)


ATTACKS = (
    connections,
    prompts,
    completions,
    messages,
    tokens,
    speech,
    bodies,
    forms,
    small_forms,
    responses,
    long_prompts,
    keys,
    queue,
    streams,
    ids,
    detokenize,
    parts,
    tools,
    escapes,
    letters,
)


def _silence(seconds: float) -> bytes:
    data = bytes(2 * int(16000 * seconds))
    head = b"RIFF" + (36 + len(data)).to_bytes(4, "little") + b"WAVEfmt " + (16).to_bytes(4, "little")
    head += (
        b"\x01\x00\x01\x00"
        + (16000).to_bytes(4, "little")
        + (32000).to_bytes(4, "little")
        + b"\x02\x00\x10\x00"
    )
    return head + b"data" + len(data).to_bytes(4, "little") + data


async def _hold(siege: Siege, n: int, data: bytes) -> list[socket.socket]:
    def one() -> socket.socket | None:
        try:
            sock = socket.create_connection(("127.0.0.1", siege.port), timeout=5)
        except OSError as error:
            siege.statuses[type(error).__name__] += 1
            return None
        try:
            sock.sendall(data)
        except OSError as error:
            siege.statuses[type(error).__name__] += 1
        return sock

    return [sock for sock in await asyncio.gather(*(asyncio.to_thread(one) for _ in range(n))) if sock]


def _release(held: list[socket.socket]) -> None:
    for sock in held:
        sock.close()


class Neighbour:
    """Short questions, one after another, on connections as they come."""

    def __init__(self, siege: Siege) -> None:
        headers = {"x-api-key": KEYS["neighbour"]}
        self._http = httpx.AsyncClient(base_url=siege.url, timeout=30, trust_env=False, headers=headers)
        self._siege = siege
        self.times: dict[bool, list[float]] = {False: [], True: []}
        """How long answers took, alone and beside an attack."""
        self.work: dict[bool, list[float]] = {False: [], True: []}
        """How long the server computed meanwhile."""
        self.failed: Counter[str] = Counter()
        self._attacked = False
        self._over = False

    async def asks(self) -> None:
        """Ask until `ends`."""
        async with self._http as http:
            while not self._over:
                at, worked, attacked = time.perf_counter(), self._siege.work(), self._attacked
                try:
                    answer = await http.post("/v1/chat/completions", json=chat("What is 2+2?"))
                    if answer.status_code != 200:
                        self.failed[str(answer.status_code)] += 1
                except httpx.HTTPError as error:
                    self.failed[type(error).__name__] += 1
                if attacked == self._attacked:
                    self.times[attacked].append(time.perf_counter() - at)
                    self.work[attacked].append(self._siege.work() - worked)
                await asyncio.sleep(0.01)

    @contextmanager
    def beside(self) -> Iterator[None]:
        """An attack goes on."""
        self._attacked = True
        try:
            yield
        finally:
            self._attacked = False

    def ends(self) -> None:
        """Ask no more."""
        self._over = True


async def observed(
    siege: Siege, attack: Callable[[Siege], Awaitable[None]], rounds: int
) -> dict[str, object]:
    """What there was to see in turns without and with an attack, which runs in a process of its own."""
    logged = siege.log.stat().st_size
    neighbour = Neighbour(siege)
    watching = asyncio.create_task(neighbour.asks())
    most = {"MiB": 0, "files": 0}

    async def measure() -> None:
        while True:
            most["MiB"], most["files"] = (
                max(most["MiB"], siege.memory()),
                max(most["files"], siege.descriptors()),
            )
            await asyncio.sleep(0.05)

    measuring = asyncio.create_task(measure())
    said: Counter[str] = Counter()
    command = ["--attack", attack.__name__, siege.url, str(siege.pid), str(siege.seconds)]
    for _ in range(rounds):
        process = await asyncio.create_subprocess_exec(
            sys.executable, __file__, *command, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert process.stdout is not None and process.stdin is not None
        await process.stdout.readline()  # it is there, and waits
        await asyncio.sleep(siege.seconds)
        with neighbour.beside():
            process.stdin.write(b"go\n")
            said.update(json.loads((await process.communicate())[0]))
        await asyncio.sleep(1)  # what it has left behind is nobody's
    neighbour.ends()
    await watching
    measuring.cancel()
    return {
        "asked": len(neighbour.times[True]),
        "p50": [_share(times, 0.5) for times in neighbour.times.values()],
        "p99": [_share(times, 0.99) for times in neighbour.times.values()],
        "work": [_share(work, 0.99) for work in neighbour.work.values()],
        "failed": dict(neighbour.failed),
        **most,
        "log": siege.log.stat().st_size - logged,
        "attacker": dict(said),
    }


def _share(values: list[float], share: float) -> float:
    return sorted(values)[int(len(values) * share)]


@contextmanager
def server(log: Path) -> Iterator[tuple[str, int]]:
    """`akunu serve` with two keys."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "keys"
        file.write_text("".join(f"{key} {name}\n" for name, key in KEYS.items()))
        code = "from akunu.cli import main; import sys; sys.exit(main(sys.argv[1:]))"
        options = ["ember", "ember-speech", "--port", "0", "-t", "1", "--api-key-file", str(file)]
        with log.open("wb") as output:
            process = subprocess.Popen([sys.executable, "-c", code, "serve", *options], stderr=output)
        try:
            while not (found := re.search(r"at (http://[^\]]+)\]", log.read_text(errors="replace"))):
                assert process.poll() is None, log.read_text()
                time.sleep(0.1)
            yield found[1], process.pid
        finally:
            process.terminate()
            process.wait(40)


def main() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    if sys.argv[1:2] == ["--attack"]:
        name, url, pid, seconds = sys.argv[2:]
        os.setpriority(os.PRIO_PROCESS, 0, 10)  # whatever the server's and the neighbour's is
        siege = Siege(url, int(pid), Path(os.devnull), float(seconds))
        print("ready", flush=True)
        sys.stdin.readline()
        asyncio.run(globals()[name](siege))
        print(json.dumps(siege.statuses))
        return
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="*", choices=[attack.__name__ for attack in ATTACKS])
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, server(log := Path(folder) / "log") as (url, pid):
        siege = Siege(url, pid, log, chosen.seconds)
        heads = ("", "asked", "p50 ms", "", "p99 ms", "", "ratio", "work", "MiB", "files", "log kB")
        print("{:12}{:>6}{:>8}{:>7}{:>8}{:>7}{:>7}{:>7}{:>6}{:>6}{:>8}  failed, attacker".format(*heads))
        for attack in ATTACKS:
            if chosen.only and attack.__name__ not in chosen.only:
                continue
            found = asyncio.run(observed(siege, attack, chosen.rounds))
            times = [value * 1e3 for name in ("p50", "p99") for value in found[name]]
            ratios = [times[3] / times[2], found["work"][1] / found["work"][0]]
            print(
                f"{attack.__name__:12}{found['asked']:6}"
                f"{times[0]:8.1f}{times[1]:7.1f}{times[2]:8.1f}{times[3]:7.1f}{ratios[0]:7.2f}{ratios[1]:7.2f}"
                f"{found['MiB']:6}{found['files']:6}{found['log'] / 1e3:8.1f}  "
                f"{found['failed'] or '-'} {found['attacker']}",
                flush=True,
            )


if __name__ == "__main__":
    main()

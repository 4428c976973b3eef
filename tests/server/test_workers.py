"""Work beside the event loop: clients take turns, and what is too long is refused before it is read."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import threading
import time
from itertools import pairwise

import pytest

from akunu.server.workers import CLIENT, LARGE, Workers


def test_a_client_with_much_work_delays_nobody_elses(workers: Workers) -> None:
    """Three hundred prompts of one client wait; that of another is next."""
    done: list[str] = []
    go = threading.Event()

    async def ask(client: str, first: bool = False) -> None:
        CLIENT.set(client)
        await workers.prompt(0, lambda: go.wait(10) if first else done.append(client))

    async def run() -> None:
        blocked = [asyncio.create_task(ask("many", first=True)) for _ in range(4)]
        waiting = [asyncio.create_task(ask("many")) for _ in range(300)]
        await asyncio.sleep(0)
        waiting.append(asyncio.create_task(ask("one")))
        await asyncio.sleep(0)
        go.set()
        await asyncio.gather(*blocked, *waiting)

    asyncio.run(run())
    assert len(done) == 301 and done.index("one") < 10


def test_a_client_leaves_a_thread_that_compiles_for_others(workers: Workers) -> None:
    go = threading.Event()
    done: list[str] = []

    async def ask(client: str, *, blocked: bool = True) -> None:
        CLIENT.set(client)
        await workers.compiled(lambda: go.wait(20) if blocked else None)
        done.append(client)

    async def run() -> None:
        many = [asyncio.create_task(ask("many")) for _ in range(9)]
        await asyncio.sleep(0.05)
        await asyncio.wait_for(ask("one", blocked=False), 10)
        assert done == ["one"]
        go.set()
        await asyncio.gather(*many)

    asyncio.run(run())
    assert len(done) == 10


@pytest.mark.parametrize("kind", ["constraints", "large requests"])
def test_threads_work_for_a_client_for_half_of_the_time_where_others_come(kind: str) -> None:
    """Another's is done meanwhile, in the same thread."""
    took, done = 0.05, list[tuple[str, float, float]]()

    async def ask(workers: Workers, client: str) -> None:
        CLIENT.set(client)
        run = workers.compiled if kind == "constraints" else functools.partial(workers.sized, LARGE)
        began = await run(lambda: (time.monotonic(), time.sleep(took))[0])
        done.append((client, began, began + took))

    async def run() -> None:
        with contextlib.closing(Workers(lambda client: client == "many")) as workers:
            await asyncio.gather(*(ask(workers, client) for client in ("many", "many", "many", "one", "two")))

    asyncio.run(run())
    many = sorted(times for client, *times in done if client == "many")
    assert len(many) == 3 and len(done) == 5
    assert all(later[0] - earlier[1] >= took for earlier, later in pairwise(many))


def test_work_that_waits_is_cancelled_at_the_end() -> None:
    workers, go = Workers(), threading.Event()

    async def run() -> None:
        running = asyncio.create_task(workers.compiled(lambda: go.wait(20)))
        await asyncio.sleep(0.05)
        waiting = asyncio.create_task(workers.compiled(lambda: pytest.fail("the server has ended")))
        await asyncio.sleep(0.05)
        closing = threading.Thread(target=workers.close)
        closing.start()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        go.set()
        assert await running
        closing.join()

    asyncio.run(run())


def test_work_that_fails_or_is_left_leaves_the_threads_as_they_were(workers: Workers) -> None:
    async def run() -> None:
        with pytest.raises(ZeroDivisionError):
            await workers.prompt(0, lambda: 1 // 0)
        go = threading.Event()
        blocked = [asyncio.create_task(workers.prompt(0, go.wait, 10)) for _ in range(4)]
        await asyncio.sleep(0.01)
        left = asyncio.create_task(workers.prompt(0, lambda: pytest.fail("nobody waits for it")))
        await asyncio.sleep(0.01)
        left.cancel()
        go.set()
        await asyncio.gather(*blocked)
        assert await workers.prompt(0, lambda: 3) == 3

    asyncio.run(run())


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages", "/v1/responses", "/apply-template"])
def test_more_messages_than_the_context_has_tokens_are_not_even_read(served, path: str) -> None:
    """Other faults of such messages go unnoticed."""
    messages = [{"role": "user", "content": 7, "unknown": "x" * 30}] * 3000
    body = {"model": "ember", "input" if path.endswith("responses") else "messages": messages}
    assert len(json.dumps(body)) > LARGE
    answer = served.post(path, **body)
    assert answer.status_code == 400, answer.text
    words = answer.json()["error"]["message"]
    assert "3000" in words and "2048" in words


def test_a_large_request_with_few_messages_is_read(served) -> None:
    messages = [{"role": "user", "content": "x", "unknown": "y" * LARGE}]
    error = served.post("/v1/chat/completions", model="ember", messages=messages).json()["error"]
    assert error["param"] == "messages[0].unknown"

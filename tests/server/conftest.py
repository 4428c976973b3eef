"""Servers on free ports, in a thread of the test's process."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Iterator

import httpx
import pytest
import uvicorn

from akunu.server import ModelSpec, Settings, create_app
from akunu.server.generations import Server
from akunu.server.listening import listen
from akunu.server.preloading import Preload
from akunu.server.run import uvicorn_config
from akunu.server.workers import Workers
from api.encoders import wordpiece

EMBER = ModelSpec(name="ember", path="ember", aliases=("gpt-*",), preload=True, threads=1)


class Served:
    """A server that runs."""

    def __init__(self, app, port: int, config) -> None:
        self.app = app
        self.config = config
        self.url = f"http://127.0.0.1:{port}"
        # To read the certificates takes 24 ms of a processor, for each client.
        self.http = httpx.Client(base_url=self.url, timeout=60, trust_env=False, verify=False)

    @property
    def server(self) -> Server:
        return self.app.state.server

    @property
    def ember(self):
        return self.server.models.find("ember")

    def post(self, path: str, **fields) -> httpx.Response:
        return self.http.post(path, json=fields)

    def chat(self, text: str = "Hello!", **fields) -> httpx.Response:
        fields = {"model": "ember", "temperature": 0, **fields}
        fields.setdefault("messages", [{"role": "user", "content": text}])
        return self.post("/v1/chat/completions", **fields)


@pytest.fixture
def workers() -> Iterator[Workers]:
    """The threads of a registry that has no server."""
    with contextlib.closing(Workers()) as threads:
        yield threads


@contextlib.contextmanager
def serving(
    *models: ModelSpec, settings: Settings | None = None, preload: Preload | None = None, send_buffer: int = 0
) -> Iterator[Served]:
    """A server of these models (ember, if none), until the end of the block."""
    app = create_app(models or (EMBER,), settings, preload)
    with listen("127.0.0.1", 0) as sock:
        if send_buffer:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer)
        config = uvicorn_config(app)
        server = uvicorn.Server(config)

        async def run() -> None:
            await asyncio.to_thread(int)  # the sweep takes this thread, whatever test is running by then
            await server.serve(sockets=[sock])

        thread = threading.Thread(target=lambda: asyncio.run(run()), daemon=True)
        thread.start()
        served = Served(app, sock.getsockname()[1], config)
        try:
            wait_until(lambda: server.started or not thread.is_alive())
            assert server.started
            yield served
        finally:
            served.http.close()
            server.should_exit = True
            thread.join(30)


def wait_until(condition, seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.005)


@pytest.fixture(scope="session")
def encoders(tmp_path_factory: pytest.TempPathFactory) -> list[ModelSpec]:
    """A model that makes vectors, and one that scores documents; both are tiny and know nothing."""
    kinds = {"vectors": "bert", "scores": "bert_rank"}
    return [
        ModelSpec(name=name, path=str(wordpiece.write_model(model, tmp_path_factory.mktemp(name))), threads=1)
        for name, model in kinds.items()
    ]


@pytest.fixture(scope="session")
def served(encoders: list[ModelSpec]) -> Iterator[Served]:
    """A server with the default settings, for all tests that leave it as it was."""
    with serving(EMBER, *encoders) as found:
        yield found


@pytest.fixture
def quiet(served: Served) -> Iterator[Served]:
    """The same; afterwards nothing may run on it."""
    yield served
    wait_until(lambda: served.ember.queued == 0 and served.ember.users == 0)
    assert served.ember.model._scheduler.running() == []

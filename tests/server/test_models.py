"""Models that come and go while others are used: loads, downloads and unloads do not wait for each other."""

from __future__ import annotations

import asyncio
import threading

import pytest

from akunu.base.errors import ModelFileError
from akunu.server import ModelSpec, Settings
from akunu.server import models as module
from akunu.server.errors import ApiError
from akunu.server.models import Registry

from .conftest import serving, wait_until

SPECS = [ModelSpec(name=name, path="ember", threads=1) for name in ("slow", "quick")]


@pytest.fixture
def download(monkeypatch):
    """The files of "slow" come when this is set."""
    here, find = threading.Event(), module.find_model
    calls = []

    def find_model(spec):
        if spec.name == "slow":
            calls.append(spec)
            assert here.wait(60)
        return find(spec)

    monkeypatch.setattr(module, "find_model", find_model)
    here.calls = calls
    yield here
    here.set()


def test_a_download_keeps_no_other_model_from_being_loaded(download):
    with serving(*SPECS) as served:
        answers = []
        ask = threading.Thread(target=lambda: answers.append(served.chat(model="slow", max_tokens=1)))
        ask.start()
        wait_until(lambda: download.calls)
        assert served.chat(model="quick", max_tokens=1).status_code == 200
        assert answers == []
        download.set()
        ask.join(30)
        assert answers[0].status_code == 200


def test_a_download_counts_in_the_time_of_a_request_and_goes_on_after_it(download):
    with serving(*SPECS, settings=Settings(max_seconds=0.3)) as served:
        for _ in range(2):
            answer = served.chat(model="slow", max_tokens=1)
            assert (answer.status_code, answer.json()["error"]["code"]) == (504, "timeout")
            assert "is being fetched" in answer.json()["error"]["message"]
        slow = served.server.models.find("slow")
        assert slow.users == 0
        download.set()
        wait_until(lambda: slow.model is not None)
    assert len(download.calls) == 1


def test_a_server_that_ends_does_not_wait_for_a_download(download):
    with serving(*SPECS, settings=Settings(max_seconds=0.2)) as served:
        assert served.chat(model="slow", max_tokens=1).status_code == 504
    assert not download.is_set()


def test_all_who_wait_for_a_model_are_told_what_is_wrong_with_it(monkeypatch, workers):
    calls, go_on = [], threading.Event()

    def find_model(spec):
        calls.append(spec)
        assert go_on.wait(30)
        raise ModelFileError("it is damaged")

    monkeypatch.setattr(module, "find_model", find_model)

    async def scenario() -> None:
        registry = Registry(SPECS, 4, None, workers)

        async def use() -> str:
            try:
                async with registry.use("slow"):
                    return "loaded"
            except ApiError as error:
                return error.message

        waiting = [asyncio.create_task(use()) for _ in range(5)]
        while not calls:
            await asyncio.sleep(0.01)
        go_on.set()
        said = await asyncio.gather(*waiting)
        assert len(calls) == 1
        assert set(said) == {"model: slow cannot be loaded: it is damaged"}
        await registry.close()

    asyncio.run(scenario())


class _Model:
    """A model that takes its time to end, and of which one may be there."""

    there = 0

    def __init__(self) -> None:
        assert _Model.there == 0, "it is loaded twice at a time"
        _Model.there += 1

    def close(self) -> None:
        threading.Event().wait(0.05)
        _Model.there -= 1


def test_unloading_and_loading_never_overlap(monkeypatch, workers):
    """A request that comes while a model is being unloaded waits for its end, and has it loaded again."""

    class Found:
        bytes = 1

    monkeypatch.setattr(module, "find_model", lambda spec: Found())
    monkeypatch.setattr(module, "load_model", lambda spec, found: module_loaded())
    monkeypatch.setattr(module.Entry, "totals", lambda self: self.earlier)
    monkeypatch.setattr(module, "kind_of", lambda model: module.TEXT)

    def module_loaded():
        from akunu.server.preloading import LoadedModel

        model = _Model()
        model.memory = "none"
        return LoadedModel(model, {}, 1)

    async def scenario() -> None:
        registry = Registry(SPECS[:1], 4, None, workers)
        entry = registry.find("slow")
        refused = 0

        async def use(n: int) -> None:
            for _ in range(10):
                async with registry.use("slow") as found:
                    assert found.model is not None
                    await asyncio.sleep(0.001 * n)
                    assert found.model is not None
                await asyncio.sleep(0.002 * n)

        async def unload() -> None:
            nonlocal refused
            for _ in range(40):
                try:
                    await registry.unload(entry)
                except ApiError as error:
                    assert error.status == 409
                    refused += 1
                await asyncio.sleep(0.003)

        await asyncio.gather(*(use(n) for n in range(3)), unload(), unload())
        await registry.close()
        assert refused
        assert _Model.there == 0

    asyncio.run(scenario())


def test_a_model_says_how_many_parameters_it_has(served) -> None:
    n_params = served.http.get("/v1/models/ember").json()["parameters"]
    assert n_params == served.ember.model.n_params == 8_917_248  # as `akunu inspect` has it
    details = served.post("/api/show", model="ember").json()["details"]
    assert details["parameter_size"] == f"{n_params / 1e6:.3g}M"

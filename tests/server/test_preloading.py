"""A model that loads before its server is there, and what is done while no request is."""

from __future__ import annotations

import asyncio
import time

import pytest

from akunu.base.errors import AkunuError
from akunu.server import ModelSpec, app
from akunu.server.models import Registry
from akunu.server.preloading import Preload

from .conftest import EMBER, serving, wait_until


def begun(spec: ModelSpec) -> Preload:
    preload = Preload(spec)
    preload.begin()
    return preload


def test_a_load_that_has_begun_is_taken_once():
    preload = begun(EMBER)
    with serving(EMBER, preload=preload) as served:
        assert served.ember.model is preload.loaded.result().model
        assert served.ember.bytes > 0
        assert served.chat(max_tokens=1).status_code == 200
        assert served.post("/admin/unload", model="ember").status_code == 200
        assert served.chat(max_tokens=1).status_code == 200
        assert served.ember.model is not preload.loaded.result().model


def test_what_is_wrong_with_it_is_said_by_the_server(workers):
    spec = ModelSpec(name="none", path="no-such.gguf", preload=True)
    registry = Registry([spec], 1, None, workers, begun(spec))
    with pytest.raises(AkunuError, match="none cannot be loaded: no model"):
        asyncio.run(registry.preload())


def test_constraints_are_prepared_once_no_request_is_there(monkeypatch):
    with serving(EMBER) as served:
        monkeypatch.setattr(app, "_SWEEP_SECONDS", 0.01)  # from the second time on
        served.ember.users += 1  # as long as a request would be there
        time.sleep(1.3)
        assert not served.ember.constraints_prepared
        served.ember.users -= 1
        wait_until(lambda: served.ember.constraints_prepared)
        wait_until(lambda: "_grammar_tokens" in vars(served.ember.model._compiler))
        monkeypatch.setattr("akunu.chat.structured.compiler.VocabularyView", None)  # nothing is left to make
        assert served.chat(max_tokens=1, regex="[ab]").json()["choices"][0]["message"]["content"] in "ab"


def test_what_has_no_constraints_is_left_alone(encoders, monkeypatch):
    monkeypatch.setattr(app, "_SWEEP_SECONDS", 0.01)
    with serving(*encoders) as served:
        assert served.post("/v1/embeddings", model="vectors", input="a").status_code == 200
        wait_until(lambda: served.server.models.find("vectors").constraints_prepared)
        assert served.post("/v1/embeddings", model="vectors", input="a").status_code == 200

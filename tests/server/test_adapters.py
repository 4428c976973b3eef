"""Adapters by their names: in requests, in a file of models, and on the command line."""

from __future__ import annotations

import io
import json
from pathlib import Path

import gguf
import numpy as np
import pytest

from akunu import _core
from akunu.cli import main
from akunu.loading.finding import FoundModel
from akunu.server import ModelSpec, Settings
from akunu.server.catalog import from_place

from .conftest import serving
from .test_limits import keys


@pytest.fixture(scope="module")
def adapter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An adapter of ember's own shapes, with which it says something else."""
    path, rng = tmp_path_factory.mktemp("adapter") / "pirate.gguf", np.random.default_rng(1)
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_string("general.type", "adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", 8.0)
    for tensor in _core.GgufFile(str(FoundModel("ember").path)).tensors:
        if tensor.name.endswith("ffn_down.weight"):
            rows, cols = tensor.shape
            a, b = rng.normal(size=(4, cols)) / cols**0.5, rng.normal(size=(rows, 4))
            writer.add_tensor(f"{tensor.name}.lora_a", np.float32(a))
            writer.add_tensor(f"{tensor.name}.lora_b", np.float32(b))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def said(served, **more):
    answer = served.chat(temperature=0, max_tokens=12, **more)
    assert answer.status_code == 200, answer.text
    return answer.json()["choices"][0]["message"]["content"]


def test_a_request_names_its_adapter(adapter):
    spec = ModelSpec(name="ember", path="ember", threads=1, device="cpu", adapters={"pirate": str(adapter)})
    with serving(spec) as served:
        plain, adapted = said(served), said(served, adapter="pirate")
        assert adapted != plain
        assert said(served, adapter="pirate", adapter_scale=0) == plain == said(served)
        refused = served.chat(adapter="none")
        assert refused.status_code == 400 and "pirate" in refused.text


def test_a_file_of_models_names_adapters_beside_it(adapter):
    file = adapter.with_name("models.toml")
    file.write_text('[[model]]\nname = "a"\npath = "ember"\nadapters = {pirate = "pirate.gguf"}\n')
    (spec,) = from_place(file)
    assert spec.adapters == {"pirate": str(adapter)}


def test_the_command_line_takes_one(adapter, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO())

    def run(*words: str) -> str:
        assert main(["run", "-t", "1", "--device", "cpu", "--temp", "0", "-n", "12", *words]) == 0
        return capsys.readouterr().out

    plain = run("What is the capital of France?")
    assert run("--adapter", str(adapter), "What is the capital of France?") != plain
    for wrong in (["--adapter", "=x"], ["--adapter", "a=x", "--adapter", "b=x"]):
        assert main(["run", *wrong, "Hello?"]) == 2
        assert "--adapter" in capsys.readouterr().err


def test_a_model_with_an_adapter_has_a_name(adapter):
    spec = ModelSpec(name="ember", path="ember", threads=1, device="cpu", adapters={"pirate": str(adapter)})
    with serving(spec) as served:
        wanted, plain = said(served, adapter="pirate"), said(served)
        assert said(served, model="pirate") == said(served, model="ember:pirate") == wanted != plain
        assert said(served, model="pirate", adapter_scale=0) == plain
        refused = served.chat(model="pirate", adapter="other")
        assert refused.status_code == 400 and "pirate" in refused.text
        assert served.chat(model="ember:none").status_code == 404
        cards = {card["id"]: card for card in served.http.get("/v1/models").json()["data"]}
        assert list(cards) == ["ember", "pirate"]
        assert cards["pirate"]["parent"] == "ember" and cards["pirate"]["root"] == str(adapter)
        assert served.http.get("/v1/models/ember:pirate").json()["parent"] == "ember"
        native = {"prompt": "Once", "n_predict": 8, "temperature": 0}
        texts = [
            served.http.post("/completion", json=native | more).json()["content"]
            for more in ({}, {"lora": [{"id": 0, "scale": 1.0}]}, {"model": "pirate"}, {"adapter": "pirate"})
        ]
        assert texts[0] != texts[1] == texts[2] == texts[3]
        assert served.http.post("/completion", json=native | {"lora": [{"id": 3}]}).status_code == 400


def test_requests_that_name_no_adapter_have_that_of_the_model(adapter):
    spec = ModelSpec(name="ember", path="ember", threads=1, device="cpu", adapters={"pirate": str(adapter)})
    with serving(spec) as served:
        plain, wanted = said(served), said(served, adapter="pirate")
        listed = [{"id": 0, "name": "pirate", "path": str(adapter), "scale": 0.0}]
        assert served.http.get("/lora-adapters").json() == listed
        done = served.http.post("/lora-adapters", json=[{"id": 0, "scale": 1.0}])
        assert done.status_code == 200, done.text
        assert said(served) == wanted
        assert served.http.get("/lora-adapters").json()[0]["scale"] == 1.0
        assert served.http.post("/lora-adapters", json=[{"id": 1, "scale": 1.0}]).status_code == 400
        assert served.http.post("/lora-adapters", json={"id": 0}).status_code == 400
        assert served.http.post("/lora-adapters", json=[]).status_code == 200
        assert said(served) == plain


def test_an_adapter_comes_and_goes_as_with_vllm(adapter):
    with serving(ModelSpec(name="ember", path="ember", threads=1, device="cpu")) as served:
        asked = {"lora_name": "pirate", "lora_path": str(adapter)}
        plain = said(served)
        done = served.http.post("/v1/load_lora_adapter", json=asked)
        assert done.status_code == 200 and "pirate" in done.text, done.text
        wanted = said(served, model="pirate")
        assert wanted != plain == said(served)
        assert served.http.post("/v1/load_lora_adapter", json=asked).status_code == 400
        missing = served.http.post("/v1/load_lora_adapter", json={"lora_name": "x", "lora_path": "none.gguf"})
        assert missing.status_code == 400 and missing.json()["error"]["param"] == "lora_path"
        assert (
            served.http.post("/v1/load_lora_adapter", json=asked | {"lora_name": "ember"}).status_code == 400
        )
        # It is there again after the model was unloaded.
        assert served.http.post("/admin/unload", json={"model": "ember"}).status_code == 200
        assert said(served, model="pirate") == wanted
        done = served.http.post("/v1/unload_lora_adapter", json={"lora_name": "pirate"})
        assert done.status_code == 200, done.text
        assert served.chat(model="pirate").status_code == 404
        assert served.http.post("/v1/unload_lora_adapter", json={"lora_name": "pirate"}).status_code == 404


@pytest.mark.parametrize("path", ["/v1/load_lora_adapter", "/v1/unload_lora_adapter", "/lora-adapters"])
def test_adapters_are_changed_with_an_admin_key_alone(path):
    with serving(settings=Settings(keys=keys("user-key"))) as served:
        mine = {"authorization": "Bearer user-key"}
        assert served.http.post(path, json=[], headers=mine).status_code == 403
        assert served.http.get("/lora-adapters", headers=mine).status_code == 200


def test_an_adapter_is_inspected(adapter, capsys):
    assert main(["inspect", str(adapter)]) == 0
    shown = capsys.readouterr().out
    assert "adapter (LoRA), GGUF" in shown and "blk.*.ffn_down.weight" in shown and "llama" in shown
    assert main(["inspect", str(adapter), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["ranks"] == [4]
    assert report["adapter"][0]["scale"] == 2.0
    assert main(["inspect", str(adapter), "--plan"]) != 0
    assert "adapter" in capsys.readouterr().err


def test_an_adapter_is_merged_at_the_terminal(adapter, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO())
    base, out = tmp_path / "ember-f32.gguf", tmp_path / "pirate.gguf"  # alike, so that no near tie differs
    assert main(["convert", "ember", str(base), "--type", "f32"]) == 0
    assert main(["convert", "ember", str(out), "--type", "f32", "--merge", str(adapter)]) == 0
    words = ["-t", "1", "--device", "cpu", "--temp", "0", "-n", "12", "What is the capital of France?"]
    texts = []
    for model in (["-m", str(base), "--adapter", str(adapter)], ["-m", str(out)]):
        capsys.readouterr()
        assert main(["run", *model, *words]) == 0
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1]

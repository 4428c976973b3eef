"""Adapters by their names: in requests, in a file of models, and on the command line."""

from __future__ import annotations

import io
from pathlib import Path

import gguf
import numpy as np
import pytest

from akunu import _core
from akunu.cli import main
from akunu.loading.finding import FoundModel
from akunu.server import ModelSpec
from akunu.server.catalog import from_place

from .conftest import serving


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

"""`--adapter` of the commands that measure."""

from __future__ import annotations

import json

import numpy as np
import pytest

import akunu
from akunu import ImportanceMatrix
from akunu.loading.load import load
from models import tiny
from models.test_adapters import matrices, write_gguf

TEXT = "The quick brown fox jumps over the lazy dog. " * 20


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A model, an adapter of it, and a text."""
    monkeypatch.setattr(akunu, "load", load)
    model = tiny.write("llama", "F32", tmp_path / "model.gguf").path
    pairs = matrices(tiny.weights(tiny.EVERY["llama"]), 4, seed=4)
    text = tmp_path / "text.txt"
    text.write_text(TEXT)
    return str(model), str(write_gguf(tmp_path / "pirate.gguf", "llama", pairs)), str(text)


def test_perplexity_is_that_of_the_model_with_the_adapter(akunu_cli, files):
    model, adapter, text = files

    def measured(*options: str) -> float:
        ran = akunu_cli("perplexity", model, text, "--window", "64", "--device", "cpu", "--json", *options)
        assert ran.status == 0, ran.err
        return json.loads(ran.out)["perplexity"]

    with load(model, device="cpu", progress=False, adapters={"a": adapter}) as loaded:
        assert measured("--adapter", adapter) == loaded.perplexity(TEXT, context=64, adapter="a")
        assert measured() == loaded.perplexity(TEXT, context=64)


def test_a_matrix_is_that_of_the_model_with_the_adapter(akunu_cli, files, tmp_path):
    model, adapter, text = files
    for options in ((), ("--adapter", f"a={adapter}")):
        out = tmp_path / f"{len(options)}.gguf"
        ran = akunu_cli("imatrix", model, text, str(out), "--device", "cpu", *options)
        assert ran.status == 0, ran.err
    with load(model, device="cpu", progress=False, adapters={"a": adapter}) as loaded:
        wanted = loaded.importance_matrix(TEXT, adapter="a").means
    found, plain = (ImportanceMatrix.read(tmp_path / f"{n}.gguf").means for n in (2, 0))
    for name in wanted:
        np.testing.assert_allclose(found[name], wanted[name], rtol=1e-5)
    assert any(np.abs(plain[name] / wanted[name] - 1).max() > 1e-3 for name in wanted)


def test_there_is_one_adapter_at_most(akunu_cli, files):
    model, adapter, text = files
    for command in (("perplexity", model, text), ("imatrix", model, text, "out.gguf")):
        ran = akunu_cli(*command, "--adapter", adapter, "--adapter", f"b={adapter}")
        assert (ran.status, "one adapter at most" in ran.err) == (2, True)

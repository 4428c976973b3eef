"""Weights that are quantised while they are loaded are those that a converted file has."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import akunu
from akunu.base.errors import InvalidArgumentError, ModelFileError
from models import folders, tiny
from models.test_engine import nmse


@pytest.mark.parametrize(
    ("name", "file_type"),
    [
        ("llama_256", "q4_k_m"),
        ("phi3_short", "q3_k_l"),
        ("gemma3_256", "q6_k"),
        ("llama_odd", "q8_0"),
        ("qwen3", "f16"),
    ],
)
def test_a_quantised_load_equals_a_converted_file(name: str, file_type: str, tmp_path: Path) -> None:
    folder = folders.write(name, tmp_path / name)
    path = akunu.convert(folder, tmp_path / "out.gguf", file_type, progress=False)
    ids = tiny.golden(name).prompt
    found = []
    for source, quantize in ((folder, file_type), (path, None), (path, file_type), (folder, None)):
        with akunu.load(
            source,
            quantize=quantize,
            device="cpu",
            kv_dtype="f32",
            threads=1,
            context=tiny.CONTEXT,
            progress=False,
        ) as model:
            found.append(np.asarray(model.logits(ids)))
    # The rows of heads lie in another order, rotary divisors differ in a last bit, and activations are
    # rounded to eight bits.
    assert nmse(found[0], found[1]) < 1e-4
    np.testing.assert_array_equal(found[1], found[2])
    assert nmse(found[0], found[3]) > 1e-12


def test_a_quantised_load_takes_less_memory(tmp_path: Path) -> None:
    folder = folders.write("llama_256", tmp_path)
    sizes = []
    for quantize in (None, "q8_0", "q4_0"):
        with akunu.load(folder, quantize=quantize, device="cpu", progress=False) as model:
            sizes.append(model.memory.weights + model.memory.weights_mapped)
    assert sizes[2] < 0.2 * sizes[0] < sizes[1] < 0.35 * sizes[0]


def test_an_unknown_type_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="quantize: no 'q4'; there is f32, f16"):
        akunu.load("ember", quantize="q4", progress=False)


def test_no_number_is_refused_by_name(tmp_path: Path) -> None:
    def spoiled(weights: tiny.Weights) -> tiny.Weights:
        bad = weights["model.layers.1.mlp.up_proj.weight"].copy()
        bad[3, 5] = np.inf
        return weights | {"model.layers.1.mlp.up_proj.weight": bad}

    folder = folders.write("llama", tmp_path / "folder", arrays=spoiled)
    with pytest.raises(ModelFileError, match=r"model\.layers\.1\.mlp\.up_proj\.weight"):
        akunu.load(folder, quantize="q4_0", device="cpu", progress=False)

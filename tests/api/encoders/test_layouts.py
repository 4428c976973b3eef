"""Layouts of Sentence Transformers' folders: a model in a folder of its own, and tables of vectors."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from akunu.base.errors import ModelFileError, UnsupportedError
from akunu.files.hub.files import folder_files
from akunu.loading.conversion import convert
from formats import safetensors_bytes

from . import wordpiece
from .test_reference import nmse, opened

TEXTS = ["The cat sits on the mat.", "hello world", "Rome is a city; cats eat mice?", "x"]
TYPE = "sentence_transformers.models."


def modules(*steps: tuple[str, str]) -> str:
    return json.dumps(
        [
            {"idx": i, "name": str(i), "path": path, "type": TYPE + kind}
            for i, (kind, path) in enumerate(steps)
        ]
    )


def older(folder: Path) -> Path:
    """Write a folder as Sentence Transformers 1 wrote it."""
    inside = wordpiece.write_model("bert", folder / "0_Transformer")
    (inside / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 40}))
    (inside / "tokenizer_config.json").write_text(json.dumps({"truncation_side": "left"}))
    (folder / "modules.json").write_text(modules(("Transformer", "0_Transformer"), ("Pooling", "1_Pooling")))
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode_mean_tokens": True}))
    return folder


def test_a_model_in_a_folder_of_its_own(tmp_path: Path) -> None:
    folder = older(tmp_path / "old")
    with opened(wordpiece.write_model("bert", tmp_path / "plain")) as model:
        expected = model.embed(TEXTS)
    with opened(folder) as model:
        assert model.context == 40
        assert model.name == "old"
        np.testing.assert_array_equal(model.embed(TEXTS), expected)
        cut = model.embed("cat " * 50 + "mat", truncate=True)  # at its front, by the tokenizer's file there
        assert not np.allclose(cut, model.embed("cat " * 38))
    with pytest.raises(UnsupportedError, match="has its model in 0_Transformer"):
        convert(folder, tmp_path / "out", type="mlx-f16")
    shutil.rmtree(folder / "0_Transformer")
    with pytest.raises(ModelFileError, match="0_Transformer: cannot be read"):
        opened(folder)


def test_the_files_of_such_a_model_are_those_that_are_fetched() -> None:
    inside = [
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "sentence_bert_config.json",
        "pytorch_model.bin",
    ]
    repository = [
        ".gitattributes",
        "modules.json",
        "1_Pooling/config.json",
        *(f"0_Transformer/{f}" for f in inside),
    ]
    found = folder_files(repository)
    assert found[0] == "0_Transformer/config.json"
    assert set(found) == set(repository) - {".gitattributes", "0_Transformer/pytorch_model.bin"}
    table = ["README.md", "model.safetensors", "modules.json", "tokenizer.json"]
    assert folder_files(table) == ["modules.json", "tokenizer.json", "model.safetensors"]
    own = [f"0_StaticEmbedding/{file}" for file in ("model.safetensors", "tokenizer.json")]
    table = ["README.md", *own, "config_sentence_transformers.json", "modules.json"]
    assert folder_files(table)[0] == "modules.json"
    assert set(folder_files(table)) == set(table[1:])


@pytest.mark.parametrize(
    "kind", ["bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet"]
)
def test_the_length_may_be_in_a_file_of_the_models_own_name(kind: str, tmp_path: Path) -> None:
    folder = older(tmp_path / "old")
    inside = folder / "0_Transformer"
    (inside / "sentence_bert_config.json").rename(inside / f"sentence_{kind}_config.json")
    assert f"sentence_{kind}_config.json" in folder_files([file.name for file in inside.iterdir()])
    with opened(folder) as model:
        assert model.context == 40


def static(folder: Path, name: str, dtype: str, *more: tuple[str, str]) -> np.ndarray:
    """Write a table of vectors; returns it in float64."""
    folder.mkdir()
    library = wordpiece.library()
    rng = np.random.default_rng(5)
    table = rng.normal(0, 1, (library.get_vocab_size(), 48)).astype({"F32": "<f4", "F16": "<f2"}[dtype])
    safetensors_bytes.write_tensors(folder / "model.safetensors", {name: table}, dtype)
    library.save(str(folder / "tokenizer.json"))
    (folder / "modules.json").write_text(modules(("StaticEmbedding", "."), *more))
    return table.astype(np.float64)


@pytest.mark.parametrize(("name", "dtype"), [("embedding.weight", "F32"), ("embeddings", "F16")])
@pytest.mark.parametrize("configured", [False, True])
def test_a_table_of_vectors(name: str, dtype: str, configured: bool, tmp_path: Path) -> None:
    """Sentence Transformers' `StaticEmbedding`: the mean of the rows of an input's tokens, and none added."""
    table = static(tmp_path / "static", name, dtype, ("Normalize", "1_Normalize"))
    if configured:  # model2vec's, of which nothing is needed
        (tmp_path / "static" / "config.json").write_text(json.dumps({"model_type": "model2vec"}))
    library = wordpiece.library()
    expected = np.stack(
        [table[library.encode(text, add_special_tokens=False).ids].mean(axis=0) for text in TEXTS]
    )
    with opened(tmp_path / "static") as model:
        assert model.dimensions == 48
        assert nmse(model.embed(TEXTS, normalize=False), expected) < 1e-12
        lengths = np.linalg.norm(expected, axis=1, keepdims=True)
        assert nmse(model.embed(TEXTS), expected / lengths) < 1e-12
        assert nmse(model.embed(["hello world " * 2000], normalize=False), expected[1:2]) < 1e-9


@pytest.mark.parametrize("other", ["mapping", "weights"])
def test_a_table_whose_tokens_share_rows_is_refused(other: str, tmp_path: Path) -> None:
    table = static(tmp_path / "static", "embeddings", "F32").astype("<f4")
    tensors = {"embeddings": table, other: table[:, 0].copy()}
    safetensors_bytes.write_tensors(tmp_path / "static" / "model.safetensors", tensors, "F32")
    with pytest.raises(UnsupportedError, match=f"tensor {other}: .* a row for each token"):
        opened(tmp_path / "static")


def test_a_table_without_its_tensor_is_refused(tmp_path: Path) -> None:
    static(tmp_path / "static", "table", "F32")
    with pytest.raises(ModelFileError, match=r"tensor embedding\.weight is missing"):
        opened(tmp_path / "static")

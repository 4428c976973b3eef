"""GGUF files of models that make vectors, as folders: the same vectors, and what other readers ask for."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest

import akunu
from akunu import _core
from akunu.base.errors import UnsupportedError
from api.encoders import gguf_file, tiny, wordpiece
from api.encoders.test_reference import floats, nmse, opened, vectors
from tokenizer.test_unigram import trained as trained
from tokenizer.vocabularies import data_file, inputs_and_ids

from .test_encoders import CONVERTED, TEXTS, as_wide_as_the_model, converted
from .test_folder_tokenizers import written

NAMES = [*(name for name in CONVERTED if name != "distil"), "gemma_plain"]
"""Models of which there are GGUF files; a DistilBERT's is a BERT without token types, which no folder has."""
NOT_SAID = {"max_window_layers", "tie_word_embeddings", "layer_types"}
"""Keys that matter only where there is a window, or a head."""


def golden(name: str) -> tiny.Golden:
    model = tiny.golden(name)
    return as_wide_as_the_model(model) if name == "gemma_plain" else model


def folder_of(path: Path, file_type: str = "mlx-f32") -> Path:
    return akunu.convert(path, path.with_name("made"), file_type, progress=False)


@pytest.mark.parametrize("name", NAMES)
def test_a_file_becomes_the_folder_it_was_made_of(name: str, tmp_path: Path) -> None:
    model = golden(name)
    made = folder_of(converted(model, tmp_path))
    with opened(made) as found, opened(tmp_path / "folder") as source:
        expected = vectors(source, model.texts, model.second)
        np.testing.assert_array_equal(vectors(found, model.texts, model.second), expected)
        assert found.config.encoder == source.config.encoder
        if name != "gemma_plain":
            assert nmse(expected, model.vectors) < floats(source)

    ours, theirs = json.loads((made / "config.json").read_text()), model.config
    roberta = {"model_type", "architectures", "max_position_embeddings"} if "roberta" in name else set()
    for key in ours.keys() & theirs.keys() - NOT_SAID - roberta:
        if not key.endswith("_token_id"):  # the tokenizer's, of which this model has none
            assert ours[key] == theirs[key], key
    rank = "Classification" in theirs["architectures"][0]
    assert rank == ours["architectures"][0].endswith("ForSequenceClassification")
    assert (made / "modules.json").exists() is not rank


def test_heads_may_be_wider_than_their_share_of_a_row(tmp_path: Path) -> None:
    model = tiny.golden("nomic")
    model.config["head_dim"] = 24
    for name, array in model.weights.items():
        if "attn.Wqkv" in name:
            model.weights[name] = np.concatenate([array, array[:96]])
        elif "attn.out_proj" in name:
            model.weights[name] = np.concatenate([array, array[:, :32]], axis=1)
    made = folder_of(converted(model, tmp_path))
    assert json.loads((made / "config.json").read_text())["head_dim"] == 24
    with opened(made) as found, opened(tmp_path / "folder") as source:
        expected = vectors(source, model.texts, model.second)
        np.testing.assert_array_equal(vectors(found, model.texts, model.second), expected)


@pytest.mark.parametrize("name", gguf_file.NAMES)
def test_files_by_the_names_of_gguf_py(name: str, tmp_path: Path) -> None:
    model = tiny.golden(name)
    made = folder_of(gguf_file.write(model, tmp_path / "model.gguf"))
    with opened(made) as found:
        assert nmse(vectors(found, model.texts, model.second), model.vectors) < floats(found)


@pytest.mark.parametrize("name", ["bert_rank", "modern", "nomic", "qwen3"])
def test_codes_are_those_that_the_folder_of_the_model_gives(name: str, tmp_path: Path) -> None:
    made = folder_of(converted(tiny.golden(name), tmp_path), "mlx-8bit")
    wanted = akunu.convert(tmp_path / "folder", tmp_path / "wanted", "mlx-8bit", progress=False)
    ours, theirs = (_core.SafetensorsFiles([str(p / "model.safetensors")]) for p in (made, wanted))
    shared = {tensor.name for tensor in ours.tensors}
    assert not {t.name for t in theirs.tensors} - shared - {"pooler.dense.weight", "pooler.dense.bias"}
    assert any(name.endswith(".scales") for name in shared)
    for tensor in ours.tensors:
        found, expected = ours.tensor_bytes(tensor.name), theirs.tensor_bytes(tensor.name)
        np.testing.assert_array_equal(found, expected, tensor.name)


def test_sentence_transformers_modules(tmp_path: Path) -> None:
    made = folder_of(converted(golden("gemma_plain"), tmp_path))
    kinds = [module["type"].rpartition(".")[2] for module in json.loads((made / "modules.json").read_text())]
    assert kinds == ["Transformer", "Pooling", "Dense", "Dense", "Normalize"]
    layer = json.loads((made / "3_Dense" / "config.json").read_text())
    assert (layer["in_features"], layer["out_features"], layer["bias"]) == (96, 64, False)
    weights = _core.SafetensorsFiles([str(made / "3_Dense" / "model.safetensors")])
    assert [(t.name, t.shape) for t in weights.tensors] == [("linear.weight", (64, 96))]
    pooling = json.loads((made / "1_Pooling" / "config.json").read_text())
    assert [key for key, value in pooling.items() if value is True] == [
        "pooling_mode_mean_tokens", "include_prompt",
    ]  # fmt: skip


def test_wordpiece_gives_the_published_ids(tmp_path: Path) -> None:
    keys = _core.GgufFile(str(data_file("vocab/ggml-vocab-bert-bge.gguf"))).metadata
    ours, library, read = written(dict(keys), tmp_path)
    for text, ids in inputs_and_ids("bert-bge"):
        assert library.encode(text, add_special_tokens=False).ids == ids, text
        assert read.encode(text, add_special=False) == ids, text
        assert read.encode(text) == ours.encode(text) == library.encode(text).ids
    said = library.encode("who eats mice?").ids
    assert library.decode(said) == "who eats mice?"
    assert (read.bos_id, read.eos_id, read.template) == (ours.bos_id, ours.eos_id, ours.template)
    pair = library.encode("a cat", "the dog")
    cls, sep = ours.bos_id, ours.eos_id
    first, second = (ours.encode(text, add_special=False) for text in ("a cat", "the dog"))
    assert pair.ids == [cls, *first, sep, *second, sep]
    assert pair.type_ids == [0] * (len(first) + 2) + [1] * (len(second) + 1)


def test_unigram_is_sentencepieces(trained: tuple[Any, dict[str, Any]], tmp_path: Path) -> None:
    keys = trained[1] | {"general.architecture": "bert", "tokenizer.ggml.add_bos_token": True}
    keys |= {"tokenizer.ggml.bos_token_id": 0, "tokenizer.ggml.add_eos_token": True}
    ours, library, read = written(keys, tmp_path)
    for text in [*TEXTS, "  ﬁne  Ⅷ ①  two", "First Citizen: Before we proceed any further, hear me speak."]:
        assert library.encode(text).ids == ours.encode(text) == read.encode(text), text
    assert read.template == ours.template
    assert len(ours.template.pair.between) == 2
    pair = library.encode("hear me", "speak")
    first, second = (ours.encode(text, add_special=False) for text in ("hear me", "speak"))
    assert pair.ids == [0, *first, 1, 1, *second, 1]
    assert set(pair.type_ids) == {0}


def test_texts_have_the_vectors_of_the_file(tmp_path: Path) -> None:
    wordpiece.write_model("bert", tmp_path / "folder")
    path = akunu.convert(tmp_path / "folder", tmp_path / "model.gguf", "f16", progress=False)
    made = folder_of(path)
    assert sorted(os.listdir(made)) == [
        "1_Pooling", "config.json", "model.safetensors", "modules.json", "sentence_bert_config.json",
        "tokenizer.json", "tokenizer_config.json",
    ]  # fmt: skip
    texts = [text for text in TEXTS if text]
    with opened(path) as file, opened(made) as folder:
        np.testing.assert_allclose(folder.embed(texts), file.embed(texts), atol=1e-6)
        assert folder.context == file.context
    types = {t.name: t.dtype for t in _core.SafetensorsFiles([str(made / "model.safetensors")]).tensors}
    assert set(types.values()) == {"f32"}  # plain `mlx-f32`
    kept = json.loads((made / "tokenizer_config.json").read_text())
    assert {kept[f"{name}_token"] for name in ("cls", "bos")} == {"[CLS]"}
    config = json.loads((made / "config.json").read_text())
    ids = [config[f"{name}_token_id"] for name in ("bos", "cls", "sep", "eos")]
    assert ids == [2, 2, 3, 3]  # numbers: Transformers' class of Nomic's models takes no list


def test_the_type_of_the_matrices_is_kept(tmp_path: Path) -> None:
    """The tables that stay floats of 32 bits in the file say nothing of them."""
    path = converted(tiny.golden("bert"), tmp_path, "f16")
    made = folder_of(path, "mlx-4bit")
    types = {t.name: t.dtype for t in _core.SafetensorsFiles([str(made / "model.safetensors")]).tensors}
    assert set(types.values()) == {"u32", "f16"}
    assert types["embeddings.position_embeddings.weight"] == "f16"
    with opened(path) as file, opened(made) as folder:
        texts, second = tiny.golden("bert").texts, [0] * len(tiny.golden("bert").texts)
        assert nmse(vectors(folder, texts, second), vectors(file, texts, second)) < 0.1  # four bits


def spoiled(source: Path, path: Path, *, without: str = "", **keys: int) -> Path:
    """The file without a tensor, or with other keys."""
    reader = gguf.GGUFReader(source)
    arch = reader.fields["general.architecture"].contents()
    writer = gguf.GGUFWriter(str(path), arch)
    for name, field in reader.fields.items():
        if name.startswith(("GGUF.", "general.architecture")) or name in keys:
            continue
        writer.add_key_value(name, field.contents(), field.types[0])
    for name, value in keys.items():
        writer.add_uint32(name, value)
    for tensor in reader.tensors:
        if not tensor.name.startswith(without or " "):
            writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("bert", {"without": "token_types"}, r"has no tensor token_types\.weight, which every bert model"),
        ("bert_rank", {"without": "cls.weight"}, r"has no tensor cls\.weight, which every bert reranker"),
        (
            "bert_rank",
            {"bert.classifier.pooling_type": 1},
            "encoder: found .*which config.json of a bert model",
        ),
        ("bert", {"bert.context_length": 40}, "context_length: found 40"),
    ],
)
def test_what_no_class_can_say_is_refused(
    name: str, changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    path = spoiled(converted(tiny.golden(name), tmp_path), tmp_path / "spoiled.gguf", **changes)
    with pytest.raises(UnsupportedError, match=message):
        folder_of(path)
    assert not (tmp_path / "made").exists()

"""Models that make vectors, as GGUF files: the same vectors, and what llama.cpp's reader asks for."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import tokenizers

import akunu
from akunu import _core
from akunu.base.errors import UnsupportedError
from akunu.loading.conversion.tokenizer_metadata import tokenizer_metadata
from akunu.tokenizer import Tokenizer
from api.encoders import tiny, wordpiece
from api.encoders.test_reference import floats, nmse, opened, vectors
from tokenizer.test_hf import opened as opened_tokenizer
from tokenizer.test_hf import trained, write

ARCHS = {
    "bert": gguf.MODEL_ARCH.BERT,
    "nomic-bert": gguf.MODEL_ARCH.NOMIC_BERT,
    "modern-bert": gguf.MODEL_ARCH.MODERN_BERT,
    "qwen3": gguf.MODEL_ARCH.QWEN3,
    "gemma-embedding": gguf.MODEL_ARCH.GEMMA_EMBEDDING,
}
FOLDERS_ONLY = {
    "modern_bias": "the head's activation is relu",
    "distil_rank": "the head's activation is relu",
    "mistral_whole": "GGUF cannot say of llama",
}
FOLDERS_ONLY |= {
    name: "cannot be a GGUF file" for name in tiny.names() if name.startswith(("mpnet", "deberta"))
}
CONVERTED = [name for name in tiny.names() if not name.startswith("gemma") and name not in FOLDERS_ONLY]
TEXTS = ["The cat sits on the mat.", "Naïve CAFÉ, résumé?", "rome is a city", ""]


def as_wide_as_the_model(golden: tiny.Golden) -> tiny.Golden:
    """EmbeddingGemma's dense layers, of which the second gives as much as the first takes."""
    weights = dict(golden.weights)
    weights["3_Dense/linear.weight"] = tiny.weights({"w": [64, 96]}, 5)["w"]
    golden.files["3_Dense/config.json"]["out_features"] = 64
    return tiny.Golden(**vars(golden) | {"weights": weights})


def converted(golden: tiny.Golden, tmp_path: Path, file_type: str = "f32") -> Path:
    folder = tiny.write_folder(golden, tmp_path / "folder")
    return akunu.convert(folder, tmp_path / "model.gguf", file_type, progress=False)


@pytest.mark.parametrize("name", CONVERTED)
def test_a_converted_folder_equals_transformers(name: str, tmp_path: Path) -> None:
    golden = tiny.golden(name)
    with opened(converted(golden, tmp_path)) as model:
        assert nmse(vectors(model, golden.texts, golden.second), golden.vectors) < floats(model)


@pytest.mark.parametrize("name", FOLDERS_ONLY)
def test_what_llama_cpp_does_not_read_stays_a_folder(name: str, tmp_path: Path) -> None:
    golden = tiny.golden(name)
    folder = tiny.write_folder(golden, tmp_path / "folder")
    with pytest.raises(UnsupportedError, match=FOLDERS_ONLY[name]):
        akunu.convert(folder, tmp_path / "model.gguf", "f32", progress=False)
    with opened(akunu.convert(folder, tmp_path / "copy", "mlx-f32", progress=False)) as model:
        assert nmse(vectors(model, golden.texts, golden.second), golden.vectors) < floats(model)


def test_biases_that_llama_cpp_does_not_know_are_refused(tmp_path: Path) -> None:
    golden = tiny.golden("modern_bias")
    golden.config["classifier_activation"] = "gelu"
    with pytest.raises(
        UnsupportedError, match=r"tensor model.layers.0.*bias: llama.cpp knows no such tensor"
    ):
        converted(golden, tmp_path)


def test_embeddinggemma_keeps_its_dense_layers(tmp_path: Path) -> None:
    golden = as_wide_as_the_model(tiny.golden("gemma_plain"))
    with opened(converted(golden, tmp_path)) as model, opened(tmp_path / "folder") as folder:
        expected = vectors(folder, golden.texts, golden.second)
        assert expected.shape[1] == model.dimensions == 64
        assert nmse(vectors(model, golden.texts, golden.second), expected) < floats(model)


@pytest.mark.parametrize("name", [*CONVERTED, "gemma_plain"])
def test_the_file_has_what_llama_cpp_asks_for(name: str, tmp_path: Path) -> None:
    golden = tiny.golden(name)
    if name == "gemma_plain":
        golden = as_wide_as_the_model(golden)
    reader = gguf.GGUFReader(converted(golden, tmp_path, "q8_0"))
    keys = {key: field.contents() for key, field in reader.fields.items()}
    arch = keys["general.architecture"]
    wanted = {"pooling_type", "context_length", "embedding_length", "block_count", "feed_forward_length"}
    norm = "layer_norm_rms_epsilon" if arch in ("qwen3", "gemma-embedding") else "layer_norm_epsilon"
    wanted |= {f"attention.{key}" for key in ("head_count", "head_count_kv", norm)}
    if arch in ("modern-bert", "gemma-embedding"):
        wanted |= {"attention.sliding_window", "rope.freq_base", "rope.freq_base_swa"}
        whole = golden.config.get("local_attention") or golden.config["sliding_window"]
        assert keys[f"{arch}.attention.sliding_window"] == whole
    if arch == "gemma-embedding":
        wanted |= {f"dense_{i}_feat_{side}" for i in (2, 3) for side in ("in", "out")}
    assert {f"{arch}.{key}" for key in wanted} <= keys.keys()
    if arch != "qwen3":
        assert keys[f"{arch}.attention.causal"] is False
    if arch.endswith("bert"):
        assert keys["tokenizer.ggml.token_type_count"] == max(1, golden.config.get("type_vocab_size", 1))

    names = {gguf.TENSOR_NAMES[tensor] for tensor in gguf.MODEL_TENSORS[ARCHS[arch]]}
    names |= {"cls", "cls.output"}
    for tensor in reader.tensors:
        stem, _, _ = tensor.name.rpartition(".")
        parts = stem.split(".")
        assert (f"blk.{{bid}}.{'.'.join(parts[2:])}" if parts[0] == "blk" else stem) in names
    types = {tensor.name: tensor.tensor_type.name for tensor in reader.tensors}
    assert types["blk.0.attn_output.weight"] == "Q8_0"
    # Its reader adds rows of these two to others, of floats.
    assert {types.get(f"{table}.weight", "F32") for table in ("position_embd", "token_types")} == {"F32"}
    if "position_embd.weight" in types:
        rows = next(tensor for tensor in reader.tensors if tensor.name == "position_embd.weight")
        assert rows.shape[1] == keys[f"{arch}.context_length"]


def test_a_reranker_says_what_its_head_takes(tmp_path: Path) -> None:
    """The pooling before a classification head is not what its architecture would have without the key."""
    golden = tiny.golden("modern_rank")
    golden.config["classifier_pooling"] = "cls"
    with opened(converted(golden, tmp_path)) as model, opened(tmp_path / "folder") as folder:
        expected = vectors(folder, golden.texts, golden.second)
        assert nmse(vectors(model, golden.texts, golden.second), expected) < floats(model)
        assert nmse(golden.vectors, expected) > 1e-3
    metadata = _core.GgufFile(str(tmp_path / "model.gguf")).metadata
    assert metadata["modern-bert.pooling_type"] == gguf.PoolingType.RANK
    assert metadata["modern-bert.classifier.pooling_type"] == gguf.PoolingType.CLS


def test_layers_with_windows_of_their_own_are_said(tmp_path: Path) -> None:
    golden = tiny.golden("modern")
    golden.config["layer_types"] = ["sliding_attention", "full_attention"] * 2
    with opened(converted(golden, tmp_path)) as model, opened(tmp_path / "folder") as folder:
        assert model.config.layer_window == folder.config.layer_window == (7, 0, 7, 0)


@pytest.mark.parametrize("settings", [{}, {"lowercase": False}, {"lowercase": True, "strip_accents": False}])
def test_wordpiece_makes_the_same_tokens(settings: dict[str, Any], tmp_path: Path) -> None:
    library = wordpiece.library()
    library.normalizer = tokenizers.normalizers.BertNormalizer(**settings)
    library.save(str(tmp_path / "tokenizer.json"))
    names = {"pad_token": "[PAD]", "mask_token": {"content": "[MASK]"}}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(names))
    ours = opened_tokenizer(tmp_path)
    metadata = tokenizer_metadata(tmp_path, ours)
    theirs = Tokenizer.from_metadata(metadata)
    for text in TEXTS:
        assert theirs.encode(text) == ours.encode(text) == library.encode(text).ids, text
    ids = {"padding": 0, "unknown": 1, "cls": 2, "bos": 2, "seperator": 3, "mask": 4}
    assert {name: metadata[f"tokenizer.ggml.{name}_token_id"] for name in ids} == ids


def test_unigram_makes_the_same_tokens(tmp_path: Path) -> None:
    ours = opened_tokenizer(write(tmp_path, trained("unigram")))
    theirs = Tokenizer.from_metadata(tokenizer_metadata(tmp_path, ours))
    for text in TEXTS:
        assert theirs.encode(text) == ours.encode(text), text


def test_unigram_keeps_its_map_of_characters(tmp_path: Path) -> None:
    folder = write(tmp_path, trained("unigram"))
    data = json.loads((folder / "tokenizer.json").read_text())
    unmapped = np.zeros(256, "<u4").tobytes()  # a trie in which nothing is found
    charsmap = len(unmapped).to_bytes(4, "little") + unmapped + b"\0"
    step = {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(charsmap).decode()}
    data["normalizer"] = {"type": "Sequence", "normalizers": [step, *filter(None, [data["normalizer"]])]}
    (folder / "tokenizer.json").write_text(json.dumps(data))
    metadata = tokenizer_metadata(folder, opened_tokenizer(folder))
    assert metadata["tokenizer.ggml.precompiled_charsmap"] == charsmap


def test_texts_of_a_file_have_the_vectors_of_the_folder(tmp_path: Path) -> None:
    folder = wordpiece.write_model("bert", tmp_path / "folder")
    path = akunu.convert(folder, tmp_path / "first.gguf", "f32", progress=False)
    again = akunu.convert(path, tmp_path / "second.gguf", "q8_0", progress=False)
    texts = [text for text in TEXTS if text]
    with opened(folder) as source, opened(path) as first, opened(again) as second:
        expected = source.embed(texts)
        np.testing.assert_allclose(first.embed(texts), expected, atol=1e-6)
        cosines = (second.embed(texts) * expected).sum(axis=1)
    assert (cosines > 0.999).all()
    assert (cosines < 1 - 1e-7).any()


def test_an_importance_matrix_is_refused(tmp_path: Path) -> None:
    folder = wordpiece.write_model("bert", tmp_path / "folder")
    (tmp_path / "text.txt").write_text("the cat sits")
    with pytest.raises(UnsupportedError, match="makes vectors, of which there are no importance matrices"):
        akunu.convert(folder, tmp_path / "out.gguf", "q4_0", imatrix=tmp_path / "text.txt", progress=False)
    assert not (tmp_path / "out.gguf").exists()


@pytest.mark.parametrize("name", ["gemma", "gemma_plain"])
def test_dense_layers_that_gguf_does_not_have_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match=r"modules\.json: GGUF has dense layers for"):
        converted(tiny.golden(name), tmp_path)


@pytest.mark.parametrize(
    "special", [{"tokenizer_class": "TokenizersBackend"}, {"model_input_names": ["input_ids"]}]
)
def test_a_pair_of_texts_that_gguf_cannot_say_is_refused(special: dict[str, Any], tmp_path: Path) -> None:
    """Transformers gives this BERT no kinds, and what reads a GGUF file does."""
    folder = wordpiece.write_model("bert_rank", tmp_path / "folder")
    akunu.convert(folder, tmp_path / "usual.gguf", "f32", progress=False)
    (folder / "tokenizer_config.json").write_text(json.dumps(special))
    with pytest.raises(UnsupportedError, match=r"kinds of rows: found \(1, 1\), .* would be \(1, 2\)"):
        akunu.convert(folder, tmp_path / "model.gguf", "f32", progress=False)


def roberta_of_two_kinds(folder: Path, separators: int) -> Path:
    """A reranker whose table has a second kind, which RoBERTa's tokenizers do not use."""
    golden = tiny.golden("roberta_rank")
    weights = dict(golden.weights)
    table = "roberta.embeddings.{}_embeddings.weight"
    weights[table.format("word")] = np.resize(weights[table.format("word")], (1000, 64))
    weights[table.format("token_type")] = np.outer([1, 9], weights[table.format("token_type")][0])
    golden.config.update(type_vocab_size=2, vocab_size=1000)
    tiny.write_folder(tiny.Golden(**vars(golden) | {"weights": weights}), folder)
    library = trained("unigram")
    ends = [(text, library.token_to_id(text)) for text in ("<s>", "</s>")]
    library.post_processor = tokenizers.processors.TemplateProcessing(
        single="<s> $A </s>", pair=f"<s> $A {'</s> ' * separators}$B </s>", special_tokens=ends
    )
    return write(folder, library)


def test_a_pair_of_texts_of_roberta_stays_as_it_is(tmp_path: Path) -> None:
    folder = roberta_of_two_kinds(tmp_path / "folder", 2)
    path = akunu.convert(folder, tmp_path / "model.gguf", "f32", progress=False)
    with opened(folder) as wanted, opened(path) as found:
        scores = [model.rerank("what cats eat", TEXTS, raw=True) for model in (wanted, found)]
    np.testing.assert_allclose(scores[0], scores[1], atol=1e-4)


def test_a_pair_of_texts_with_other_separators_is_refused(tmp_path: Path) -> None:
    folder = roberta_of_two_kinds(tmp_path / "folder", 1)
    with pytest.raises(UnsupportedError, match=r"kinds of rows: found \(1, 1\), .* would be \(2, 1\)"):
        akunu.convert(folder, tmp_path / "model.gguf", "f32", progress=False)

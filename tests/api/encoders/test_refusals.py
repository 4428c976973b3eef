"""What a folder's files say that this engine does not do, or that is wrong, is an error when it is opened."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from akunu.base.errors import ModelFileError, UnsupportedError

from . import tiny, wordpiece
from .test_reference import opened

BAD: dict[str, tuple[str, dict[str, Any], type[Exception], str]] = {
    "pooling": (
        "1_Pooling/config.json",
        {"pooling_mode_max_tokens": True},
        UnsupportedError,
        "pooling by pooling_mode_max_tokens; supported",
    ),
    "positions": (
        "config.json",
        {"max_position_embeddings": 81},
        ModelFileError,
        "found 81, but the table of positions has 80 rows",
    ),
    "relative": (
        "config.json",
        {"position_embedding_type": "relative_key"},
        UnsupportedError,
        "position_embedding_type: found 'relative_key'",
    ),
    "scaling": (
        "config.json",
        {"rotary_scaling_factor": 2},
        UnsupportedError,
        "rotary_scaling_factor: found 2, but this feature is not supported",
    ),
    "padding": ("config.json", {"model_type": "roberta", "pad_token_id": 80}, ModelFileError, "has 80 rows"),
    "padding's type": (
        "config.json",
        {"model_type": "roberta", "pad_token_id": "<pad>"},
        ModelFileError,
        "pad_token_id: found '<pad>', expected a token id",
    ),
    "activation": ("config.json", {"hidden_act": "mish"}, UnsupportedError, "hidden_act: found 'mish'"),
    "layers": ("config.json", {"num_hidden_layers": 4}, ModelFileError, r"encoder\.layer\.3\..* is missing"),
    "fewer layers": ("config.json", {"num_hidden_layers": 2}, UnsupportedError, "no such tensor"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_folders_are_refused(case: str, tmp_path: Path) -> None:
    file, change, error, message = BAD[case]
    tiny.write_folder(tiny.golden("bert"), tmp_path)
    path = tmp_path / file
    found = json.loads(path.read_text()) | change
    if "pooling" in file.lower():
        found["pooling_mode_mean_tokens"] = False
    path.write_text(json.dumps(found))
    with pytest.raises(error, match=message):
        opened(tmp_path)


MODULES: dict[str, tuple[list[tuple[str, dict[str, Any]]], str]] = {
    "a vector for each token": (
        [("Dense", {"in_features": 64, "out_features": 8})],
        "found a Dense module before a Pooling",
    ),
    "another input": (
        [
            ("Pooling", {"pooling_mode": "mean"}),
            ("Dense", {"in_features": 64, "out_features": 8, "module_input_name": "token_embeddings"}),
        ],
        "module_input_name: found 'token_embeddings'",
    ),
    "normalised too early": (
        [
            ("Pooling", {"pooling_mode": "mean"}),
            ("Normalize", {}),
            ("Dense", {"in_features": 64, "out_features": 8}),
        ],
        "found a Dense module behind a Normalize",
    ),
    "normalised tokens": (
        [("Normalize", {"module_input_name": "token_embeddings"}), ("Pooling", {"pooling_mode": "mean"})],
        "module_input_name: found 'token_embeddings'",
    ),
    "normalised before": (
        [("Normalize", {}), ("Pooling", {"pooling_mode": "mean"})],
        "found a Pooling module behind a Normalize",
    ),
    "residual": (
        [
            ("Pooling", {"pooling_mode": "mean"}),
            ("Dense", {"in_features": 64, "out_features": 64, "use_residual": True}),
        ],
        "use_residual: found True; only False is supported",
    ),
    "an activation of the model's own": (
        [
            ("Pooling", {"pooling_mode": "mean"}),
            ("Dense", {"in_features": 64, "out_features": 8, "activation_function": "mine.GELU"}),
        ],
        "activation_function: found 'mine.GELU'; supported are Identity, .* of torch.nn",
    ),
    "pooled twice": (
        [("Pooling", {"pooling_mode": "mean"}), ("Pooling", {"pooling_mode": "cls"})],
        "found a Pooling module behind a Pooling",
    ),
    "two poolings": ([("Pooling", {"pooling_mode": ["mean", "cls"]})], "pooling by cls, mean; supported"),
    "another kind": ([("WeightedLayerPooling", {})], "a module of the type WeightedLayerPooling"),
    "one answer": ([("LogitScore", {"true_token_id": 5})], "found 5, None, expected two token ids"),
}


@pytest.mark.parametrize("case", MODULES)
def test_modules_that_mean_something_else_are_refused(case: str, tmp_path: Path) -> None:
    modules, message = MODULES[case]
    tiny.write_folder(tiny.golden("bert"), tmp_path)
    rows = [{"type": f"sentence_transformers.{kind}", "path": f"m{i}"} for i, (kind, _) in enumerate(modules)]
    (tmp_path / "modules.json").write_text(json.dumps(rows))
    for i, (_, config) in enumerate(modules):
        (tmp_path / f"m{i}").mkdir()
        (tmp_path / f"m{i}" / "config.json").write_text(json.dumps(config))
    with pytest.raises(UnsupportedError, match=message):
        opened(tmp_path)


def test_a_pickled_dense_layer_is_refused_with_the_remedy(tmp_path: Path) -> None:
    folder = tiny.write_folder(tiny.golden("gemma"), tmp_path)
    (folder / "2_Dense" / "model.safetensors").rename(folder / "2_Dense" / "pytorch_model.bin")
    with pytest.raises(
        ModelFileError, match=r"2_Dense/model.safetensors is missing; .* SentenceTransformer\("
    ):
        opened(folder)


def test_rows_of_another_output_are_refused(tmp_path: Path) -> None:
    text = {"method": "forward", "method_output_name": "pooler_output"}
    folder = wordpiece.with_files("bert", tmp_path, sentence_bert_config={"modality_config": {"text": text}})
    with pytest.raises(UnsupportedError, match="method_output_name: found 'pooler_output'"):
        opened(folder)


def test_settings_of_the_tokenizer_that_change_a_text_s_tokens_are_refused(tmp_path: Path) -> None:
    def folder(**options: Any) -> Path:
        return wordpiece.with_files("bert", tmp_path, sentence_bert_config={"processing_kwargs": options})

    opened(folder(text={"padding": True, "truncation": True}, common={}, chat_template={"x": 1})).close()
    for kind, options in (("text", {"add_special_tokens": False}), ("common", {"max_length": 4})):
        found = rf"processing_kwargs\.{kind}: found {next(iter(options))}"
        with pytest.raises(UnsupportedError, match=found):
            opened(folder(**{kind: options}))


def test_a_reranker_with_a_prompt_is_refused(tmp_path: Path) -> None:
    prompts = {"prompts": {"x": "search: "}, "default_prompt_name": "x"}
    with pytest.raises(UnsupportedError, match="a reranker has no prompts here"):
        opened(wordpiece.with_files("bert_rank", tmp_path, config_sentence_transformers=prompts))


def test_a_module_outside_its_folder_is_refused(tmp_path: Path) -> None:
    tiny.write_folder(tiny.golden("bert"), tmp_path)
    modules = [{"idx": 0, "name": "0", "path": "../x", "type": "sentence_transformers.models.Pooling"}]
    (tmp_path / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(ModelFileError, match="expected the name of a folder"):
        opened(tmp_path)

"""The files of a folder for an embedding model that comes as GGUF: names, configuration, modules.

The inverse of `akunu.files.describe.encoder_config`, by the same tables;
`akunu.loading.conversion.folder_config` compares what the new configuration says with what the file says.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from akunu.base.errors import UnsupportedError
from akunu.files.describe.config import ModelSpec
from akunu.files.describe.config_keys import CONFIG_KEYS
from akunu.files.describe.encoder_config import ACTIVATIONS
from akunu.files.describe.encoder_modules import Dense, Modules
from akunu.files.describe.encoder_rows import ENCODERS, HF_ENCODERS, HfEncoder
from akunu.files.describe.file_tensors import head_layers
from akunu.files.describe.gguf_numbers import GgufNumbers
from akunu.files.describe.tensor_rules import TensorRule
from akunu.files.model_files import GgufModel
from akunu.loading.conversion.encoder_metadata import whole_window
from akunu.loading.conversion.folder_config import folder_config, folder_model_type, plain

__all__ = ["DENSE_FOLDERS", "module_files", "modules_of", "tensor_name", "vectors_config"]

DENSE_FOLDERS: Final = ("2_Dense", "3_Dense")
"""The folders of dense layers, each of which has a file of its own."""

_TYPES: Final = "sentence_transformers.models."
_SIZES: Final = ("n_layers", "context_length", "dim", "ffn_dim", "n_heads")
"""Fields of `CONFIG_KEYS` that all encoders say; in most of them a head is a share of the row."""


def tensor_name(spec: ModelSpec, rule: TensorRule, layer: int) -> str:
    """Return the folder's name of a tensor; one of a dense layer begins with `DENSE`."""
    name = rule.hf.replace("{n}", str(layer))
    ranks = spec.config.encoder is not None and spec.config.encoder.task == "rank"
    beside = {head.hf for head in head_layers(spec) if not head.inside}
    beside |= {head.norm[1] for head in head_layers(spec) if head.norm is not None}
    if not ranks or name.rpartition(".")[0] in beside:
        return name
    inner = _encoder(spec)[1].inner if spec.config.arch in ENCODERS else "model"
    return f"{inner}.{name}"


def vectors_config(model: GgufModel, spec: ModelSpec) -> dict[str, object]:
    """The object in `config.json`.

    Raises
    ------
    UnsupportedError
        No class of Hugging Face's is such a model.
    """
    encoder = spec.config.encoder
    assert encoder is not None
    ranks = encoder.task == "rank"
    if spec.config.arch in ENCODERS:
        stem, found = _encoder(spec)[1].model_class, _encoder_config(model, spec)
    else:
        name, row = folder_model_type(spec)
        stem = row.model_class.removesuffix("ForCausalLM") + ("Text" if name.endswith("_text") else "")
        found = folder_config(model, spec)
        if spec.config.bidirectional:
            found["use_bidirectional_attention"] = True
    found["architectures"] = [stem + ("ForSequenceClassification" if ranks else "Model")]
    if ranks:
        labels = model.metadata.get(f"{spec.config.arch}.classifier.output_labels")
        names = [str(label) for label in labels] if isinstance(labels, list | tuple) else []
        names = names or [f"LABEL_{i}" for i in range(encoder.head[-1][0])]
        found["id2label"] = {str(i): name for i, name in enumerate(names)}
        found["label2id"] = {name: i for i, name in enumerate(names)}
    return found


def modules_of(spec: ModelSpec) -> Modules:
    """Return the content of the folder's other files."""
    encoder = spec.config.encoder
    assert encoder is not None
    if encoder.task == "rank":
        return Modules()
    dense, width = [], spec.config.dim
    if spec.config.arch not in ENCODERS:
        for folder, (rows, activation) in zip(DENSE_FOLDERS, encoder.head, strict=False):
            dense.append(Dense(Path(folder), width, rows, activation))
            width = rows
    return Modules(pooling=encoder.pooling, dense=tuple(dense))


def module_files(spec: ModelSpec, modules: Modules) -> dict[str, str]:
    """The texts of the files that Sentence Transformers reads, by name; none of a reranker."""
    if modules.pooling is None:
        return {}
    steps = [("Transformer", ""), ("Pooling", "1_Pooling")]
    steps += [("Dense", str(layer.path)) for layer in modules.dense]
    steps.append(("Normalize", f"{len(steps)}_Normalize"))  # as readers of GGUF do
    found: dict[str, object] = {
        "modules.json": [
            {"idx": i, "name": str(i), "path": path, "type": _TYPES + kind}
            for i, (kind, path) in enumerate(steps)
        ],
        "sentence_bert_config.json": {
            "max_seq_length": spec.config.context_length,
            "do_lower_case": False,
        },
        "1_Pooling/config.json": {
            "word_embedding_dimension": spec.config.dim,
            "pooling_mode_cls_token": modules.pooling == "cls",
            "pooling_mode_mean_tokens": modules.pooling == "mean",
            "pooling_mode_max_tokens": False,
            "pooling_mode_mean_sqrt_len_tokens": False,
            "pooling_mode_weightedmean_tokens": False,
            "pooling_mode_lasttoken": modules.pooling == "last",
            "include_prompt": True,
        },
    }
    for layer in modules.dense:
        found[f"{layer.path}/config.json"] = {
            "in_features": layer.n_in,
            "out_features": layer.n_out,
            "bias": False,
            "activation_function": "torch.nn.modules.linear.Identity",
        }
    return {name: json.dumps(content, indent=2) + "\n" for name, content in found.items()}


def _encoder(spec: ModelSpec) -> tuple[str, HfEncoder]:
    """The model type of a folder for this encoder, and its row."""
    arch = spec.config.arch
    return next((name, row) for name, row in HF_ENCODERS.items() if row.arch == arch and row.model_class)


def _encoder_config(model: GgufModel, spec: ModelSpec) -> dict[str, object]:
    config, encoder = spec.config, spec.config.encoder
    assert encoder is not None
    row = ENCODERS[config.arch]
    model_type, kind = _encoder(spec)
    path = model.files.paths[0]
    if "kinds" not in spec.tensors and any(part == "kinds" for rule in row.rules for part, _ in rule.parts):
        raise UnsupportedError(
            f"{path}: has no tensor token_types.weight, which every {model_type} model of Hugging Face's has"
        )
    if encoder.task == "rank" and len(encoder.head) != len(row.head):
        raise UnsupportedError(
            f"{path}: has no tensor {row.head[0].source}.weight, which every {model_type} reranker has"
        )
    epsilon, activation = kind.keys
    found: dict[str, object] = {
        "model_type": model_type,
        **{CONFIG_KEYS[field].hf[0]: plain(getattr(config, field)) for field in _SIZES},
        epsilon: plain(config.norm_eps),
        activation: next(name for name, value in ACTIVATIONS.items() if value == config.activation),
        "vocab_size": config.vocab_size,
    }
    if "head_dim" not in kind.foreign:
        found["head_dim"] = config.head_dim
    if config.positions:  # the class has as many rows
        found["max_position_embeddings"] = config.positions
    if "kinds" in spec.tensors:
        found["type_vocab_size"] = config.kinds
    if kind.chooses_head and encoder.task == "rank":
        found["classifier_pooling"] = encoder.pooling
        found["classifier_bias"] = "head.0_bias" in spec.tensors
    if row.rope:
        numbers = GgufNumbers(model.metadata, row.name, row.defaults)
        theta = numbers.real("rope_theta")
        found["rope_parameters"] = _rope(theta)
        if row.window_period:
            local = _rope(numbers.real("local_rope_theta", default=theta))
            found["rope_parameters"] = {"full_attention": _rope(theta), "sliding_attention": local}
    if row.window_period:
        found["local_attention"] = whole_window(config)
        found["layer_types"] = [
            "sliding_attention" if window else "full_attention" for window in config.layer_window
        ]
        found["norm_bias"] = "embedding_norm_bias" in spec.tensors
    return found


def _rope(theta: float) -> dict[str, object]:
    return {"rope_type": "default", "rope_theta": plain(theta)}

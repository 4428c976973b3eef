"""Make tests/data/encoders: what Transformers computes with tiny random encoders and embedding models.

Usage: PYTHONPATH=tests python -m tools.make_encoder_golden [NAME...]

Needs torch and Transformers; the files are committed.
"""

from __future__ import annotations

import json
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

ROOT = Path(__file__).resolve().parents[1]
from api.encoders import tiny  # noqa: E402

LENGTHS = (1, 5, 33, 64, 17, 70, 2)
"""Tokens of the texts: pages and windows are crossed, and none is longer than the shortest context."""
SMALL: dict[str, Any] = {
    "hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 96,
    "vocab_size": 211, "max_position_embeddings": 80, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
DISTIL = {
    "dim": 64, "n_layers": 3, "n_heads": 4, "hidden_dim": 96, "vocab_size": 211,
    "max_position_embeddings": 80, "pad_token_id": 0,
}  # fmt: skip
DECODER = SMALL | {"num_key_value_heads": 2, "head_dim": 32}
GEMMA = DECODER | {
    "use_bidirectional_attention": True, "sliding_window": 16, "query_pre_attn_scalar": 32,
    "num_hidden_layers": 7,
}  # fmt: skip
MODERN = SMALL | {
    "local_attention": 12, "num_hidden_layers": 4, "cls_token_id": 1, "sep_token_id": 2, "num_labels": 1,
}  # fmt: skip
MPNET = SMALL | {"vocab_size": 219, "max_position_embeddings": 82, "pad_token_id": 1, "bos_token_id": 0}
# As DeBERTa 3's, with texts that are longer than the distances are told apart.
DEBERTA = SMALL | {
    "relative_attention": True, "position_buckets": 8, "max_relative_positions": 24,
    "norm_rel_ebd": "layer_norm", "share_att_key": True, "pos_att_type": "p2c|c2p",
    "position_biased_input": False, "type_vocab_size": 0, "layer_norm_eps": 1e-7,
    "pooler_hidden_size": 64, "pooler_hidden_act": "gelu", "pooler_dropout": 0,
}  # fmt: skip

BIASES = {
    "attention_bias": True, "mlp_bias": True, "norm_bias": True, "classifier_bias": True,
    "classifier_activation": "relu",
}  # fmt: skip


@dataclass(frozen=True)
class Model:
    """One model: Transformers' class and settings, and how its rows are pooled ("" for a classifier)."""

    name: str
    kind: str
    seed: int
    settings: dict[str, Any] = field(default_factory=dict)
    pooling: str = "mean"
    dense: tuple[tuple[int, str], ...] = ()


MODELS = (
    Model("bert", "BertModel", 1, SMALL),
    Model("bert_cls", "BertModel", 2, SMALL | {"num_attention_heads": 2, "hidden_act": "gelu_new"}, "cls"),
    Model("bert_rank", "BertForSequenceClassification", 3, SMALL | {"num_labels": 1}, ""),
    Model("roberta", "XLMRobertaModel", 4, SMALL | {"pad_token_id": 1, "type_vocab_size": 1}, "cls"),
    Model(
        "roberta_rank", "XLMRobertaForSequenceClassification", 20,
        SMALL | {"pad_token_id": 0, "type_vocab_size": 1, "num_labels": 1}, "",
    ),
    Model("nomic", "NomicBertModel", 6, SMALL),
    Model("distil", "DistilBertModel", 15, DISTIL),
    Model(
        "distil_rank", "DistilBertForSequenceClassification", 16,
        DISTIL | {"num_labels": 1, "sinusoidal_pos_embds": True}, "",
    ),
    Model("modern", "ModernBertModel", 7, MODERN),
    Model(
        "modern_rank", "ModernBertForSequenceClassification", 8,
        MODERN | {"classifier_pooling": "mean"}, "",
    ),
    Model("modern_bias", "ModernBertForSequenceClassification", 20, MODERN | BIASES, ""),
    Model("mpnet", "MPNetModel", 21, MPNET),
    Model("mpnet_rank", "MPNetForSequenceClassification", 22, MPNET | {"num_labels": 1}, ""),
    Model("deberta", "DebertaV2Model", 23, DEBERTA),
    Model("deberta_rank", "DebertaV2ForSequenceClassification", 24, DEBERTA | {"num_labels": 1}, ""),
    Model(
        "deberta_classes", "DebertaV2ForSequenceClassification", 25,
        DEBERTA | {"num_labels": 3, "pooler_hidden_act": "tanh"}, "",
    ),
    Model(
        "deberta_apart", "DebertaV2Model", 26,
        DEBERTA
        | {
            "share_att_key": False, "position_buckets": -1, "norm_rel_ebd": "none", "type_vocab_size": 2,
            "position_biased_input": True,
        },
    ),
    Model("deberta_c2p", "DebertaV2Model", 27, DEBERTA | {"pos_att_type": ["c2p"]}, "cls"),
    Model("qwen3", "Qwen3Model", 9, DECODER, "lasttoken"),
    Model("qwen3_rank", "Qwen3ForSequenceClassification", 10, DECODER | {"num_labels": 1}, ""),
    Model(
        "mistral_whole", "MistralModel", 14, DECODER | {"is_causal": False, "sliding_window": 16}, "mean",
    ),
    Model(
        "gemma", "Gemma3TextModel", 11, GEMMA | {"attention_bias": True}, "mean",
        ((96, "Identity"), (48, "Tanh")),
    ),
    Model("gemma_plain", "Gemma3TextModel", 12, GEMMA, "mean", ((96, "Identity"), (48, "Identity"))),
)  # fmt: skip


def st_files(model: Model, width: int) -> dict[str, Any]:
    """The files of Sentence Transformers."""
    if not model.pooling:
        return {}
    flags = {"cls": "cls_token", "mean": "mean_tokens", "lasttoken": "lasttoken"}
    package = "sentence_transformers.models"
    modules = [("", "Transformer"), ("1_Pooling", "Pooling")]
    files: dict[str, Any] = {
        "1_Pooling/config.json": {
            "word_embedding_dimension": width,
            **{f"pooling_mode_{mode}": key == model.pooling for key, mode in flags.items()},
        },
        "config_sentence_transformers.json": {"prompts": {"query": "query: ", "document": ""}},
    }
    for i, (n, activation) in enumerate(model.dense):
        modules.append((f"{i + 2}_Dense", "Dense"))
        files[f"{i + 2}_Dense/config.json"] = {
            "in_features": width, "out_features": n, "bias": activation == "Tanh",
            "activation_function": f"torch.nn.modules.{activation}",
        }  # fmt: skip
        width = n
    files["modules.json"] = [
        {"idx": i, "name": str(i), "path": path, "type": f"{package}.{kind}"}
        for i, (path, kind) in enumerate(modules)
    ]
    return files


@torch.no_grad()
def run(
    model: Model, made: Any, ids: list[int], kinds: list[int], arrays: tiny.Weights
) -> np.ndarray[Any, Any]:
    """The vector of one text, float32 [width]."""
    given = {"input_ids": torch.tensor([ids])}
    if model.kind.startswith("Bert"):
        given["token_type_ids"] = torch.tensor([kinds])
    out = made(**given)
    if not model.pooling:
        return np.asarray(out.logits[0].numpy())
    rows = out.last_hidden_state[0]
    vector = {"mean": rows.mean(0), "cls": rows[0], "lasttoken": rows[-1]}[model.pooling]
    for i, (_, activation) in enumerate(model.dense):
        weight = torch.from_numpy(arrays[f"{i + 2}_Dense/linear.weight"])
        bias = arrays.get(f"{i + 2}_Dense/linear.bias")
        vector = torch.nn.functional.linear(vector, weight, None if bias is None else torch.from_numpy(bias))
        vector = getattr(torch.nn, activation)()(vector)
    return np.asarray(vector.numpy())


def make(model: Model) -> None:
    """Write the file of one model."""
    base = model.kind.replace("Model", "").replace("ForSequenceClassification", "")
    config = getattr(transformers, f"{base}Config")(**model.settings, attn_implementation="eager")
    made = getattr(transformers, model.kind)(config).eval()
    with tempfile.TemporaryDirectory() as folder:
        # The names are those of the file, which need not be those of the class.
        made.save_pretrained(folder)
        from safetensors.numpy import load_file, save_file

        path = Path(folder) / "model.safetensors"
        shapes = {name: list(array.shape) for name, array in load_file(path).items()}
        inner = dict(shapes)
        width = config.hidden_size
        for i, (n, activation) in enumerate(model.dense):
            shapes[f"{i + 2}_Dense/linear.weight"] = [n, width]
            if activation == "Tanh":
                shapes[f"{i + 2}_Dense/linear.bias"] = [n]
            width = n
        arrays = tiny.weights(shapes, model.seed)
        save_file({name: arrays[name] for name in inner}, path, {"format": "pt"})
        made = getattr(transformers, model.kind).from_pretrained(folder, attn_implementation="eager").eval()
        written = json.loads((Path(folder) / "config.json").read_text())
    rng = np.random.RandomState(1000 + model.seed)
    texts = [rng.randint(3, config.vocab_size, n).tolist() for n in LENGTHS]
    second = [n // 2 if model.kind.startswith("BertFor") else 0 for n in LENGTHS]
    vectors = [
        run(model, made, ids, [int(0 < at <= i) for i in range(len(ids))], arrays)
        for ids, at in zip(texts, second, strict=True)
    ]
    facts = {
        "config": written,
        "files": st_files(model, config.hidden_size),
        "shapes": shapes,
        "seed": model.seed,
    }
    np.savez_compressed(
        tiny.DIR / f"{model.name}.npz",
        facts=np.asarray(json.dumps(facts)),
        ids=np.concatenate(texts).astype(np.int32),
        lengths=np.asarray(LENGTHS, np.int32),
        second=np.asarray(second, np.int32),
        vectors=np.asarray(vectors, np.float32),
    )
    print(f"{model.name:14} {len(shapes):3} tensors  spread {np.std(vectors):.2f}")


def main(names: list[str]) -> None:
    """Make the named models, or all."""
    tiny.DIR.mkdir(parents=True, exist_ok=True)
    for model in MODELS:
        if not names or model.name in names:
            make(model)


if __name__ == "__main__":
    main(sys.argv[1:])

"""The tiny encoders as GGUF files, by the names that gguf-py's own table has for those of Transformers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import gguf
import numpy as np

from models import quant

from .tiny import Golden

__all__ = ["NAMES", "write"]

_ARCHS: Final = {
    "bert": gguf.MODEL_ARCH.BERT,
    "xlm-roberta": gguf.MODEL_ARCH.BERT,
    "nomic_bert": gguf.MODEL_ARCH.NOMIC_BERT,
    "modernbert": gguf.MODEL_ARCH.MODERN_BERT,
    "qwen3": gguf.MODEL_ARCH.QWEN3,
    "gemma3_text": gguf.MODEL_ARCH.GEMMA_EMBEDDING,
}
NAMES: Final = [
    "bert", "bert_rank", "roberta", "nomic", "modern", "modern_rank", "qwen3", "gemma_plain",
]  # fmt: skip
"""Models whose conversion is known; of `modern_rank` the pooling is the file's alone."""

_OWN_NAMES: Final = {
    "bert.pooler.dense": "cls", "classifier": "cls.output", "head.dense": "cls", "head.norm": "cls.norm",
    "2_Dense/linear": "dense_2", "3_Dense/linear": "dense_3",
}  # fmt: skip


def write(model: Golden, path: Path, dtype: str = "F32", *, flat: bool = False) -> Path:
    """Write the file; matrices whose rows hold whole blocks get `dtype`. `flat`: one row is a vector, as in
    files that llama-quantize has written."""
    config = model.config
    arch = _ARCHS[config["model_type"]]
    writer = gguf.GGUFWriter(str(path), gguf.MODEL_ARCH_NAMES[arch])
    _metadata(writer, model)
    table = gguf.get_tensor_name_map(arch, config["num_hidden_layers"])
    for name, array in model.weights.items():
        stem, _, suffix = name.rpartition(".")
        if stem in ("pooler.dense",):
            continue
        found = _OWN_NAMES.get(stem) or table.get_name(stem) or table.get_name(f"model.{stem}")
        found = found or table.get_name(stem.removeprefix("bert.").removeprefix("model."))
        assert found, name
        if config["model_type"] == "xlm-roberta" and found == "position_embd":
            array = array[2:]
        if config["model_type"] == "gemma3_text" and "norm" in found:
            array = array + np.float32(1)
        kept = array.ndim == 1 or found in ("position_embd", "token_types")
        kind = "F32" if kept or array.shape[1] % 32 else dtype
        array = array[0] if flat and array.shape[0] == 1 and array.ndim == 2 else array
        data = array if kind == "F32" else quant.encode(array, kind, seed=0)
        writer.add_tensor(f"{found}.{suffix}", data, raw_dtype=gguf.GGMLQuantizationType[kind])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _metadata(writer: gguf.GGUFWriter, model: Golden) -> None:
    config: Mapping[str, Any] = model.config
    kind = config["model_type"]
    roberta = 2 if kind == "xlm-roberta" else 0
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_context_length(config["max_position_embeddings"] - roberta)
    if kind in ("qwen3", "gemma3_text"):
        writer.add_head_count_kv(config["num_key_value_heads"])
        writer.add_key_length(config["head_dim"])
        writer.add_value_length(config["head_dim"])
        writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    else:
        writer.add_layer_norm_eps(config.get("layer_norm_eps", config.get("norm_eps")))
        writer.add_causal_attention(False)
    rope = config.get("rope_parameters") or {}
    writer.add_rope_freq_base(rope.get("full_attention", rope).get("rope_theta", 10000.0))
    if "sliding_attention" in rope:
        writer.add_float32(f"{writer.arch}.rope.freq_base_swa", rope["sliding_attention"]["rope_theta"])
    if kind == "gemma3_text":
        writer.add_sliding_window(config["sliding_window"])
        writer.add_causal_attention(False)
    if kind == "modernbert":
        writer.add_sliding_window(config["local_attention"])
    poolings = gguf.PoolingType
    pooling = poolings.RANK
    for flag, value in model.files.get("1_Pooling/config.json", {}).items():
        if value is True:
            pooling = {"m": poolings.MEAN, "c": poolings.CLS, "l": poolings.LAST}[flag.split("_")[2][0]]
    writer.add_pooling_type(pooling)
    writer.add_tokenizer_model("none")

"""Tiny random models of Qwen 3.5 (gated delta nets, gated attention), as folders and GGUF files.

As in `tiny`, the weights come from a seed and numpy alone, under Transformers' names, and the GGUF file
follows llama.cpp's converter. The golden data is made by `tools/make_golden.py`.
"""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import gguf
import numpy as np
import numpy.typing as npt

from formats.safetensors_bytes import write_tensors

from . import convert
from .folders import HF_DIR
from .tiny import Weights

__all__ = ["ALL", "Qwen35", "config", "head", "settings", "weights", "write_folder", "write_gguf"]


@dataclass(frozen=True, eq=False)
class Qwen35:
    """One model; the names of sizes are those of Transformers' configuration."""

    name: str
    seed: int
    hidden_size: int = 96
    num_hidden_layers: int = 4
    num_attention_heads: int = 4
    num_key_value_heads: int = 2
    head_dim: int = 64
    intermediate_size: int = 160
    vocab_size: int = 299
    linear_num_key_heads: int = 2
    linear_num_value_heads: int = 4
    linear_key_head_dim: int = 32
    linear_value_head_dim: int = 64
    linear_conv_kernel_dim: int = 4
    max_position_embeddings: int = 2048

    @property
    def keys(self) -> int:
        """Elements of all keys of a delta net."""
        return self.linear_num_key_heads * self.linear_key_head_dim

    @property
    def values(self) -> int:
        """Elements of all values of a delta net."""
        return self.linear_num_value_heads * self.linear_value_head_dim

    def is_delta(self, layer: int) -> bool:
        """Whether the layer has a delta net."""
        return (layer + 1) % 4 != 0


_ROWS = (
    Qwen35("qwen35", 31),
    # Matrices of whole blocks of 256, and value heads of 20: no whole blocks of 32.
    Qwen35(
        "qwen35_odd", 32, hidden_size=256, intermediate_size=256, linear_num_key_heads=2,
        linear_num_value_heads=6, linear_key_head_dim=36, linear_value_head_dim=20,
    ),
)  # fmt: skip
ALL = {row.name: row for row in _ROWS}


def settings(row: Qwen35) -> dict[str, Any]:
    """What Transformers' configuration of the text model is made from."""
    sizes = {name: getattr(row, name) for name in Qwen35.__dataclass_fields__ if name not in ("name", "seed")}
    return sizes | {
        "hidden_act": "silu",
        "rms_norm_eps": 1e-6,
        "tie_word_embeddings": False,
        "layer_types": [
            "linear_attention" if row.is_delta(n) else "full_attention" for n in range(row.num_hidden_layers)
        ],
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": 1e4,
            "partial_rotary_factor": 0.25,
            "mrope_interleaved": True,
            "mrope_section": [3, 3, 2],
        },
    }


def config(row: Qwen35) -> dict[str, Any]:
    """`config.json` of the text model alone, as Transformers wrote it."""
    found: dict[str, Any] = json.loads((HF_DIR / row.name / "config.json").read_text())
    return found


@dataclass
class _Random:
    """Makes weights from a seed, in float32."""

    seed: int

    def __post_init__(self) -> None:
        self._rng = np.random.RandomState(self.seed)
        self.made: Weights = {}

    def normal(self, *shape: int) -> npt.NDArray[np.float64]:
        n, reach = 4, 1 << 20
        sums = self._rng.randint(-reach, reach, (n, *shape), dtype=np.int64).sum(axis=0)
        return np.asarray(sums / (reach * np.sqrt(n / 3)))

    def matrix(self, name: str, rows: int, cols: int, gain: float) -> None:
        self.made[name] = (self.normal(rows, cols) * (gain / np.sqrt(cols))).astype(np.float32)

    def norm(self, name: str, size: int, centre: float = 0.0) -> None:
        self.made[name] = (centre + 0.2 * self.normal(size)).astype(np.float32)

    def attention(self, row: Qwen35, part: str) -> None:
        dim = row.hidden_size
        q, kv = row.num_attention_heads * row.head_dim, row.num_key_value_heads * row.head_dim
        self.matrix(f"{part}q_proj.weight", 2 * q, dim, 1.4)
        self.matrix(f"{part}k_proj.weight", kv, dim, 1.4)
        self.matrix(f"{part}v_proj.weight", kv, dim, 1.4)
        self.norm(f"{part}q_norm.weight", row.head_dim, 0.4)
        self.norm(f"{part}k_norm.weight", row.head_dim, 0.4)
        self.matrix(f"{part}o_proj.weight", dim, q, 2.0)

    def feed_forward(self, row: Qwen35, layer: str) -> None:
        dim = row.hidden_size
        self.norm(f"{layer}post_attention_layernorm.weight", dim)
        self.matrix(f"{layer}mlp.gate_proj.weight", row.intermediate_size, dim, 1.4)
        self.matrix(f"{layer}mlp.up_proj.weight", row.intermediate_size, dim, 1.4)
        self.matrix(f"{layer}mlp.down_proj.weight", dim, row.intermediate_size, 1.0)


@functools.cache
def head(row: Qwen35) -> Weights:
    """The random weights of a head that predicts a token more, under a checkpoint's names."""
    make, dim = _Random(row.seed + 1000), row.hidden_size
    make.matrix("mtp.fc.weight", dim, 2 * dim, 1.4)
    make.norm("mtp.pre_fc_norm_embedding.weight", dim)
    make.norm("mtp.pre_fc_norm_hidden.weight", dim)
    make.norm("mtp.norm.weight", dim)
    make.norm("mtp.layers.0.input_layernorm.weight", dim)
    make.attention(row, "mtp.layers.0.self_attn.")
    make.feed_forward(row, "mtp.layers.0.")
    return make.made


@functools.cache
def weights(row: Qwen35) -> Weights:
    """The random weights, float32, under Transformers' names. The result is shared: don't change it."""
    make = _Random(row.seed)
    normal, matrix, norm, out = make.normal, make.matrix, make.norm, make.made
    dim, heads, channels = row.hidden_size, row.linear_num_value_heads, 2 * row.keys + row.values
    matrix("model.embed_tokens.weight", row.vocab_size, dim, 2.4)
    for n in range(row.num_hidden_layers):
        layer = f"model.layers.{n}."
        norm(f"{layer}input_layernorm.weight", dim)
        if row.is_delta(n):
            part = f"{layer}linear_attn."
            matrix(f"{part}in_proj_qkv.weight", channels, dim, 1.4)
            matrix(f"{part}in_proj_z.weight", row.values, dim, 1.4)
            matrix(f"{part}in_proj_b.weight", heads, dim, 1.4)
            matrix(f"{part}in_proj_a.weight", heads, dim, 1.4)
            out[f"{part}conv1d.weight"] = (0.6 * normal(channels, 1, row.linear_conv_kernel_dim)).astype(
                np.float32
            )
            # From heads that remember hundreds of positions to those that forget most at once.
            out[f"{part}A_log"] = np.linspace(-4, 1, heads).astype(np.float32)
            norm(f"{part}dt_bias", heads)
            norm(f"{part}norm.weight", row.linear_value_head_dim, 1.0)
            matrix(f"{part}out_proj.weight", dim, row.values, 1.4)
        else:
            make.attention(row, f"{layer}self_attn.")
        make.feed_forward(row, layer)
    norm("model.norm.weight", dim)
    matrix("lm_head.weight", row.vocab_size, dim, 3.0)
    return out


def write_folder(row: Qwen35, folder: Path, *, style: str = "text", drafts: bool = False) -> Path:
    """Write the model as a folder; `drafts`: with the head that predicts a token more.

    `style`: "text" is Transformers' class of the text alone, "whole" a published checkpoint, with other parts
    beside the text model, and "mlx" what mlx-lm makes of that.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written, arrays = config(row), dict(weights(row))
    if drafts:
        arrays |= head(row)
    if style != "text":
        written = {
            "model_type": "qwen3_5",
            "architectures": ["Qwen3_5ForConditionalGeneration"],
            "tie_word_embeddings": False,
            "text_config": written,
            "vision_config": {"model_type": "qwen3_5"},
        }
        prefix = "model.language_model." if style == "whole" else "language_model.model."
        arrays = {name.replace("model.", prefix, 1): array for name, array in arrays.items()}
    if style == "whole":
        arrays["model.visual.patch_embed.proj.weight"] = np.ones((4, 4), np.float32)
        arrays.setdefault("mtp.fc.weight", np.ones((4, 8), np.float32))
    if style == "mlx":
        arrays["language_model.lm_head.weight"] = arrays.pop("lm_head.weight")
        for name, array in arrays.items():
            if name.endswith("conv1d.weight"):
                arrays[name] = array.swapaxes(1, 2)
            elif name.endswith("norm.weight") and "linear_attn" not in name:
                arrays[name] = array + np.float32(1)
    (folder / "config.json").write_text(json.dumps(written))
    write_tensors(
        folder / "model.safetensors", {n: np.ascontiguousarray(a) for n, a in arrays.items()}, "F32"
    )
    return folder


def config_of(folder: Path) -> dict[str, Any]:
    """`config.json` of a folder."""
    found: dict[str, Any] = json.loads((folder / "config.json").read_text())
    return found


_HEAD_NAMES = {
    "mtp.fc": "nextn.eh_proj",
    "mtp.pre_fc_norm_embedding": "nextn.enorm",
    "mtp.pre_fc_norm_hidden": "nextn.hnorm",
    "mtp.norm": "nextn.shared_head_norm",
}
_NAMES = {
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "post_attention_norm",
    "linear_attn.in_proj_qkv": "attn_qkv",
    "linear_attn.in_proj_z": "attn_gate",
    "linear_attn.in_proj_b": "ssm_beta",
    "linear_attn.in_proj_a": "ssm_alpha",
    "linear_attn.conv1d": "ssm_conv1d",
    "linear_attn.norm": "ssm_norm",
    "linear_attn.out_proj": "ssm_out",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def gguf_tensors(row: Qwen35) -> dict[str, npt.NDArray[np.float32]]:
    """The tensors of llama.cpp's file, whose value heads have another order: a key head's are apart."""
    keys, heads, dim = row.linear_num_key_heads, row.linear_num_value_heads, row.linear_value_head_dim
    order = np.arange(heads).reshape(keys, -1).T.reshape(-1)
    rows = (order[:, None] * dim + np.arange(dim)).reshape(-1)
    out: dict[str, npt.NDArray[np.float32]] = {}
    for name, array in weights(row).items():
        stem, _, suffix = name.removeprefix("model.").rpartition(".")
        if not name.startswith("model.layers."):
            top = {"embed_tokens": "token_embd", "norm": "output_norm", "lm_head": "output"}
            out[f"{top[stem]}.{suffix}"] = array + np.float32(1) if stem == "norm" else array
            continue
        n, part = name.removeprefix("model.layers.").split(".", 1)
        if part.endswith("norm.weight") and "linear_attn" not in part:
            array = array + np.float32(1)
        if "in_proj_qkv" in part or "conv1d" in part:
            array = array.reshape(len(array), -1)
            array = np.concatenate([array[: 2 * row.keys], array[2 * row.keys :][rows]])
        if "in_proj_z" in part:
            array = array[rows]
        if "out_proj" in part:
            array = array[:, rows]
        if part.endswith(("in_proj_b.weight", "in_proj_a.weight", "A_log", "dt_bias")):
            array = array[order]
        if part == "linear_attn.A_log":
            out[f"blk.{n}.ssm_a"] = -np.exp(array)
        elif part == "linear_attn.dt_bias":
            out[f"blk.{n}.ssm_dt.bias"] = array
        else:
            out[f"blk.{n}.{_NAMES[part.rpartition('.')[0]]}.weight"] = array
    return {name: np.ascontiguousarray(array) for name, array in out.items()}


def gguf_head(row: Qwen35) -> dict[str, npt.NDArray[np.float32]]:
    """The head's tensors in llama.cpp's file."""
    out: dict[str, npt.NDArray[np.float32]] = {}
    for name, array in head(row).items():
        stem = name.removesuffix(".weight")
        own = _HEAD_NAMES.get(stem) or _NAMES[stem.removeprefix("mtp.layers.0.")]
        added = array + np.float32(1) if "norm" in own else array
        out[f"blk.{row.num_hidden_layers}.{own}.weight"] = added
    return out


def write_gguf(
    row: Qwen35, path: Path, dtype: str = "F32", *, nextn: int = 0, drafts: Literal["", "in", "alone"] = ""
) -> Path:
    """Write the model as llama.cpp's converter does.

    `nextn`: with layers that predict a token more, of which there are traces only. `drafts`: with a whole
    one, or that alone.
    """
    nextn = nextn or int(bool(drafts))
    keys: dict[str, object] = {
        "block_count": row.num_hidden_layers + nextn,
        "context_length": row.max_position_embeddings,
        "embedding_length": row.hidden_size,
        "feed_forward_length": row.intermediate_size,
        "attention.head_count": row.num_attention_heads,
        "attention.head_count_kv": row.num_key_value_heads,
        "attention.key_length": row.head_dim,
        "attention.value_length": row.head_dim,
        "attention.layer_norm_rms_epsilon": 1e-6,
        "full_attention_interval": 4,
        "rope.dimension_count": row.head_dim // 4,
        "rope.dimension_sections": [3, 3, 2, 0],
        "rope.freq_base": 1e4,
        "ssm.conv_kernel": row.linear_conv_kernel_dim,
        "ssm.group_count": row.linear_num_key_heads,
        "ssm.inner_size": row.values,
        "ssm.state_size": row.linear_key_head_dim,
        "ssm.time_step_rank": row.linear_num_value_heads,
    }
    tensors = gguf_tensors(row)
    if drafts:
        tensors = (tensors if drafts == "in" else {}) | gguf_head(row)
    if nextn:
        keys["nextn_predict_layers"] = nextn
        for n in range(row.num_hidden_layers, row.num_hidden_layers + nextn * (not drafts)):
            tensors[f"blk.{n}.nextn.eh_proj.weight"] = np.ones((4, 8), np.float32)
            tensors[f"blk.{n}.attn_norm.weight"] = np.ones(4, np.float32)
    writer = gguf.GGUFWriter(str(path), "qwen35")
    for key, value in keys.items():
        convert.add_value(writer, f"qwen35.{key}", value)
    convert.add_tokenizer(writer, row.vocab_size)
    plain = {name: array for name, array in tensors.items() if "conv1d" in name}
    convert.add_tensors(writer, {name: a for name, a in tensors.items() if name not in plain}, dtype)
    convert.add_tensors(writer, plain, "F32")
    convert.finish(writer)
    return path

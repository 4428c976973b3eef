"""Tiny random models of the rows of `akunu.files.describe.dense_rows`, as GGUF files and as folders.

Names and shapes of the weights are those of Transformers' classes (`shapes.json` beside each `config.json`),
the names in a GGUF file are gguf-py's. What else llama.cpp's converter does is said by each row.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import numpy.typing as npt

from . import convert, tiny

__all__ = ["ALL", "Row", "configuration", "metadata", "weights", "write"]

HF_DIR = Path(__file__).resolve().parents[1] / "data" / "hf"


_OUTPUTS = ("o_proj", "down_proj", "c_proj", "attention.dense", "4h_to_h")
"""Parts of the names of matrices whose products are added to the residual stream."""
_EPSILONS = ("rms_norm_eps", "layer_norm_eps", "norm_epsilon", "layer_norm_epsilon")


@dataclass(frozen=True, eq=False)
class Row:
    """One tiny model.

    Attributes
    ----------
    arch
        `general.architecture`.
    hf
        Transformers' prefix of the class.
    settings
        What its configuration class is called with.
    keys
        Keys of the GGUF file besides those of every model, without the architecture's prefix.
    permuted
        The converter turns the halves of heads of q and k into adjacent pairs.
    added
        What the converter adds to norms around blocks.
    constant
        What every weight of the norms of q and of k is, which a folder does not have.
    """

    name: str
    arch: str
    hf: str
    seed: int
    settings: Mapping[str, Any]
    keys: Mapping[str, object] = field(default_factory=dict)
    permuted: bool = False
    added: float = 0.0
    constant: Mapping[str, float] = field(default_factory=dict)

    @property
    def vocab_size(self) -> int:
        """Tokens."""
        return int(self.settings["vocab_size"])

    @property
    def window(self) -> int:
        """Positions of the sliding window; 0: there is none."""
        return int(self.settings.get("sliding_window") or 0)


_SIZES: dict[str, Any] = {
    "hidden_size": 96,
    "intermediate_size": 160,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
}


def _rope(theta: float = 10000.0, **more: object) -> dict[str, object]:
    return {"rope_type": "default", "rope_theta": theta, **more}


_YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32}
_YARN_KEYS: dict[str, object] = {
    "rope.scaling.type": "yarn",
    "rope.scaling.factor": 4.0,
    "rope.scaling.original_context_length": 32,
}


def _row(
    name: str,
    arch: str,
    hf: str,
    seed: int,
    *,
    keys: Mapping[str, object] | None = None,
    permuted: bool = False,
    added: float = 0.0,
    constant: Mapping[str, float] | None = None,
    **settings: Any,
) -> Row:
    sizes = {**_SIZES, "vocab_size": 301 + 2 * seed, "rope_parameters": _rope(), **settings}
    return Row(name, arch, hf, seed, sizes, keys or {}, permuted, added, constant or {})


_ROWS = (
    _row(
        "granite",
        "granite",
        "Granite",
        51,
        permuted=True,
        embedding_multiplier=6.0,
        residual_multiplier=0.35,
        attention_multiplier=0.11,
        logits_scaling=0.6,
        attention_bias=True,
        keys={"embedding_scale": 6.0, "residual_scale": 0.35, "attention.scale": 0.11, "logit_scale": 0.6},
    ),
    _row("olmo2", "olmo2", "Olmo2", 52, rope_parameters=_rope(5e5)),
    _row(
        "olmo3",
        "olmo2",
        "Olmo3",
        53,
        num_hidden_layers=4,
        sliding_window=12,
        max_position_embeddings=128,
        rope_parameters={"full_attention": _rope(5e5, **_YARN), "sliding_attention": _rope(5e5)},
        keys={**_YARN_KEYS, "attention.sliding_window": 12},
    ),
    _row(
        "smollm3",
        "smollm3",
        "SmolLM3",
        54,
        permuted=True,
        num_hidden_layers=5,
        tie_word_embeddings=True,
        rope_parameters=_rope(2e6),
    ),
    _row(
        "ministral3",
        "mistral3",
        "Ministral3",
        55,
        permuted=True,
        head_dim=32,
        max_position_embeddings=128,
        rope_parameters=_rope(
            1e6,
            **_YARN,
            mscale=1.0,
            mscale_all_dim=1.0,
            llama_4_scaling_beta=0.3,
            beta_fast=32.0,
            beta_slow=1.0,
        ),
        keys={
            **_YARN_KEYS,
            "attention.temperature_scale": 0.3,
            "rope.scaling.yarn_log_multiplier": 1.0,
            "attention.key_length": 32,
            "attention.value_length": 32,
        },
    ),
    _row(
        "glm4",
        "glm4",
        "Glm4",
        56,
        head_dim=32,
        attention_bias=True,
        rope_parameters=_rope(partial_rotary_factor=0.5),
        keys={"rope.dimension_count": 16, "attention.key_length": 32, "attention.value_length": 32},
    ),
    _row(
        "seed_oss",
        "seed_oss",
        "SeedOss",
        57,
        head_dim=32,
        attention_bias=True,
        rope_parameters=_rope(1e7),
        keys={"attention.key_length": 32, "attention.value_length": 32},
    ),
    _row(
        "ernie4_5",
        "ernie4_5",
        "Ernie4_5",
        58,
        head_dim=32,
        tie_word_embeddings=True,
        rope_parameters=_rope(5e5),
        keys={"attention.key_length": 32, "attention.value_length": 32},
    ),
    _row(
        "hunyuan",
        "hunyuan-dense",
        "HunYuanDenseV1",
        59,
        head_dim=32,
        rope_parameters={"rope_type": "dynamic", "rope_theta": 10000.0, "alpha": 50.0, "factor": 1.0},
        keys={
            "rope.freq_base": 10000.0 * 50.0 ** (32 / 30),
            "attention.key_length": 32,
            "attention.value_length": 32,
        },
    ),
    _row(
        "exaone4",
        "exaone4",
        "Exaone4",
        60,
        num_hidden_layers=4,
        sliding_window=12,
        keys={"attention.sliding_window": 12},
    ),
    _row(
        "exaone4_full",
        "exaone4",
        "Exaone4",
        61,
        sliding_window=None,
        layer_types=["full_attention"] * 3,
    ),
    _row(
        "command_r",
        "command-r",
        "Cohere",
        62,
        tie_word_embeddings=True,
        logit_scale=0.7,
        keys={"logit_scale": 0.7},
    ),
    _row(
        "command_r_plus",
        "command-r",
        "Cohere",
        77,
        tie_word_embeddings=True,
        logit_scale=0.7,
        use_qk_norm=True,
        keys={"logit_scale": 0.7},
    ),
    _row(
        "cohere2",
        "cohere2",
        "Cohere2",
        63,
        tie_word_embeddings=True,
        num_hidden_layers=4,
        sliding_window=12,
        logit_scale=1.4,
        keys={"logit_scale": 1.4, "attention.sliding_window": 12},
    ),
    _row("arcee", "arcee", "Arcee", 64, permuted=True),
    _row(
        "stablelm",
        "stablelm",
        "StableLm",
        66,
        use_qkv_bias=True,
        rope_parameters=_rope(partial_rotary_factor=0.25),
        keys={"rope.dimension_count": 6},
    ),
    _row(  # as StableLM 2 12B
        "stablelm_parallel",
        "stablelm",
        "StableLm",
        78,
        head_dim=24,
        qk_layernorm=True,
        use_parallel_residual=True,
        rope_parameters=_rope(partial_rotary_factor=0.25),
        keys={"rope.dimension_count": 6, "use_parallel_residual": True},
    ),
    _row(
        "starcoder2",
        "starcoder2",
        "Starcoder2",
        67,
        tie_word_embeddings=False,
        use_bias=True,
        sliding_window=None,
    ),
    _row(
        "falcon",
        "falcon",
        "Falcon",
        68,
        num_key_value_heads=1,
        ffn_hidden_size=160,
        tie_word_embeddings=False,
        multi_query=True,
        parallel_attn=True,
        new_decoder_architecture=False,
        alibi=False,
        bias=False,
    ),
    _row(
        "falcon_grouped",
        "falcon",
        "Falcon",
        69,
        num_kv_heads=2,
        ffn_hidden_size=160,
        tie_word_embeddings=False,
        new_decoder_architecture=True,
        num_ln_in_parallel_attn=1,
        alibi=False,
        bias=False,
    ),
    _row(  # as 40B and 180B
        "falcon_two_norms",
        "falcon",
        "Falcon",
        76,
        num_kv_heads=2,
        ffn_hidden_size=160,
        tie_word_embeddings=False,
        new_decoder_architecture=True,
        num_ln_in_parallel_attn=2,
        alibi=False,
        bias=False,
    ),
    _row("gpt2", "gpt2", "GPT2", 75, num_key_value_heads=4, n_inner=160, tie_word_embeddings=False),
    _row(
        "starcoder",
        "starcoder",
        "GPTBigCode",
        71,
        num_key_value_heads=1,
        n_inner=160,
        tie_word_embeddings=False,
    ),
    _row(
        "glm",
        "chatglm",
        "Glm",
        72,
        head_dim=32,
        attention_bias=True,
        rope_parameters=_rope(partial_rotary_factor=0.5),
        keys={"rope.dimension_count": 16, "attention.key_length": 32, "attention.value_length": 32},
    ),
    _row(
        "muse_glimmer",
        "muse-glimmer",
        "MuseGlimmer",
        73,
        permuted=True,
        added=1.0,
        constant={"q": 2.2, "k": 1.0},
        num_hidden_layers=4,
        head_dim=32,
        sliding_window=12,
        qk_scale_factor=2.2,
        output_multiplier=0.7,
        final_logit_softcapping=9.0,
        rope_parameters=_rope(5e5),
        keys={
            "attention.key_length": 32,
            "attention.value_length": 32,
            "attention.sliding_window": 12,
            "logit_scale": 0.7,
            "final_logit_softcapping": 9.0,
        },
    ),
)

ALL: dict[str, Row] = {row.name: row for row in _ROWS}
"""The models, by name."""


def configuration(row: Row) -> dict[str, Any]:
    """What Transformers' configuration class is called with."""
    return {**row.settings, "attn_implementation": "eager", "pad_token_id": 0}


def shapes(row: Row) -> dict[str, tuple[int, ...]]:
    """The weights' names and shapes."""
    found = json.loads((HF_DIR / row.name / "shapes.json").read_text())
    return {name: tuple(shape) for name, shape in found.items()}


@functools.cache
def weights(row: Row) -> tiny.Weights:
    """The random weights, float32, under Transformers' names, with scales as in `tiny.weights`."""
    rng = np.random.RandomState(row.seed)
    out: tiny.Weights = {}
    for name, shape in shapes(row).items():
        n, reach = 4, 1 << 20
        normal = rng.randint(-reach, reach, (n, *shape), dtype=np.int64).sum(axis=0) / (
            reach * np.sqrt(n / 3)
        )
        if name.endswith(".bias"):
            values = 0.3 * normal
        elif len(shape) == 1 or "norm." in name:
            values = (1.4 if "self_attn" in name else 1.0) + 0.2 * normal
            if row.added and "layernorm" in name:
                values -= row.added
        else:
            gain = 1.0
            if "embed" in name or "wte" in name:
                gain = 2.4
            elif "lm_head" in name:
                gain = 3.0
            elif not any(part in name for part in _OUTPUTS):
                gain = 1.4
            values = normal * (gain / np.sqrt(shape[-1]))
        out[name] = np.asarray(values, np.float32)
    return out


def metadata(row: Row) -> dict[str, object]:
    """The configuration keys, as the converter writes them."""
    s = row.settings
    rope = s["rope_parameters"]
    rope = rope.get("full_attention", rope)
    layer_norm = row.arch in (
        *("command-r", "cohere2", "stablelm", "starcoder2", "falcon", "gpt2", "starcoder"),
    )
    defaults = json.loads((HF_DIR / row.name / "config.json").read_text())
    defaults = defaults.get("text_config", defaults)
    eps = next(defaults[key] for key in _EPSILONS if key in defaults)
    keys: dict[str, object] = {
        "block_count": s["num_hidden_layers"],
        "context_length": s["max_position_embeddings"],
        "embedding_length": s["hidden_size"],
        "feed_forward_length": s["intermediate_size"],
        "attention.head_count": s["num_attention_heads"],
        "attention.head_count_kv": s["num_key_value_heads"],
        f"attention.layer_norm_{'' if layer_norm else 'rms_'}epsilon": eps,
        **({} if row.arch in ("gpt2", "starcoder") else {"rope.freq_base": rope["rope_theta"]}),
        **row.keys,
    }
    return {f"{row.arch}.{key}": value for key, value in keys.items()}


def tensors(row: Row) -> tiny.Weights:
    """Every tensor of the GGUF file, float32."""
    known = {"muse-glimmer": "afmoe"}.get(row.arch, row.arch)  # gguf-py has no names of its own for it
    arch = next(kind for kind, name in gguf.MODEL_ARCH_NAMES.items() if name == known)
    names = gguf.get_tensor_name_map(arch, row.settings["num_hidden_layers"])
    out: tiny.Weights = {}
    heads = {"q_proj": "num_attention_heads", "k_proj": "num_key_value_heads"}
    for name, array in _stacked(weights(row)).items():
        for part, count in heads.items():
            if row.permuted and f".{part}." in name:
                array = convert.permute(array, row.settings[count]).reshape(array.shape)
        stem, _, suffix = name.replace("language_model.", "").rpartition(".")
        if row.added and "layernorm" in name:
            array = array + np.float32(row.added)
        if row.arch == "gpt2" and ".h." in name and array.ndim == 2:
            array = np.ascontiguousarray(array.T)
        if "query_key_value" in name:
            array = _by_part(row, array)
        found = names.get_name(stem)
        assert found is not None, name
        out[f"{found}.{suffix}"] = array
    for part, value in row.constant.items():
        for n in range(row.settings["num_hidden_layers"]):
            out[f"blk.{n}.attn_{part}_norm.weight"] = np.full(row.settings["head_dim"], value, np.float32)
    return out


def _stacked(arrays: tiny.Weights) -> tiny.Weights:
    """Join the norms of a layer's heads, which are a tensor each in a folder, to one tensor."""
    out: tiny.Weights = {}
    for name, array in arrays.items():
        place, found, head = name.partition(".norms.")
        if not found:
            out[name] = array
        elif head == "0.weight":
            own = [n for n in arrays if n.startswith(f"{place}.norms.")]
            out[f"{place}.weight"] = np.stack([arrays[f"{place}.norms.{i}.weight"] for i in range(len(own))])
    return out


def _by_part(row: Row, array: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """All of q, then k, then v, of rows that are in this order for each head of k."""
    heads, kv_heads = row.settings["num_attention_heads"], row.settings["num_key_value_heads"]
    of_groups = array.reshape(kv_heads, heads // kv_heads + 2, -1, array.shape[-1])
    parts = np.split(of_groups, [heads // kv_heads, heads // kv_heads + 1], axis=1)
    return np.concatenate([part.reshape(-1, array.shape[-1]) for part in parts])


def write(name: str, dtype: str, path: str | Path) -> Path:
    """Write one of `ALL` as GGUF, with matrices of a type of `quant.DTYPES`."""
    row = ALL[name]
    writer = gguf.GGUFWriter(str(path), row.arch)
    for key, value in metadata(row).items():
        convert.add_value(writer, key, value)
    convert.add_tokenizer(writer, row.vocab_size)
    convert.add_tensors(writer, tensors(row), dtype)
    convert.finish(writer)
    return Path(path)


def logits_of_class(row: Row, ids: list[int]) -> npt.NDArray[np.float32]:
    """What Transformers computes now (only where it is installed)."""
    from . import hf

    return hf.logits(hf.row_model(row), ids)

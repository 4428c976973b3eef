"""The model types of Hugging Face that are rows of `akunu.files.describe.hybrid_rows`.

The defaults are those of Transformers' configuration classes. Each says in its own way which layers have
which mixer, and several ways have been in use; here it becomes what a GGUF file says: heads of keys, and
sizes of feed-forwards, of each layer, 0 where there are none.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from akunu.base.errors import ModelFileError, UnsupportedError
from akunu.files.describe.config_numbers import shown
from akunu.files.describe.hf_row import HfModel, defaults_of

__all__ = ["HYBRID_MODELS"]

Config = Mapping[str, object]

_ATTENDING: Final = ("full_attention", "attention")
_RECURRENT: Final = ("linear_attention", "conv", "mamba")
_LETTERS: Final = {"M": "mamba", "*": "attention", "E": "moe", "-": "mlp"}
"""The kind of layer that each letter of Nemotron's pattern stands for."""


def _integer(config: Config, key: str, default: int) -> int:
    value = config.get(key)
    if value is None:
        return default
    if not isinstance(value, int) or isinstance(value, bool):
        raise ModelFileError(f"config.json: {key}: found {shown(value)}, expected an integer")
    return value


def _types(config: Config, key: str, known: tuple[str, ...]) -> list[str]:
    """The kinds of layers that a key lists."""
    types = config[key]
    if not isinstance(types, list) or any(kind not in known for kind in types):
        raise ModelFileError(
            f"config.json: {key}: found {shown(types)}, expected a list of {', '.join(known)}"
        )
    return types


def _with_heads(config: Config, types: list[str], kv_heads: object) -> Config:
    """The configuration with heads of keys in the layers that attend."""
    heads = [kv_heads if kind in _ATTENDING else 0 for kind in types]
    return {**config, "num_key_value_heads": heads}


def _lfm2(config: Config, defaults: Mapping[str, float]) -> Config:
    """Short convolutions are layers of the kind "conv", in older files those whose index is not listed."""
    found = dict(config)
    if found.get("layer_types") is None:
        indices = found.get("full_attn_idxs")
        n_layers = _integer(found, "num_hidden_layers", 32)
        full = range(n_layers) if indices is None else indices
        if not isinstance(full, list | range):
            raise ModelFileError(f"config.json: full_attn_idxs: found {shown(full)}, expected a list")
        found["layer_types"] = ["full_attention" if n in full else "conv" for n in range(n_layers)]
    if "tie_embedding" in found:
        found["tie_word_embeddings"] = found["tie_embedding"]
    if "block_ff_dim" in found:
        found["intermediate_size"] = found["block_ff_dim"]
    types = _types(found, "layer_types", (*_ATTENDING, *_RECURRENT))
    return _with_heads(found, types, found.get("num_key_value_heads", 8))


def _lfm2_dense(config: Config, defaults: Mapping[str, float]) -> Config:
    """The size of a feed-forward follows from another number, mostly: as Llama's first classes had it."""
    found = dict(_lfm2(config, defaults))
    if found.get("block_auto_adjust_ff_dim", True):
        multiple = _integer(found, "block_multiple_of", 256)
        size = int(2 * _integer(found, "intermediate_size", 12288) / 3)
        factor = found.get("block_ffn_dim_multiplier", 1.0)
        if isinstance(factor, int | float):
            size = int(factor * size)
        if multiple < 1:
            raise ModelFileError(f"config.json: block_multiple_of: found {multiple}, expected 1 or more")
        found["intermediate_size"] = multiple * -(-size // multiple)
    return found


def _granite(config: Config, defaults: Mapping[str, float]) -> Config:
    """Without experts, the feed-forward is what all rows share with them."""
    found = dict(config)
    n_layers = _integer(found, "num_hidden_layers", 32)
    if found.get("layer_types") is None:
        found["layer_types"] = found.get("layers_block_type") or ["mamba"] * n_layers
    heads = _integer(found, "num_attention_heads", 32)
    mamba_heads = _integer(found, "mamba_n_heads", 128)
    if found.get("mamba_d_head") in (None, "auto"):
        width = _integer(found, "mamba_expand", 2) * _integer(found, "hidden_size", 4096)
        if mamba_heads < 1 or width % mamba_heads:
            raise ModelFileError(
                f"config.json: mamba_n_heads: found {mamba_heads}, expected a divisor of {width}"
            )
        found["mamba_d_head"] = width // mamba_heads
    if found.get("num_local_experts") == 0:
        found["intermediate_size"] = found.get("shared_intermediate_size", 1024)
    types = _types(found, "layer_types", (*_ATTENDING, *_RECURRENT))
    return _with_heads(found, types, found.get("num_key_value_heads") or heads)


def _nemotron(config: Config, defaults: Mapping[str, float]) -> Config:
    """A layer is one mixer, named by a list or by a letter of a pattern."""
    found = dict(config)
    pattern = found.get("hybrid_override_pattern")
    key = next((key for key in ("layers_block_type", "layer_types") if found.get(key) is not None), "")
    if not key and isinstance(pattern, str):
        key = "hybrid_override_pattern"
        if set(pattern) - set(_LETTERS):
            raise UnsupportedError(
                f"config.json: {key}: found {shown(pattern)}, expected letters of {' '.join(_LETTERS)}"
            )
        found[key] = [_LETTERS[letter] for letter in pattern]
    if not key:
        raise ModelFileError("config.json: layers_block_type is missing; every nemotron_h model needs it")
    types = _types(found, key, (*_ATTENDING, *_RECURRENT, "moe", "mlp"))
    sizes = {"moe": "moe_intermediate_size", "mlp": "intermediate_size"}
    found |= {
        "num_hidden_layers": len(types),
        "intermediate_size": [found.get(sizes[kind], 0) if kind in sizes else 0 for kind in types],
        "mlp_layer_types": ["sparse" if kind == "moe" else "dense" for kind in types],
        "hidden_act": found.get("mlp_hidden_act", "relu2"),
        "layer_types": None,
    }
    if "moe" not in types:
        found["n_routed_experts"] = 0
    found["tie_word_embeddings"] = False  # whatever it says: the class has a head of its own
    if "attention_head_dim" in found:
        found.setdefault("head_dim", found["attention_head_dim"])
    if "mamba_n_groups" in found:
        found["n_groups"] = found["mamba_n_groups"]
    return _with_heads(found, types, found.get("num_key_value_heads", 8))


_MAMBA_KEYS: Final = MappingProxyType(
    {
        "shared_dim": "shared_intermediate_size",
        "delta_key_heads": "mamba_n_groups",
        "delta_value_heads": "mamba_n_heads",
        "delta_key_dim": "mamba_d_state",
        "delta_value_dim": "mamba_d_head",
        "delta_taps": "mamba_d_conv",
    }
)
_NEMOTRON_KEYS: Final = MappingProxyType(
    {
        "n_experts": "n_routed_experts",
        "norm_eps": "layer_norm_epsilon",
        "shared_dim": "moe_shared_expert_intermediate_size",
        "shared_experts": "n_shared_experts",
        "delta_key_heads": "n_groups",
        "delta_value_heads": "mamba_num_heads",
        "delta_key_dim": "ssm_state_size",
        "delta_value_dim": "mamba_head_dim",
        "delta_taps": "conv_kernel",
    }
)

_LFM2 = HfModel(
    "lfm2",
    defaults=defaults_of(
        dim=2560, n_layers=32, n_heads=32, ffn_dim=12288, context_length=128000, norm_eps=1e-5,
        rope_theta=1e6, conv_taps=3,
    ),
    tied=True,
    model_class="Lfm2ForCausalLM",
    keys=MappingProxyType({"norm_eps": "norm_eps"}),
    spelled=_lfm2_dense,
    bias_keys=MappingProxyType(
        dict.fromkeys(("conv_input_bias", "conv_taps_bias", "conv_output_bias"), ("conv_bias", False))
    ),
    features=("conv_bias",),
)  # fmt: skip

HYBRID_MODELS: Final[Mapping[str, HfModel]] = MappingProxyType(
    {
        "lfm2": _LFM2,
        "lfm2_moe": dataclasses.replace(
            _LFM2,
            arch="lfm2moe",
            defaults=defaults_of(
                dim=2048, n_layers=32, n_heads=32, ffn_dim=7168, context_length=128000, norm_eps=1e-5,
                rope_theta=1e6, conv_taps=3, n_experts=32, experts_used=4, expert_dim=1792, dense_lead=2,
                expert_scale=1.0,
            ),
            model_class="Lfm2MoeForCausalLM",
            keys=MappingProxyType(
                {"norm_eps": "norm_eps", "n_experts": "num_experts", "dense_lead": "num_dense_layers"}
            ),
            bias_keys=MappingProxyType(
                {**_LFM2.bias_keys, "router_choice_bias": ("use_expert_bias", True)}
            ),
            renormalise=True,
            spelled=_lfm2,
        ),
        "granitemoehybrid": HfModel(
            "granitehybrid",
            defaults=defaults_of(
                dim=4096, n_layers=32, n_heads=32, ffn_dim=11008, context_length=2048, embedding_scale=1,
                residual_scale=1, attn_scale=1, logit_divisor=1, n_experts=8, experts_used=2, shared_dim=1024,
                delta_key_heads=1, delta_value_heads=128, delta_key_dim=256, delta_taps=4,
            ),
            model_class="GraniteMoeHybridForCausalLM",
            keys=_MAMBA_KEYS,
            biases="flag",
            bias_keys=MappingProxyType(
                dict.fromkeys(("mamba_z_bias", "mamba_output_bias"), ("mamba_proj_bias", False))
            ),
            features=("mamba_proj_bias",),
            spelled=_granite,
            dense_too=True,
        ),
        "nemotron_h": HfModel(
            "nemotron_h_moe",
            defaults=defaults_of(
                dim=4096, n_heads=32, head_dim=128, ffn_dim=21504, context_length=4096, norm_eps=1e-5,
                n_experts=8, experts_used=2, expert_dim=7688, shared_dim=7688, expert_scale=1.0,
                expert_groups=1, expert_groups_used=1, delta_key_heads=8, delta_value_heads=128,
                delta_key_dim=128, delta_value_dim=64, delta_taps=4,
            ),
            model_class="NemotronHForCausalLM",
            keys=_NEMOTRON_KEYS,
            dense_too=True,
            prefix="backbone.",
            bias_keys=MappingProxyType(
                {
                    "attn": ("attention_bias", False),
                    "ffn": ("mlp_bias", False),
                    **dict.fromkeys(("mamba_z_bias", "mamba_output_bias"), ("use_bias", False)),
                }
            ),
            features=("mamba_proj_bias",),
            renormalise=True,
            spelled=_nemotron,
            left_out=MappingProxyType({"*mtp.*": "multi-token prediction"}),
        ),
    }
)  # fmt: skip
"""The rows, by `model_type`."""

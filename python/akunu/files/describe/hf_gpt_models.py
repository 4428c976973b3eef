"""The model types of Hugging Face that are rows of `akunu.files.describe.gpt_rows`.

The defaults are those of Transformers' configuration classes.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from akunu.base.errors import UnsupportedError
from akunu.files.describe.gemma4_folders import theta_of
from akunu.files.describe.hf_row import HfModel, defaults_of

if TYPE_CHECKING:
    from akunu.files.describe.config import ModelSpec

__all__ = ["GPT_MODELS"]

Config = Mapping[str, object]
Defaults = Mapping[str, float]


def _inner(found: Config, key: str, width: str, defaults: Defaults) -> object:
    """The size of feed-forwards, which is four times the width where nothing is said."""
    dim = found.get(width, int(defaults["dim"]))
    size = found.get(key)
    return 4 * dim if size is None and isinstance(dim, int) else size


def _gpt(config: Config, defaults: Defaults) -> Config:
    activation = config.get("activation_function", "gelu_new")
    return {
        **config,
        "intermediate_size": _inner(config, "n_inner", "n_embd", defaults),
        "hidden_act": "gelu_new" if activation == "gelu_pytorch_tanh" else activation,
    }


def _starcoder(config: Config, defaults: Defaults) -> Config:
    if not config.get("multi_query", True):
        raise UnsupportedError(
            "config.json: multi_query: found False; only models with one head of keys are supported"
        )
    return {**_gpt(config, defaults), "num_key_value_heads": 1}


def _falcon(config: Config, defaults: Defaults) -> Config:
    grouped = bool(config.get("new_decoder_architecture", False))
    if not grouped and not config.get("parallel_attn", True):
        raise UnsupportedError(
            "config.json: parallel_attn: found False; only attention and feed-forward side by side are "
            "supported"
        )
    if config.get("bias", False):
        raise UnsupportedError("config.json: bias: found True; only Falcons without biases are supported")
    heads = config.get("num_attention_heads", int(defaults["n_heads"]))
    kv_heads = 1 if config.get("multi_query", True) else heads
    if grouped:
        kv_heads = config.get("num_kv_heads") or heads
    return {
        **config,
        "num_key_value_heads": kv_heads,
        "intermediate_size": _inner(config, "ffn_hidden_size", "hidden_size", defaults),
        "hidden_act": config.get("activation", "gelu"),
    }


def _said(spec: ModelSpec) -> Config:
    config = spec.config
    return {
        "n_inner": config.ffn_dim,
        "activation_function": "gelu_pytorch_tanh",
        "layer_norm_epsilon": _plain(config.norm_eps),
        "n_positions": config.context_length,
        **({"multi_query": True} if config.arch == "starcoder" else {}),
    }


def _falcon_said(spec: ModelSpec) -> Config:
    config = spec.config
    two = "layers.0.ffn_norm" in spec.tensors
    return {
        "new_decoder_architecture": two or config.n_kv_heads not in (1, config.n_heads),
        "num_ln_in_parallel_attn": 2 if two else 1,
        "num_kv_heads": config.n_kv_heads,
        "multi_query": config.n_kv_heads == 1,
        "parallel_attn": True,
        "bias": False,
        "alibi": False,
        "activation": "gelu",
        "ffn_hidden_size": config.ffn_dim,
        "layer_norm_epsilon": _plain(config.norm_eps),
        "rope_theta": theta_of(config.rope_sets[0].inv_freq),
    }


def _plain(value: float) -> float:
    return float(f"{value:.7g}")


_GPT_SIZES: Final = {"dim": 768, "n_layers": 12, "n_heads": 12, "context_length": 1024, "norm_eps": 1e-5}
_MASKS: Final = ("*.attn.bias", "*.attn.masked_bias")
"""Masks, which old checkpoints hold."""

GPT_MODELS: Final[Mapping[str, HfModel]] = MappingProxyType(
    {
        "gpt2": HfModel(
            "gpt2",
            defaults=defaults_of(**_GPT_SIZES),
            tied=True,
            ignored=_MASKS,
            model_class="GPT2LMHeadModel",
            spelled=_gpt,
            said=_said,
            prefix="transformer.",
        ),
        "gpt_bigcode": HfModel(
            "starcoder",
            defaults=defaults_of(**_GPT_SIZES),
            tied=True,
            ignored=_MASKS,
            model_class="GPTBigCodeForCausalLM",
            spelled=_starcoder,
            said=_said,
            prefix="transformer.",
        ),
        "falcon": HfModel(
            "falcon",
            defaults=defaults_of(dim=4544, n_layers=32, n_heads=71, context_length=2048, norm_eps=1e-5),
            tied=True,
            ignored=("*.rotary_emb.inv_freq", "*.self_attention.maybe_rotary.inv_freq"),
            model_class="FalconForCausalLM",
            spelled=_falcon,
            said=_falcon_said,
            prefix="transformer.",
        ),
    }
)
"""The rows, by `model_type`."""

"""Folders of Gemma 4. Facts: Transformers' `gemma4` and `gemma4_unified`."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from akunu.base.errors import UnsupportedError
from akunu.files.describe.blocks import Attention, Experts, FeedForward
from akunu.files.describe.hf_row import HfModel, defaults_of, layers_of

if TYPE_CHECKING:
    from akunu.files.describe.config import ModelSpec

__all__ = ["GEMMA4_MODELS", "TOWERS_LEFT_OUT", "theta_of"]

_FULL, _SLIDING = "full_attention", "sliding_attention"

TOWERS_LEFT_OUT: Final = MappingProxyType(
    {
        "*vision_tower.*": "images",
        "*vision_embedder.*": "images",
        "*embed_vision.*": "images",
        "*audio_tower.*": "audio",
        "*embed_audio.*": "audio",
    }
)
"""See `HfModel.left_out`."""


def _spelled(config: Mapping[str, object], defaults: Mapping[str, float]) -> Mapping[str, object]:
    """The configuration with sizes for each layer. The last layer sees everything, whatever its type."""
    found = {key: value for key, value in config.items() if value is not None}
    n_layers = layers_of(found, defaults)
    if n_layers is None:
        return config  # which is refused where it is read
    types = found.get("layer_types")
    if types is None:
        types = [_FULL if n % 6 == 5 else _SLIDING for n in range(n_layers)]
    if not isinstance(types, list) or len(types) != n_layers:
        return config
    types = [*types[:-1], _FULL]
    own = found.pop("per_layer_config", None)
    full = _full_sizes(own, types) if isinstance(own, Mapping) else {}
    local_dim = found.get("head_dim", int(defaults["local_head_dim"]))
    # Where sizes are said by layer, a layer of which nothing is said is as the others.
    global_dim = int(defaults["head_dim"]) if own is None else local_dim
    found |= {
        "layer_types": types,
        "local_head_dim": local_dim,
        "head_dim": full.get("head_dim", found.get("global_head_dim", global_dim)),
    }
    heads = found.get("num_key_value_heads", int(defaults["n_kv_heads"]))
    full_heads = full.get("num_key_value_heads")
    if full_heads is None and found.get("attention_k_eq_v", False):
        full_heads = found.get("num_global_key_value_heads")
    if full_heads is not None:
        found["num_key_value_heads"] = [heads if kind == _SLIDING else full_heads for kind in types]
    shared, width = found.get("num_kv_shared_layers", 0), found.get("intermediate_size", 0)
    if found.get("use_double_wide_mlp") and isinstance(shared, int) and isinstance(width, int):
        found["intermediate_size"] = [width * (1 + (n >= n_layers - shared)) for n in range(n_layers)]
    if found.get("use_bidirectional_attention") == "vision":  # text is causal then
        del found["use_bidirectional_attention"]
    if not found.get("enable_moe_block"):
        found.pop("num_experts", None)
    return found


def _full_sizes(own: Mapping[str, object], types: Sequence[str]) -> Mapping[str, object]:
    """Return what `per_layer_config` says of the layers that see everything, which are alike."""
    full = [own.get(str(n), {}) for n, kind in enumerate(types) if kind == _FULL]
    others = [n for n, kind in enumerate(types) if kind != _FULL and own.get(str(n))]
    first = full[0]
    if others or not isinstance(first, Mapping) or any(sizes != first for sizes in full):
        raise UnsupportedError(
            "config.json: per_layer_config: only sizes that all layers of full attention share are known"
        )
    return first


def _said(spec: ModelSpec) -> Mapping[str, object]:
    """The inverse of `_spelled`, as published configurations have it."""
    config = spec.config
    layers = config.mixers(Attention)
    full = next(n for n, attention in enumerate(layers) if not attention.window)
    local = next((attention for attention in layers if attention.window), layers[full])
    widths = [forward.dim for forward in config.mixers(FeedForward)]
    experts = config.mixers(Experts)
    inputs = config.layer_inputs
    frequencies = config.rope_sets[0].inv_freq
    found: dict[str, object] = {
        "layer_types": [_SLIDING if attention.window else _FULL for attention in layers],
        "sliding_window": local.window,
        "head_dim": local.head_dim,
        "global_head_dim": layers[full].head_dim,
        "num_key_value_heads": local.n_kv_heads,
        "num_global_key_value_heads": layers[full].n_kv_heads,
        "attention_k_eq_v": f"layers.{full}.attn_v" not in spec.tensors,
        "num_kv_shared_layers": sum(attention.kv_owner is not None for attention in layers),
        "intermediate_size": widths[0] if widths else experts[0].shared_dim,
        "use_double_wide_mlp": len(set(widths)) > 1,
        "hidden_size_per_layer_input": inputs.dim if inputs else 0,
        "vocab_size_per_layer_input": inputs.vocab_size if inputs else config.vocab_size,
        "enable_moe_block": bool(experts),
        "rope_parameters": {
            _FULL: {
                "rope_type": "proportional",
                "partial_rotary_factor": np.count_nonzero(frequencies) / len(frequencies),
                "rope_theta": theta_of(frequencies),
            },
            _SLIDING: {"rope_type": "default", "rope_theta": theta_of(config.rope_sets[-1].inv_freq)},
        },
    }
    if experts:
        found |= {
            "num_experts": experts[0].count,
            "top_k_experts": experts[0].used,
            "moe_intermediate_size": experts[0].dim,
        }
    return found


def theta_of(inv_freq: npt.NDArray[np.float32]) -> float:
    """The theta whose second frequency is that of the set, of 6 digits at most."""
    return float(f"{float(inv_freq[1]) ** -len(inv_freq):.6g}")


_GEMMA4 = HfModel(
    "gemma4",
    windowed="layers",
    defaults=defaults_of(
        dim=2304, n_layers=30, n_heads=8, n_kv_heads=4, head_dim=512, local_head_dim=256, ffn_dim=9216,
        context_length=131072, window=512, rope_theta=1e6, local_rope_theta=1e4, attn_scale=1.0,
        final_softcap=0, shared_kv_layers=0, layer_input_dim=256, rope_share=1.0,
    ),
    tied=True,
    biases="flag",
    rope=MappingProxyType(
        {
            _FULL: {"rope_type": "proportional", "partial_rotary_factor": 0.25, "rope_theta": 1e6},
            _SLIDING: {"rope_type": "default", "rope_theta": 1e4},
        }
    ),
    left_out=TOWERS_LEFT_OUT,
    spelled=_spelled,
    said=_said,
)  # fmt: skip
_UNIFIED = dataclasses.replace(
    _GEMMA4,
    defaults=MappingProxyType(
        {**_GEMMA4.defaults, "context_length": 262144, "window": 1024, "layer_input_dim": 0}
    ),
)

GEMMA4_MODELS: Final[Mapping[str, HfModel]] = MappingProxyType(
    {
        "gemma4": _GEMMA4,
        "gemma4_text": dataclasses.replace(_GEMMA4, model_class="Gemma4ForCausalLM"),
        "gemma4_unified": _UNIFIED,
        "gemma4_unified_text": _UNIFIED,
    }
)
"""The rows, by `model_type`, see `akunu.files.describe.hf_models.HF_MODELS`."""

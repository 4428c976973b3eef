"""Folders of Gemma 3n. Facts: Transformers' `gemma3n`."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from statistics import NormalDist
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from akunu.base.errors import ModelFileError
from akunu.files.describe.blocks import Attention, FeedForward, Laurel
from akunu.files.describe.config_numbers import shown
from akunu.files.describe.gemma4_folders import TOWERS_LEFT_OUT, theta_of
from akunu.files.describe.hf_row import HfModel, defaults_of, layers_of

if TYPE_CHECKING:
    from akunu.files.describe.config import ModelSpec

__all__ = ["GEMMA3N_MODELS"]

_FULL, _SLIDING = "full_attention", "sliding_attention"
_SPARSE_LAYERS, _SPARSITY = 10, 0.95  # where a configuration does not say it, of models of more layers


def _spelled(config: Mapping[str, object], defaults: Mapping[str, float]) -> Mapping[str, object]:
    """The configuration with the type of each layer, and of its gates how many deviations are cut off."""
    found = {key: value for key, value in config.items() if value is not None}
    found.pop("query_pre_attn_scalar", None)  # which its class does not read
    n_layers = layers_of(found, defaults)
    if n_layers is None:
        return config  # which is refused where it is read
    if found.get("layer_types") is None:
        found["layer_types"] = [_FULL if n % 5 == 4 else _SLIDING for n in range(n_layers)]
    pattern = found.pop("activation_sparsity_pattern", None)
    if pattern is None:
        n_sparse = _SPARSE_LAYERS if n_layers > _SPARSE_LAYERS else 0
        pattern = [_SPARSITY if n < n_sparse else 0.0 for n in range(n_layers)]
    found["activation_sparsity_scale"] = _deviations(pattern, n_layers)
    return found


def _deviations(pattern: object, n_layers: int) -> list[float]:
    """The quantiles of the normal distribution; -inf where nothing is cut off."""

    def is_share(value: object) -> bool:
        return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1

    if not isinstance(pattern, list) or len(pattern) != n_layers or not all(map(is_share, pattern)):
        raise ModelFileError(
            f"config.json: activation_sparsity_pattern: found {shown(pattern)}, expected a number from 0 and "
            f"below 1 for each of the {n_layers} layers"
        )
    return [NormalDist().inv_cdf(share) if share else -float("inf") for share in pattern]


def _said(spec: ModelSpec) -> Mapping[str, object]:
    """The inverse of `_spelled`."""
    config = spec.config
    layers, forwards = config.mixers(Attention), config.mixers(FeedForward)
    local = next((attention for attention in layers if attention.window), layers[0])
    inputs, streams = config.layer_inputs, config.streams
    assert inputs is not None and streams is not None
    cut = [forward.deviations for forward in forwards]
    return {
        "layer_types": [_SLIDING if attention.window else _FULL for attention in layers],
        "sliding_window": local.window,
        "num_kv_shared_layers": sum(attention.kv_owner is not None for attention in layers),
        "intermediate_size": [forward.dim for forward in forwards],
        "activation_sparsity_pattern": [0.0 if d is None else round(NormalDist().cdf(d), 6) for d in cut],
        "hidden_size_per_layer_input": inputs.dim,
        "vocab_size_per_layer_input": inputs.vocab_size,
        "altup_num_inputs": streams.count,
        "altup_active_idx": streams.active,
        "altup_correct_scale": "layers.0.streams_scale" in spec.tensors,
        "laurel_rank": config.mixers(Laurel)[0].rank,
        "rope_theta": theta_of(config.rope_sets[0].inv_freq),
        "rope_local_base_freq": theta_of(config.rope_sets[-1].inv_freq),
    }


_GEMMA3N = HfModel(
    "gemma3n",
    windowed="layers",
    defaults=defaults_of(
        dim=2048, n_layers=35, n_heads=8, n_kv_heads=2, head_dim=256, ffn_dim=16384, context_length=32768,
        window=512, rope_theta=1e6, local_rope_theta=1e4, attn_scale=1.0, final_softcap=30.0,
        shared_kv_layers=15, layer_input_dim=256, streams=4, active_stream=0, laurel_rank=64, deviations=0,
    ),
    tied=True,
    biases="flag",
    left_out=TOWERS_LEFT_OUT,
    spelled=_spelled,
    said=_said,
)  # fmt: skip

GEMMA3N_MODELS: Final[Mapping[str, HfModel]] = MappingProxyType(
    {
        "gemma3n": _GEMMA3N,
        "gemma3n_text": dataclasses.replace(_GEMMA3N, model_class="Gemma3nForCausalLM"),
    }
)
"""The rows, by `model_type`, see `akunu.files.describe.hf_models.HF_MODELS`."""

"""The model types of Hugging Face that are rows of `akunu.files.describe.expert_rows`.

The defaults are those of Transformers' configuration classes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from akunu.files.describe.hf_row import HfModel, defaults_of, layers_of

__all__ = ["EXPERT_MODELS"]

_GRANITE = HfModel(
    "granitemoe",
    defaults=defaults_of(
        embedding_scale=1, residual_scale=1, attn_scale=1, logit_divisor=1, n_experts=8, experts_used=2
    ),
    model_class="GraniteMoeForCausalLM",
    biases="flag",
)


def _mellum(config: Mapping[str, object], defaults: Mapping[str, float]) -> Mapping[str, object]:
    """Return Mellum's configuration; without `layer_types` no layer has a window."""
    n_layers = layers_of(config, defaults)
    if config.get("layer_types") is not None or n_layers is None:
        return config
    return {**config, "layer_types": ["full_attention"] * n_layers}


EXPERT_MODELS: Final[Mapping[str, HfModel]] = MappingProxyType(
    {
        "granitemoe": _GRANITE,
        "granitemoeshared": dataclasses.replace(
            _GRANITE,
            defaults=MappingProxyType({**_GRANITE.defaults, "shared_dim": 0}),
            model_class="GraniteMoeSharedForCausalLM",
            keys=MappingProxyType({"shared_dim": "shared_intermediate_size"}),
        ),
        "mellum": HfModel(
            "mellum",
            windowed="layers",
            defaults=defaults_of(
                dim=2304,
                n_layers=28,
                n_heads=32,
                n_kv_heads=4,
                head_dim=128,
                ffn_dim=7168,
                context_length=131072,
                window=1024,
                rope_theta=5e5,
                local_rope_theta=1e4,
                n_experts=64,
                experts_used=8,
                expert_dim=896,
            ),
            model_class="MellumForCausalLM",
            keys=MappingProxyType({"n_experts": "num_experts"}),
            biases="flag",
            renormalise=True,
            spelled=_mellum,
            left_out=MappingProxyType({"*mtp*": "multi-token prediction"}),
        ),
        "ernie4_5_moe": HfModel(
            "ernie4_5-moe",
            defaults=defaults_of(
                dim=2560,
                n_layers=28,
                n_heads=20,
                n_kv_heads=4,
                ffn_dim=12288,
                context_length=131072,
                norm_eps=1e-5,
                rope_theta=500000.0,
                n_experts=64,
                experts_used=6,
                expert_dim=1536,
                shared_experts=2,
                dense_lead=1,
                expert_sum_min=1e-12,
            ),
            tied=True,
            model_class="Ernie4_5_MoeForCausalLM",
            keys=MappingProxyType(
                {
                    "n_experts": "moe_num_experts",
                    "experts_used": "moe_k",
                    "shared_experts": "moe_num_shared_experts",
                    "dense_lead": "moe_layer_start_index",
                    "expert_step": "moe_layer_interval",
                }
            ),
            bias_keys=MappingProxyType(
                dict.fromkeys(("attn", "ffn", "shared", "output_bias"), ("use_bias", False))
            ),
            rope_style="interleaved",
            left_out=MappingProxyType({"*mtp_*": "multi-token prediction"}),
        ),
        "hunyuan_v1_moe": HfModel(
            "hunyuan-moe",
            defaults=defaults_of(norm_eps=1e-5, rope_alpha=1, n_experts=1, experts_used=1, shared_experts=1),
            model_class="HunYuanMoEV1ForCausalLM",
            keys=MappingProxyType(
                {
                    "n_experts": "num_experts",
                    "experts_used": "moe_topk",
                    "shared_experts": "num_shared_expert",
                }
            ),
            biases="flag",
        ),
    }
)
"""The rows, by `model_type`."""

"""The model types of Hugging Face that are rows of `akunu.files.describe.latent_rows`.

The defaults are those of Transformers' configuration classes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from akunu.files.describe.hf_row import HfModel, defaults_of
from akunu.files.describe.tensor_rules import Router

__all__ = ["LATENT_MODELS"]

_SIGMOID: Final = Router("sigmoid", sum_eps=1e-20)
_IMAGES: Final = MappingProxyType(
    {"*vision_tower.*": "images", "*vision_model.*": "images", "*multi_modal_projector.*": "images"}
)

_KEYS: Final = MappingProxyType({"n_experts": "n_routed_experts"})

_DEEPSEEK_V3 = HfModel(
    "deepseek2",
    defaults=defaults_of(
        dim=7168, n_layers=61, n_heads=128, ffn_dim=18432, context_length=4096, latent=512,
        latent_q_rank=1536, latent_nope=128, latent_rope=64, latent_value=128, n_experts=256, experts_used=8,
        expert_dim=2048, shared_experts=1, expert_scale=2.5, expert_groups=8, expert_groups_used=4,
        dense_lead=3,
    ),
    model_class="DeepseekV3ForCausalLM",
    keys=_KEYS,
    biases="flag",
    rope_style="interleaved",
    renormalise=True,
    router=_SIGMOID,
)  # fmt: skip

LATENT_MODELS: Final[Mapping[str, HfModel]] = MappingProxyType(
    {
        "deepseek_v2": HfModel(
            "deepseek2",
            defaults=defaults_of(
                n_heads=32, ffn_dim=11008, latent=512, latent_q_rank=1536, latent_nope=128, latent_rope=64,
                latent_value=128, n_experts=64, expert_dim=1407, shared_experts=2, expert_scale=1,
                expert_groups=1, expert_groups_used=1, dense_lead=0,
            ),
            model_class="DeepseekV2ForCausalLM",
            keys=_KEYS,
            biases="flag",
            ffn_biases=True,
            rope_style="interleaved",
            topk_method="greedy",
        ),
        "deepseek_v3": _DEEPSEEK_V3,
        "kimi_k2": dataclasses.replace(_DEEPSEEK_V3, model_class=""),
        "glm4_moe_lite": HfModel(
            "deepseek2",
            defaults=defaults_of(
                dim=2048, n_layers=47, n_heads=20, ffn_dim=10240, context_length=202752, norm_eps=1e-5,
                latent=512, latent_q_rank=768, latent_nope=192, latent_rope=64, latent_value=256,
                n_experts=64, experts_used=4, expert_dim=1536, shared_experts=1, expert_scale=1.8,
                expert_groups=1, expert_groups_used=1, dense_lead=1,
            ),
            model_class="Glm4MoeLiteForCausalLM",
            keys=_KEYS,
            biases="flag",
            rope_style="interleaved",
            renormalise=True,
            router=_SIGMOID,
        ),
        "mistral4": HfModel(
            "mistral4",
            defaults=defaults_of(
                dim=4096, n_layers=36, n_heads=32, ffn_dim=12288, context_length=1048576, latent=256,
                latent_q_rank=1024, latent_nope=64, latent_rope=64, latent_value=128, n_experts=128,
                experts_used=4, expert_dim=2048, shared_experts=1, expert_scale=1, expert_groups=1,
                expert_groups_used=1, dense_lead=0,
            ),
            model_class="Mistral4ForCausalLM",
            keys=_KEYS,
            biases="flag",
            rope_style="interleaved",
            renormalise=True,
            left_out=_IMAGES,
            rope=MappingProxyType(
                {
                    "rope_type": "yarn", "rope_theta": 10000.0, "factor": 128.0,
                    "original_max_position_embeddings": 8192, "beta_fast": 32.0, "beta_slow": 1.0,
                    "mscale": 1.0, "mscale_all_dim": 1.0, "llama_4_scaling_beta": 0.1,
                }
            ),
        ),
    }
)  # fmt: skip
"""The rows, by `model_type`."""

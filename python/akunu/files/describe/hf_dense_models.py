"""The model types of Hugging Face that are rows of `akunu.files.describe.dense_rows`.

The defaults are those of Transformers' configuration classes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from akunu.files.describe.hf_row import HfModel, defaults_of

__all__ = ["DENSE_MODELS", "HF_WRAPPERS"]

_IMAGES: Final = MappingProxyType(
    {
        "*visual.*": "images",
        "*vision_tower.*": "images",
        "*vision_model.*": "images",
        "*multi_modal_projector.*": "images",
    }
)

HF_WRAPPERS: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {
        "mistral3": _IMAGES,
        "lfm2_vl": _IMAGES,
        "idefics3": MappingProxyType({**_IMAGES, "*connector.modality_projection.*": "images"}),
        "smolvlm": MappingProxyType({**_IMAGES, "*connector.modality_projection.*": "images"}),
    }
)
"""Model types of checkpoints whose text model is of a type that `text_config` names, and what else they have,
as in `HfModel.left_out`."""


def _keys(**keys: tuple[str, bool]) -> Mapping[str, tuple[str, bool]]:
    return MappingProxyType(keys)


_LAYER_NORM: Final = MappingProxyType({"norm_eps": "layer_norm_eps"})
_OLMO2 = HfModel("olmo2", defaults=defaults_of(norm_eps=1e-5), model_class="Olmo2ForCausalLM", biases="flag")
_QWEN2_VL = HfModel(
    "qwen2vl",
    windowed="later",
    defaults=defaults_of(norm_eps=1e-5, n_kv_heads=8, rope_theta=1e6),
    biases="qkv",
    left_out=_IMAGES,
)
_QWEN3_VL = HfModel(
    "qwen3vl",
    defaults=defaults_of(n_kv_heads=32, head_dim=128, rope_theta=500000.0),
    biases="flag",
    left_out=_IMAGES,
)

DENSE_MODELS: Final[Mapping[str, HfModel]] = MappingProxyType(
    {
        "granite": HfModel(
            "granite",
            defaults=defaults_of(embedding_scale=1, residual_scale=1, attn_scale=1, logit_divisor=1),
            model_class="GraniteForCausalLM",
            biases="flag",
            ffn_biases=True,
        ),
        "olmo2": _OLMO2,
        "olmo3": dataclasses.replace(
            _OLMO2,
            windowed="period",
            period=4,
            defaults=defaults_of(norm_eps=1e-5, window=4096, rope_theta=500000.0),
            model_class="Olmo3ForCausalLM",
        ),
        "smollm3": HfModel(
            "smollm3",
            windowed="later",
            defaults=defaults_of(n_kv_heads=4, context_length=32768, rope_theta=2e6),
            tied=True,
            model_class="SmolLM3ForCausalLM",
            biases="flag",
            ffn_biases=True,
        ),
        "ministral3": HfModel(
            "mistral3",
            windowed="every",
            defaults=defaults_of(norm_eps=1e-5, n_kv_heads=8, head_dim=128),
            model_class="Ministral3ForCausalLM",
            left_out=_IMAGES,
            rope=MappingProxyType(
                {
                    "rope_type": "yarn",
                    "rope_theta": 1e6,
                    "factor": 16.0,
                    "original_max_position_embeddings": 16384,
                    "beta_fast": 32.0,
                    "beta_slow": 1.0,
                    "mscale": 1.0,
                    "mscale_all_dim": 1.0,
                    "llama_4_scaling_beta": 0.1,
                }
            ),
        ),
        "glm": HfModel(
            "chatglm",
            defaults=defaults_of(
                norm_eps=1.5625e-7,
                ffn_dim=13696,
                n_layers=40,
                n_kv_heads=2,
                head_dim=128,
                context_length=131072,
                rope_share=0.5,
            ),
            model_class="GlmForCausalLM",
            bias_keys=_keys(attn=("attention_bias", True)),
            rope_style="interleaved",
        ),
        "glm4": HfModel(
            "glm4",
            defaults=defaults_of(
                norm_eps=1.5625e-7, n_kv_heads=2, head_dim=128, context_length=131072, rope_share=0.5
            ),
            model_class="Glm4ForCausalLM",
            bias_keys=_keys(attn=("attention_bias", True)),
            rope_style="interleaved",
        ),
        "seed_oss": HfModel(
            "seed_oss",
            defaults=defaults_of(n_kv_heads=8, head_dim=128, context_length=524288),
            model_class="SeedOssForCausalLM",
            bias_keys=_keys(
                attn=("attention_bias", True),
                attn_output_bias=("attention_out_bias", False),
                ffn=("mlp_bias", False),
            ),
        ),
        "ernie4_5": HfModel(
            "ernie4_5",
            defaults=defaults_of(
                norm_eps=1e-5, n_kv_heads=2, head_dim=128, context_length=131072, rope_theta=500000.0
            ),
            tied=True,
            model_class="Ernie4_5ForCausalLM",
            bias_keys=_keys(attn=("use_bias", False), ffn=("use_bias", False)),
            rope_style="interleaved",
        ),
        "hunyuan_v1_dense": HfModel(
            "hunyuan-dense",
            defaults=defaults_of(norm_eps=1e-5, rope_alpha=1),
            model_class="HunYuanDenseV1ForCausalLM",
            biases="flag",
        ),
        "exaone4": HfModel(
            "exaone4",
            windowed="period",
            period=4,
            defaults=defaults_of(norm_eps=1e-5, n_kv_heads=32, window=4096),
            model_class="Exaone4ForCausalLM",
        ),
        "cohere": HfModel(
            "command-r",
            defaults=defaults_of(norm_eps=1e-5, logit_scale=0.0625, rope_theta=500000.0),
            tied=True,
            model_class="CohereForCausalLM",
            keys=_LAYER_NORM,
            biases="flag",
            bias_keys=_keys(attn_q_norm=("use_qk_norm", False), attn_k_norm=("use_qk_norm", False)),
            rope_style="interleaved",
        ),
        "cohere2": HfModel(
            "cohere2",
            windowed="period",
            period=4,
            defaults=defaults_of(norm_eps=1e-5, logit_scale=0.0625, window=4096),
            tied=True,
            model_class="Cohere2ForCausalLM",
            keys=_LAYER_NORM,
            biases="flag",
            rope_style="interleaved",
        ),
        "arcee": HfModel(
            "arcee",
            defaults=defaults_of(norm_eps=1e-5, context_length=4096),
            model_class="ArceeForCausalLM",
            biases="flag",
            ffn_biases=True,
        ),
        # A checkpoint may also see pictures; its text model is loaded.
        "qwen2_vl": _QWEN2_VL,
        "qwen2_vl_text": _QWEN2_VL,
        "qwen2_5_vl": _QWEN2_VL,
        "qwen2_5_vl_text": _QWEN2_VL,
        "qwen3_vl": _QWEN3_VL,
        "qwen3_vl_text": _QWEN3_VL,
        "stablelm": HfModel(
            "stablelm",
            defaults=defaults_of(norm_eps=1e-5, context_length=4096, rope_share=0.25),
            model_class="StableLmForCausalLM",
            keys=_LAYER_NORM,
            bias_keys=_keys(
                attn=("use_qkv_bias", False),
                attn_q_norm=("qk_layernorm", False),
                attn_k_norm=("qk_layernorm", False),
            ),
            features=("qk_layernorm", "use_parallel_residual"),
        ),
        "starcoder2": HfModel(
            "starcoder2",
            windowed="every",
            defaults=defaults_of(norm_eps=1e-5, n_kv_heads=2, context_length=4096),
            tied=True,
            model_class="Starcoder2ForCausalLM",
            keys=MappingProxyType({"norm_eps": "norm_epsilon"}),
            bias_keys=_keys(attn=("use_bias", True), ffn=("use_bias", True)),
        ),
    }
)
"""The rows, by `model_type`."""

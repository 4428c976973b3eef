"""The table of Hugging Face's model types: which architecture each is, and what differs.

A model type is one row of `HF_MODELS`, by `model_type` of `config.json`. Names of tensors and numbers are in
the rows of `akunu.files.describe.architectures`.

The defaults are those of Transformers' configuration classes, which need not write them into the file.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from akunu.files.describe.gemma3n_folders import GEMMA3N_MODELS
from akunu.files.describe.gemma4_folders import GEMMA4_MODELS
from akunu.files.describe.hf_dense_models import DENSE_MODELS
from akunu.files.describe.hf_expert_models import EXPERT_MODELS
from akunu.files.describe.hf_gpt_models import GPT_MODELS
from akunu.files.describe.hf_hybrid_models import HYBRID_MODELS
from akunu.files.describe.hf_latent_models import LATENT_MODELS
from akunu.files.describe.hf_row import HfModel, defaults_of
from akunu.files.describe.muse import MUSE_MODELS
from akunu.files.describe.tensor_rules import Activation

__all__ = ["ACTIVATIONS", "HF_MODELS", "HF_NEUTRAL", "HF_SPECIAL"]

ACTIVATIONS: Final[Mapping[str, Activation]] = MappingProxyType(
    {
        "silu": "silu",
        "swish": "silu",
        "gelu_pytorch_tanh": "gelu_tanh",
        "gelu_new": "gelu_tanh",
        "gelu": "gelu",
        "relu2": "relu2",
    }
)
"""Values of `hidden_activation` and `hidden_act`."""

HF_NEUTRAL: Final[Mapping[str, tuple[object, ...]]] = MappingProxyType(
    {
        "add_cross_attention": (False,),
        "alibi": (False,),
        "activation_sparsity_pattern": (0.0,),
        "conv_bias": (False,),  # of LFM2's convolutions
        "mamba_proj_bias": (False,),
        "time_step_limit": ([0.0, math.inf], [0.0, {"__float__": "Infinity"}]),
        "is_causal": (True,),
        "qk_layernorm": (False,),
        "use_parallel_residual": (False,),
        "is_encoder_decoder": (False,),
        "rope_interleaved": (False,),
        "scale_attn_by_inverse_layer_idx": (False,),
        "scale_attn_weights": (True,),
        "rope_traditional": (False,),
        "use_bidirectional_attention": (False,),
    }
)
"""Keys whose feature is not implemented, with the values besides null that mean "not used"."""


HF_SPECIAL: Final = (
    "attn_softcap", "final_softcap", "query_scalar", "local_rope_theta", "expert_scale", "expert_groups",
    "embedding_scale", "residual_scale", "attn_scale", "logit_scale", "logit_divisor", "shared_kv_layers",
    "layer_input_dim", "streams", "laurel_rank", "deviations", "q_gain", "branch_norm_eps",
)  # fmt: skip
"""Fields of `CONFIG_KEYS` that few classes use. In the configuration of another, Transformers ignores them,
but who wrote them may have meant something. (Gemma 3's class has a cap of attention, unused.)"""


_GEMMA3 = HfModel(
    "gemma3",
    windowed="period",
    period=6,
    defaults=defaults_of(
        dim=2304, n_layers=26, n_heads=8, n_kv_heads=4, head_dim=256, ffn_dim=9216, context_length=131072,
        window=4096, query_scalar=256, rope_theta=1e6, local_rope_theta=1e4,
    ),
    tied=True,
    norm_add=1.0,
    biases="flag",
    # A checkpoint may also see pictures; its text model is loaded.
    ignored=("*.rotary_emb.inv_freq", "*vision_tower.*", "*multi_modal_projector.*"),
)  # fmt: skip

_MISTRAL = HfModel(
    "llama",
    windowed="all",
    defaults=defaults_of(n_kv_heads=8, window=4096),
    model_class="MistralForCausalLM",
)

# A checkpoint may also see pictures; its text model is loaded.
_PARTS_LEFT_OUT = MappingProxyType(
    {"*mtp.*": "multi-token prediction", "*visual.*": "images", "*vision_tower.*": "images"}
)

_NUM_EXPERTS = MappingProxyType({"n_experts": "num_experts"})

_QWEN35 = HfModel(
    "qwen35",
    keys=_NUM_EXPERTS,
    in_one=True,
    defaults=defaults_of(
        dim=4096, n_layers=32, n_heads=16, n_kv_heads=4, head_dim=256, ffn_dim=12288, context_length=32768,
        rope_share=0.25, delta_key_heads=16, delta_value_heads=32, delta_key_dim=128, delta_value_dim=128,
        delta_taps=4,
    ),
    norm_add=1.0,
    biases="flag",
    left_out=_PARTS_LEFT_OUT,
    plain_norms=("delta_norm",),
)  # fmt: skip

_QWEN35_MOE = dataclasses.replace(
    _QWEN35,
    arch="qwen35moe",
    defaults=defaults_of(
        dim=2048, n_layers=40, n_heads=16, n_kv_heads=2, head_dim=256, context_length=32768, rope_share=0.25,
        delta_key_heads=16, delta_value_heads=32, delta_key_dim=128, delta_value_dim=128, delta_taps=4,
        n_experts=256, experts_used=8, expert_dim=512, shared_dim=512,
    ),
)  # fmt: skip

_QWEN3_MOE = HfModel(
    "qwen3moe",
    keys=_NUM_EXPERTS,
    windowed="later",
    defaults=defaults_of(n_kv_heads=4, n_experts=128, experts_used=8, expert_dim=768),
    model_class="Qwen3MoeForCausalLM",
    biases="flag",
    renormalise=False,
)

_QWEN3_VL_MOE = dataclasses.replace(
    _QWEN3_MOE,
    arch="qwen3vlmoe",
    windowed="none",
    defaults=defaults_of(n_kv_heads=16, n_experts=60, experts_used=4, expert_dim=1408, context_length=128000),
    tied=True,
    model_class="",
    left_out=_PARTS_LEFT_OUT,
    renormalise=None,
    turned_experts=True,
)

HF_MODELS: Final[Mapping[str, HfModel]] = MappingProxyType(
    {
        "llama": HfModel(
            "llama",
            defaults=defaults_of(),
            model_class="LlamaForCausalLM",
            biases="flag",
            ffn_biases=True,
        ),
        "mistral": _MISTRAL,
        # What Transformers takes a Mistral with `layer_types` for.
        "ministral": dataclasses.replace(_MISTRAL, windowed="layers", model_class="MinistralForCausalLM"),
        "qwen2": HfModel(
            "qwen2",
            windowed="later",
            defaults=defaults_of(n_kv_heads=32),
            model_class="Qwen2ForCausalLM",
            biases="qkv",
        ),
        "qwen3": HfModel(
            "qwen3",
            windowed="later",
            defaults=defaults_of(n_kv_heads=32, head_dim=128),
            model_class="Qwen3ForCausalLM",
            biases="flag",
        ),
        "mixtral": HfModel(
            "llama",
            windowed="all",
            defaults=defaults_of(
                norm_eps=1e-5, n_kv_heads=8, rope_theta=1e6, window=0, n_experts=8, experts_used=2
            ),
            model_class="MixtralForCausalLM",
        ),
        "qwen2_moe": HfModel(
            "qwen2moe",
            keys=_NUM_EXPERTS,
            windowed="later",
            defaults=defaults_of(
                n_kv_heads=16, n_experts=60, experts_used=4, expert_dim=1408, shared_dim=5632
            ),
            model_class="Qwen2MoeForCausalLM",
            bias_keys=MappingProxyType({"attn": ("qkv_bias", True)}),
            renormalise=False,
        ),
        "qwen3_moe": _QWEN3_MOE,
        # Its class has no `norm_topk_prob`.
        "qwen3_vl_moe": _QWEN3_VL_MOE,
        "qwen3_vl_moe_text": _QWEN3_VL_MOE,
        "qwen3_next": dataclasses.replace(
            _QWEN35_MOE,
            arch="qwen3next",
            defaults=defaults_of(
                **{
                    **_QWEN35_MOE.defaults,
                    "n_layers": 48,
                    "ffn_dim": 5632,
                    "n_experts": 512,
                    "experts_used": 10,
                }
            ),
            model_class="Qwen3NextForCausalLM",
            renormalise=True,
        ),
        "glm4_moe": HfModel(
            "glm4moe",
            keys=MappingProxyType({"n_experts": "n_routed_experts"}),
            defaults=defaults_of(
                dim=4096,
                n_layers=46,
                n_heads=96,
                n_kv_heads=8,
                ffn_dim=10944,
                context_length=131072,
                norm_eps=1e-5,
                rope_share=0.5,
                n_experts=128,
                experts_used=8,
                expert_dim=1408,
                shared_experts=1,
                expert_scale=1.0,
                expert_groups=1,
                expert_groups_used=1,
                dense_lead=1,
                nextn_beside=1,
            ),
            model_class="Glm4MoeForCausalLM",
            biases="flag",
            renormalise=True,
        ),
        "minimax_m2": HfModel(
            "minimax-m2",
            defaults=defaults_of(
                dim=3072,
                n_layers=62,
                n_heads=48,
                n_kv_heads=8,
                head_dim=128,
                ffn_dim=1536,
                context_length=196608,
                rope_theta=5e6,
                rope_share=1.0,
                n_experts=256,
                experts_used=8,
            ),
            model_class="MiniMaxM2ForCausalLM",
            left_out=_PARTS_LEFT_OUT,
        ),
        "gpt_oss": HfModel(
            "gpt-oss",
            windowed="period",
            period=2,
            defaults=defaults_of(
                dim=2880,
                n_layers=36,
                n_heads=64,
                n_kv_heads=8,
                head_dim=64,
                ffn_dim=2880,
                window=128,
                context_length=131072,
                norm_eps=1e-5,
                rope_theta=150000,
                n_experts=128,
                experts_used=4,
            ),
            model_class="GptOssForCausalLM",
            bias_keys=MappingProxyType({"attn": ("attention_bias", True)}),
        ),
        "gemma": HfModel(
            "gemma",
            model_class="GemmaForCausalLM",
            defaults=defaults_of(n_kv_heads=16, head_dim=256),
            tied=True,
            norm_add=1.0,
            biases="flag",
            activations=("gelu",),  # the first published files; Transformers takes it for the other
        ),
        "gemma2": HfModel(
            "gemma2",
            model_class="Gemma2ForCausalLM",
            windowed="period",
            period=2,
            defaults=defaults_of(
                n_kv_heads=4, head_dim=256, window=4096, query_scalar=256, attn_softcap=50, final_softcap=30
            ),
            tied=True,
            norm_add=1.0,
            biases="flag",
        ),
        "gemma3": _GEMMA3,
        # Only the class of the text alone caps its logits.
        "gemma3_text": dataclasses.replace(
            _GEMMA3,
            defaults=MappingProxyType({**_GEMMA3.defaults, "final_softcap": 0}),
            model_class="Gemma3ForCausalLM",
        ),
        "phi3": HfModel(
            "phi3",
            windowed="every",
            defaults=defaults_of(norm_eps=1e-5, rope_share=1.0),
            model_class="Phi3ForCausalLM",
        ),
        "qwen3_5": _QWEN35,
        "qwen3_5_text": dataclasses.replace(_QWEN35, model_class="Qwen3_5ForCausalLM", whole="qwen3_5"),
        "qwen3_5_moe": _QWEN35_MOE,
        "qwen3_5_moe_text": dataclasses.replace(
            _QWEN35_MOE, model_class="Qwen3_5MoeForCausalLM", whole="qwen3_5_moe"
        ),
        **GEMMA3N_MODELS,
        **GEMMA4_MODELS,
        **EXPERT_MODELS,
        **LATENT_MODELS,
        **HYBRID_MODELS,
        **DENSE_MODELS,
        **GPT_MODELS,
        **MUSE_MODELS,
    }
)
"""The rows, by `model_type`."""

"""The rows of `families`: random models of families with experts, and what their files say."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["ALL", "IN_FOLDERS", "TOWER", "Family"]


@dataclass(frozen=True, eq=False)
class Family:
    """One model.

    Attributes
    ----------
    name, seed, arch
        Its name here, the seed of its weights, and its architecture in a GGUF file.
    hf
        Transformers' prefix of the classes of the configuration and of the model.
    settings
        What the configuration is made from.
    keys
        Keys of the GGUF file besides those that all have.
    zero_centred
        Norms multiply by 1 + w in a folder.
    halves
        Halves of a head rotate together in a folder, and neighbours in a GGUF file.
    """

    name: str
    seed: int
    arch: str
    hf: str
    settings: Mapping[str, Any]
    keys: Mapping[str, object] = field(default_factory=dict)
    zero_centred: bool = False
    halves: bool = False

    @property
    def vocab_size(self) -> int:
        """Tokens of the vocabulary."""
        return int(self.settings["vocab_size"])


_SIZES: Mapping[str, Any] = {
    "hidden_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "intermediate_size": 160,
    "vocab_size": 299,
    "max_position_embeddings": 512,
    "tie_word_embeddings": False,
    "rope_parameters": {"rope_type": "default", "rope_theta": 1e4},
}
_EXPERTS = {"num_experts": 8, "num_experts_per_tok": 3, "moe_intermediate_size": 64}
_EXPERT_KEYS = {"expert_count": 8, "expert_used_count": 3, "expert_feed_forward_length": 64}
_DELTA = {
    "num_hidden_layers": 4,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 6,
    "linear_key_head_dim": 32,
    "linear_value_head_dim": 32,
    "linear_conv_kernel_dim": 4,
    "shared_expert_intermediate_size": 76,
    "rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.25},
}
_DELTA_KEYS = {
    "full_attention_interval": 4,
    "rope.dimension_count": 8,
    "rope.dimension_sections": [2, 1, 1, 0],
    "expert_shared_feed_forward_length": 76,
    "ssm.conv_kernel": 4,
    "ssm.group_count": 2,
    "ssm.inner_size": 192,
    "ssm.state_size": 32,
    "ssm.time_step_rank": 6,
}
_GRANITE = {
    **_SIZES,
    "intermediate_size": 64,
    "num_experts_per_tok": 3,
    "embedding_multiplier": 3.0,
    "residual_multiplier": 0.7,
    "attention_multiplier": 0.2,
    "logits_scaling": 1.5,
}
_GRANITE_KEYS = {
    "embedding_scale": 3.0,
    "residual_scale": 0.7,
    "attention.scale": 0.2,
    "logit_scale": 1.5,
    "rope.dimension_count": 32,
}

_LATENT = {
    **{key: value for key, value in _SIZES.items() if key != "head_dim"},
    "num_key_value_heads": 4,
    "kv_lora_rank": 64,
    "q_lora_rank": None,
    "qk_nope_head_dim": 32,
    "qk_rope_head_dim": 16,
    "v_head_dim": 40,
    "n_routed_experts": 8,
    "num_experts_per_tok": 3,
    "moe_intermediate_size": 64,
    "n_shared_experts": 2,
    "first_k_dense_replace": 1,
}
_LATENT_KEYS = {
    **_EXPERT_KEYS,
    "attention.head_count_kv": 1,
    "attention.kv_lora_rank": 64,
    "attention.key_length": 80,
    "attention.value_length": 64,
    "attention.key_length_mla": 48,
    "attention.value_length_mla": 40,
    "rope.dimension_count": 16,
    "expert_shared_count": 2,
    "leading_dense_block_count": 1,
}


def _yarn(**more: float) -> dict[str, object]:
    return {
        "rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0, "original_max_position_embeddings": 32,
        "beta_fast": 32.0, "beta_slow": 1.0, **more,
    }  # fmt: skip


_YARN_KEYS = {
    "rope.scaling.type": "yarn",
    "rope.scaling.factor": 4.0,
    "rope.scaling.original_context_length": 32,
}

_GEMMA4: Mapping[str, Any] = {
    **_SIZES,
    "num_hidden_layers": 6,
    "head_dim": 32,
    "global_head_dim": 64,
    "layer_types": [f"{kind}_attention" for kind in ("sliding", "sliding", "full") * 2],
    "sliding_window": 12,
    "final_logit_softcapping": 8.0,
    "hidden_size_per_layer_input": 0,
    "tie_word_embeddings": True,
    "rope_parameters": {
        "full_attention": {"rope_type": "proportional", "partial_rotary_factor": 0.25, "rope_theta": 1e6},
        "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
    },
}
_GEMMA4_KEYS: Mapping[str, object] = {
    "attention.key_length": 64,
    "attention.value_length": 64,
    "attention.key_length_swa": 32,
    "attention.value_length_swa": 32,
    "attention.sliding_window": 12,
    "attention.sliding_window_pattern": [True, True, False, True, True, False],
    "attention.shared_kv_layers": 0,
    "embedding_length_per_layer_input": 0,
    "final_logit_softcapping": 8.0,
    "rope.dimension_count": 64,
    "rope.dimension_count_swa": 32,
    "rope.freq_base_swa": 1e4,
}
_KEYS_ARE_VALUES = {"attention_k_eq_v": True, "num_global_key_value_heads": 1}
_GLOBAL_HEADS = {"attention.head_count_kv": [2, 2, 1, 2, 2, 1]}

_GEMMA3N: Mapping[str, Any] = {
    **_SIZES,
    "num_hidden_layers": 6,
    "layer_types": [f"{kind}_attention" for kind in ("sliding", "full") * 3],
    "sliding_window": 12,
    "final_logit_softcapping": 8.0,
    "hidden_size_per_layer_input": 32,
    "laurel_rank": 24,
    "activation_sparsity_pattern": [0.95, 0.8, 0.0, 0.0, 0.0, 0.0],
    "tie_word_embeddings": True,
    "rope_parameters": {
        "full_attention": {"rope_type": "default", "rope_theta": 1e6},
        "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
    },
}
_GEMMA3N_KEYS: Mapping[str, object] = {
    "attention.sliding_window": 12,
    "attention.sliding_window_pattern": [True, False, True, False, True, False],
    "attention.shared_kv_layers": 0,
    "embedding_length_per_layer_input": 32,
    "altup.num_inputs": 4,
    "altup.active_idx": 0,
    "final_logit_softcapping": 8.0,
}

_LFM2: Mapping[str, Any] = {
    **{key: value for key, value in _SIZES.items() if key != "head_dim"},
    "hidden_size": 128,
    "num_hidden_layers": 4,
    "layer_types": ["conv", "full_attention", "conv", "full_attention"],
    "tie_word_embeddings": True,
}
_GRANITE_MAMBA = {
    "num_hidden_layers": 3,
    "hidden_size": 96,
    "shared_intermediate_size": 76,
    "layer_types": ["linear_attention", "full_attention", "linear_attention"],
    "mamba_n_heads": 6,
    "mamba_d_head": 32,
    "mamba_n_groups": 1,
    "mamba_d_state": 32,
}
_MAMBA_KEYS = {
    "attention.head_count_kv": [0, 2, 0],
    "rope.scaling.finetuned": False,
    "ssm.conv_kernel": 4,
    "ssm.group_count": 1,
    "ssm.inner_size": 192,
    "ssm.state_size": 32,
    "ssm.time_step_rank": 6,
}
_NEMOTRON = {
    **_SIZES,
    "num_hidden_layers": 4,
    "ssm_state_size": 32,
    "mamba_num_heads": 10,
    "mamba_head_dim": 20,
    "n_groups": 2,
    "time_step_min": 1e-9,  # which only one of its forms knows
}
_NEMOTRON_KEYS = {
    "attention.head_count_kv": [0, 0, 2, 0],
    "rope.dimension_count": 84,
    "ssm.conv_kernel": 4,
    "ssm.group_count": 2,
    "ssm.inner_size": 200,
    "ssm.state_size": 32,
    "ssm.time_step_rank": 10,
}
_NEMOTRON_EXPERTS = {
    **_EXPERT_KEYS,
    "feed_forward_length": [0, 64, 0, 64],
    "expert_shared_feed_forward_length": 76,
    "expert_shared_count": 1,
    "expert_weights_norm": True,
    "expert_weights_scale": 1.7,
    "expert_group_count": 1,
}

TOWER = {
    "depth": 1, "hidden_size": 16, "intermediate_size": 16, "num_heads": 1, "out_hidden_size": 96,
    "patch_size": 2, "num_position_embeddings": 4, "deepstack_visual_indexes": [0],
}  # fmt: skip

_ROWS = (
    Family(
        "qwen35moe", 41, "qwen35moe", "Qwen3_5Moe", {**_SIZES, **_EXPERTS, **_DELTA},
        {**_EXPERT_KEYS, **_DELTA_KEYS}, zero_centred=True,
    ),
    Family(
        "qwen3next", 42, "qwen3next", "Qwen3Next", {**_SIZES, **_EXPERTS, **_DELTA},
        {**_EXPERT_KEYS, **_DELTA_KEYS}, zero_centred=True,
    ),
    Family(
        "glm4moe", 43, "glm4moe", "Glm4Moe",
        {
            **_SIZES, "n_routed_experts": 8, "num_experts_per_tok": 3, "moe_intermediate_size": 64,
            "n_shared_experts": 2, "n_group": 4, "topk_group": 2, "routed_scaling_factor": 1.7,
            "first_k_dense_replace": 1, "attention_bias": True, "use_qk_norm": True, "num_mtp_layers": 0,
            "rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.5},
        },
        {
            **_EXPERT_KEYS, "expert_shared_count": 2, "expert_group_count": 4, "expert_group_used_count": 2,
            "expert_weights_scale": 1.7, "expert_weights_norm": True, "expert_gating_func": 2,
            "leading_dense_block_count": 1, "rope.dimension_count": 16, "nextn_predict_layers": 0,
        },
    ),
    Family(
        "qwen3vlmoe", 45, "qwen3vlmoe", "Qwen3VLMoe",
        {
            **_SIZES, **_EXPERTS,
            "rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [6, 5, 5]},
        },
        {**_EXPERT_KEYS, "n_deepstack_layers": 1, "rope.dimension_sections": [6, 5, 5, 0]},
    ),
    Family(
        "minimax_m2", 44, "minimax-m2", "MiniMaxM2",
        {
            **_SIZES, "num_local_experts": 8, "num_experts_per_tok": 3, "intermediate_size": 64,
            "rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.5},
        },
        {**_EXPERT_KEYS, "expert_gating_func": 2, "rope.dimension_count": 16},
    ),
    Family(  # E2B and E4B
        "gemma4_e", 61, "gemma4", "Gemma4",
        {
            **_GEMMA4, "num_key_value_heads": 1, "num_kv_shared_layers": 3, "use_double_wide_mlp": True,
            "hidden_size_per_layer_input": 32, "vocab_size_per_layer_input": 299,
        },
        {
            **_GEMMA4_KEYS, "attention.shared_kv_layers": 3, "embedding_length_per_layer_input": 32,
            "feed_forward_length": [160, 160, 160, 320, 320, 320],
        },
    ),
    Family(  # 12B and 31B
        "gemma4", 62, "gemma4", "Gemma4", {**_GEMMA4, **_KEYS_ARE_VALUES}, {**_GEMMA4_KEYS, **_GLOBAL_HEADS},
    ),
    Family(  # 26B-A4B
        "gemma4_experts", 63, "gemma4", "Gemma4",
        {
            **_GEMMA4, **_KEYS_ARE_VALUES, "enable_moe_block": True, "num_experts": 8, "top_k_experts": 3,
            "moe_intermediate_size": 64, "num_hidden_layers": 3, "layer_types": _GEMMA4["layer_types"][:3],
            "tie_word_embeddings": False,
        },
        {
            **_GEMMA4_KEYS, **_EXPERT_KEYS, "attention.sliding_window_pattern": [True, True, False],
            "attention.head_count_kv": [2, 2, 1],
        },
    ),
    Family(  # with heads of the sizes that all have
        "gemma4_heads", 64, "gemma4", "Gemma4",
        {
            **_GEMMA4, "hidden_size": 64, "num_hidden_layers": 2, "head_dim": 256, "global_head_dim": 512,
            "layer_types": ["sliding_attention", "full_attention"],
            "num_attention_heads": 8, "num_key_value_heads": 1, "tie_word_embeddings": False,
        },
        {
            **_GEMMA4_KEYS, "attention.sliding_window_pattern": [True, False],
            "attention.key_length": 512, "attention.value_length": 512, "attention.key_length_swa": 256,
            "attention.value_length_swa": 256, "rope.dimension_count": 512, "rope.dimension_count_swa": 256,
        },
    ),
    Family(
        "mellum", 80, "mellum", "Mellum",
        {
            **_SIZES, **_EXPERTS, "sliding_window": 12,
            "layer_types": [f"{kind}_attention" for kind in ("sliding", "full", "sliding")],
            "rope_parameters": {
                "full_attention": {"rope_type": "default", "rope_theta": 1e6},
                "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
            },
        },
        {
            **_EXPERT_KEYS, "attention.sliding_window": 12, "rope.freq_base_swa": 1e4,
            "attention.sliding_window_pattern": [True, False, True],
        },
    ),
    Family(  # E2B and E4B; its table of layer inputs lacks some tokens
        "gemma3n", 65, "gemma3n", "Gemma3n",
        {**_GEMMA3N, "num_kv_shared_layers": 2, "vocab_size_per_layer_input": 270},
        {
            **_GEMMA3N_KEYS, "attention.shared_kv_layers": 2,
            "activation_sparsity_scale": [1.6448536269514722, 0.8416212335729143] + [-math.inf] * 4,
        },
    ),
    Family(  # of whose streams another than the first is the one that layers read
        "gemma3n_active", 66, "gemma3n", "Gemma3n",
        {
            **_GEMMA3N, "num_kv_shared_layers": 0, "vocab_size_per_layer_input": 299, "altup_num_inputs": 3,
            "altup_active_idx": 1, "activation_sparsity_pattern": [0.0, 0.5, 0.0, 0.3, 0.0, 0.0],
            "intermediate_size": [160, 192, 160, 160, 224, 160], "tie_word_embeddings": False,
        },
        {
            **_GEMMA3N_KEYS, "altup.num_inputs": 3, "altup.active_idx": 1,
            "feed_forward_length": [160, 192, 160, 160, 224, 160],
            "activation_sparsity_scale": [
                -math.inf, 0.0, -math.inf, -0.5244005127080409, -math.inf, -math.inf,
            ],
        },
    ),
    Family(
        "granitemoe", 46, "granitemoe", "GraniteMoe", {**_GRANITE, "num_local_experts": 8},
        {**_GRANITE_KEYS, "expert_count": 8, "expert_used_count": 3}, halves=True,
    ),
    Family(
        "granitemoeshared", 47, "granitemoe", "GraniteMoeShared",
        {**_GRANITE, "num_local_experts": 8, "shared_intermediate_size": 76, "attention_bias": True},
        {
            **_GRANITE_KEYS, "expert_count": 8, "expert_used_count": 3,
            "expert_shared_feed_forward_length": 76,
        },
        halves=True,
    ),
    Family(
        "ernie4_5_moe", 48, "ernie4_5-moe", "Ernie4_5_Moe",
        {
            **_SIZES, "moe_num_experts": 8, "moe_k": 3, "moe_intermediate_size": 64,
            "moe_num_shared_experts": 2, "moe_layer_start_index": 1, "use_bias": False,
        },
        {  # the size of the shared expert is what the converter makes of another
            **_EXPERT_KEYS, "expert_shared_count": 2, "expert_shared_feed_forward_length": 80,
            "leading_dense_block_count": 1, "interleave_moe_layer_step": 1,
        },
    ),
    Family(
        "lfm2", 71, "lfm2", "Lfm2", _LFM2 | {"block_auto_adjust_ff_dim": False},
        {"shortconv.l_cache": 3, "attention.head_count_kv": [0, 2, 0, 2]},
    ),
    Family(
        "lfm2_moe", 72, "lfm2moe", "Lfm2Moe", {**_LFM2, **_EXPERTS, "num_dense_layers": 2},
        {
            **_EXPERT_KEYS, "shortconv.l_cache": 3, "attention.head_count_kv": [0, 2, 0, 2],
            "leading_dense_block_count": 2, "expert_gating_func": 2,
        },
    ),
    Family(
        "granitehybrid", 73, "granitehybrid", "GraniteMoeHybrid",
        # An epsilon that a norm of another scale would show.
        {**_GRANITE, **_GRANITE_MAMBA, "num_local_experts": 0, "rms_norm_eps": 3e-4},
        {**_GRANITE_KEYS, **_MAMBA_KEYS, "feed_forward_length": 76, "expert_count": 0},
        halves=True,
    ),
    Family(
        "granitehybrid_moe", 74, "granitehybrid", "GraniteMoeHybrid",
        {**_GRANITE, **_GRANITE_MAMBA, "num_local_experts": 8, "mamba_n_groups": 2, "mamba_d_state": 20},
        {
            **_GRANITE_KEYS, **_MAMBA_KEYS, "ssm.group_count": 2, "ssm.state_size": 20, "expert_count": 8,
            "expert_used_count": 3, "expert_shared_feed_forward_length": 76,
        },
        halves=True,
    ),
    Family(
        "nemotron_h", 75, "nemotron_h", "NemotronH",
        {**_NEMOTRON, "layers_block_type": ["linear_attention", "mlp", "full_attention", "mlp"]},
        {
            **_NEMOTRON_KEYS, "feed_forward_length": [0, 160, 0, 160],
            "attention.head_count_kv": [0, 0, 2, 0],
        },
    ),
    Family(
        "nemotron_h_moe", 76, "nemotron_h_moe", "NemotronH",
        {
            **_NEMOTRON, "layers_block_type": ["linear_attention", "moe", "full_attention", "moe"],
            "n_routed_experts": 8, "num_experts_per_tok": 3, "moe_intermediate_size": 64,
            "moe_shared_expert_intermediate_size": 76, "routed_scaling_factor": 1.7, "moe_latent_size": None,
        },
        {**_NEMOTRON_KEYS, **_NEMOTRON_EXPERTS},
    ),
    Family(
        "nemotron_h_latent", 77, "nemotron_h_moe", "NemotronH",
        {
            **_NEMOTRON, "layers_block_type": ["linear_attention", "moe", "full_attention", "moe"],
            "n_routed_experts": 8, "num_experts_per_tok": 3, "moe_intermediate_size": 64, "n_group": 4,
            "topk_group": 2, "moe_shared_expert_intermediate_size": 76, "routed_scaling_factor": 1.7,
            "moe_latent_size": 32,
        },
        {
            **_NEMOTRON_KEYS, **_NEMOTRON_EXPERTS, "moe_latent_size": 32, "expert_group_count": 4,
            "expert_group_used_count": 2,
        },
    ),
    Family(
        "hunyuan_moe", 49, "hunyuan-moe", "HunYuanMoEV1",
        {
            **_SIZES, "num_experts": 8, "moe_topk": 3, "intermediate_size": 64,
            "rope_parameters": {"rope_type": "dynamic", "rope_theta": 1e4, "alpha": 50.0, "factor": 1.0},
        },
        {
            **_EXPERT_KEYS, "expert_shared_count": 1, "expert_shared_feed_forward_length": 64,
            "rope.freq_base": 1e4 * 50.0 ** (32 / 30), "rope.scaling.type": "none",
        },
    ),
    Family(  # as V2 Lite
        "deepseek_v2", 50, "deepseek2", "DeepseekV2", {**_LATENT, "max_position_embeddings": 128,
            "rope_parameters": _yarn(mscale=0.707, mscale_all_dim=0.707)},
        {**_LATENT_KEYS, **_YARN_KEYS, "rope.scaling.yarn_log_multiplier": 0.0707},
    ),
    Family(
        "deepseek_v2_groups", 51, "deepseek2", "DeepseekV2",
        {
            **_LATENT, "q_lora_rank": 64, "topk_method": "group_limited_greedy", "n_group": 4,
            "topk_group": 2, "routed_scaling_factor": 1.6, "attention_bias": False,
        },
        {
            **_LATENT_KEYS, "attention.q_lora_rank": 64, "expert_group_count": 4,
            "expert_group_used_count": 2, "expert_weights_scale": 1.6,
        },
    ),
    Family(
        "deepseek_v3", 52, "deepseek2", "DeepseekV3",
        {
            **_LATENT, "q_lora_rank": 64, "n_group": 4, "topk_group": 2, "routed_scaling_factor": 1.7,
            "max_position_embeddings": 128, "rope_parameters": _yarn(mscale=1.0, mscale_all_dim=1.0),
            "num_mtp_layers": 0,
        },
        {
            **_LATENT_KEYS, **_YARN_KEYS, "attention.q_lora_rank": 64, "expert_group_count": 4,
            "expert_group_used_count": 2, "expert_weights_scale": 1.7, "expert_weights_norm": True,
            "expert_gating_func": 2, "rope.scaling.yarn_log_multiplier": 0.1,
        },
    ),
    Family(  # more heads than a group of others has; without its gating, as first files of it are
        "glm4_moe_lite", 53, "deepseek2", "Glm4MoeLite",
        {
            **_LATENT, "num_attention_heads": 20, "num_key_value_heads": 20, "q_lora_rank": 48,
            "qk_nope_head_dim": 24, "n_shared_experts": 1, "routed_scaling_factor": 1.8,
        },
        {
            **_LATENT_KEYS, "attention.q_lora_rank": 48, "attention.key_length_mla": 40,
            "expert_shared_count": 1, "expert_weights_scale": 1.8, "expert_weights_norm": True,
        },
    ),
    Family(
        "mistral4", 54, "mistral4", "Mistral4",
        {
            **_LATENT, "q_lora_rank": 64, "first_k_dense_replace": 0, "n_group": 1, "topk_group": 1,
            "n_shared_experts": 1, "max_position_embeddings": 128,
            "rope_parameters": _yarn(mscale=1.0, mscale_all_dim=1.0, llama_4_scaling_beta=0.3),
        },
        {
            **_LATENT_KEYS, **_YARN_KEYS, "attention.q_lora_rank": 64, "leading_dense_block_count": 0,
            "expert_shared_count": 1, "expert_weights_norm": True, "attention.temperature_scale": 0.3,
            "rope.scaling.yarn_log_multiplier": 0.1,
        },
    ),
)  # fmt: skip
ALL = {row.name: row for row in _ROWS}
"""The models, by name."""

_BIASED = (
    Family(
        "ernie4_5_moe_biases", 80, "ernie4_5-moe", "Ernie4_5_Moe",
        {**ALL["ernie4_5_moe"].settings, "use_bias": True},
    ),
    Family(
        "deepseek_v2_biases", 81, "deepseek2", "DeepseekV2",
        {**ALL["deepseek_v2_groups"].settings, "attention_bias": True, "mlp_bias": True},
    ),
)  # fmt: skip
IN_FOLDERS = {row.name: row for row in _BIASED}
"""Models with biases that no GGUF file has."""

"""The numbers of model files, as data: names, bounds and defaults, and the keys of features that are missing.

Facts about names: gguf-py's `constants.py`, llama.cpp's converter, and Transformers' configuration classes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

__all__ = [
    "CONFIG_KEYS",
    "NEUTRAL_VALUES",
    "REFUSED_PREFIXES",
    "ROPE_TENSORS",
    "SCALES",
    "SOFT_CAPS",
    "YARN_UNSET",
    "YARN_WHOLE",
    "ZERO_IF_UNSET",
    "ConfigKey",
]


@dataclass(frozen=True)
class ConfigKey:
    """One number of a model file's metadata.

    Attributes
    ----------
    suffixes
        Key names in a GGUF file, after the architecture's prefix; the first one present wins.
    hf
        Key names in Hugging Face's `config.json`, or in its rotary parameters, likewise.
    kind
        `int` or `float`. An integer is accepted where a float is wanted, not the reverse.
    low, high
        Inclusive bounds: a file is not trusted, and the products of sizes must stay far below 2**63.
    default
        Value when the key is absent; None means that the caller decides or that the key is required.
    """

    suffixes: tuple[str, ...]
    kind: type[int] | type[float]
    low: float
    high: float
    default: float | None = None
    hf: tuple[str, ...] = ()


CONFIG_KEYS: Final[Mapping[str, ConfigKey]] = MappingProxyType(
    {
        "n_layers": ConfigKey(("block_count",), int, 1, 4096, hf=("num_hidden_layers", "n_layer")),
        "dim": ConfigKey(("embedding_length",), int, 1, 1 << 20, hf=("hidden_size", "n_embd")),
        # An assistant has that of the model that it drafts for.
        "model_dim": ConfigKey(("embedding_length_out",), int, 1, 1 << 20, hf=("backbone_hidden_size",)),
        # Its tokens' clusters, and those that a draft looks at; no GGUF file has them.
        "clusters": ConfigKey((), int, 1, 1 << 20, 2048, hf=("num_centroids",)),
        "clusters_used": ConfigKey((), int, 1, 1 << 20, 32, hf=("centroid_intermediate_top_k",)),
        "n_heads": ConfigKey(
            ("attention.head_count",), int, 1, 1 << 14, hf=("num_attention_heads", "n_head")
        ),
        "n_kv_heads": ConfigKey(("attention.head_count_kv",), int, 0, 1 << 14, hf=("num_key_value_heads",)),
        "head_dim": ConfigKey(("attention.key_length",), int, 2, 1 << 12, hf=("head_dim",)),
        "value_dim": ConfigKey(("attention.value_length",), int, 2, 1 << 12),
        # This is for layers with a window, where it is another.
        "local_head_dim": ConfigKey(("attention.key_length_swa",), int, 2, 1 << 12, hf=("local_head_dim",)),
        "local_value_dim": ConfigKey(("attention.value_length_swa",), int, 2, 1 << 12),
        # The last layers that read the keys and values of others.
        "shared_kv_layers": ConfigKey(
            ("attention.shared_kv_layers",), int, 0, 4096, 0, hf=("num_kv_shared_layers",)
        ),
        "layer_input_dim": ConfigKey(
            ("embedding_length_per_layer_input",), int, 0, 1 << 16, 0, hf=("hidden_size_per_layer_input",)
        ),
        # Several residual streams (AltUp), and up to where the gates of their layers are cut off: in GGUF
        # files, and in configurations as `spelled`, standard deviations above the mean, -inf for nothing.
        "streams": ConfigKey(("altup.num_inputs",), int, 0, 8, 0, hf=("altup_num_inputs",)),
        "active_stream": ConfigKey(("altup.active_idx",), int, 0, 7, 0, hf=("altup_active_idx",)),
        "laurel_rank": ConfigKey((), int, 0, 1 << 16, 0, hf=("laurel_rank",)),
        "deviations": ConfigKey(
            ("activation_sparsity_scale",), float, -math.inf, 1e3, hf=("activation_sparsity_scale",)
        ),
        "ffn_dim": ConfigKey(("feed_forward_length",), int, 0, 1 << 24, hf=("intermediate_size", "n_inner")),
        "n_experts": ConfigKey(
            ("expert_count",),
            int,
            0,
            1024,
            0,
            hf=("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts"),
        ),
        "experts_used": ConfigKey(
            ("expert_used_count",),
            int,
            0,
            32,
            hf=("num_experts_per_tok", "moe_k", "moe_topk", "top_k_experts"),
        ),
        "expert_dim": ConfigKey(
            ("expert_feed_forward_length",), int, 1, 1 << 24, hf=("moe_intermediate_size",)
        ),
        "shared_dim": ConfigKey(
            ("expert_shared_feed_forward_length",),
            int,
            0,
            1 << 24,
            0,
            hf=(
                "shared_expert_intermediate_size",
                "shared_intermediate_size",
                "moe_shared_expert_intermediate_size",
            ),
        ),
        "latent_dim": ConfigKey(("moe_latent_size",), int, 0, 1 << 20, 0, hf=("moe_latent_size",)),
        "swiglu_limit": ConfigKey((), float, 0.0, 1e6, hf=("swiglu_limit",)),
        "swiglu_alpha": ConfigKey((), float, 1e-3, 1e3, hf=("swiglu_alpha",)),
        "shared_experts": ConfigKey(
            ("expert_shared_count",),
            int,
            0,
            1024,
            0,
            hf=("n_shared_experts", "moe_num_shared_experts", "num_shared_expert"),
        ),
        "expert_scale": ConfigKey(
            ("expert_weights_scale",), float, 1e-6, 1e3, 1.0, hf=("routed_scaling_factor",)
        ),
        "expert_groups": ConfigKey(("expert_group_count",), int, 0, 1024, 0, hf=("n_group",)),
        "expert_groups_used": ConfigKey(("expert_group_used_count",), int, 0, 32, 0, hf=("topk_group",)),
        "expert_sum_min": ConfigKey((), float, 0.0, 1.0, hf=("moe_norm_min",)),
        # The first layer with experts, the last one (-1: that of the model), and every how many there is one.
        "dense_lead": ConfigKey(
            ("leading_dense_block_count",),
            int,
            0,
            4096,
            0,
            hf=("first_k_dense_replace", "num_dense_layers", "moe_layer_start_index"),
        ),
        "expert_last": ConfigKey((), int, -1, 4096, -1, hf=("moe_layer_end_index",)),
        "expert_step": ConfigKey(
            ("interleave_moe_layer_step",), int, 0, 4096, 1, hf=("decoder_sparse_step", "moe_layer_interval")
        ),
        "context_length": ConfigKey(
            ("context_length",), int, 1, (1 << 31) - 1, hf=("max_position_embeddings", "n_positions")
        ),
        "norm_eps": ConfigKey(
            ("attention.layer_norm_rms_epsilon", "attention.layer_norm_epsilon"),
            float,
            1e-13,
            0.1,
            hf=("rms_norm_eps", "layer_norm_eps", "norm_eps", "layer_norm_epsilon", "norm_epsilon"),
        ),
        "attn_scale": ConfigKey(("attention.scale",), float, 1e-6, 1e3, hf=("attention_multiplier",)),
        "embedding_scale": ConfigKey(
            ("embedding_scale",), float, 1e-6, 1e6, 1.0, hf=("embedding_multiplier",)
        ),
        "residual_scale": ConfigKey(("residual_scale",), float, 1e-3, 1e3, 1.0, hf=("residual_multiplier",)),
        "logit_scale": ConfigKey(("logit_scale",), float, 1e-6, 1e6, 1.0, hf=("logit_scale",)),
        "logit_divisor": ConfigKey(("logit_scale",), float, 1e-6, 1e6, 1.0, hf=("logits_scaling",)),
        "q_gain": ConfigKey((), float, 0.0, 1e6, 0.0, hf=("qk_scale_factor",)),
        "branch_norm_eps": ConfigKey((), float, 1e-13, 0.1, hf=("post_norm_eps",)),
        # This scales queries by position.
        "temperature": ConfigKey(
            ("attention.temperature_scale",), float, 0.0, 1e3, hf=("llama_4_scaling_beta",)
        ),
        "temperature_length": ConfigKey(("attention.temperature_length",), int, 1, (1 << 31) - 1),
        "attn_softcap": ConfigKey(
            ("attn_logit_softcapping",), float, 0.0, 1e6, 0.0, hf=("attn_logit_softcapping",)
        ),
        "final_softcap": ConfigKey(
            ("final_logit_softcapping",), float, 0.0, 1e6, 0.0, hf=("final_logit_softcapping",)
        ),
        "window": ConfigKey(
            ("attention.sliding_window",), int, 0, (1 << 31) - 1, 0, hf=("sliding_window", "local_attention")
        ),
        "rope_dim": ConfigKey(("rope.dimension_count",), int, 2, 1 << 12),
        "local_rope_dim": ConfigKey(("rope.dimension_count_swa",), int, 2, 1 << 12),
        "rope_theta": ConfigKey(
            ("rope.freq_base",),
            float,
            1.01,
            1e12,
            10000.0,
            hf=("rope_theta", "global_rope_theta", "rotary_emb_base"),
        ),
        "local_rope_theta": ConfigKey(
            ("rope.freq_base_swa",), float, 1.01, 1e12, hf=("rope_local_base_freq", "local_rope_theta")
        ),
        # "rope.scale_linear" is the name of the factor in files of 2023.
        "rope_factor": ConfigKey(
            ("rope.scaling.factor", "rope.scale_linear"), float, 1e-3, 1e6, 1.0, hf=("factor",)
        ),
        "rope_original_context": ConfigKey(
            ("rope.scaling.original_context_length",),
            int,
            1,
            (1 << 31) - 1,
            hf=("original_max_position_embeddings",),
        ),
        "rope_attn_factor": ConfigKey(("rope.scaling.attn_factor",), float, 1e-3, 1e3, 1.0),
        "yarn_attn_factor": ConfigKey(
            ("rope.scaling.yarn_attn_factor",), float, 1e-3, 1e3, hf=("attention_factor",)
        ),
        "yarn_beta_fast": ConfigKey(
            ("rope.scaling.yarn_beta_fast",), float, 1e-3, 1e6, 32.0, hf=("beta_fast",)
        ),
        "yarn_beta_slow": ConfigKey(
            ("rope.scaling.yarn_beta_slow",), float, 1e-3, 1e6, 1.0, hf=("beta_slow",)
        ),
        "yarn_log_multiplier": ConfigKey(("rope.scaling.yarn_log_multiplier",), float, 0.0, 1e3),
        # In latent attention elements of a key are those of a head, or of what is kept, see `latent_sizes`.
        "latent_q_rank": ConfigKey(("attention.q_lora_rank",), int, 0, 1 << 16, 0, hf=("q_lora_rank",)),
        "latent": ConfigKey(("attention.kv_lora_rank",), int, 1, 1 << 12, hf=("kv_lora_rank",)),
        "latent_nope": ConfigKey((), int, 1, 1 << 12, hf=("qk_nope_head_dim",)),
        "latent_rope": ConfigKey(("rope.dimension_count",), int, 2, 1 << 12, hf=("qk_rope_head_dim",)),
        "latent_value": ConfigKey((), int, 1, 1 << 12, hf=("v_head_dim",)),
        "latent_key_length": ConfigKey(("attention.key_length_mla",), int, 2, 1 << 13),
        "latent_value_length": ConfigKey(("attention.value_length_mla",), int, 1, 1 << 13),
        # Gated delta nets and Mamba-2 have these: see `akunu.files.describe.recurrent`.
        "delta_key_heads": ConfigKey(
            ("ssm.group_count",), int, 1, 1 << 14, hf=("linear_num_key_heads", "mamba_n_groups", "n_groups")
        ),
        "delta_value_heads": ConfigKey(
            ("ssm.time_step_rank",),
            int,
            1,
            1 << 14,
            hf=("linear_num_value_heads", "mamba_n_heads", "mamba_num_heads"),
        ),
        "delta_key_dim": ConfigKey(
            ("ssm.state_size",),
            int,
            1,
            1 << 12,
            hf=("linear_key_head_dim", "mamba_d_state", "ssm_state_size"),
        ),
        "delta_value_dim": ConfigKey(
            (), int, 1, 1 << 12, hf=("linear_value_head_dim", "mamba_d_head", "mamba_head_dim")
        ),
        "delta_values": ConfigKey(("ssm.inner_size",), int, 1, 1 << 24),
        "delta_taps": ConfigKey(
            ("ssm.conv_kernel",), int, 1, 64, hf=("linear_conv_kernel_dim", "mamba_d_conv", "conv_kernel")
        ),
        "conv_taps": ConfigKey(("shortconv.l_cache",), int, 2, 64, hf=("conv_L_cache",)),
        "full_attention_interval": ConfigKey(
            ("full_attention_interval",), int, 1, 4096, 4, hf=("full_attention_interval",)
        ),
        # The layer behind the others that predicts a token more; llama.cpp counts it as a block.
        "nextn_layers": ConfigKey(("nextn_predict_layers",), int, 0, 64, 0),
        "nextn_beside": ConfigKey((), int, 0, 64, 0, hf=("num_nextn_predict_layers", "num_mtp_layers")),
        # Only in Hugging Face's files; a GGUF file has what follows from them.
        "query_scalar": ConfigKey((), float, 1e-6, 1e6, hf=("query_pre_attn_scalar",)),
        "window_first": ConfigKey((), int, 0, 4096, 0, hf=("max_window_layers",)),
        "window_period": ConfigKey(
            (),
            int,
            1,
            4096,
            hf=("sliding_window_pattern", "_sliding_window_pattern", "global_attn_every_n_layers"),
        ),
        "rope_share": ConfigKey((), float, 1e-3, 1.0, 1.0, hf=("partial_rotary_factor",)),
        "rope_low_freq": ConfigKey((), float, 1e-3, 1e6, hf=("low_freq_factor",)),
        "rope_high_freq": ConfigKey((), float, 1e-3, 1e6, hf=("high_freq_factor",)),
        "rope_alpha": ConfigKey((), float, 1e-3, 1e9, hf=("alpha",)),
        "unrotated_period": ConfigKey((), int, 1, 4096, 4, hf=("no_rope_layer_interval",)),
        "yarn_mscale": ConfigKey((), float, 0.0, 1e3, 0.0, hf=("mscale",)),
        "yarn_mscale_all": ConfigKey((), float, 0.0, 1e3, 0.0, hf=("mscale_all_dim",)),
    }
)
"""Numbers of a decoder. The bounds are wide: the largest published models stay a factor of ten below them."""

YARN_WHOLE: Final = "rope.scaling.yarn_truncate"
"""Akunu's own key: whether the bounds of YaRN's ramp are whole numbers. Other readers always round them."""

YARN_UNSET: Final = -1.0
"""`rope.scaling.yarn_ext_factor` of a file with llama.cpp's own YaRN keys instead of the model's."""

NEUTRAL_VALUES: Final[Mapping[str, tuple[object, ...]]] = MappingProxyType(
    {
        "expert_count": (0,),
        "expert_used_count": (0,),
        "expert_shared_count": (0,),
        "expert_group_count": (0, 1),
        "expert_group_used_count": (0, 1),
        "leading_dense_block_count": (0,),
        "interleave_moe_layer_step": (0, 1),
        "moe_latent_size": (0,),
        "swiglu_clamp_exp": (0.0,),
        "swiglu_clamp_shexp": (0.0,),
        "nextn_predict_layers": (0,),
        "embedding_length_per_layer_input": (0,),
        "activation_sparsity_scale": (0.0,),
        "use_parallel_residual": (False,),
        "logit_scale": (0.0, 1.0),
        "residual_scale": (0.0, 1.0),
        "embedding_scale": (0.0, 1.0),
        "attention.causal": (True,),
        "attention.clamp_kqv": (0.0,),
        "attention.max_alibi_bias": (0.0,),
        "attention.output_scale": (0.0, 1.0),
        "attention.shared_kv_layers": (0,),
        "attention.temperature_length": (0,),
        "attention.temperature_scale": (0.0,),
        "rope.scaling.alpha": (0.0,),
        "rope.scaling.yarn_ext_factor": (1.0, YARN_UNSET),
        "rope.scaling.yarn_log_multiplier": (0.0,),
    }
)
"""Keys whose feature is not implemented, with the values that mean "not used". Any other value is refused."""

REFUSED_PREFIXES: Final = ("ssm.", "wkv.", "kda.", "altup.", "shortconv.", "attention.indexer.")
"""Keys that only another kind of model has: state-space, linear-attention and so on. llama.cpp writes all of
them when it saves a model, with sizes of 0."""

ZERO_IF_UNSET: Final = (
    "expert_scale", "norm_eps", "attn_scale", "rope_factor", "rope_original_context", "embedding_scale",
    "residual_scale", "logit_scale", "logit_divisor", "temperature", "temperature_length",
    "yarn_log_multiplier", "local_head_dim", "local_value_dim", "local_rope_dim",
)  # fmt: skip
"""Numbers that are 0 in a GGUF file of llama.cpp's where the model does not have them."""

ROPE_TENSORS: Final = ("rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight")
"""Divisors of the rotary frequencies, F32 [rope_dim/2]: Llama 3's, and LongRoPE's two sets. For every row."""


SCALES: Final = (
    "embedding_scale", "residual_scale", "attn_scale", "logit_scale", "logit_divisor", "temperature",
)  # fmt: skip
"""Fields of `CONFIG_KEYS` that scale what few models scale."""

SOFT_CAPS: Final = ("attn_softcap", "final_softcap")
"""The fields of `CONFIG_KEYS` that cap attention's scores and logits."""

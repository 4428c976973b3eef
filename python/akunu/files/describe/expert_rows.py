"""Rows of architectures with experts that came after the dense models of their families.

Facts about names and conventions: as in `akunu.files.describe.dense_rows`.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from akunu.files.describe.expert_rules import GRANITE_EXPERTS, expert_rules, shared_biases, shared_rules
from akunu.files.describe.layer_rules import (
    ATTN_OUTPUT,
    DOWN,
    FOLDER_BIAS,
    FOLDER_FFN_BIAS,
    GATE_UP,
    GLOBAL,
    HEAD_BIAS,
    LATE_QK_NORM,
    NORMS,
    OUTPUT_BIAS,
    PREDICTION,
    QKV,
    QWEN3_MOE,
    mixed_layers,
    named_layers,
    qkv_bias,
)
from akunu.files.describe.tensor_rules import Architecture, Router

__all__ = ["EXPERT_ROWS"]

EXPERT_ROWS: Final = (
    Architecture(
        name="mellum",
        summary="Mellum 2: layers of a Qwen 3 with experts, some of them windowed with a theta of their own",
        rope_style="half",
        activation="silu",
        tensors=GLOBAL,
        layers=QWEN3_MOE,
        layer_kinds=named_layers,
        defaults=MappingProxyType({"rope_theta": 5e5, "local_rope_theta": 1e4}),
        required_keys=("attention.sliding_window_pattern", "attention.sliding_window"),
        router=Router(),
        left_out=PREDICTION,
    ),
    Architecture(
        name="granitemoe",
        summary="Granite 3 and 4 with experts and without Mamba layers",
        rope_style="interleaved",
        activation="silu",
        pre_tokenizer="refact",
        tensors=GLOBAL,
        layers=mixed_layers(
            {"attention": (*NORMS, *QKV, *ATTN_OUTPUT, *qkv_bias(optional=True), *OUTPUT_BIAS)},
            {"experts": GRANITE_EXPERTS},
        ),
        layer_kinds=named_layers,
        scales=("embedding_scale", "residual_scale", "attn_scale", "logit_divisor"),
        rope_switch=True,
        features=("ssm.",),  # files of Granite 4 have sizes of the layers that only its hybrids have
        router=Router(),
    ),
    Architecture(
        name="ernie4_5-moe",
        summary="Ernie 4.5 with experts: 21B-A3B, 300B-A47B",
        rope_style="interleaved",
        activation="silu",
        tensors=(*GLOBAL, *HEAD_BIAS),
        layers=mixed_layers(
            {"attention": (*NORMS, *QKV, *ATTN_OUTPUT, *qkv_bias(optional=True), *OUTPUT_BIAS)},
            {
                "feed_forward": (*GATE_UP, *DOWN, *FOLDER_FFN_BIAS),
                "experts": (
                    *expert_rules(choice_bias="moe_statics.e_score_correction_bias"),
                    *shared_rules(),
                    *shared_biases(),
                ),
            },
        ),
        layer_kinds=named_layers,
        router=Router(sum_min=1e-12),
        shared_by_count=True,
    ),
    Architecture(
        name="hunyuan-moe",
        summary="Hunyuan with experts: A13B",
        rope_style="half",
        activation="silu",
        pre_tokenizer="hunyuan",
        tensors=GLOBAL,
        layers=mixed_layers(
            {"attention": (*NORMS, *QKV, *ATTN_OUTPUT, *LATE_QK_NORM, *FOLDER_BIAS)},
            {"experts": (*expert_rules(router="gate.wg"), *shared_rules("mlp.shared_mlp."))},
        ),
        layer_kinds=named_layers,
        norms_after_rope=True,
        router=Router(),
    ),
)
"""See `akunu.files.describe.architectures.ARCHITECTURES`."""

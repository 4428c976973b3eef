"""Rows of architectures with multi-head latent attention: DeepSeek's and their relatives.

Facts about names and conventions: as in `akunu.files.describe.dense_rows`.
"""

from __future__ import annotations

import dataclasses
from typing import Final

from akunu.files.describe.expert_rules import expert_rules, shared_biases, shared_rules
from akunu.files.describe.layer_rules import (
    BLK,
    DEEPSEEK_PREDICTION,
    DOWN,
    FOLDER_FFN_BIAS,
    GATE_UP,
    GLOBAL,
    HF,
    NORMS,
    OUTPUT_BIAS,
    PREDICTION,
    for_folders,
    latent_layers,
    matrix,
    mixed_layers,
    vector,
)
from akunu.files.describe.tensor_rules import Architecture, Router, TensorRule

__all__ = ["LATENT_ROWS"]


def _of_heads(source: str, name: str, rows: str, cols: str) -> TensorRule:
    return TensorRule(source, "", ((name, rows),), cols, count="n_heads")


# A size of 0 means that there is no tensor: queries are projected at once, or in two steps.
_LATENT_ATTENTION: Final = (
    *NORMS,
    matrix(
        BLK + "attn_q.weight", HF + "self_attn.q_proj.weight", "latent_q", "latent_queries", "latent_q_whole"
    ),
    matrix(BLK + "attn_q_a.weight", HF + "self_attn.q_a_proj.weight", "latent_q_a", "latent_q_rank", "dim"),
    vector(
        BLK + "attn_q_a_norm.weight", HF + "self_attn.q_a_layernorm.weight", "latent_q_norm", "latent_q_rank"
    ),
    matrix(
        BLK + "attn_q_b.weight",
        HF + "self_attn.q_b_proj.weight",
        "latent_q",
        "latent_queries",
        "latent_q_rank",
    ),
    matrix(
        BLK + "attn_kv_a_mqa.weight",
        HF + "self_attn.kv_a_proj_with_mqa.weight",
        "latent_kv_a",
        "latent_key",
        "dim",
    ),
    vector(BLK + "attn_kv_a_norm.weight", HF + "self_attn.kv_a_layernorm.weight", "latent_kv_norm", "latent"),
    _of_heads(BLK + "attn_k_b.weight", "latent_k", "latent", "latent_nope"),
    _of_heads(BLK + "attn_v_b.weight", "latent_v", "latent_value", "latent"),
    matrix("", HF + "self_attn.kv_b_proj.weight", "latent_kv_b", "latent_heads", "latent"),
    matrix(BLK + "attn_output.weight", HF + "self_attn.o_proj.weight", "attn_output", "dim", "latent_values"),
    *for_folders(
        vector(
            BLK + "attn_q_a.bias",
            HF + "self_attn.q_a_proj.bias",
            "attn_q_a_bias",
            "latent_q_rank",
            optional=True,
        ),
        vector(
            BLK + "attn_kv_a_mqa.bias",
            HF + "self_attn.kv_a_proj_with_mqa.bias",
            "attn_kv_a_bias",
            "latent_key",
            optional=True,
        ),
        *OUTPUT_BIAS,
    ),
)
_LAYERS: Final = mixed_layers(
    {"latent_attention": _LATENT_ATTENTION},
    {
        "feed_forward": (*GATE_UP, *DOWN, *FOLDER_FFN_BIAS),
        "experts": (
            *expert_rules(choice_bias="gate.e_score_correction_bias"),
            *shared_rules(),
            *shared_biases(),
        ),
    },
)
_DEEPSEEK = Architecture(
    name="deepseek2",
    summary="DeepSeek V2, V3 and R1, GLM 4.7 Flash, Kimi K2: multi-head latent attention, experts",
    rope_style="interleaved",
    activation="silu",
    pre_tokenizer="deepseek-llm",
    tensors=GLOBAL,
    layers=_LAYERS,
    layer_kinds=latent_layers,
    scales=("temperature",),
    left_out=PREDICTION,
    prediction=DEEPSEEK_PREDICTION,
    # Files of DeepSeek V3 and GLM that do not name their gating have biases that choose; those of V2 do not.
    router=Router(renormalise=False, best_of_group=1),
    biased_router=Router("sigmoid", sum_eps=1e-20),
)

LATENT_ROWS: Final = (
    _DEEPSEEK,
    # Ollama's own converter names it so.
    dataclasses.replace(
        _DEEPSEEK, name="glm4moelite", summary="GLM 4.7 Flash in Ollama's files", pre_tokenizer="glm4"
    ),
    dataclasses.replace(
        _DEEPSEEK,
        name="mistral4",
        summary="Mistral Small 4: latent attention, queries whose scale grows with their position",
        pre_tokenizer="tekken",
        router=Router(sum_eps=1e-20),
    ),
)
"""See `akunu.files.describe.architectures.ARCHITECTURES`."""

"""Rows of architectures whose layers are attention and one feed-forward: Llama's relatives.

Facts about names and conventions: gguf-py's `constants.py`, llama.cpp's converter and graphs, and the model
classes of Hugging Face Transformers, against which tests/models checks every row.
"""

from __future__ import annotations

import dataclasses
from typing import Final

from akunu.files.describe.layer_rules import (
    ATTN_NORM,
    ATTN_OUTPUT,
    BLK,
    DOWN,
    FFN_BIAS,
    FOLDER_BIAS,
    FOLDER_FFN_BIAS,
    FUSED_GATE_UP,
    GATE_UP,
    GLOBAL,
    HEAD_NORMS,
    HF,
    LATE_QK_NORM,
    NORMS,
    OUTPUT_BIAS,
    PLAIN_LAYER,
    PROJECTIONS,
    QK_NORM,
    QKV,
    SHIFTED_NORMS,
    TOWERS,
    WHOLE_QK_NORM,
    for_folders,
    matrix,
    one_kind,
    qkv_bias,
    vector,
)
from akunu.files.describe.tensor_rules import Architecture, TensorRule

__all__ = ["DENSE_ROWS"]

_BIASES = (*qkv_bias(optional=True), *OUTPUT_BIAS, *FFN_BIAS)


def _with_bias(rule: TensorRule) -> tuple[TensorRule, ...]:
    """The rule of a norm, and that of its bias."""
    ((name, size),) = rule.parts
    swap = [text.removesuffix("weight") + "bias" for text in (rule.source, rule.hf)]
    return rule, vector(swap[0], swap[1], f"{name}_bias", size)


_POST_ATTN_NORM = vector(
    BLK + "post_attention_norm.weight", HF + "post_attention_layernorm.weight", "post_attn_norm", "dim"
)
_POST_FFN_NORM = vector(
    BLK + "post_ffw_norm.weight", HF + "post_feedforward_layernorm.weight", "post_ffn_norm", "dim"
)
# Norms ahead of attention and of the feed-forward, and of what each adds, by the names of GLM's class.
_GLM4_NORMS = (
    ATTN_NORM,
    vector(
        BLK + "post_attention_norm.weight",
        HF + "post_self_attn_layernorm.weight",
        "post_attn_norm",
        "dim",
    ),
    vector(BLK + "ffn_norm.weight", HF + "post_attention_layernorm.weight", "ffn_norm", "dim"),
    vector(BLK + "post_ffw_norm.weight", HF + "post_mlp_layernorm.weight", "post_ffn_norm", "dim"),
)
_UP = GATE_UP[1:]
# In a GGUF file the head is always the embedding.
_TIED_GLOBAL = (*GLOBAL[:2], *for_folders(GLOBAL[2]))
# LayerNorms with biases.
_LAYER_NORMS = tuple(part for rule in NORMS for part in _with_bias(rule))
_LAYER_NORM_GLOBAL = (GLOBAL[0], *_with_bias(GLOBAL[1]), GLOBAL[2])
# Each head's norm is a tensor of its own in a checkpoint.
_NORMS_OF_HEADS = tuple(
    dataclasses.replace(rule, hf=rule.hf.replace("_norm.", "_layernorm.norms.{e}.")) for rule in HEAD_NORMS
)
_STARCODER_FFN = tuple(
    rule
    for part, name, rows, cols in (("up", "c_fc", "ffn_dim", "dim"), ("down", "c_proj", "dim", "ffn_dim"))
    for rule in (
        matrix(f"{BLK}ffn_{part}.weight", f"{HF}mlp.{name}.weight", f"ffn_{part}", rows, cols),
        vector(f"{BLK}ffn_{part}.bias", f"{HF}mlp.{name}.bias", f"ffn_{part}_bias", rows, optional=True),
    )
)
_QWEN2_VL = Architecture(
    name="qwen2vl",
    summary="Qwen 2 and 2.5 VL, as models of text",
    rope_style="half",
    activation="silu",
    tensors=GLOBAL,
    layers=one_kind(*PLAIN_LAYER, *qkv_bias(optional=False)),
    left_out=TOWERS,
)
DENSE_ROWS: Final = (
    Architecture(
        name="granite",
        summary="Granite 3 to 4.2, dense sizes: scales on embedding, residual stream, attention and logits",
        rope_style="interleaved",
        activation="silu",
        tensors=GLOBAL,
        layers=one_kind(*PLAIN_LAYER, *_BIASES),
        scales=("embedding_scale", "residual_scale", "attn_scale", "logit_divisor"),
        rope_switch=True,
        features=("ssm.",),  # files of Granite 4 have sizes of the layers that only its hybrids have
    ),
    Architecture(
        name="olmo2",
        summary="OLMo 2 and 3: norms behind attention and FFN alone, Q/K norms over whole rows",
        rope_style="half",
        activation="silu",
        tensors=GLOBAL,
        layers=one_kind(
            *PROJECTIONS,
            *WHOLE_QK_NORM,
            _POST_ATTN_NORM,
            _POST_FFN_NORM,
            *FOLDER_BIAS,
        ),
        window_period=4,
        norms_whole_rows=True,
        plain_local_rope=True,
    ),
    Architecture(
        name="smollm3",
        summary="SmolLM 3: no rotation in every fourth layer",
        rope_style="interleaved",
        activation="silu",
        tensors=GLOBAL,
        layers=one_kind(*PLAIN_LAYER, *qkv_bias(optional=True), *for_folders(*OUTPUT_BIAS, *FFN_BIAS)),
        rotated="period",
    ),
    Architecture(
        name="mistral3",
        summary="Ministral 3: YaRN, and queries whose scale grows with their position",
        rope_style="interleaved",
        activation="silu",
        tensors=GLOBAL,
        layers=one_kind(*PLAIN_LAYER, *_BIASES),
        scales=("attn_scale", "temperature"),
        left_out=TOWERS,
    ),
    Architecture(
        name="glm4",
        summary="GLM-4-0414: norms on both sides, half of a head rotates, fused gate and up",
        rope_style="interleaved",
        activation="silu",
        tensors=GLOBAL,
        layers=one_kind(*_GLM4_NORMS, *QKV, *ATTN_OUTPUT, *qkv_bias(optional=True), *FUSED_GATE_UP, *DOWN),
    ),
    Architecture(
        name="seed_oss",
        summary="Seed-OSS",
        rope_style="half",
        activation="silu",
        tensors=GLOBAL,
        layers=one_kind(
            *SHIFTED_NORMS,
            *PROJECTIONS,
            *qkv_bias(optional=True),
            *for_folders(*OUTPUT_BIAS, *FFN_BIAS),
        ),
    ),
    Architecture(
        name="ernie4_5",
        summary="Ernie 4.5, dense sizes",
        rope_style="interleaved",
        activation="silu",
        tensors=GLOBAL,
        layers=one_kind(*PLAIN_LAYER, *qkv_bias(optional=True), *OUTPUT_BIAS, *FOLDER_FFN_BIAS),
    ),
    Architecture(
        name="hunyuan-dense",
        summary="Hunyuan, dense sizes: Q/K norms behind the rotation",
        rope_style="half",
        activation="silu",
        tensors=GLOBAL,
        layers=one_kind(*PLAIN_LAYER, *LATE_QK_NORM, *FOLDER_BIAS),
        norms_after_rope=True,
    ),
    Architecture(
        name="exaone4",
        summary="EXAONE 4: norms behind attention and FFN alone, in the large size rotation in windows alone",
        rope_style="half",
        activation="silu",
        tensors=GLOBAL,
        layers=one_kind(*PROJECTIONS, *QK_NORM, _POST_ATTN_NORM, _POST_FFN_NORM),
        window_period=4,
        rotated="windowed_or_all",
    ),
    Architecture(
        name="command-r",
        summary="Command R and R+, Aya: LayerNorm, attention and FFN side by side",
        rope_style="interleaved",
        activation="silu",
        tensors=_TIED_GLOBAL,
        layers=one_kind(
            ATTN_NORM,
            *PROJECTIONS,
            *HEAD_NORMS,
            *FOLDER_BIAS,
        ),
        layer_norm=True,
        norms_by_head=True,
        parallel="always",
        scales=("logit_scale",),
    ),
    Architecture(
        name="cohere2",
        summary="Command R7B and A: as Command R, rotation in windowed layers alone",
        rope_style="interleaved",
        activation="silu",
        tensors=_TIED_GLOBAL,
        layers=one_kind(ATTN_NORM, *PROJECTIONS, *qkv_bias(optional=True), *for_folders(*OUTPUT_BIAS)),
        window_period=4,
        layer_norm=True,
        parallel="always",
        rotated="windowed",
        scales=("logit_scale",),
        required_keys=("attention.sliding_window",),
    ),
    Architecture(
        name="arcee",
        summary="Arcee's AFM: a feed-forward without a gate, of squares",
        rope_style="interleaved",
        activation="relu2",
        tensors=GLOBAL,
        layers=one_kind(
            *NORMS,
            *QKV,
            *ATTN_OUTPUT,
            *_UP,
            *DOWN,
            *for_folders(*qkv_bias(optional=True), *OUTPUT_BIAS, *FFN_BIAS[1:]),
        ),
    ),
    _QWEN2_VL,
    dataclasses.replace(_QWEN2_VL, name="qwen25vl", summary="Qwen 2.5 VL in Ollama's files"),
    Architecture(
        name="qwen3vl",
        summary="Qwen 3 VL, dense sizes, as models of text",
        rope_style="half",
        activation="silu",
        tensors=GLOBAL,
        layers=one_kind(*PLAIN_LAYER, *QK_NORM, *FOLDER_BIAS),
        left_out=TOWERS,
    ),
    Architecture(
        name="stablelm",
        summary="StableLM 3B, StableLM 2, Stable Code: LayerNorm with biases",
        rope_style="half",
        activation="silu",
        tensors=_LAYER_NORM_GLOBAL,
        layers=one_kind(
            *_LAYER_NORMS[:2],
            # In the 12B attention and feed-forward are side by side, and have one norm.
            *(dataclasses.replace(rule, optional=True) for rule in _LAYER_NORMS[2:]),
            *PROJECTIONS,
            *qkv_bias(optional=True),
            *_NORMS_OF_HEADS,
        ),
        layer_norm=True,
        norms_by_head=True,
        parallel="unnormed",
    ),
    Architecture(
        name="starcoder2",
        summary="StarCoder 2: LayerNorm and biases, a feed-forward without a gate",
        rope_style="half",
        activation="gelu_tanh",
        tensors=_LAYER_NORM_GLOBAL,
        layers=one_kind(
            *_LAYER_NORMS, *QKV, *qkv_bias(optional=True), *ATTN_OUTPUT, *OUTPUT_BIAS, *_STARCODER_FFN
        ),
        layer_norm=True,
    ),
    Architecture(
        name="chatglm",
        summary="GLM-4 9B of 2024: half of a head rotates, fused gate and up",
        rope_style="interleaved",
        activation="silu",
        tensors=GLOBAL,
        layers=one_kind(*NORMS, *QKV, *ATTN_OUTPUT, *qkv_bias(optional=True), *FUSED_GATE_UP, *DOWN),
    ),
)
"""See `akunu.files.describe.architectures.ARCHITECTURES`."""

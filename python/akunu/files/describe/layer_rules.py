"""The tensor rules that architectures share, and the kinds of layers that they make.

Names and shapes only: which of them an architecture has is in the rows of
`akunu.files.describe.architectures`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Container, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Literal

from akunu.files.describe.expert_rules import (
    DELTA_NET,
    DELTA_NET_BY_KEY_HEAD,
    expert_layers,
    expert_rules,
    shared_rules,
)
from akunu.files.describe.tensor_rules import LayerKind, LayerNumbers, MixerKind, Prediction, TensorRule

__all__ = [
    "ATTN_NORM",
    "ATTN_OUTPUT",
    "BLK",
    "DEEPSEEK_PREDICTION",
    "DELTA_MIXERS",
    "DOWN",
    "FFN_BIAS",
    "FOLDER_BIAS",
    "FOLDER_FFN_BIAS",
    "FOUR_NORMS",
    "FUSED_GATE_UP",
    "FUSED_QKV",
    "GATED_Q",
    "GATED_SHARED",
    "GATE_UP",
    "GLOBAL",
    "HEAD_BIAS",
    "HEAD_NORMS",
    "HF",
    "LATE_QK_NORM",
    "NEXT_DELTA_MIXERS",
    "NORMS",
    "OUTPUT_BIAS",
    "PLAIN_LAYER",
    "PREDICTION",
    "PROJECTIONS",
    "QKV",
    "QK_NORM",
    "QWEN3_MOE",
    "QWEN_PREDICTION",
    "SHIFTED_NORMS",
    "SINKS",
    "TOWERS",
    "WHOLE_QK_NORM",
    "ForwardKind",
    "delta_layers",
    "for_folders",
    "latent_layers",
    "matrix",
    "mixed_layers",
    "named_layers",
    "one_kind",
    "qkv_bias",
    "vector",
    "with_fused_qkv",
]


def one_kind(*tensors: TensorRule) -> Mapping[str, LayerKind]:
    """All layers have attention and a feed-forward, of these tensors."""
    return MappingProxyType({"layer": LayerKind(tensors)})


def matrix(source: str, hf: str, name: str, rows: str, cols: str, *, optional: bool = False) -> TensorRule:
    return TensorRule(source, hf, ((name, rows),), cols, optional)


def vector(source: str, hf: str, name: str, length: str, *, optional: bool = False) -> TensorRule:
    return TensorRule(source, hf, ((name, length),), None, optional)


def for_folders(*rules: TensorRule) -> tuple[TensorRule, ...]:
    """Mark rules as those of tensors that only folders hold: llama.cpp has no names for them."""
    return tuple(dataclasses.replace(rule, folder_only=True) for rule in rules)


_EMBEDDING = "token_embd.weight"
_HEAD = "output.weight"
BLK, HF = "blk.{n}.", "layers.{n}."

GLOBAL = (
    matrix(_EMBEDDING, "embed_tokens.weight", "token_embedding", "vocab_size", "dim"),
    vector("output_norm.weight", "norm.weight", "output_norm", "dim"),
    # Absent: tied to the embedding.
    matrix(_HEAD, "lm_head.weight", "output", "vocab_size", "dim", optional=True),
)
HEAD_BIAS = for_folders(vector("output.bias", "lm_head.bias", "output_bias", "vocab_size", optional=True))
ATTN_NORM = vector(BLK + "attn_norm.weight", HF + "input_layernorm.weight", "attn_norm", "dim")
NORMS = (
    ATTN_NORM,
    vector(BLK + "ffn_norm.weight", HF + "post_attention_layernorm.weight", "ffn_norm", "dim"),
)
# The same name of Hugging Face's means another norm where there are norms after attention and FFN.
FOUR_NORMS = (
    ATTN_NORM,
    vector(
        BLK + "post_attention_norm.weight", HF + "post_attention_layernorm.weight", "post_attn_norm", "dim"
    ),
    vector(BLK + "ffn_norm.weight", HF + "pre_feedforward_layernorm.weight", "ffn_norm", "dim"),
    vector(BLK + "post_ffw_norm.weight", HF + "post_feedforward_layernorm.weight", "post_ffn_norm", "dim"),
)
QKV = (
    matrix(BLK + "attn_q.weight", HF + "self_attn.q_proj.weight", "attn_q", "q_dim", "dim"),
    matrix(BLK + "attn_k.weight", HF + "self_attn.k_proj.weight", "attn_k", "kv_dim", "dim"),
    matrix(BLK + "attn_v.weight", HF + "self_attn.v_proj.weight", "attn_v", "kv_dim", "dim"),
)
FUSED_QKV = (
    TensorRule(
        BLK + "attn_qkv.weight",
        HF + "self_attn.qkv_proj.weight",
        (("attn_q", "q_dim"), ("attn_k", "kv_dim"), ("attn_v", "kv_dim")),
        "dim",
    ),
)
ATTN_OUTPUT = (
    matrix(BLK + "attn_output.weight", HF + "self_attn.o_proj.weight", "attn_output", "dim", "q_dim"),
)
GATE_UP = (
    matrix(BLK + "ffn_gate.weight", HF + "mlp.gate_proj.weight", "ffn_gate", "ffn_dim", "dim"),
    matrix(BLK + "ffn_up.weight", HF + "mlp.up_proj.weight", "ffn_up", "ffn_dim", "dim"),
)
FUSED_GATE_UP = (
    TensorRule(
        BLK + "ffn_up.weight",
        HF + "mlp.gate_up_proj.weight",
        (("ffn_gate", "ffn_dim"), ("ffn_up", "ffn_dim")),
        "dim",
    ),
)
DOWN = (matrix(BLK + "ffn_down.weight", HF + "mlp.down_proj.weight", "ffn_down", "dim", "ffn_dim"),)
QK_NORM = (
    vector(BLK + "attn_q_norm.weight", HF + "self_attn.q_norm.weight", "attn_q_norm", "head_dim"),
    vector(BLK + "attn_k_norm.weight", HF + "self_attn.k_norm.weight", "attn_k_norm", "head_dim"),
)
# Hunyuan's classes have other names for the same norm, here of rotated heads.
LATE_QK_NORM = (
    vector(BLK + "attn_q_norm.weight", HF + "self_attn.query_layernorm.weight", "attn_q_norm", "head_dim"),
    vector(BLK + "attn_k_norm.weight", HF + "self_attn.key_layernorm.weight", "attn_k_norm", "head_dim"),
)

# LayerNorms of each head, with weights of its own.
HEAD_NORMS = tuple(
    TensorRule(
        f"{BLK}attn_{part}_norm.weight",
        f"{HF}self_attn.{part}_norm.weight",
        ((f"attn_{part}_norm", "head_dim"),),
        optional=True,
        count=count,
    )
    for part, count in (("q", "n_heads"), ("k", "n_kv_heads"))
)


def qkv_bias(*, optional: bool) -> tuple[TensorRule, ...]:
    return tuple(
        vector(
            f"{BLK}attn_{part}.bias",
            f"{HF}self_attn.{part}_proj.bias",
            f"attn_{part}_bias",
            size,
            optional=optional,
        )
        for part, size in (("q", "q_dim"), ("k", "kv_dim"), ("v", "kv_dim"))
    )


SINKS = (vector(BLK + "attn_sinks.weight", HF + "self_attn.sinks", "attn_sinks", "n_heads"),)
ForwardKind = Literal["feed_forward", "experts"]


def mixed_layers(
    mixers: Mapping[MixerKind, Sequence[TensorRule]], forwards: Mapping[ForwardKind, Sequence[TensorRule]]
) -> Mapping[str, LayerKind]:
    """Layers of any of the `mixers` and any of the `forwards`, which `named_layers` tells apart."""
    return MappingProxyType(
        {
            f"{mixer}, {forward}": LayerKind((*own, *rules), (mixer, forward))
            for mixer, own in mixers.items()
            for forward, rules in forwards.items()
        }
    )


def named_layers(numbers: LayerNumbers, n_layers: int) -> Sequence[str]:
    """The kind of each layer of attention and a feed-forward, or experts."""
    experts = expert_layers(numbers, n_layers)
    return [f"attention, {'experts' if sparse else 'feed_forward'}" for sparse in experts]


def delta_layers(numbers: LayerNumbers, n_layers: int) -> Sequence[str]:
    """Name layers of which most have a delta net in attention's place."""
    mixers = ["delta_net" if recurrent else "attention" for recurrent in numbers.recurrent_layers()]
    named = named_layers(numbers, n_layers)
    return [name.replace("attention", mixer) for name, mixer in zip(named, mixers, strict=False)]


def latent_layers(numbers: LayerNumbers, n_layers: int) -> Sequence[str]:
    """Return the kinds that `named_layers` names, with latent attention for attention."""
    return [f"latent_{name}" for name in named_layers(numbers, n_layers)]


def with_fused_qkv(
    rules: Iterable[TensorRule], names: Container[str], layer: int = 0
) -> tuple[TensorRule, ...]:
    """The rules of a layer for a GGUF file of these names. Q, K and V may be one tensor there, as llama.cpp's
    converter writes them with `--fuse-qkv`.
    """
    found = tuple(rules)
    for kind in ("weight", "bias"):
        source = f"{BLK}attn_qkv.{kind}"
        parts = [rule for rule in found if rule.source in [f"{BLK}attn_{part}.{kind}" for part in "qkv"]]
        if len(parts) == 3 and source.replace("{n}", str(layer)) in names:
            places = tuple(rule.parts[0] for rule in parts)
            fused = TensorRule(source, "", places, parts[0].cols, parts[0].optional)
            found = (*(rule for rule in found if rule not in parts), fused)
    return found


OUTPUT_BIAS = (
    vector(BLK + "attn_output.bias", HF + "self_attn.o_proj.bias", "attn_output_bias", "dim", optional=True),
)
FFN_BIAS = tuple(
    vector(f"{BLK}ffn_{part}.bias", f"{HF}mlp.{part}_proj.bias", f"ffn_{part}_bias", size, optional=True)
    for part, size in (("gate", "ffn_dim"), ("up", "ffn_dim"), ("down", "dim"))
)
# Gemma's classes have `attention_bias`, its GGUF files nothing of the kind.
FOLDER_BIAS = for_folders(*qkv_bias(optional=True), *OUTPUT_BIAS)
FOLDER_FFN_BIAS = for_folders(*FFN_BIAS)
PROJECTIONS = (*QKV, *ATTN_OUTPUT, *GATE_UP, *DOWN)
PLAIN_LAYER = (*NORMS, *PROJECTIONS)

GATED_Q = TensorRule(
    BLK + "attn_q.weight",
    HF + "self_attn.q_proj.weight",
    (("attn_q", "head_dim"), ("attn_gate", "head_dim")),
    "dim",
    count="n_heads",
    flat=True,
)
_GATED_BIAS = (
    dataclasses.replace(
        GATED_Q,
        source=BLK + "attn_q.bias",
        hf=HF + "self_attn.q_proj.bias",
        parts=(("attn_q_bias", "head_dim"), ("attn_gate_bias", "head_dim")),
        cols=None,
        optional=True,
        folder_only=True,
    ),
    *FOLDER_BIAS[1:],
)
# This name stands for the norm of something else, as in Gemma's files.
SHIFTED_NORMS = (
    ATTN_NORM,
    vector(BLK + "post_attention_norm.weight", HF + "post_attention_layernorm.weight", "ffn_norm", "dim"),
)


_GATED_ATTENTION = (*SHIFTED_NORMS, GATED_Q, *QKV[1:], *ATTN_OUTPUT, *QK_NORM, *_GATED_BIAS)
DELTA_MIXERS: Mapping[MixerKind, Sequence[TensorRule]] = {
    "delta_net": (*SHIFTED_NORMS, *DELTA_NET),
    "attention": _GATED_ATTENTION,
}
NEXT_DELTA_MIXERS: Mapping[MixerKind, Sequence[TensorRule]] = {
    "delta_net": (*SHIFTED_NORMS, *DELTA_NET_BY_KEY_HEAD),
    "attention": _GATED_ATTENTION,
}
GATED_SHARED = (*expert_rules(), *shared_rules("mlp.shared_expert.", "mlp.shared_expert_gate.weight"))
QWEN3_MOE = mixed_layers(
    {"attention": (*NORMS, *QKV, *ATTN_OUTPUT, *QK_NORM, *qkv_bias(optional=True), *OUTPUT_BIAS)},
    {"feed_forward": (*GATE_UP, *DOWN), "experts": expert_rules()},
)
WHOLE_QK_NORM = (
    vector(BLK + "attn_q_norm.weight", HF + "self_attn.q_norm.weight", "attn_q_norm", "q_dim"),
    vector(BLK + "attn_k_norm.weight", HF + "self_attn.k_norm.weight", "attn_k_norm", "kv_dim"),
)
# Ollama's files have all parts of a model in one.
PREDICTION = {"mtp.*": "multi-token prediction", "blk.*.nextn.*": "multi-token prediction"}
TOWERS = {"v.*": "images", "mm.*": "images"}

_PREDICTION_RULES = (
    matrix(BLK + "nextn.eh_proj.weight", HF + "eh_proj.weight", "joined", "dim", "two_dims"),
    vector(BLK + "nextn.enorm.weight", HF + "enorm.weight", "embedding_norm", "dim"),
    vector(BLK + "nextn.hnorm.weight", HF + "hnorm.weight", "state_norm", "dim"),
    vector(
        BLK + "nextn.shared_head_norm.weight",
        HF + "shared_head.norm.weight",
        "output_norm",
        "dim",
        optional=True,
    ),
)
DEEPSEEK_PREDICTION = Prediction(_PREDICTION_RULES, normed_state=False)
QWEN_PREDICTION = Prediction(
    _PREDICTION_RULES,
    normed_state=True,
    places=MappingProxyType(
        {
            "mtp.fc.": HF + "eh_proj.",
            "mtp.pre_fc_norm_embedding.": HF + "enorm.",
            "mtp.pre_fc_norm_hidden.": HF + "hnorm.",
            "mtp.norm.": HF + "shared_head.norm.",
            "mtp.layers.0.": HF,
        }
    ),
)

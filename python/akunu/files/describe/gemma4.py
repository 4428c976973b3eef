"""Gemma 4 as a row: its architecture. Facts: llama.cpp's `gemma4`, its converter, and Ollama's."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from akunu.files.describe.expert_rules import expert_layers, experts_of_layer
from akunu.files.describe.layer_rules import (
    ATTN_NORM,
    ATTN_OUTPUT,
    BLK,
    DOWN,
    FOLDER_BIAS,
    FOUR_NORMS,
    GATE_UP,
    GLOBAL,
    HF,
    QK_NORM,
    QKV,
    matrix,
    vector,
)
from akunu.files.describe.tensor_rules import (
    Architecture,
    LayerKind,
    LayerNumbers,
    MixerKind,
    Router,
    TensorRule,
)

__all__ = [
    "ASSISTANT_LAYER",
    "ATTENTION_OF_SHARED_KEYS",
    "GEMMA4_ROWS",
    "LAYER_INPUT",
    "LAYER_INPUTS",
    "OWN_ATTENTION",
]

_Q_BIAS, _K_BIAS, _V_BIAS, _OUTPUT_BIAS = FOLDER_BIAS
_QUERIES = (QKV[0], QK_NORM[0], *ATTN_OUTPUT, _Q_BIAS, _OUTPUT_BIAS)
_KEYS = (QKV[1], QK_NORM[1], _K_BIAS)
_VALUES = (QKV[2], _V_BIAS)
OWN_ATTENTION: Final = ((*_QUERIES, *_KEYS, *_VALUES), ())
"""The tensors of attention, and those that are of no use."""
ATTENTION_OF_SHARED_KEYS: Final = (_QUERIES, (*_KEYS, *_VALUES))
"""The tensors of a layer that reads the keys and values of another, and those that are of no use."""
# What a layer's keys and values come from, and tensors that are of no use then.
_ATTENTION: Final[Mapping[str, tuple[tuple[TensorRule, ...], tuple[TensorRule, ...]]]] = MappingProxyType(
    {
        "attention": OWN_ATTENTION,
        # A GGUF file says by its tensors alone whether values are keys.
        "attention, keys may be values": (
            (*_QUERIES, *_KEYS, dataclasses.replace(QKV[2], optional=True), _V_BIAS),
            (),
        ),
        "attention, keys are values": ((*_QUERIES, *_KEYS), _VALUES),
        "attention of shared keys": ATTENTION_OF_SHARED_KEYS,
    }
)

_SCALE = vector(BLK + "layer_output_scale.weight", HF + "layer_scalar", "layer_scale", "one", optional=True)
_POST_ATTN_NORM, _FFN_NORM, _POST_FFN_NORM = FOUR_NORMS[1:]
_DENSE = (ATTN_NORM, _POST_ATTN_NORM, _FFN_NORM, _POST_FFN_NORM, *GATE_UP, *DOWN, _SCALE)
ASSISTANT_LAYER: Final = (*_DENSE, *_QUERIES)
"""The tensors of a layer of an assistant, which reads the keys and values of another model."""


def _beside(rule: TensorRule, name: str) -> TensorRule:
    """The rule of the feed-forward beside the experts, whose tensors have the names of a plain one's."""
    return dataclasses.replace(rule, parts=((name, rule.parts[0][1]),))


def _norm(source: str, hf: str, name: str) -> TensorRule:
    return vector(f"{BLK}{source}.weight", f"{HF}{hf}.weight", name, "dim")


_WITH_EXPERTS = (
    ATTN_NORM,
    _POST_ATTN_NORM,
    _FFN_NORM,
    _beside(GATE_UP[0], "shared_gate"),
    _beside(GATE_UP[1], "shared_up"),
    _beside(DOWN[0], "shared_down"),
    _norm("post_ffw_norm_1", "post_feedforward_layernorm_1", "post_shared_norm"),
    _norm("pre_ffw_norm_2", "pre_feedforward_layernorm_2", "experts_norm"),
    _norm("post_ffw_norm_2", "post_feedforward_layernorm_2", "post_experts_norm"),
    _POST_FFN_NORM,
    vector(BLK + "ffn_gate_inp.scale", HF + "router.scale", "router_norm", "dim"),
    # In a file of NVFP4 it is in the scales of the experts.
    vector(
        BLK + "ffn_down_exps.scale",
        HF + "router.per_expert_scale",
        "expert_scale",
        "n_experts",
        optional=True,
    ),
    *experts_of_layer("router.proj"),
    _SCALE,
)
LAYER_INPUT: Final = (
    matrix(
        BLK + "inp_gate.weight",
        HF + "per_layer_input_gate.weight",
        "layer_input_gate",
        "layer_input_dim",
        "dim",
    ),
    matrix(
        BLK + "proj.weight",
        HF + "per_layer_projection.weight",
        "layer_input_output",
        "dim",
        "layer_input_dim",
    ),
    _norm("post_norm", "post_per_layer_input_norm", "post_layer_input_norm"),
)
"""The tensors of what a layer makes of its input."""
LAYER_INPUTS: Final = (
    matrix(
        "per_layer_token_embd.weight",
        "embed_tokens_per_layer.weight",
        "layer_input_table",
        "layer_input_rows",
        "layer_inputs",
    ),
    matrix(
        "per_layer_model_proj.weight",
        "per_layer_model_projection.weight",
        "layer_input_projection",
        "layer_inputs",
        "dim",
    ),
    vector(
        "per_layer_proj_norm.weight",
        "per_layer_projection_norm.weight",
        "layer_input_norm",
        "layer_input_dim",
    ),
)
"""The tensors that all inputs of layers are made of; the first is the table."""


def _kinds() -> Mapping[str, LayerKind]:
    found: dict[str, LayerKind] = {}
    forwards: Mapping[MixerKind, Sequence[TensorRule]] = {"feed_forward": _DENSE, "experts": _WITH_EXPERTS}
    for name, (attention, unused) in _ATTENTION.items():
        for forward, rules in forwards.items():
            kind = LayerKind((*rules, *attention), ("attention", forward), unused)
            found[f"{name}, {forward}"] = kind
            found[f"{name}, {forward}, layer_input"] = dataclasses.replace(
                kind, tensors=(*kind.tensors, *LAYER_INPUT), mixers=(*kind.mixers, "layer_input")
            )
    return MappingProxyType(found)


def _layer_kinds(numbers: LayerNumbers, n_layers: int) -> Sequence[str]:
    windowed = numbers.windowed_layers()
    first_shared = n_layers - numbers.integer("shared_kv_layers")
    experts = expert_layers(numbers, n_layers)
    inputs = ", layer_input" if numbers.integer("layer_input_dim") else ""
    said = numbers.get("attention_k_eq_v")

    def attention(n: int) -> str:
        if n >= first_shared:
            return "attention of shared keys"
        if windowed[n] or said is False:
            return "attention"
        return f"attention, keys {'may be' if said is None else 'are'} values"

    return [f"{attention(n)}, {'experts' if experts[n] else 'feed_forward'}{inputs}" for n in range(n_layers)]


GEMMA4_ROWS: Final = (
    Architecture(
        name="gemma4",
        summary="Gemma 4: two sizes of heads, inputs of layers, shared keys and values, experts beside a "
        "feed-forward",
        rope_style="half",
        activation="gelu_tanh",
        tensors=GLOBAL,
        layers=_kinds(),
        layer_kinds=_layer_kinds,
        layer_inputs=LAYER_INPUTS,
        fields=("layer_input_dim", "shared_kv_layers"),
        defaults=MappingProxyType({"rope_theta": 1e6, "local_rope_theta": 1e4, "attn_scale": 1.0}),
        scale_embedding=True,
        window_period=6,
        soft_caps=("final_softcap",),
        required_keys=(
            "attention.sliding_window_pattern",
            "attention.sliding_window",
            "attention.key_length_swa",
            "attention.value_length_swa",
            "embedding_length_per_layer_input",
        ),
        norm_values=True,
        router=Router(own_norm=True),
        left_out={"v.*": "images", "mm.*": "images", "a.*": "audio"},
    ),
)
"""See `akunu.files.describe.architectures.ARCHITECTURES`."""

"""What Akunu knows about each model architecture, as data.

An architecture is one row of `ARCHITECTURES`: its tensors (name in the file, canonical name, shape), the
defaults of its configuration, and its flags. `akunu.describe.config.resolve` interprets the rows; no code
branches on an architecture's name. A new Llama-like architecture is a new row
(docs/adding-an-architecture.md).

Facts about names and conventions: gguf-py's `constants.py`, llama.cpp's converter, and the model classes of
Hugging Face Transformers, against which tests/models checks every row.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Container, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, Literal

from akunu.describe.config_keys import SOFT_CAPS
from akunu.describe.expert_rules import (
    BIASED_EXPERTS,
    DELTA_NET,
    OLLAMA_BIASED_EXPERTS,
    expert_layers,
    expert_rules,
    shared_rules,
)
from akunu.describe.tensor_rules import (
    Architecture,
    Gate,
    LayerKind,
    LayerNumbers,
    MixerKind,
    Router,
    TensorRule,
)

__all__ = ["ARCHITECTURES", "with_fused_qkv"]


def _one_kind(*tensors: TensorRule) -> Mapping[str, LayerKind]:
    """All layers have attention and a feed-forward, of these tensors."""
    return MappingProxyType({"layer": LayerKind(tensors)})


def _matrix(source: str, hf: str, name: str, rows: str, cols: str, *, optional: bool = False) -> TensorRule:
    return TensorRule(source, hf, ((name, rows),), cols, optional)


def _vector(source: str, hf: str, name: str, length: str, *, optional: bool = False) -> TensorRule:
    return TensorRule(source, hf, ((name, length),), None, optional)


_EMBEDDING = "token_embd.weight"
_HEAD = "output.weight"
_B, _H = "blk.{n}.", "layers.{n}."

_GLOBAL = (
    _matrix(_EMBEDDING, "embed_tokens.weight", "token_embedding", "vocab_size", "dim"),
    _vector("output_norm.weight", "norm.weight", "output_norm", "dim"),
    # Absent: tied to the embedding.
    _matrix(_HEAD, "lm_head.weight", "output", "vocab_size", "dim", optional=True),
)
_ATTN_NORM = _vector(_B + "attn_norm.weight", _H + "input_layernorm.weight", "attn_norm", "dim")
_NORMS = (
    _ATTN_NORM,
    _vector(_B + "ffn_norm.weight", _H + "post_attention_layernorm.weight", "ffn_norm", "dim"),
)
# The same name of Hugging Face's means another norm where there are norms after attention and FFN.
_FOUR_NORMS = (
    _ATTN_NORM,
    _vector(
        _B + "post_attention_norm.weight", _H + "post_attention_layernorm.weight", "post_attn_norm", "dim"
    ),
    _vector(_B + "ffn_norm.weight", _H + "pre_feedforward_layernorm.weight", "ffn_norm", "dim"),
    _vector(_B + "post_ffw_norm.weight", _H + "post_feedforward_layernorm.weight", "post_ffn_norm", "dim"),
)
_QKV = (
    _matrix(_B + "attn_q.weight", _H + "self_attn.q_proj.weight", "attn_q", "q_dim", "dim"),
    _matrix(_B + "attn_k.weight", _H + "self_attn.k_proj.weight", "attn_k", "kv_dim", "dim"),
    _matrix(_B + "attn_v.weight", _H + "self_attn.v_proj.weight", "attn_v", "kv_dim", "dim"),
)
_FUSED_QKV = (
    TensorRule(
        _B + "attn_qkv.weight",
        _H + "self_attn.qkv_proj.weight",
        (("attn_q", "q_dim"), ("attn_k", "kv_dim"), ("attn_v", "kv_dim")),
        "dim",
    ),
)
_ATTN_OUTPUT = (
    _matrix(_B + "attn_output.weight", _H + "self_attn.o_proj.weight", "attn_output", "dim", "q_dim"),
)
_GATE_UP = (
    _matrix(_B + "ffn_gate.weight", _H + "mlp.gate_proj.weight", "ffn_gate", "ffn_dim", "dim"),
    _matrix(_B + "ffn_up.weight", _H + "mlp.up_proj.weight", "ffn_up", "ffn_dim", "dim"),
)
_FUSED_GATE_UP = (
    TensorRule(
        _B + "ffn_up.weight",
        _H + "mlp.gate_up_proj.weight",
        (("ffn_gate", "ffn_dim"), ("ffn_up", "ffn_dim")),
        "dim",
    ),
)
_DOWN = (_matrix(_B + "ffn_down.weight", _H + "mlp.down_proj.weight", "ffn_down", "dim", "ffn_dim"),)
_QK_NORM = (
    _vector(_B + "attn_q_norm.weight", _H + "self_attn.q_norm.weight", "attn_q_norm", "head_dim"),
    _vector(_B + "attn_k_norm.weight", _H + "self_attn.k_norm.weight", "attn_k_norm", "head_dim"),
)


def _qkv_bias(*, optional: bool) -> tuple[TensorRule, ...]:
    return tuple(
        _vector(
            f"{_B}attn_{part}.bias",
            f"{_H}self_attn.{part}_proj.bias",
            f"attn_{part}_bias",
            size,
            optional=optional,
        )
        for part, size in (("q", "q_dim"), ("k", "kv_dim"), ("v", "kv_dim"))
    )


_SINKS = (_vector(_B + "attn_sinks.weight", _H + "self_attn.sinks", "attn_sinks", "n_heads"),)
_ForwardKind = Literal["feed_forward", "experts"]


def _mixed_layers(
    mixers: Mapping[MixerKind, Sequence[TensorRule]], forwards: Mapping[_ForwardKind, Sequence[TensorRule]]
) -> Mapping[str, LayerKind]:
    """Layers of any of the `mixers` and any of the `forwards`, which `_named_layers` tells apart."""
    return MappingProxyType(
        {
            f"{mixer}, {forward}": LayerKind((*own, *rules), (mixer, forward))
            for mixer, own in mixers.items()
            for forward, rules in forwards.items()
        }
    )


def _named_layers(numbers: LayerNumbers, n_layers: int) -> Sequence[str]:
    """The kind of each layer of attention and a feed-forward, or experts."""
    experts = expert_layers(numbers, n_layers)
    return [f"attention, {'experts' if sparse else 'feed_forward'}" for sparse in experts]


def _delta_layers(numbers: LayerNumbers, n_layers: int) -> Sequence[str]:
    """The same where most layers have a delta net in attention's place."""
    mixers = ["delta_net" if recurrent else "attention" for recurrent in numbers.recurrent_layers()]
    named = _named_layers(numbers, n_layers)
    return [name.replace("attention", mixer) for name, mixer in zip(named, mixers, strict=False)]


def with_fused_qkv(
    rules: Iterable[TensorRule], names: Container[str], layer: int = 0
) -> tuple[TensorRule, ...]:
    """The rules of a layer for a GGUF file of these names. Q, K and V may be one tensor there, as llama.cpp's
    converter writes them with `--fuse-qkv`.
    """
    found = tuple(rules)
    for kind in ("weight", "bias"):
        source = f"{_B}attn_qkv.{kind}"
        parts = [rule for rule in found if rule.source in [f"{_B}attn_{part}.{kind}" for part in "qkv"]]
        if len(parts) == 3 and source.replace("{n}", str(layer)) in names:
            places = tuple(rule.parts[0] for rule in parts)
            fused = TensorRule(source, "", places, parts[0].cols, parts[0].optional)
            found = (*(rule for rule in found if rule not in parts), fused)
    return found


_OUTPUT_BIAS = (
    _vector(_B + "attn_output.bias", _H + "self_attn.o_proj.bias", "attn_output_bias", "dim", optional=True),
)
_FFN_BIAS = tuple(
    _vector(f"{_B}ffn_{part}.bias", f"{_H}mlp.{part}_proj.bias", f"ffn_{part}_bias", size, optional=True)
    for part, size in (("gate", "ffn_dim"), ("up", "ffn_dim"), ("down", "dim"))
)
# Gemma's classes have `attention_bias`, its GGUF files nothing of the kind.
_FOLDER_BIAS = tuple(
    dataclasses.replace(rule, folder_only=True) for rule in (*_qkv_bias(optional=True), *_OUTPUT_BIAS)
)
_PROJECTIONS = (*_QKV, *_ATTN_OUTPUT, *_GATE_UP, *_DOWN)
_PLAIN_LAYER = (*_NORMS, *_PROJECTIONS)

_GATED_Q = TensorRule(
    _B + "attn_q.weight",
    _H + "self_attn.q_proj.weight",
    (("attn_q", "head_dim"), ("attn_gate", "head_dim")),
    "dim",
    count="n_heads",
    flat=True,
)
# As in Gemma's files this name stands for the norm of something else.
_SHIFTED_NORMS = (
    _ATTN_NORM,
    _vector(_B + "post_attention_norm.weight", _H + "post_attention_layernorm.weight", "ffn_norm", "dim"),
)


_DELTA_MIXERS: Mapping[MixerKind, Sequence[TensorRule]] = {
    "delta_net": (*_SHIFTED_NORMS, *DELTA_NET),
    "attention": (*_SHIFTED_NORMS, _GATED_Q, *_QKV[1:], *_ATTN_OUTPUT, *_QK_NORM),
}
_GATED_SHARED = (*expert_rules(), *shared_rules("mlp.shared_expert.", "mlp.shared_expert_gate.weight"))
_QWEN3_MOE = _mixed_layers(
    {"attention": (*_NORMS, *_QKV, *_ATTN_OUTPUT, *_QK_NORM, *_qkv_bias(optional=True), *_OUTPUT_BIAS)},
    {"feed_forward": (*_GATE_UP, *_DOWN), "experts": expert_rules()},
)
_WHOLE_QK_NORM = (
    _vector(_B + "attn_q_norm.weight", _H + "self_attn.q_norm.weight", "attn_q_norm", "q_dim"),
    _vector(_B + "attn_k_norm.weight", _H + "self_attn.k_norm.weight", "attn_k_norm", "kv_dim"),
)
# Ollama's files have all parts of a model in one.
_PREDICTION = {"mtp.*": "multi-token prediction", "blk.*.nextn.*": "multi-token prediction"}
_TOWERS = {"v.*": "images", "mm.*": "images"}


_GPT_OSS_ATTENTION = (
    *_SHIFTED_NORMS,
    *_QKV,
    *_qkv_bias(optional=False),
    *_ATTN_OUTPUT,
    *(dataclasses.replace(rule, optional=False) for rule in _OUTPUT_BIAS),
    *_SINKS,
)
_GPT_OSS = Architecture(
    name="gpt-oss",
    summary="gpt-oss: sinks, every second layer windowed, experts with biases and a clamped gate",
    rope_style="half",
    activation="silu",
    tensors=_GLOBAL,
    layers=_mixed_layers({"attention": _GPT_OSS_ATTENTION}, {"experts": BIASED_EXPERTS}),
    layer_kinds=_named_layers,
    defaults=MappingProxyType({"rope_theta": 150000.0}),
    window_period=2,
    required_keys=("attention.sliding_window",),
    router=Router("softmax_chosen", renormalise=False),
    gate=Gate(limit=7.0, sharpness=1.702, up_offset=1.0),
    pre_tokenizer="gpt-4o",
)
# Ollama's own converter names it so.
_OLLAMA_GPT_OSS = dataclasses.replace(
    _GPT_OSS,
    name="gptoss",
    summary="gpt-oss in Ollama's files",
    layers=_mixed_layers({"attention": _GPT_OSS_ATTENTION}, {"experts": OLLAMA_BIASED_EXPERTS}),
    scaling="yarn",
)


# Gemma's norms multiply by 1 + w, but the converter has already added the 1 to every norm in a GGUF file. The
# rotary styles are those of GGUF files too. What Hugging Face's files have instead is in
# `akunu.describe.hf_models`.
_ROWS = (
    Architecture(
        name="llama",
        summary="Llama 2, 3, 3.1, 3.2, 3.3; Mistral; Mixtral; SmolLM; TinyLlama",
        rope_style="interleaved",  # the converter permutes the rows of Q and K from halves to adjacent pairs
        activation="silu",
        tensors=_GLOBAL,
        layers=_mixed_layers(
            {"attention": (*_NORMS, *_QKV, *_ATTN_OUTPUT, *_qkv_bias(optional=True), *_OUTPUT_BIAS)},
            {
                "feed_forward": (*_GATE_UP, *_DOWN, *_FFN_BIAS),
                "experts": expert_rules("block_sparse_moe.", parts=("w1", "w3", "w2")),
            },
        ),
        layer_kinds=_named_layers,
        router=Router(),
        ignored=("blk.*.attn_rot_embd.weight",),
    ),
    Architecture(
        name="qwen2",
        summary="Qwen 1.5, 2 and 2.5",
        rope_style="half",
        activation="silu",
        tensors=_GLOBAL,
        layers=_one_kind(*_PLAIN_LAYER, *_qkv_bias(optional=False), *_OUTPUT_BIAS),
    ),
    Architecture(
        name="qwen3",
        summary="Qwen 3, dense sizes",
        rope_style="half",
        activation="silu",
        tensors=_GLOBAL,
        layers=_one_kind(*_PLAIN_LAYER, *_QK_NORM, *_qkv_bias(optional=True), *_OUTPUT_BIAS),
    ),
    Architecture(
        name="qwen2moe",
        summary="Qwen 1.5 and 2 with experts, and one that all rows share",
        rope_style="half",
        activation="silu",
        pre_tokenizer="qwen2",
        tensors=_GLOBAL,
        layers=_mixed_layers(
            {"attention": (*_NORMS, *_QKV, *_ATTN_OUTPUT, *_qkv_bias(optional=False))},
            {"feed_forward": (*_GATE_UP, *_DOWN), "experts": _GATED_SHARED},
        ),
        layer_kinds=_named_layers,
        router=Router(renormalise=False),
    ),
    Architecture(
        name="qwen3moe",
        summary="Qwen 3 with experts: 30B-A3B, 235B-A22B, Coder",
        rope_style="half",
        activation="silu",
        pre_tokenizer="qwen2",
        tensors=_GLOBAL,
        layers=_QWEN3_MOE,
        layer_kinds=_named_layers,
        router=Router(),
    ),
    Architecture(
        name="qwen3vlmoe",
        summary="Qwen 3 VL with experts, as a model of text",
        rope_style="half",
        activation="silu",
        pre_tokenizer="qwen2",
        tensors=_GLOBAL,
        layers=_QWEN3_MOE,
        layer_kinds=_named_layers,
        router=Router(),
        left_out=_TOWERS,
    ),
    Architecture(
        name="glm4moe",
        summary="GLM 4.5, 4.6 and 4.7 with experts",
        rope_style="half",
        activation="silu",
        pre_tokenizer="glm4",
        tensors=_GLOBAL,
        layers=_mixed_layers(
            {
                "attention": (
                    *_SHIFTED_NORMS,
                    *_QKV,
                    *_qkv_bias(optional=True),
                    *_ATTN_OUTPUT,
                    *(dataclasses.replace(rule, optional=True) for rule in _QK_NORM),
                )
            },
            {
                "feed_forward": (*_GATE_UP, *_DOWN),
                "experts": (
                    *expert_rules(choice_bias="gate.e_score_correction_bias"),
                    *shared_rules(),
                ),
            },
        ),
        layer_kinds=_named_layers,
        router=Router("sigmoid", sum_eps=1e-20),
        left_out=_PREDICTION,
    ),
    Architecture(
        name="minimax-m2",
        summary="MiniMax M2, M2.1 and M2.5",
        rope_style="half",
        activation="silu",
        pre_tokenizer="minimax-m2",
        tensors=_GLOBAL,
        layers=_mixed_layers(
            {"attention": (*_NORMS, *_QKV, *_ATTN_OUTPUT, *_WHOLE_QK_NORM)},
            {
                "experts": expert_rules(
                    "block_sparse_moe.",
                    parts=("w1", "w3", "w2"),
                    choice_bias="e_score_correction_bias",
                ),
            },
        ),
        layer_kinds=_named_layers,
        router=Router("sigmoid"),
        norms_whole_rows=True,
    ),
    _GPT_OSS,
    _OLLAMA_GPT_OSS,
    Architecture(
        name="gemma",
        summary="Gemma 1",
        rope_style="half",
        activation="gelu_tanh",
        tensors=_GLOBAL,
        layers=_one_kind(*_PLAIN_LAYER, *_FOLDER_BIAS),
        scale_embedding=True,
    ),
    Architecture(
        name="gemma2",
        summary="Gemma 2: soft caps, every second layer windowed, norms after attention and FFN",
        rope_style="half",
        activation="gelu_tanh",
        tensors=_GLOBAL,
        layers=_one_kind(*_FOUR_NORMS, *_PROJECTIONS, *_FOLDER_BIAS),
        defaults=MappingProxyType({"attn_softcap": 50.0, "final_softcap": 30.0, "window": 4096}),
        scale_embedding=True,
        window_period=2,
        soft_caps=SOFT_CAPS,
        wide_scale_layers=(46,),  # 27B: query_pre_attn_scalar 144 = 4608 / 32 heads, head_dim 128
    ),
    Architecture(
        name="gemma3",
        summary="Gemma 3, text: five windowed layers to one full, two thetas, Q/K norms",
        rope_style="half",
        activation="gelu_tanh",
        tensors=_GLOBAL,
        layers=_one_kind(*_FOUR_NORMS, *_PROJECTIONS, *_QK_NORM, *_FOLDER_BIAS),
        defaults=MappingProxyType({"rope_theta": 1e6, "local_rope_theta": 1e4}),
        scale_embedding=True,
        window_period=6,
        soft_caps=("final_softcap",),
        wide_scale_layers=(62,),  # 27B: query_pre_attn_scalar 168 = 5376 / 32 heads, head_dim 128
    ),
    Architecture(
        name="gemma-embedding",
        summary="EmbeddingGemma: Gemma 3 that sees a whole text, and dense layers behind its mean",
        rope_style="half",
        activation="gelu_tanh",
        tensors=_GLOBAL,
        layers=_one_kind(*_FOUR_NORMS, *_PROJECTIONS, *_QK_NORM, *_FOLDER_BIAS),
        defaults=MappingProxyType({"rope_theta": 1e6, "local_rope_theta": 1e4}),
        scale_embedding=True,
        window_period=6,
        bidirectional=True,
    ),
    Architecture(
        name="phi3",
        summary="Phi-3, Phi-3.5 mini, Phi-4 and Phi-4-mini: fused QKV and gate-up, LongRoPE",
        rope_style="half",
        activation="silu",
        tensors=_GLOBAL,
        layers=_one_kind(*_NORMS, *_FUSED_QKV, *_ATTN_OUTPUT, *_FUSED_GATE_UP, *_DOWN),
        required_keys=("attention.sliding_window", "rope.scaling.original_context_length"),
    ),
    Architecture(
        name="qwen35",
        summary="Qwen 3.5, 3.6 and 3.8, dense sizes: three gated delta nets to one gated attention",
        rope_style="half",
        activation="silu",
        pre_tokenizer="qwen35",
        tensors=_GLOBAL,
        layers=_mixed_layers(_DELTA_MIXERS, {"feed_forward": (*_GATE_UP, *_DOWN)}),
        layer_kinds=_delta_layers,
        features=("ssm.",),
        left_out=_PREDICTION | _TOWERS,
        value_heads_grouped=False,  # the converter reorders them
    ),
    Architecture(
        name="qwen35moe",
        summary="Qwen 3.5, 3.6 and 3.8 with experts: 35B-A3B, 122B-A10B, 397B-A17B",
        rope_style="half",
        activation="silu",
        pre_tokenizer="qwen35",
        tensors=_GLOBAL,
        layers=_mixed_layers(_DELTA_MIXERS, {"experts": _GATED_SHARED}),
        layer_kinds=_delta_layers,
        features=("ssm.",),
        left_out=_PREDICTION | _TOWERS,
        value_heads_grouped=False,
        router=Router(),
    ),
    Architecture(
        name="qwen3next",
        summary="Qwen 3 Next and Qwen 3 Coder Next",
        rope_style="half",
        activation="silu",
        pre_tokenizer="qwen2",
        tensors=_GLOBAL,
        layers=_mixed_layers(_DELTA_MIXERS, {"feed_forward": (*_GATE_UP, *_DOWN), "experts": _GATED_SHARED}),
        layer_kinds=_delta_layers,
        features=("ssm.",),
        left_out=_PREDICTION | _TOWERS,
        router=Router(),
    ),
)

ARCHITECTURES: Final[Mapping[str, Architecture]] = MappingProxyType({row.name: row for row in _ROWS})
"""The rows, by name."""

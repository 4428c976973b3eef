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
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from akunu.describe.config_keys import SOFT_CAPS
from akunu.describe.tensor_rules import (
    Architecture,
    Gate,
    LayerKind,
    LayerNumbers,
    Router,
    TensorRule,
)

__all__ = ["ARCHITECTURES", "with_expert_form", "with_fused_qkv"]


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


_EXPERT_PARTS = (("gate", "expert_dim", "dim"), ("up", "expert_dim", "dim"), ("down", "dim", "expert_dim"))


def _experts_form(
    source: str = "", hf: str = "", parts: Sequence[str] = ("gate", "up", "down")
) -> tuple[TensorRule, ...]:
    """The matrices of the experts; `{part}` in a checkpoint's name stands for one of `parts`."""
    return tuple(
        TensorRule(
            source.replace("{part}", own),
            hf.replace("{part}", part),
            ((f"experts_{own}", rows),),
            cols,
            count="n_experts",
        )
        for part, (own, rows, cols) in zip(parts, _EXPERT_PARTS, strict=True)
    )


def _fused_form(source: tuple[str, str] = ("", ""), hf: tuple[str, str] = ("", "")) -> tuple[TensorRule, ...]:
    """The same where gate and up are one matrix of each expert."""
    return (
        TensorRule(
            source[0],
            hf[0],
            (("experts_gate", "expert_dim"), ("experts_up", "expert_dim")),
            "dim",
            count="n_experts",
        ),
        TensorRule(source[1], hf[1], (("experts_down", "dim"),), "expert_dim", count="n_experts"),
    )


_GGUF_EXPERTS = _B + "ffn_{part}_exps.weight"
_EXPERTS = (
    TensorRule(_B + "ffn_gate_inp.weight", _H + "mlp.gate.weight", (("router", "n_experts"),), "dim"),
    *_experts_form(_GGUF_EXPERTS, _H + "mlp.experts.{e}.{part}_proj.weight"),
)
_MIXTRAL_EXPERTS = (
    TensorRule(
        _B + "ffn_gate_inp.weight", _H + "block_sparse_moe.gate.weight", (("router", "n_experts"),), "dim"
    ),
    *_experts_form(_GGUF_EXPERTS, _H + "block_sparse_moe.experts.{e}.{part}.weight", ("w1", "w3", "w2")),
)
_SHARED_EXPERT = (
    _matrix(
        _B + "ffn_gate_inp_shexp.weight", _H + "mlp.shared_expert_gate.weight", "shared_router", "one", "dim"
    ),
    *(
        _matrix(
            f"{_B}ffn_{part}_shexp.weight",
            f"{_H}mlp.shared_expert.{part}_proj.weight",
            f"shared_{part}",
            rows,
            cols,
        )
        for part, rows, cols in (
            ("gate", "shared_dim", "dim"),
            ("up", "shared_dim", "dim"),
            ("down", "dim", "shared_dim"),
        )
    ),
)
_BIASED_ROUTER = (
    TensorRule(_B + "ffn_gate_inp.weight", _H + "mlp.router.weight", (("router", "n_experts"),), "dim"),
    TensorRule(_B + "ffn_gate_inp.bias", _H + "mlp.router.bias", (("router_bias", "n_experts"),)),
)
# In a GGUF file gate and up are tensors of their own, in a checkpoint their rows alternate.
_BIASED_EXPERTS = (
    *_experts_form(_GGUF_EXPERTS),
    *(
        TensorRule(f"{_B}ffn_{part}_exps.bias", "", ((f"experts_{part}_bias", rows),), count="n_experts")
        for part, rows, _ in _EXPERT_PARTS
    ),
    TensorRule(
        "",
        _H + "mlp.experts.gate_up_proj",
        (("experts_gate", "expert_dim"), ("experts_up", "expert_dim")),
        "dim",
        count="n_experts",
        interleaved=True,
    ),
    TensorRule(
        "",
        _H + "mlp.experts.gate_up_proj_bias",
        (("experts_gate_bias", "expert_dim"), ("experts_up_bias", "expert_dim")),
        count="n_experts",
        interleaved=True,
    ),
    TensorRule("", _H + "mlp.experts.down_proj", (("experts_down", "dim"),), "expert_dim", count="n_experts"),
    TensorRule("", _H + "mlp.experts.down_proj_bias", (("experts_down_bias", "dim"),), count="n_experts"),
)
_SINKS = (_vector(_B + "attn_sinks.weight", _H + "self_attn.sinks", "attn_sinks", "n_heads"),)
# Other ways to store the experts: gate and up in one, each expert a tensor of its own in files before 2024;
# Transformers' own since its version 5, MLX.
_GGUF_FORMS = (
    _fused_form(source=(_B + "ffn_gate_up_exps.weight", _B + "ffn_down_exps.weight")),
    _experts_form(source=_B + "ffn_{part}.{e}.weight"),
)
_HF_FORMS = (
    _fused_form(hf=(_H + "mlp.experts.gate_up_proj", _H + "mlp.experts.down_proj")),
    _fused_form(hf=(_H + "block_sparse_moe.experts.gate_up_proj", _H + "block_sparse_moe.experts.down_proj")),
    _experts_form(hf=_H + "mlp.switch_mlp.{part}_proj.weight"),
    _experts_form(hf=_H + "block_sparse_moe.switch_mlp.{part}_proj.weight"),
)


def with_expert_form(
    rules: Iterable[TensorRule], has: Callable[[str], bool], layer: int, *, hf: bool = False
) -> tuple[TensorRule, ...]:
    """The rules of a layer, with those of its experts as the file stores them.

    `has` says whether the file has a tensor of a name; `hf`: names are those of a checkpoint.
    """
    found = tuple(rules)

    def present(form: tuple[TensorRule, ...]) -> bool:
        name = form[0].hf if hf else form[0].source
        return has(name.replace("{n}", str(layer)).replace("{e}", "0"))

    found = tuple(rule for rule in found if (rule.hf if hf else rule.source))
    own = tuple(rule for rule in found if rule.parts[0][0] in ("experts_gate", "experts_up", "experts_down"))
    if not own or present(own):
        return found
    for form in _HF_FORMS if hf else _GGUF_FORMS:
        if present(form):
            return (*(rule for rule in found if rule not in own), *form)
    return found


def _sparse_layers(numbers: LayerNumbers, n_layers: int) -> list[str]:
    """Layers with experts and, where the configuration of a checkpoint names such, without."""
    if numbers.integer("n_experts") == 0:
        return ["dense"] * n_layers
    dense, step = numbers.get("mlp_only_layers"), numbers.get("decoder_sparse_step")
    skipped = dense if isinstance(dense, list) else []
    every = step if isinstance(step, int) and step > 0 else 1
    return ["experts" if n not in skipped and (n + 1) % every == 0 else "dense" for n in range(n_layers)]


def _dense_or_experts(
    attention: tuple[TensorRule, ...], dense: tuple[TensorRule, ...], experts: tuple[TensorRule, ...]
) -> Mapping[str, LayerKind]:
    return MappingProxyType(
        {
            "dense": LayerKind((*attention, *dense)),
            "experts": LayerKind((*attention, *experts), ("attention", "experts")),
        }
    )


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

_DELTA_NET = (
    _matrix(
        _B + "attn_qkv.weight", _H + "linear_attn.in_proj_qkv.weight", "delta_qkv", "delta_channels", "dim"
    ),
    _matrix(_B + "attn_gate.weight", _H + "linear_attn.in_proj_z.weight", "delta_z", "delta_values", "dim"),
    _matrix(
        _B + "ssm_beta.weight", _H + "linear_attn.in_proj_b.weight", "delta_b", "delta_value_heads", "dim"
    ),
    _matrix(
        _B + "ssm_alpha.weight", _H + "linear_attn.in_proj_a.weight", "delta_a", "delta_value_heads", "dim"
    ),
    _matrix(
        _B + "ssm_conv1d.weight",
        _H + "linear_attn.conv1d.weight",
        "delta_conv",
        "delta_channels",
        "delta_taps",
    ),
    # A folder has A_log, of which this is -exp: its canonical name is `delta_a_log` then.
    _vector(_B + "ssm_a", _H + "linear_attn.A_log", "delta_decay", "delta_value_heads"),
    _vector(_B + "ssm_dt.bias", _H + "linear_attn.dt_bias", "delta_dt_bias", "delta_value_heads"),
    _vector(_B + "ssm_norm.weight", _H + "linear_attn.norm.weight", "delta_norm", "delta_value_dim"),
    _matrix(_B + "ssm_out.weight", _H + "linear_attn.out_proj.weight", "delta_output", "dim", "delta_values"),
)
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


def _delta_layers(numbers: LayerNumbers, n_layers: int) -> Sequence[str]:
    """The kind of each layer of a model with delta nets and attention."""
    return ["delta_net" if recurrent else "attention" for recurrent in numbers.recurrent_layers()[:n_layers]]


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
        layers=_dense_or_experts(
            (*_NORMS, *_QKV, *_ATTN_OUTPUT, *_qkv_bias(optional=True), *_OUTPUT_BIAS),
            (*_GATE_UP, *_DOWN, *_FFN_BIAS),
            _MIXTRAL_EXPERTS,
        ),
        layer_kinds=_sparse_layers,
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
        tensors=_GLOBAL,
        layers=_dense_or_experts(
            (*_NORMS, *_QKV, *_ATTN_OUTPUT, *_qkv_bias(optional=False)),
            (*_GATE_UP, *_DOWN),
            (*_EXPERTS, *_SHARED_EXPERT),
        ),
        layer_kinds=_sparse_layers,
        router=Router(renormalise=False),
    ),
    Architecture(
        name="qwen3moe",
        summary="Qwen 3 with experts: 30B-A3B, 235B-A22B, Coder",
        rope_style="half",
        activation="silu",
        tensors=_GLOBAL,
        layers=_dense_or_experts(
            (*_NORMS, *_QKV, *_ATTN_OUTPUT, *_QK_NORM, *_qkv_bias(optional=True), *_OUTPUT_BIAS),
            (*_GATE_UP, *_DOWN),
            _EXPERTS,
        ),
        layer_kinds=_sparse_layers,
        router=Router(),
    ),
    Architecture(
        name="gpt-oss",
        summary="gpt-oss: sinks, every second layer windowed, experts with biases and a clamped gate",
        rope_style="half",
        activation="silu",
        tensors=_GLOBAL,
        layers=MappingProxyType(
            {
                "layer": LayerKind(
                    (
                        _ATTN_NORM,
                        _vector(
                            _B + "post_attention_norm.weight",
                            _H + "post_attention_layernorm.weight",
                            "ffn_norm",
                            "dim",
                        ),
                        *_QKV,
                        *_qkv_bias(optional=False),
                        *_ATTN_OUTPUT,
                        *(dataclasses.replace(rule, optional=False) for rule in _OUTPUT_BIAS),
                        *_SINKS,
                        *_BIASED_ROUTER,
                        *_BIASED_EXPERTS,
                    ),
                    ("attention", "experts"),
                )
            }
        ),
        defaults=MappingProxyType({"rope_theta": 150000.0}),
        window_period=2,
        required_keys=("attention.sliding_window",),
        router=Router("softmax_chosen", renormalise=False),
        gate=Gate(limit=7.0, sharpness=1.702, up_offset=1.0),
    ),
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
        tensors=_GLOBAL,
        layers=MappingProxyType(
            {
                "delta_net": LayerKind(
                    (*_SHIFTED_NORMS, *_DELTA_NET, *_GATE_UP, *_DOWN), ("delta_net", "feed_forward")
                ),
                "attention": LayerKind(
                    (*_SHIFTED_NORMS, _GATED_Q, *_QKV[1:], *_ATTN_OUTPUT, *_QK_NORM, *_GATE_UP, *_DOWN)
                ),
            }
        ),
        layer_kinds=_delta_layers,
        features=("ssm.",),
        # Ollama's files have all parts of the model in one.
        left_out=MappingProxyType(
            {
                "mtp.*": "multi-token prediction",
                "blk.*.nextn.*": "multi-token prediction",
                "v.*": "images",
                "mm.*": "images",
            }
        ),
        value_heads_grouped=False,  # the converter reorders them
    ),
)

ARCHITECTURES: Final[Mapping[str, Architecture]] = MappingProxyType({row.name: row for row in _ROWS})
"""The rows, by name."""

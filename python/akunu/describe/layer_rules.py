"""The tensor rules that architectures share, and the forms in which files store them.

Names and shapes only: which of them an architecture has is in the rows of `akunu.describe.architectures`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from types import MappingProxyType

from akunu.describe.tensor_rules import LayerKind, LayerNumbers, TensorRule

__all__ = [
    "ATTN_NORM",
    "ATTN_OUTPUT",
    "BIASED_EXPERTS",
    "BIASED_ROUTER",
    "BLK",
    "DELTA_NET",
    "DOWN",
    "EXPERTS",
    "FFN_BIAS",
    "FOLDER_BIAS",
    "FOUR_NORMS",
    "FUSED_GATE_UP",
    "FUSED_QKV",
    "GATED_Q",
    "GATE_UP",
    "GLOBAL",
    "HF",
    "MIXTRAL_EXPERTS",
    "NORMS",
    "OUTPUT_BIAS",
    "PLAIN_LAYER",
    "PROJECTIONS",
    "QKV",
    "QK_NORM",
    "SHARED_EXPERT",
    "SHIFTED_NORMS",
    "SINKS",
    "delta_layers",
    "dense_or_experts",
    "matrix",
    "one_kind",
    "qkv_bias",
    "sparse_layers",
    "vector",
    "with_expert_form",
    "with_fused_qkv",
]


def one_kind(*tensors: TensorRule) -> Mapping[str, LayerKind]:
    """All layers have attention and a feed-forward, of these tensors."""
    return MappingProxyType({"layer": LayerKind(tensors)})


def matrix(source: str, hf: str, name: str, rows: str, cols: str, *, optional: bool = False) -> TensorRule:
    return TensorRule(source, hf, ((name, rows),), cols, optional)


def vector(source: str, hf: str, name: str, length: str, *, optional: bool = False) -> TensorRule:
    return TensorRule(source, hf, ((name, length),), None, optional)


_EMBEDDING = "token_embd.weight"
_HEAD = "output.weight"
BLK, HF = "blk.{n}.", "layers.{n}."

GLOBAL = (
    matrix(_EMBEDDING, "embed_tokens.weight", "token_embedding", "vocab_size", "dim"),
    vector("output_norm.weight", "norm.weight", "output_norm", "dim"),
    # Absent: tied to the embedding.
    matrix(_HEAD, "lm_head.weight", "output", "vocab_size", "dim", optional=True),
)
ATTN_NORM = vector(BLK + "attn_norm.weight", HF + "input_layernorm.weight", "attn_norm", "dim")
NORMS = (
    ATTN_NORM,
    vector(BLK + "ffn_norm.weight", HF + "post_attention_layernorm.weight", "ffn_norm", "dim"),
)
# The same name of Hugging Face's means another norm where there are norms after attention and FFN.
FOUR_NORMS = (
    ATTN_NORM,
    vector(
        BLK + "post_attention_norm.weight",
        HF + "post_attention_layernorm.weight",
        "post_attn_norm",
        "dim",
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


_GGUF_EXPERTS = BLK + "ffn_{part}_exps.weight"
EXPERTS = (
    TensorRule(BLK + "ffn_gate_inp.weight", HF + "mlp.gate.weight", (("router", "n_experts"),), "dim"),
    *_experts_form(_GGUF_EXPERTS, HF + "mlp.experts.{e}.{part}_proj.weight"),
)
MIXTRAL_EXPERTS = (
    TensorRule(
        BLK + "ffn_gate_inp.weight",
        HF + "block_sparse_moe.gate.weight",
        (("router", "n_experts"),),
        "dim",
    ),
    *_experts_form(_GGUF_EXPERTS, HF + "block_sparse_moe.experts.{e}.{part}.weight", ("w1", "w3", "w2")),
)
SHARED_EXPERT = (
    matrix(
        BLK + "ffn_gate_inp_shexp.weight",
        HF + "mlp.shared_expert_gate.weight",
        "shared_router",
        "one",
        "dim",
    ),
    *(
        matrix(
            f"{BLK}ffn_{part}_shexp.weight",
            f"{HF}mlp.shared_expert.{part}_proj.weight",
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
BIASED_ROUTER = (
    TensorRule(BLK + "ffn_gate_inp.weight", HF + "mlp.router.weight", (("router", "n_experts"),), "dim"),
    TensorRule(BLK + "ffn_gate_inp.bias", HF + "mlp.router.bias", (("router_bias", "n_experts"),)),
)
# In a GGUF file gate and up are tensors of their own, in a checkpoint their rows alternate.
BIASED_EXPERTS = (
    *_experts_form(_GGUF_EXPERTS),
    *(
        TensorRule(f"{BLK}ffn_{part}_exps.bias", "", ((f"experts_{part}_bias", rows),), count="n_experts")
        for part, rows, _ in _EXPERT_PARTS
    ),
    TensorRule(
        "",
        HF + "mlp.experts.gate_up_proj",
        (("experts_gate", "expert_dim"), ("experts_up", "expert_dim")),
        "dim",
        count="n_experts",
        interleaved=True,
    ),
    TensorRule(
        "",
        HF + "mlp.experts.gate_up_proj_bias",
        (("experts_gate_bias", "expert_dim"), ("experts_up_bias", "expert_dim")),
        count="n_experts",
        interleaved=True,
    ),
    TensorRule("", HF + "mlp.experts.down_proj", (("experts_down", "dim"),), "expert_dim", count="n_experts"),
    TensorRule("", HF + "mlp.experts.down_proj_bias", (("experts_down_bias", "dim"),), count="n_experts"),
)
SINKS = (vector(BLK + "attn_sinks.weight", HF + "self_attn.sinks", "attn_sinks", "n_heads"),)
# Other ways to store the experts: gate and up in one, each expert a tensor of its own in files before 2024;
# Transformers' own since its version 5, MLX.
_GGUF_FORMS = (
    _fused_form(source=(BLK + "ffn_gate_up_exps.weight", BLK + "ffn_down_exps.weight")),
    _experts_form(source=BLK + "ffn_{part}.{e}.weight"),
)
_HF_FORMS = (
    _fused_form(hf=(HF + "mlp.experts.gate_up_proj", HF + "mlp.experts.down_proj")),
    _fused_form(hf=(HF + "block_sparse_moe.experts.gate_up_proj", HF + "block_sparse_moe.experts.down_proj")),
    _experts_form(hf=HF + "mlp.switch_mlp.{part}_proj.weight"),
    _experts_form(hf=HF + "block_sparse_moe.switch_mlp.{part}_proj.weight"),
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


def sparse_layers(numbers: LayerNumbers, n_layers: int) -> list[str]:
    """Layers with experts and, where the configuration of a checkpoint names such, without."""
    if numbers.integer("n_experts") == 0:
        return ["dense"] * n_layers
    dense, step = numbers.get("mlp_only_layers"), numbers.get("decoder_sparse_step")
    skipped = dense if isinstance(dense, list) else []
    every = step if isinstance(step, int) and step > 0 else 1
    return ["experts" if n not in skipped and (n + 1) % every == 0 else "dense" for n in range(n_layers)]


def dense_or_experts(
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
FOLDER_BIAS = tuple(
    dataclasses.replace(rule, folder_only=True) for rule in (*qkv_bias(optional=True), *OUTPUT_BIAS)
)
PROJECTIONS = (*QKV, *ATTN_OUTPUT, *GATE_UP, *DOWN)
PLAIN_LAYER = (*NORMS, *PROJECTIONS)

DELTA_NET = (
    matrix(
        BLK + "attn_qkv.weight",
        HF + "linear_attn.in_proj_qkv.weight",
        "delta_qkv",
        "delta_channels",
        "dim",
    ),
    matrix(BLK + "attn_gate.weight", HF + "linear_attn.in_proj_z.weight", "delta_z", "delta_values", "dim"),
    matrix(
        BLK + "ssm_beta.weight",
        HF + "linear_attn.in_proj_b.weight",
        "delta_b",
        "delta_value_heads",
        "dim",
    ),
    matrix(
        BLK + "ssm_alpha.weight",
        HF + "linear_attn.in_proj_a.weight",
        "delta_a",
        "delta_value_heads",
        "dim",
    ),
    matrix(
        BLK + "ssm_conv1d.weight",
        HF + "linear_attn.conv1d.weight",
        "delta_conv",
        "delta_channels",
        "delta_taps",
    ),
    # A folder has A_log, of which this is -exp: its canonical name is `delta_a_log` then.
    vector(BLK + "ssm_a", HF + "linear_attn.A_log", "delta_decay", "delta_value_heads"),
    vector(BLK + "ssm_dt.bias", HF + "linear_attn.dt_bias", "delta_dt_bias", "delta_value_heads"),
    vector(BLK + "ssm_norm.weight", HF + "linear_attn.norm.weight", "delta_norm", "delta_value_dim"),
    matrix(BLK + "ssm_out.weight", HF + "linear_attn.out_proj.weight", "delta_output", "dim", "delta_values"),
)
GATED_Q = TensorRule(
    BLK + "attn_q.weight",
    HF + "self_attn.q_proj.weight",
    (("attn_q", "head_dim"), ("attn_gate", "head_dim")),
    "dim",
    count="n_heads",
    flat=True,
)
# As in Gemma's files this name stands for the norm of something else.
SHIFTED_NORMS = (
    ATTN_NORM,
    vector(BLK + "post_attention_norm.weight", HF + "post_attention_layernorm.weight", "ffn_norm", "dim"),
)


def delta_layers(numbers: LayerNumbers, n_layers: int) -> Sequence[str]:
    """The kind of each layer of a model with delta nets and attention."""
    return ["delta_net" if recurrent else "attention" for recurrent in numbers.recurrent_layers()[:n_layers]]

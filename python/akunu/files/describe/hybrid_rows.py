"""Rows of architectures most of whose layers have a short convolution or Mamba-2 in attention's place.

Facts about names and conventions: as in `akunu.files.describe.dense_rows`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from akunu.files.describe.expert_rules import GRANITE_EXPERTS, expert_rules
from akunu.files.describe.layer_rules import (
    ATTN_OUTPUT,
    BLK,
    FFN_BIAS,
    GLOBAL,
    HF,
    NORMS,
    OUTPUT_BIAS,
    QKV,
    matrix,
    mixed_layers,
    named_layers,
    qkv_bias,
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

__all__ = ["HYBRID_ROWS"]


def _with(mixer: str) -> Callable[[LayerNumbers, int], Sequence[str]]:
    """Names the kind of each layer: those without heads of keys have this mixer in attention's place."""

    def kinds(numbers: LayerNumbers, n_layers: int) -> Sequence[str]:
        kv_heads = numbers.layer_integers("n_kv_heads", default=1)
        named = named_layers(numbers, n_layers)
        return [
            name if heads else name.replace("attention", mixer)
            for name, heads in zip(named, kv_heads, strict=False)
        ]

    return kinds


# -- LFM2 ----------------------------------------------------------------------------------------------------


def _folder_bias(source: str, hf: str, *parts: tuple[str, str]) -> TensorRule:
    """A bias for which llama.cpp has no name."""
    return TensorRule(BLK + source, HF + hf, parts, optional=True, folder_only=True)


_LFM2_NORMS = (
    vector(BLK + "attn_norm.weight", HF + "operator_norm.weight", "attn_norm", "dim"),
    vector(BLK + "ffn_norm.weight", HF + "ffn_norm.weight", "ffn_norm", "dim"),
)
_LFM2_MIXERS: Mapping[MixerKind, Sequence[TensorRule]] = {
    "short_convolution": (
        *_LFM2_NORMS,
        matrix(
            BLK + "shortconv.in_proj.weight", HF + "conv.in_proj.weight", "conv_input", "conv_parts", "dim"
        ),
        dataclasses.replace(
            matrix(BLK + "shortconv.conv.weight", HF + "conv.conv.weight", "conv_taps", "dim", "conv_taps"),
            depthwise=True,
        ),
        matrix(BLK + "shortconv.out_proj.weight", HF + "conv.out_proj.weight", "conv_output", "dim", "dim"),
        *(
            _folder_bias(f"shortconv.{part}.bias", f"conv.{part}.bias", (f"{name}_bias", size))
            for part, name, size in (
                ("in_proj", "conv_input", "conv_parts"),
                ("conv", "conv_taps", "dim"),
                ("out_proj", "conv_output", "dim"),
            )
        ),
    ),
    "attention": (
        *_LFM2_NORMS,
        *QKV,
        matrix(BLK + "attn_output.weight", HF + "self_attn.out_proj.weight", "attn_output", "dim", "q_dim"),
        vector(BLK + "attn_q_norm.weight", HF + "self_attn.q_layernorm.weight", "attn_q_norm", "head_dim"),
        vector(BLK + "attn_k_norm.weight", HF + "self_attn.k_layernorm.weight", "attn_k_norm", "head_dim"),
    ),
}
_LFM2_FEED_FORWARD = (
    matrix(BLK + "ffn_gate.weight", HF + "feed_forward.w1.weight", "ffn_gate", "ffn_dim", "dim"),
    matrix(BLK + "ffn_up.weight", HF + "feed_forward.w3.weight", "ffn_up", "ffn_dim", "dim"),
    matrix(BLK + "ffn_down.weight", HF + "feed_forward.w2.weight", "ffn_down", "dim", "ffn_dim"),
)
_LFM2 = Architecture(
    name="lfm2",
    summary="LFM2 and LFM2.5, dense sizes: short convolutions, and attention in some layers",
    rope_style="half",
    activation="silu",
    pre_tokenizer="lfm2",
    tensors=(
        GLOBAL[0],
        # The norm of what the last layer gives, in spite of its names.
        vector("token_embd_norm.weight", "embedding_norm.weight", "output_norm", "dim"),
        GLOBAL[2],
    ),
    layers=mixed_layers(_LFM2_MIXERS, {"feed_forward": _LFM2_FEED_FORWARD}),
    layer_kinds=_with("short_convolution"),
    defaults=MappingProxyType({"rope_theta": 1e6}),
    features=("shortconv.",),
)
_LFM2_MOE = dataclasses.replace(
    _LFM2,
    name="lfm2moe",
    summary="LFM2 and LFM2.5 with experts: 8B-A1B, 24B-A2B",
    layers=mixed_layers(
        _LFM2_MIXERS,
        {
            "feed_forward": _LFM2_FEED_FORWARD,
            "experts": expert_rules("feed_forward.", parts=("w1", "w3", "w2"), choice_bias="expert_bias"),
        },
    ),
    router=Router("sigmoid", sum_eps=1e-6),
)


# -- Mamba-2 -------------------------------------------------------------------------------------------------


def _column(source: str, name: str) -> TensorRule:
    """A number of each head, which llama.cpp keeps as a column."""
    return TensorRule(source, "", ((name, "one"),), count="delta_value_heads")


def _mamba2(place: str) -> tuple[TensorRule, ...]:
    """Mamba-2, whose names in a checkpoint begin with `place`."""
    at = HF + place
    return (
        TensorRule(
            BLK + "ssm_in.weight",
            at + "in_proj.weight",
            (("mamba_z", "delta_values"), ("mamba_xbc", "delta_channels"), ("mamba_dt", "delta_value_heads")),
            "dim",
        ),
        dataclasses.replace(
            matrix(
                BLK + "ssm_conv1d.weight", at + "conv1d.weight", "mamba_conv", "delta_channels", "delta_taps"
            ),
            depthwise=True,
        ),
        vector(
            BLK + "ssm_conv1d.bias", at + "conv1d.bias", "mamba_conv_bias", "delta_channels", optional=True
        ),
        # A folder has A_log, of which this is -exp: its canonical name is `mamba_a_log` then.
        _column(BLK + "ssm_a", "mamba_decay"),
        vector("", at + "A_log", "mamba_decay", "delta_value_heads"),
        vector(BLK + "ssm_dt.bias", at + "dt_bias", "mamba_dt_bias", "delta_value_heads"),
        _column(BLK + "ssm_d", "mamba_d"),
        vector("", at + "D", "mamba_d", "delta_value_heads"),
        TensorRule(
            BLK + "ssm_norm.weight", "", (("mamba_norm", "delta_group_values"),), count="delta_key_heads"
        ),
        vector("", at + "norm.weight", "mamba_norm", "delta_values"),
        matrix(BLK + "ssm_out.weight", at + "out_proj.weight", "mamba_output", "dim", "delta_values"),
        _folder_bias(
            "ssm_in.bias",
            place + "in_proj.bias",
            ("mamba_z_bias", "delta_values"),
            ("mamba_xbc_bias", "delta_channels"),
            ("mamba_dt_in_bias", "delta_value_heads"),
        ),
        _folder_bias("ssm_out.bias", place + "out_proj.bias", ("mamba_output_bias", "dim")),
    )


_GRANITE_HYBRID = Architecture(
    name="granitehybrid",
    summary="Granite 4 with Mamba-2 layers, with experts and without",
    rope_style="interleaved",
    activation="silu",
    pre_tokenizer="dbrx",
    tensors=GLOBAL,
    layers=mixed_layers(
        {
            "mamba2": (*NORMS, *_mamba2("mamba.")),
            "attention": (*NORMS, *QKV, *ATTN_OUTPUT, *qkv_bias(optional=True), *OUTPUT_BIAS),
        },
        {
            "feed_forward": (
                matrix(BLK + "ffn_gate.weight", "", "ffn_gate", "ffn_dim", "dim"),
                matrix(BLK + "ffn_up.weight", "", "ffn_up", "ffn_dim", "dim"),
                TensorRule(
                    "",
                    HF + "shared_mlp.input_linear.weight",
                    (("ffn_gate", "ffn_dim"), ("ffn_up", "ffn_dim")),
                    "dim",
                ),
                matrix(
                    BLK + "ffn_down.weight",
                    HF + "shared_mlp.output_linear.weight",
                    "ffn_down",
                    "dim",
                    "ffn_dim",
                ),
            ),
            "experts": GRANITE_EXPERTS,
        },
    ),
    layer_kinds=_with("mamba2"),
    scales=("embedding_scale", "residual_scale", "attn_scale", "logit_divisor"),
    rope_switch=True,
    features=("ssm.",),
    router=Router(),
)


# -- Nemotron-H ----------------------------------------------------------------------------------------------


def _nemotron_kinds(numbers: LayerNumbers, n_layers: int) -> Sequence[str]:
    """A layer is one mixer: which, is told by heads of keys and by the size of a feed-forward."""
    kv_heads = numbers.layer_integers("n_kv_heads", default=1)
    sizes = numbers.layer_integers("ffn_dim")
    forwards = [name.partition(", ")[2] for name in named_layers(numbers, n_layers)]
    return [
        "attention" if heads else forward if size else "mamba2"
        for heads, size, forward in zip(kv_heads, sizes, forwards, strict=False)
    ]


_NEMOTRON_NORM = vector(BLK + "attn_norm.weight", HF + "norm.weight", "attn_norm", "dim")
_NEMOTRON_FORWARD_NORM = vector(BLK + "attn_norm.weight", HF + "norm.weight", "ffn_norm", "dim")
_NEMOTRON_ATTENTION = tuple(
    dataclasses.replace(rule, hf=rule.hf.replace("self_attn.", "mixer."))
    for rule in (*QKV, *ATTN_OUTPUT, *qkv_bias(optional=True), *OUTPUT_BIAS)
)


def _expert_matrix(part: str, rows: str, cols: str) -> TensorRule:
    return TensorRule(
        f"{BLK}ffn_{part}_exps.weight",
        f"{HF}mixer.experts.{{e}}.{part}_proj.weight",
        ((f"experts_{part}", rows),),
        cols,
        count="n_experts",
    )


_NEMOTRON = Architecture(
    name="nemotron_h",
    summary="Nemotron-H and Nemotron Nano 2: a layer is Mamba-2, attention or a feed-forward",
    rope_style="half",
    activation="relu2",
    pre_tokenizer="pixtral",
    tensors=(
        dataclasses.replace(GLOBAL[0], hf="embeddings.weight"),
        dataclasses.replace(GLOBAL[1], hf="norm_f.weight"),
        GLOBAL[2],
    ),
    layers=MappingProxyType(
        {
            "mamba2": LayerKind((_NEMOTRON_NORM, *_mamba2("mixer.")), ("mamba2",)),
            "attention": LayerKind((_NEMOTRON_NORM, *_NEMOTRON_ATTENTION), ("attention",)),
            "feed_forward": LayerKind(
                (
                    _NEMOTRON_FORWARD_NORM,
                    matrix(BLK + "ffn_up.weight", HF + "mixer.up_proj.weight", "ffn_up", "ffn_dim", "dim"),
                    matrix(
                        BLK + "ffn_down.weight", HF + "mixer.down_proj.weight", "ffn_down", "dim", "ffn_dim"
                    ),
                    *(
                        dataclasses.replace(rule, hf=rule.hf.replace(".mlp.", ".mixer."))
                        for rule in FFN_BIAS[1:]
                    ),
                ),
                ("feed_forward",),
            ),
        }
    ),
    layer_kinds=_nemotron_kinds,
    rotated="none",
    features=("ssm.",),
)
_NEMOTRON_MOE = dataclasses.replace(
    _NEMOTRON,
    name="nemotron_h_moe",
    summary="Nemotron 3 Nano and Super: layers of experts between Mamba-2 and attention",
    layers=MappingProxyType(
        {
            **_NEMOTRON.layers,
            "experts": LayerKind(
                (
                    _NEMOTRON_FORWARD_NORM,
                    *expert_rules("mixer.", choice_bias="gate.e_score_correction_bias")[:2],
                    _expert_matrix("up", "expert_dim", "expert_width"),
                    _expert_matrix("down", "expert_width", "expert_dim"),
                    matrix(
                        BLK + "ffn_latent_down.weight",
                        HF + "mixer.fc1_latent_proj.weight",
                        "latent_in",
                        "latent_dim",
                        "dim",
                    ),
                    matrix(
                        BLK + "ffn_latent_up.weight",
                        HF + "mixer.fc2_latent_proj.weight",
                        "latent_out",
                        "dim",
                        "latent_dim",
                    ),
                    *(
                        matrix(
                            f"{BLK}ffn_{part}_shexp.weight",
                            f"{HF}mixer.shared_experts.{part}_proj.weight",
                            f"shared_{part}",
                            rows,
                            cols,
                        )
                        for part, rows, cols in (("up", "shared_dim", "dim"), ("down", "dim", "shared_dim"))
                    ),
                ),
                ("experts",),
            ),
        }
    ),
    router=Router("sigmoid", sum_eps=1e-20),
    left_out={"blk.*.nextn.*": "multi-token prediction", "mtp.*": "multi-token prediction"},
)

HYBRID_ROWS: Final = (_LFM2, _LFM2_MOE, _GRANITE_HYBRID, _NEMOTRON, _NEMOTRON_MOE)
"""See `akunu.files.describe.architectures.ARCHITECTURES`."""

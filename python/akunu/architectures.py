"""What Akunu knows about each model architecture, as data.

An architecture is one row of `ARCHITECTURES`: its tensors (name in the file, canonical name, shape), the
defaults of its configuration, and its flags. `akunu.config.resolve` interprets the rows; no code branches on
an architecture's name. A new Llama-like architecture is a new row (docs/adding-an-architecture.md).

Facts about names and conventions: gguf-py's `constants.py`, llama.cpp's converter, and the model classes of
Hugging Face Transformers, against which tests/models checks every row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Literal

__all__ = [
    "ARCHITECTURES",
    "CONFIG_KEYS",
    "NEUTRAL_VALUES",
    "REFUSED_PREFIXES",
    "ROPE_TENSORS",
    "Activation",
    "Architecture",
    "ConfigKey",
    "RopeStyle",
    "TensorRule",
]

RopeStyle = Literal["interleaved", "half"]
"""Which elements of a head rotate together: (2i, 2i+1), or (i, i + rope_dim/2)."""

Activation = Literal["silu", "gelu_tanh"]


@dataclass(frozen=True)
class ConfigKey:
    """One number read from the metadata, as `<architecture>.<suffix>`.

    Attributes
    ----------
    suffixes
        Key names after the architecture's prefix; the first one present wins.
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


CONFIG_KEYS: Final[Mapping[str, ConfigKey]] = MappingProxyType(
    {
        "n_layers": ConfigKey(("block_count",), int, 1, 4096),
        "dim": ConfigKey(("embedding_length",), int, 1, 1 << 20),
        "n_heads": ConfigKey(("attention.head_count",), int, 1, 1 << 14),
        "n_kv_heads": ConfigKey(("attention.head_count_kv",), int, 1, 1 << 14),
        "head_dim": ConfigKey(("attention.key_length",), int, 2, 1 << 12),
        "value_dim": ConfigKey(("attention.value_length",), int, 2, 1 << 12),
        "ffn_dim": ConfigKey(("feed_forward_length",), int, 1, 1 << 24),
        "context_length": ConfigKey(("context_length",), int, 1, (1 << 31) - 1),
        "norm_eps": ConfigKey(("attention.layer_norm_rms_epsilon",), float, 1e-12, 0.1),
        "attn_scale": ConfigKey(("attention.scale",), float, 1e-6, 1e3),
        "attn_softcap": ConfigKey(("attn_logit_softcapping",), float, 0.0, 1e6, 0.0),
        "final_softcap": ConfigKey(("final_logit_softcapping",), float, 0.0, 1e6, 0.0),
        "window": ConfigKey(("attention.sliding_window",), int, 0, (1 << 31) - 1, 0),
        "rope_dim": ConfigKey(("rope.dimension_count",), int, 2, 1 << 12),
        "rope_theta": ConfigKey(("rope.freq_base",), float, 1.01, 1e12, 10000.0),
        "local_rope_theta": ConfigKey(("rope.freq_base_swa",), float, 1.01, 1e12),
        # "rope.scale_linear" is the name of the factor in files of 2023.
        "rope_factor": ConfigKey(("rope.scaling.factor", "rope.scale_linear"), float, 1e-3, 1e6, 1.0),
        "rope_original_context": ConfigKey(("rope.scaling.original_context_length",), int, 1, (1 << 31) - 1),
        "rope_attn_factor": ConfigKey(("rope.scaling.attn_factor",), float, 1e-3, 1e3, 1.0),
        "yarn_attn_factor": ConfigKey(("rope.scaling.yarn_attn_factor",), float, 1e-3, 1e3),
        "yarn_beta_fast": ConfigKey(("rope.scaling.yarn_beta_fast",), float, 1e-3, 1e6, 32.0),
        "yarn_beta_slow": ConfigKey(("rope.scaling.yarn_beta_slow",), float, 1e-3, 1e6, 1.0),
    }
)
"""Numbers of a decoder. The bounds are wide: the largest published models stay a factor of ten below them."""

NEUTRAL_VALUES: Final[Mapping[str, tuple[object, ...]]] = MappingProxyType(
    {
        "expert_count": (0,),
        "expert_used_count": (0,),
        "expert_shared_count": (0,),
        "nextn_predict_layers": (0,),
        "embedding_length_per_layer_input": (0,),
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
        "rope.scaling.yarn_ext_factor": (1.0,),
        "rope.scaling.yarn_log_multiplier": (0.0,),
    }
)
"""Keys whose feature is not implemented, with the values that mean "not used". Any other value is refused."""

REFUSED_PREFIXES: Final = ("ssm.", "wkv.", "kda.", "altup.", "shortconv.", "attention.indexer.")
"""Keys that only another kind of model has: state-space, linear-attention and so on."""

ROPE_TENSORS: Final = ("rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight")
"""Divisors of the rotary frequencies, F32 [rope_dim/2]: Llama 3's, and LongRoPE's two sets. For every row."""


@dataclass(frozen=True)
class TensorRule:
    """One tensor of the file and the canonical tensors in it.

    Attributes
    ----------
    source
        Name in the file; `{n}` stands for the layer.
    parts
        (canonical name without the `layers.{n}.` prefix, symbol of its length), stacked along the rows. More
        than one part means a fused tensor, of which each canonical tensor is a slice of rows.
    cols
        Symbol of the row length, or None for a vector.
    optional
        The tensor may be absent, but then from every layer.
    """

    source: str
    parts: tuple[tuple[str, str], ...]
    cols: str | None = None
    optional: bool = False


@dataclass(frozen=True)
class Architecture:
    """A row: one value of `general.architecture`.

    Attributes
    ----------
    name
        The value of `general.architecture`, which also prefixes the configuration keys.
    summary
        Which published models use it.
    rope_style, activation
        See the types.
    tensors
        Every tensor that the file may have, besides `ROPE_TENSORS`.
    ignored
        Name patterns (`fnmatch`) of tensors that a file may have and that change nothing.
    defaults
        Replaces the defaults in `CONFIG_KEYS`; by field.
    scale_embedding
        The embedding is multiplied by sqrt(dim).
    window_period
        Which layers a sliding window applies to when the file does not say: 0 = all, n = all but each n-th.
    wide_scale_layers
        Layer counts whose attention scale is (dim / n_heads)**-0.5 instead of head_dim**-0.5. GGUF files of
        Gemma carry no query scale; their layer count is what identifies the sizes that need another.
    """

    name: str
    summary: str
    rope_style: RopeStyle
    activation: Activation
    tensors: tuple[TensorRule, ...]
    ignored: tuple[str, ...] = ()
    defaults: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    scale_embedding: bool = False
    window_period: int = 0
    wide_scale_layers: tuple[int, ...] = ()


def _matrix(source: str, name: str, rows: str, cols: str, *, optional: bool = False) -> TensorRule:
    return TensorRule(source, ((name, rows),), cols, optional)


def _vector(source: str, name: str, length: str, *, optional: bool = False) -> TensorRule:
    return TensorRule(source, ((name, length),), None, optional)


_GLOBAL = (
    _matrix("token_embd.weight", "token_embedding", "vocab_size", "dim"),
    _vector("output_norm.weight", "output_norm", "dim"),
    _matrix("output.weight", "output", "vocab_size", "dim", optional=True),  # absent: tied to token_embedding
)
_NORMS = (
    _vector("blk.{n}.attn_norm.weight", "attn_norm", "dim"),
    _vector("blk.{n}.ffn_norm.weight", "ffn_norm", "dim"),
)
_QKV = (
    _matrix("blk.{n}.attn_q.weight", "attn_q", "q_dim", "dim"),
    _matrix("blk.{n}.attn_k.weight", "attn_k", "kv_dim", "dim"),
    _matrix("blk.{n}.attn_v.weight", "attn_v", "kv_dim", "dim"),
)
_FUSED_QKV = (
    TensorRule(
        "blk.{n}.attn_qkv.weight", (("attn_q", "q_dim"), ("attn_k", "kv_dim"), ("attn_v", "kv_dim")), "dim"
    ),
)
_ATTN_OUTPUT = (_matrix("blk.{n}.attn_output.weight", "attn_output", "dim", "q_dim"),)
_GATE_UP = (
    _matrix("blk.{n}.ffn_gate.weight", "ffn_gate", "ffn_dim", "dim"),
    _matrix("blk.{n}.ffn_up.weight", "ffn_up", "ffn_dim", "dim"),
)
_FUSED_GATE_UP = (
    TensorRule("blk.{n}.ffn_up.weight", (("ffn_gate", "ffn_dim"), ("ffn_up", "ffn_dim")), "dim"),
)
_DOWN = (_matrix("blk.{n}.ffn_down.weight", "ffn_down", "dim", "ffn_dim"),)
_QK_NORM = (
    _vector("blk.{n}.attn_q_norm.weight", "attn_q_norm", "head_dim"),
    _vector("blk.{n}.attn_k_norm.weight", "attn_k_norm", "head_dim"),
)
_POST_NORMS = (
    _vector("blk.{n}.post_attention_norm.weight", "post_attn_norm", "dim"),
    _vector("blk.{n}.post_ffw_norm.weight", "post_ffn_norm", "dim"),
)


def _qkv_bias(*, optional: bool) -> tuple[TensorRule, ...]:
    return (
        _vector("blk.{n}.attn_q.bias", "attn_q_bias", "q_dim", optional=optional),
        _vector("blk.{n}.attn_k.bias", "attn_k_bias", "kv_dim", optional=optional),
        _vector("blk.{n}.attn_v.bias", "attn_v_bias", "kv_dim", optional=optional),
    )


_OUTPUT_BIAS = (_vector("blk.{n}.attn_output.bias", "attn_output_bias", "dim", optional=True),)
_PLAIN_LAYER = (*_NORMS, *_QKV, *_ATTN_OUTPUT, *_GATE_UP, *_DOWN)

# Gemma's norms multiply by 1 + w, but the converter has already added the 1 to every norm in a GGUF file.
_ROWS = (
    Architecture(
        name="llama",
        summary="Llama 2, 3, 3.1, 3.2, 3.3; Mistral; SmolLM; TinyLlama",
        rope_style="interleaved",  # the converter permutes the rows of Q and K from halves to adjacent pairs
        activation="silu",
        tensors=(*_GLOBAL, *_PLAIN_LAYER, *_qkv_bias(optional=True), *_OUTPUT_BIAS),
        ignored=("blk.*.attn_rot_embd.weight",),
    ),
    Architecture(
        name="qwen2",
        summary="Qwen 1.5, 2 and 2.5",
        rope_style="half",
        activation="silu",
        tensors=(*_GLOBAL, *_PLAIN_LAYER, *_qkv_bias(optional=False), *_OUTPUT_BIAS),
    ),
    Architecture(
        name="qwen3",
        summary="Qwen 3, dense sizes",
        rope_style="half",
        activation="silu",
        tensors=(*_GLOBAL, *_PLAIN_LAYER, *_QK_NORM, *_qkv_bias(optional=True), *_OUTPUT_BIAS),
    ),
    Architecture(
        name="gemma",
        summary="Gemma 1",
        rope_style="half",
        activation="gelu_tanh",
        tensors=(*_GLOBAL, *_PLAIN_LAYER),
        scale_embedding=True,
    ),
    Architecture(
        name="gemma2",
        summary="Gemma 2: soft caps, every second layer windowed, norms after attention and FFN",
        rope_style="half",
        activation="gelu_tanh",
        tensors=(*_GLOBAL, *_PLAIN_LAYER, *_POST_NORMS),
        defaults=MappingProxyType({"attn_softcap": 50.0, "final_softcap": 30.0, "window": 4096}),
        scale_embedding=True,
        window_period=2,
        wide_scale_layers=(46,),  # 27B: query_pre_attn_scalar 144 = 4608 / 32 heads, head_dim 128
    ),
    Architecture(
        name="gemma3",
        summary="Gemma 3, text: five windowed layers to one full, two thetas, Q/K norms",
        rope_style="half",
        activation="gelu_tanh",
        tensors=(*_GLOBAL, *_PLAIN_LAYER, *_QK_NORM, *_POST_NORMS),
        defaults=MappingProxyType({"rope_theta": 1e6, "local_rope_theta": 1e4}),
        scale_embedding=True,
        window_period=6,
        wide_scale_layers=(62,),  # 27B: query_pre_attn_scalar 168 = 5376 / 32 heads, head_dim 128
    ),
    Architecture(
        name="phi3",
        summary="Phi-3, Phi-3.5 mini, Phi-4 and Phi-4-mini: fused QKV and gate-up, LongRoPE",
        rope_style="half",
        activation="silu",
        tensors=(*_GLOBAL, *_NORMS, *_FUSED_QKV, *_ATTN_OUTPUT, *_FUSED_GATE_UP, *_DOWN),
    ),
)

ARCHITECTURES: Final[Mapping[str, Architecture]] = MappingProxyType({row.name: row for row in _ROWS})
"""The rows, by name."""

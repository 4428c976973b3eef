"""The towers of Gemma 4 as rows. Facts: Transformers' `gemma4`, `gemma4_unified`, llama.cpp's converter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import isqrt
from typing import Any, Final

from akunu.api.vision.family import Family, Numbers, Sizes
from akunu.api.vision.tower_rules import clip_sizes, linear, matrix, norm, vector
from akunu.base.errors import ModelFileError
from akunu.chat.pictures.sizes import GEMMA4_BUDGETS
from akunu.files.describe.tensor_rules import TensorRule

__all__ = ["GEMMA4_TOWERS"]

_LAYER: Final = "vision_tower.encoder.layers.{n}."


def _bounded(
    gguf: str, hf: str, name: str, rows: str, cols: str, *, turns: bool = False
) -> tuple[TensorRule, ...]:
    """A matrix, and the bounds of what is multiplied with it and of the product, where it has such."""
    return (
        replace(
            TensorRule(f"{gguf}.weight", f"{hf}.linear.weight", ((name, rows),), cols),
            swapped="head" if turns else None,
        ),
        *(
            vector(f"{gguf}.{bound}", f"{hf}.{bound}", f"{name}_{bound}", "one", optional=True)
            for bound in ("input_min", "input_max", "output_min", "output_max")
        ),
    )


def _head_norm(part: str) -> TensorRule:
    rule = vector(
        f"v.blk.{{n}}.attn_{part}_norm.weight",
        f"{_LAYER}self_attn.{part}_norm.weight",
        f"attn_{part}_norm",
        "head",
    )
    return replace(rule, swapped="head")


# Halves of a head turn by themselves: quarters that turn together are brought half a head apart.
_RULES: Final = (
    matrix("v.patch_embd", "vision_tower.patch_embedder.input_proj", "patches", "dim", "values"),
    TensorRule(
        "v.position_embd.weight",
        "vision_tower.patch_embedder.position_embedding_table",
        (("positions", "positions"),),
        "dim",
    ),
    vector("v.blk.{n}.ln1.weight", f"{_LAYER}input_layernorm.weight", "attn_norm"),
    vector("v.blk.{n}.attn_post_norm.weight", f"{_LAYER}post_attention_layernorm.weight", "post_attn_norm"),
    vector("v.blk.{n}.ln2.weight", f"{_LAYER}pre_feedforward_layernorm.weight", "ffn_norm"),
    vector("v.blk.{n}.ffn_post_norm.weight", f"{_LAYER}post_feedforward_layernorm.weight", "post_ffn_norm"),
    *_bounded("v.blk.{n}.attn_q", f"{_LAYER}self_attn.q_proj", "attn_q", "dim", "dim", turns=True),
    *_bounded("v.blk.{n}.attn_k", f"{_LAYER}self_attn.k_proj", "attn_k", "dim", "dim", turns=True),
    *_bounded("v.blk.{n}.attn_v", f"{_LAYER}self_attn.v_proj", "attn_v", "dim", "dim"),
    *_bounded("v.blk.{n}.attn_out", f"{_LAYER}self_attn.o_proj", "attn_output", "dim", "dim"),
    _head_norm("q"),
    _head_norm("k"),
    *_bounded("v.blk.{n}.ffn_gate", f"{_LAYER}mlp.gate_proj", "ffn_gate", "ffn", "dim"),
    *_bounded("v.blk.{n}.ffn_up", f"{_LAYER}mlp.up_proj", "ffn_up", "ffn", "dim"),
    *_bounded("v.blk.{n}.ffn_down", f"{_LAYER}mlp.down_proj", "ffn_down", "dim", "ffn"),
    vector("v.std_bias", "vision_tower.std_bias", "merger.standard_bias", optional=True),
    vector("v.std_scale", "vision_tower.std_scale", "merger.standard_scale", optional=True),
    matrix("mm.input_projection", "embed_vision.embedding_projection", "merger.last", "out", "dim"),
)
_DEFAULTS: Final[Mapping[str, Any]] = {
    "hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 16, "num_attention_heads": 12,
    "num_channels": 3, "image_size": 224, "patch_size": 16, "hidden_act": "gelu_pytorch_tanh",
    "layer_norm_eps": 1e-6, "pooling_kernel_size": 3, "position_embedding_size": 10240,
}  # fmt: skip
_KEYS: Final[Mapping[str, str]] = {
    "num_hidden_layers": "block_count", "hidden_size": "embedding_length",
    "num_attention_heads": "attention.head_count", "intermediate_size": "feed_forward_length",
    "patch_size": "patch_size", "layer_norm_eps": "attention.layer_norm_epsilon", "out": "projection_dim",
    "pooling_kernel_size": "projector.scale_factor",
}  # fmt: skip


def _sizes(numbers: Numbers, _config: Mapping[str, Any]) -> Sizes:
    # Transformers' names of what others call otherwise.
    own = {"rms_norm_eps": "layer_norm_eps", "hidden_activation": "hidden_act"}
    numbers = numbers.renamed(own)
    sizes = clip_sizes(
        numbers,
        merge=numbers.integer("pooling_kernel_size", 16),
        out=numbers.integer("out"),
        grid=0,
        turns=True,
    )
    for name, expected in (
        ("head_dim", sizes.dim // sizes.heads),
        ("num_key_value_heads", sizes.heads),
    ):
        if numbers.raw(name) not in (None, expected):
            raise ModelFileError(
                f"vision_config.{name}: found {numbers.raw(name)!r:.60}, expected {expected}"
            )
    return replace(
        sizes,
        sides=numbers.integer("position_embedding_size"),
        most_rows=GEMMA4_BUDGETS[-1],
        merge_eps=sizes.norm_eps,
    )


def _unified_sizes(numbers: Numbers, _config: Mapping[str, Any]) -> Sizes:
    patch = numbers.integer("patch_size", 256) * numbers.integer("pooling_kernel_size", 16)
    values = numbers.raw("patch_values")
    if values is not None:  # a GGUF file, whose patch is told by its first matrix
        patch = isqrt(values[-1] // 3) if len(values) == 1 else values[-1]
    return Sizes(
        layers=0,
        dim=numbers.integer("mm_embed_dim"),
        heads=1,
        ffn=1,
        patch_size=patch,
        merge_size=1,
        frames=1,
        channels=3,
        grid=0,
        out=numbers.integer("out"),
        image_size=0,
        activation="gelu",
        norm_eps=1e-5,
        sides=numbers.integer("mm_posemb_size"),
        most_rows=GEMMA4_BUDGETS[-1],
        merge_eps=numbers.real("rms_norm_eps"),
    )


def _sees_whole(text: Mapping[str, Any]) -> bool:
    """The small sizes, which have inputs of layers, do not. A GGUF file says no more than that."""
    inputs = text.get("gemma4.embedding_length_per_layer_input")
    return text.get("use_bidirectional_attention") == "vision" if inputs is None else not inputs


def _unified_sees_whole(text: Mapping[str, Any]) -> bool:
    return _sees_whole({"use_bidirectional_attention": "vision", **text})


_GEMMA4: Final = Family(
    "gemma4",
    "gemma4",
    ("gemma4",),
    ("gemma4v",),
    ("gemma4",),
    "vision_tower.patch_embedder.input_proj.weight",
    _RULES,
    _sizes,
    defaults=_DEFAULTS,
    gguf_keys=_KEYS,
    gguf_shapes={"position_embedding_size": ("v.position_embd.weight", 1)},
    layer_norm=False,
    rotary="columns",
    rotary_base=100.0,
    spread="sides",
    mean=True,
    mean_gain=True,
    whole="windowed",
    sees_whole=_sees_whole,
    norm_values=True,
    attn_scale=1.0,
    centred=True,
    hf_channels_last=True,
)
_UNIFIED_RULES: Final = (
    *norm("v.patch_norm.1", "vision_embedder.patch_ln1", "pixel_norm", "values"),
    *linear("v.patch_embd", "vision_embedder.patch_dense", "patches", "dim", "values"),
    *norm("v.patch_norm.2", "vision_embedder.patch_ln2", "patches_norm"),
    TensorRule(
        "v.position_embd.weight", "vision_embedder.pos_embedding", (("positions", "positions"),), "dim"
    ),
    *norm("v.patch_norm.3", "vision_embedder.pos_norm", "embedding_norm"),
    matrix("mm.input_projection", "embed_vision.embedding_projection", "merger.last", "out", "dim"),
)
_UNIFIED: Final = Family(
    "gemma4_unified",
    "gemma4_unified",
    ("gemma4_unified",),
    ("gemma4uv",),
    ("gemma4",),
    "vision_embedder.patch_dense.weight",
    _UNIFIED_RULES,
    _unified_sizes,
    defaults={
        "patch_size": 16, "pooling_kernel_size": 3, "mm_embed_dim": 3840, "mm_posemb_size": 1120,
        "rms_norm_eps": 1e-6,
    },
    gguf_keys={
        "mm_embed_dim": "embedding_length", "out": "projection_dim",
        "rms_norm_eps": "attention.layer_norm_epsilon",
    },
    gguf_shapes={"mm_posemb_size": ("v.position_embd.weight", 1), "out": ("mm.input_projection.weight", 0)},
    spread="sides",
    whole="windowed",
    sees_whole=_unified_sees_whole,
    hf_channels_last=True,
    hf_sides_paired=True,
)  # fmt: skip

GEMMA4_TOWERS: Final = (_GEMMA4, _UNIFIED)
"""See `akunu.api.vision.families`."""

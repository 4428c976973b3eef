"""The families of towers, a row each: their numbers, tensors and blocks (`akunu.api.vision.family`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import isqrt
from types import MappingProxyType
from typing import Any, Final

from akunu.api.vision.family import Family, Numbers, Sizes
from akunu.api.vision.gemma4_towers import GEMMA4_TOWERS
from akunu.api.vision.tower_rules import clip_sizes, linear, matrix, norm, qkv, vector
from akunu.base.errors import ModelFileError, UnsupportedError
from akunu.files.describe.config_numbers import shown
from akunu.files.describe.tensor_rules import Activation, TensorRule

__all__ = ["FAMILIES"]


_QWEN3_RULES: Final = (
    TensorRule("", "patch_embed.proj.weight", (("patches", "dim"),), "film"),
    TensorRule("v.patch_embd.weight", "", (("patches", "dim"),), "values"),
    TensorRule("v.patch_embd.weight.1", "", (("patches.1", "dim"),), "values"),
    TensorRule("v.patch_embd.bias", "patch_embed.proj.bias", (("patches_bias", "dim"),)),
    TensorRule("v.position_embd.weight", "pos_embed.weight", (("positions", "positions"),), "dim"),
    *norm("v.blk.{n}.ln1", "blocks.{n}.norm1", "attn_norm"),
    *norm("v.blk.{n}.ln2", "blocks.{n}.norm2", "ffn_norm"),
    *qkv("v.blk.{n}.attn_qkv", "blocks.{n}.attn.qkv"),
    *linear("v.blk.{n}.attn_out", "blocks.{n}.attn.proj", "attn_output", "dim", "dim"),
    *linear("v.blk.{n}.ffn_up", "blocks.{n}.mlp.linear_fc1", "ffn_up", "ffn", "dim"),
    *linear("v.blk.{n}.ffn_down", "blocks.{n}.mlp.linear_fc2", "ffn_down", "dim", "ffn"),
    *norm("v.post_ln", "merger.norm", "merger.norm"),
    *linear("mm.0", "merger.linear_fc1", "merger.first", "merged", "merged"),
    *linear("mm.2", "merger.linear_fc2", "merger.last", "out", "merged"),
    *norm("v.deepstack.{layer}.norm", "deepstack_merger_list.{k}.norm", "deep.{k}.merged_norm", "merged"),
    *linear(
        "v.deepstack.{layer}.fc1",
        "deepstack_merger_list.{k}.linear_fc1",
        "deep.{k}.first",
        "merged",
        "merged",
    ),
    *linear(
        "v.deepstack.{layer}.fc2", "deepstack_merger_list.{k}.linear_fc2", "deep.{k}.last", "out", "merged"
    ),
)
_QWEN3_DEFAULTS: Final[Mapping[str, Any]] = MappingProxyType(
    {
        "depth": 27, "hidden_size": 1152, "num_heads": 16, "intermediate_size": 4304, "in_channels": 3,
        "patch_size": 16, "spatial_merge_size": 2, "temporal_patch_size": 2, "out_hidden_size": 3584,
        "num_position_embeddings": 2304, "hidden_act": "gelu_pytorch_tanh", "deepstack_visual_indexes": [],
    }
)  # fmt: skip
_QWEN_KEYS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "depth": "block_count", "hidden_size": "embedding_length", "num_heads": "attention.head_count",
        "intermediate_size": "feed_forward_length", "patch_size": "patch_size",
        "spatial_merge_size": "spatial_merge_size",
    }
)  # fmt: skip
_QWEN3_SHAPES: Final[Mapping[str, str]] = MappingProxyType(
    {"out_hidden_size": "mm.2.weight", "num_position_embeddings": "v.position_embd.weight"}
)


def _qwen3_sizes(numbers: Numbers, _config: Mapping[str, Any]) -> Sizes:
    layers, dim = numbers.integer("depth"), numbers.integer("hidden_size")
    heads = numbers.integer("num_heads")
    positions = numbers.integer("num_position_embeddings")
    grid = int(positions**0.5)
    if dim % heads or dim // heads % 4 or grid**2 != positions:
        raise ModelFileError(
            f"vision_config: found {dim} elements, {heads} heads and {positions} positions, expected "
            "heads of a multiple of 4 elements, and a square of positions"
        )
    patch = numbers.integer("patch_size", 256)
    return Sizes(
        layers=layers,
        dim=dim,
        heads=heads,
        ffn=numbers.integer("intermediate_size"),
        patch_size=patch,
        merge_size=numbers.integer("spatial_merge_size", 16),
        frames=numbers.integer("temporal_patch_size", 16),
        channels=numbers.integer("in_channels", 16),
        grid=grid,
        out=numbers.integer("out_hidden_size"),
        image_size=grid * patch,
        activation=numbers.activation("hidden_act"),
        deep_layers=numbers.integers("deepstack_visual_indexes", layers),
        inner=dim * numbers.integer("spatial_merge_size", 16) ** 2,
    )


_QWEN3_VL: Final = Family(
    "qwen3_vl",
    "qwen3_vl",
    ("qwen3_vl", "qwen3_vl_moe"),
    ("qwen3vl_merger",),
    ("qwen3vl", "qwen3vlmoe"),
    "pos_embed.weight",
    _QWEN3_RULES,
    _qwen3_sizes,
    defaults={**_QWEN3_DEFAULTS, "deepstack_visual_indexes": [8, 16, 24]},
    gguf_keys=_QWEN_KEYS,
    gguf_shapes=_QWEN3_SHAPES,
    rotary="alike",
    spread="corners",
    turns="interleaved",
)


def _qwen25_layer(gguf: bool) -> tuple[TensorRule, ...]:
    """Return the rules that a GGUF file or a folder alone has."""
    if gguf:
        return tuple(
            rule
            for part in "qkv"
            for rule in linear(f"v.blk.{{n}}.attn_{part}", "", f"attn_{part}", "dim", "dim")
        )
    return qkv("", "blocks.{n}.attn.qkv")


_QWEN25_RULES: Final = (
    *(rule for rule in _QWEN3_RULES if rule.parts[0][0] in ("patches", "patches.1")),
    vector("v.blk.{n}.ln1.weight", "blocks.{n}.norm1.weight", "attn_norm"),
    vector("v.blk.{n}.ln2.weight", "blocks.{n}.norm2.weight", "ffn_norm"),
    *(replace(rule, hf="") for rule in _qwen25_layer(gguf=True)),
    *(replace(rule, source="") for rule in _qwen25_layer(gguf=False)),
    *linear("v.blk.{n}.attn_out", "blocks.{n}.attn.proj", "attn_output", "dim", "dim"),
    *linear("v.blk.{n}.ffn_gate", "blocks.{n}.mlp.gate_proj", "ffn_gate", "ffn", "dim"),
    *linear("v.blk.{n}.ffn_up", "blocks.{n}.mlp.up_proj", "ffn_up", "ffn", "dim"),
    *linear("v.blk.{n}.ffn_down", "blocks.{n}.mlp.down_proj", "ffn_down", "dim", "ffn"),
    vector("v.post_ln.weight", "merger.ln_q.weight", "merger.norm"),
    *linear("mm.0", "merger.mlp.0", "merger.first", "merged", "merged"),
    *linear("mm.2", "merger.mlp.2", "merger.last", "out", "merged"),
)


def _qwen25_sizes(numbers: Numbers, _config: Mapping[str, Any]) -> Sizes:
    layers, dim, heads = (numbers.integer(name) for name in ("depth", "hidden_size", "num_heads"))
    merge, patch = numbers.integer("spatial_merge_size", 16), numbers.integer("patch_size", 256)
    if dim % heads or dim // heads % 4:
        raise ModelFileError(
            f"vision_config: found {dim} elements and {heads} heads, expected heads of a multiple of 4 "
            "elements"
        )
    full = numbers.integers("fullatt_block_indexes", 1 << 20)
    if (every := numbers.raw("n_wa_pattern")) is not None:  # in GGUF files; 0: no layer has windows
        period = numbers.integer("n_wa_pattern") if every else 1
        full = tuple(range(period - 1, layers, period))
    windowed = any(layer not in full for layer in range(layers))
    return Sizes(
        layers=layers,
        dim=dim,
        heads=heads,
        ffn=numbers.integer("intermediate_size"),
        patch_size=patch,
        merge_size=merge,
        frames=numbers.integer("temporal_patch_size", 16),
        channels=numbers.integer("in_channels", 16),
        grid=0,
        out=numbers.integer("out_hidden_size"),
        image_size=0,
        activation=numbers.activation("hidden_act"),
        inner=dim * merge**2,
        window=max(numbers.integer("window_size") // merge // patch, 1) if windowed else 0,
        full_layers=full,
    )


_SIGLIP: Final = "vision_tower."
_SIGLIP_DEFAULTS: Final[Mapping[str, Any]] = MappingProxyType(
    {
        "hidden_size": 1152, "intermediate_size": 4304, "num_hidden_layers": 27, "num_attention_heads": 16,
        "num_channels": 3, "image_size": 896, "patch_size": 14, "hidden_act": "gelu_pytorch_tanh",
        "layer_norm_eps": 1e-6,
    }
)  # fmt: skip
_CLIP_KEYS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "num_hidden_layers": "block_count", "hidden_size": "embedding_length",
        "num_attention_heads": "attention.head_count", "intermediate_size": "feed_forward_length",
        "patch_size": "patch_size", "image_size": "image_size",
        "layer_norm_eps": "attention.layer_norm_epsilon", "out": "projection_dim",
    }
)  # fmt: skip


def _siglip_rules(prefix: str) -> tuple[TensorRule, ...]:
    layer = f"{prefix}encoder.layers.{{n}}."
    embeddings = f"{prefix}embeddings."
    return (
        TensorRule(
            "v.patch_embd.weight", f"{embeddings}patch_embedding.weight", (("patches", "dim"),), "values"
        ),
        TensorRule("v.patch_embd.bias", f"{embeddings}patch_embedding.bias", (("patches_bias", "dim"),)),
        TensorRule(
            "v.position_embd.weight",
            f"{embeddings}position_embedding.weight",
            (("positions", "positions"),),
            "dim",
        ),
        *norm("v.blk.{n}.ln1", f"{layer}layer_norm1", "attn_norm"),
        *norm("v.blk.{n}.ln2", f"{layer}layer_norm2", "ffn_norm"),
        *linear("v.blk.{n}.attn_q", f"{layer}self_attn.q_proj", "attn_q", "dim", "dim"),
        *linear("v.blk.{n}.attn_k", f"{layer}self_attn.k_proj", "attn_k", "dim", "dim"),
        *linear("v.blk.{n}.attn_v", f"{layer}self_attn.v_proj", "attn_v", "dim", "dim"),
        *linear("v.blk.{n}.attn_out", f"{layer}self_attn.out_proj", "attn_output", "dim", "dim"),
        *linear("v.blk.{n}.ffn_up", f"{layer}mlp.fc1", "ffn_up", "ffn", "dim"),
        *linear("v.blk.{n}.ffn_down", f"{layer}mlp.fc2", "ffn_down", "dim", "ffn"),
        *norm("v.post_ln", f"{prefix}post_layernorm", "merger.norm"),
    )


_PROJECTOR: Final = "multi_modal_projector."
_PIXTRAL_LAYER: Final = "vision_tower.transformer.layers.{n}."
_PIXTRAL_RULES: Final = (
    matrix("v.patch_embd", "vision_tower.patch_conv", "patches", "dim", "values"),
    TensorRule("v.pre_ln.weight", "vision_tower.ln_pre.weight", (("embedding_norm", "dim"),)),
    TensorRule("v.blk.{n}.ln1.weight", f"{_PIXTRAL_LAYER}attention_norm.weight", (("attn_norm", "dim"),)),
    TensorRule("v.blk.{n}.ln2.weight", f"{_PIXTRAL_LAYER}ffn_norm.weight", (("ffn_norm", "dim"),)),
    *(
        matrix(
            f"v.blk.{{n}}.attn_{part}", f"{_PIXTRAL_LAYER}attention.{part}_proj", f"attn_{part}", "dim", "dim"
        )
        for part in "qkv"
    ),
    matrix("v.blk.{n}.attn_out", f"{_PIXTRAL_LAYER}attention.o_proj", "attn_output", "dim", "dim"),
    matrix("v.blk.{n}.ffn_gate", f"{_PIXTRAL_LAYER}feed_forward.gate_proj", "ffn_gate", "ffn", "dim"),
    matrix("v.blk.{n}.ffn_up", f"{_PIXTRAL_LAYER}feed_forward.up_proj", "ffn_up", "ffn", "dim"),
    matrix("v.blk.{n}.ffn_down", f"{_PIXTRAL_LAYER}feed_forward.down_proj", "ffn_down", "dim", "ffn"),
    TensorRule("mm.input_norm.weight", "multi_modal_projector.norm.weight", (("merger.norm", "dim"),)),
    matrix(
        "mm.patch_merger",
        "multi_modal_projector.patch_merger.merging_layer",
        "merger.before",
        "dim",
        "merged",
    ),
    *linear("mm.1", f"{_PROJECTOR}linear_1", "merger.first", "inner", "dim", bias="optional"),
    *linear("mm.2", f"{_PROJECTOR}linear_2", "merger.last", "out", "inner", bias="optional"),
)
_PIXTRAL_DEFAULTS: Final[Mapping[str, Any]] = MappingProxyType(
    {
        "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24, "num_attention_heads": 16,
        "num_channels": 3, "image_size": 1540, "patch_size": 14, "hidden_act": "gelu",
        "layer_norm_eps": 1e-5,
    }
)  # fmt: skip


def _grid(numbers: Numbers) -> int:
    """Patches on the side of a picture of the size that the tower was trained with."""
    return numbers.integer("image_size") // numbers.integer("patch_size", 256)


def _gemma3_sizes(numbers: Numbers, config: Mapping[str, Any]) -> Sizes:
    grid = _grid(numbers)
    if numbers.raw("scale_factor") is not None:
        merge = numbers.integer("scale_factor", 64)
    else:
        given = {"mm_tokens_per_image": numbers.raw("mm_tokens_per_image"), **config}
        tokens = Numbers(given, {"mm_tokens_per_image": 256}, "config.json").integer("mm_tokens_per_image")
        merge = grid // max(1, int(tokens**0.5))
    if merge == 0 or grid % merge:
        raise ModelFileError(f"{grid} rows and columns of patches cannot be merged by {merge}")
    sizes = clip_sizes(numbers, merge=merge, out=numbers.integer("out"), grid=grid)
    return replace(sizes, most_rows=(grid // merge) ** 2)


def _idefics3_sizes(numbers: Numbers, config: Mapping[str, Any]) -> Sizes:
    scale = Numbers(
        {"scale_factor": numbers.raw("scale_factor"), **config}, {"scale_factor": 2}, "config.json"
    )
    merge = scale.integer("scale_factor", 16)
    return clip_sizes(numbers, merge=merge, out=numbers.integer("out"), grid=_grid(numbers))


_LFM2_NORM_EPS: Final = 1e-5
"""PyTorch's for a LayerNorm, which the projector keeps. No file says it."""


def _lfm2_sizes(numbers: Numbers, config: Mapping[str, Any]) -> Sizes:
    names = ("downsample_factor", "projector_hidden_size")
    given = {**{name: numbers.raw(name) for name in names}, **config}
    whole = Numbers(given, {"downsample_factor": 2, "projector_hidden_size": 2560}, "config.json")
    positions = numbers.integer("num_patches")
    if (grid := isqrt(positions)) ** 2 != positions:
        raise ModelFileError(f"vision_config.num_patches: found {positions}, expected a square number")
    sizes = clip_sizes(
        numbers,
        merge=whole.integer("downsample_factor", 16),
        out=numbers.integer("out"),
        grid=grid,
        inner=whole.integer("projector_hidden_size"),
    )
    return replace(sizes, merged_norm_eps=_LFM2_NORM_EPS, merge_activation=_projector_act(config))


def _pixtral_sizes(numbers: Numbers, config: Mapping[str, Any]) -> Sizes:
    given = {"spatial_merge_size": numbers.raw("spatial_merge_size"), **config}
    merge = Numbers(given, {"spatial_merge_size": 2}, "config.json").integer("spatial_merge_size", 16)
    out = numbers.integer("out")
    sizes = clip_sizes(numbers, merge=merge, out=out, grid=0, inner=out, turns=True)
    seen = _layers_seen(sizes.layers, config.get("vision_feature_layer", -1))
    return replace(
        sizes,
        layers=seen,
        unused_layers=sizes.layers - seen,
        patch_eps=numbers.real("text_eps") if numbers.raw("text_eps") is not None else None,
        merge_activation=_projector_act(config),
    )


def _layers_seen(layers: int, last: object) -> int:
    """Return how many layers there are up to the one whose states are merged, counted from either end."""
    if isinstance(last, bool) or not isinstance(last, int) or not -layers <= last <= layers:
        raise UnsupportedError(
            f"vision_feature_layer: found {shown(last)}, expected one layer, from {-layers} to {layers}"
        )
    found = last if last >= 0 else layers + 1 + last
    if found == 0:
        raise UnsupportedError("vision_feature_layer: found the patches before the first layer")
    return found


def _projector_act(config: Mapping[str, Any]) -> Activation:
    return Numbers(config, {"projector_hidden_act": "gelu"}, "config.json").activation("projector_hidden_act")


_ROWS: Final = (
    _QWEN3_VL,
    replace(
        _QWEN3_VL,
        name="qwen3_5",
        model_types=("qwen3_5", "qwen3_5_moe"),
        archs=("qwen35", "qwen35moe"),
        defaults=_QWEN3_DEFAULTS,
    ),
    Family(
        "qwen2_5_vl",
        "qwen2_5_vl",
        ("qwen2_5_vl",),
        ("qwen2.5vl_merger",),
        ("qwen2vl",),
        "merger.ln_q.weight",
        _QWEN25_RULES,
        _qwen25_sizes,
        defaults={
            "depth": 32, "hidden_size": 1280, "num_heads": 16, "intermediate_size": 3420, "in_channels": 3,
            "patch_size": 14, "spatial_merge_size": 2, "temporal_patch_size": 2, "out_hidden_size": 3584,
            "hidden_act": "silu", "window_size": 112, "fullatt_block_indexes": [7, 15, 23, 31],
        },
        gguf_keys={**_QWEN_KEYS, "n_wa_pattern": "n_wa_pattern", "window_size": "window_size"},
        gguf_shapes={"out_hidden_size": "mm.2.weight"},
        layer_norm=False,
        rotary="alike",
        turns="runs",
    ),
    Family(
        "gemma3",
        "gemma3",
        ("gemma3",),
        ("gemma3",),
        ("gemma3",),
        "vision_tower.post_layernorm.weight",
        (
            *_siglip_rules(_SIGLIP),
            TensorRule(
                "mm.soft_emb_norm.weight",
                "multi_modal_projector.mm_soft_emb_norm.weight",
                (("merger.merged_norm", "dim"),),
            ),
            TensorRule(
                "mm.input_projection.weight",
                "multi_modal_projector.mm_input_projection_weight",
                (("merger.last", "out"),),
                "dim",
                turned="always",
            ),
        ),
        _gemma3_sizes,
        defaults=_SIGLIP_DEFAULTS,
        gguf_keys={**_CLIP_KEYS, "scale_factor": "projector.scale_factor"},
        spread="parts",
        mean=True,
        hf_norms_less_one=("merger.merged_norm",),
        whole="all",
    ),
    Family(
        "idefics3",
        "idefics3",
        ("idefics3", "smolvlm"),
        ("idefics3",),
        ("llama",),
        "vision_model.post_layernorm.weight",
        (
            *_siglip_rules("vision_model."),
            matrix("mm.model.fc", "connector.modality_projection.proj", "merger.last", "out", "merged"),
        ),
        _idefics3_sizes,
        defaults={
            **_SIGLIP_DEFAULTS, "intermediate_size": 3072, "num_hidden_layers": 12, "image_size": 224,
            "patch_size": 32,
        },
        gguf_keys={**_CLIP_KEYS, "scale_factor": "projector.scale_factor"},
        spread="parts",
    ),
    Family(
        "pixtral",
        "pixtral",
        ("mistral3",),
        ("pixtral",),
        ("llama", "mistral3"),
        "vision_tower.ln_pre.weight",
        _PIXTRAL_RULES,
        _pixtral_sizes,
        defaults=_PIXTRAL_DEFAULTS,
        gguf_keys={**_CLIP_KEYS, "spatial_merge_size": "spatial_merge_size"},
        layer_norm=False,
        rotary="alternating",
        gguf_pairs=True,
    ),
    *GEMMA4_TOWERS,
    Family(
        "lfm2_vl",
        "lfm2_vl",
        ("lfm2_vl",),
        ("lfm2",),
        ("lfm2",),
        "vision_tower.post_layernorm.weight",
        (
            *_siglip_rules(_SIGLIP),
            *(
                replace(rule, optional=True)
                for rule in norm(
                    "mm.input_norm", "multi_modal_projector.layer_norm", "merger.merged_norm", "merged"
                )
            ),
            *linear(
                "mm.1", f"{_PROJECTOR}linear_1", "merger.first", "inner", "merged", bias="optional"
            ),
            *linear("mm.2", f"{_PROJECTOR}linear_2", "merger.last", "out", "inner", bias="optional"),
        ),
        _lfm2_sizes,
        defaults={
            **_SIGLIP_DEFAULTS, "hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12,
            "num_attention_heads": 12, "image_size": 256, "patch_size": 16, "num_patches": 256,
        },
        gguf_keys={**_CLIP_KEYS, "downsample_factor": "projector.scale_factor"},
        gguf_shapes={"num_patches": "v.position_embd.weight", "projector_hidden_size": "mm.1.weight"},
        spread="smooth",
        hf_channels_last=True,
    ),
)  # fmt: skip
FAMILIES: Final[Mapping[str, Family]] = MappingProxyType({row.name: row for row in _ROWS})
"""The families, by name."""

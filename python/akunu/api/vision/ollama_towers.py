"""Towers as Ollama's own converter writes them, into the file of the model of text.

They are those of `akunu.api.vision.families` by other names: of tensors nearly Transformers', and keys behind
the model's architecture. Gemma 4's have llama.cpp's names there, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from akunu.api.vision.families import FAMILIES
from akunu.api.vision.family import Family
from akunu.api.vision.tower_rules import linear
from akunu.files.describe.tensor_rules import TensorRule

__all__ = ["OLLAMA_TOWERS"]

_LAYER: Final = "v.blk.{n}."


def _renamed(name: str, names: Mapping[str, str], **other: Any) -> Family:
    """A family whose tensors have other names, by llama.cpp's names or their stems."""
    row = FAMILIES[name]
    rules = []
    for rule in row.rules:
        stem, _, kind = rule.source.rpartition(".")
        own = names.get(rule.source) or f"{names.get(stem, stem)}.{kind}"
        rules.append(replace(rule, source=own) if rule.source else rule)
    return replace(row, rules=tuple(rules), **other)


def _qwen3(name: str, sections: list[int]) -> Family:
    """Towers of Qwen 3 VL and 3.5, whose frames of a patch are in one tensor and whose q, k and v are not."""
    own = _renamed(
        name,
        {
            "v.patch_embd.bias": "v.patch_embed.bias", "v.position_embd": "v.pos_embed",
            f"{_LAYER}ln1": f"{_LAYER}norm1", f"{_LAYER}ln2": f"{_LAYER}norm2",
            f"{_LAYER}ffn_up": f"{_LAYER}mlp.linear_fc1", f"{_LAYER}ffn_down": f"{_LAYER}mlp.linear_fc2",
            "v.post_ln": "v.merger.norm", "mm.0": "v.merger.linear_fc1", "mm.2": "v.merger.linear_fc2",
            "v.deepstack.{layer}.norm": "v.deepstack_merger.{k}.norm",
            "v.deepstack.{layer}.fc1": "v.deepstack_merger.{k}.linear_fc1",
            "v.deepstack.{layer}.fc2": "v.deepstack_merger.{k}.linear_fc2",
        },
    )  # fmt: skip
    film = TensorRule("v.patch_embed.weight", "", (("patches", "dim"),), "film")
    parts = [
        rule for part in "qkv" for rule in linear(f"{_LAYER}attn_{part}", "", f"attn_{part}", "dim", "dim")
    ]
    others = [
        rule
        for rule in own.rules
        if rule.parts[0][0] not in ("patches", "patches.1") and ".attn_qkv." not in rule.source
    ]
    return replace(
        own,
        rules=(film, *parts, *others),
        defaults={**own.defaults, "mrope_section": sections},
        gguf_keys={
            **own.gguf_keys,
            **{name: name for name in ("temporal_patch_size", "deepstack_visual_indexes")},
        },
        gguf_shapes={
            "out_hidden_size": "v.merger.linear_fc2.weight",
            "num_position_embeddings": "v.pos_embed.weight",
            "intermediate_size": "v.blk.0.mlp.linear_fc1.weight",
        },
    )


def _lfm2() -> Family:
    """Towers of LFM2-VL whose projector has a norm, which llama.cpp's files name otherwise."""
    own = _renamed("lfm2_vl", {"mm.input_norm": "mm.layer_norm"})
    return replace(
        own,
        rules=tuple(
            replace(rule, optional=rule.optional and ".layer_norm." not in rule.source) for rule in own.rules
        ),
    )


OLLAMA_TOWERS: Final = (
    _qwen3("qwen3_vl", [24, 20, 20]),
    _qwen3("qwen3_5", [11, 11, 10]),
    _renamed(
        "qwen2_5_vl",
        {
            "v.patch_embd.weight": "v.patch_embd_0.weight", "v.patch_embd.weight.1": "v.patch_embd_1.weight",
            "v.post_ln": "v.merger.ln_q", "mm.0": "v.merger.mlp.0", "mm.2": "v.merger.mlp.2",
        },
        archs=("qwen25vl",),
        gguf_keys={
            **FAMILIES["qwen2_5_vl"].gguf_keys, "fullatt_block_indexes": "fullatt_block_indexes",
        },
        gguf_shapes={
            "out_hidden_size": "v.merger.mlp.2.weight", "intermediate_size": "v.blk.0.ffn_up.weight",
        },
    ),
    _lfm2(),
    _renamed(
        "gemma3",
        {
            "v.patch_embd": "v.patch_embedding", "v.position_embd": "v.position_embedding",
            f"{_LAYER}ln1": f"{_LAYER}layer_norm1", f"{_LAYER}ln2": f"{_LAYER}layer_norm2",
            f"{_LAYER}attn_out": f"{_LAYER}attn_output", f"{_LAYER}ffn_up": f"{_LAYER}mlp.fc1",
            f"{_LAYER}ffn_down": f"{_LAYER}mlp.fc2", "v.post_ln": "v.post_layernorm",
            "mm.soft_emb_norm": "mm.mm_soft_emb_norm", "mm.input_projection": "mm.mm_input_projection",
        },
        gguf_keys={**FAMILIES["gemma3"].gguf_keys, "mm_tokens_per_image": "{arch}.mm.tokens_per_image"},
    ),
    _renamed(
        "pixtral",
        {
            "v.patch_embd": "v.patch_conv", "v.pre_ln": "v.encoder_norm",
            f"{_LAYER}ln1": f"{_LAYER}attn_norm", f"{_LAYER}ln2": f"{_LAYER}ffn_norm",
            f"{_LAYER}attn_out": f"{_LAYER}attn_output",
            "mm.input_norm": "mm.norm", "mm.patch_merger": "mm.patch_merger.merging_layer",
            "mm.1": "mm.linear_1", "mm.2": "mm.linear_2",
        },
        gguf_keys={**FAMILIES["pixtral"].gguf_keys, "spatial_merge_size": "{arch}.spatial_merge_size"},
        # The converter turns the heads of the text alone, and the file does not say the activation.
        gguf_pairs=False,
        defaults={**FAMILIES["pixtral"].defaults, "hidden_act": "silu"},
    ),
)  # fmt: skip
"""Rows of families as they are in such files."""

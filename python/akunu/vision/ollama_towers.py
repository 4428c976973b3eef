"""Towers as Ollama's own converter writes them, into the file of the model of text.

They are those of `akunu.vision.families` by other names: of tensors nearly Transformers', and keys behind the
model's architecture. Gemma 4's have llama.cpp's names there, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from akunu.vision.families import FAMILIES
from akunu.vision.family import Family

__all__ = ["OLLAMA_TOWERS"]


def _renamed(name: str, stems: Mapping[str, str], **other: Any) -> Family:
    """A family whose tensors have other names, by the stems of llama.cpp's names."""
    row = FAMILIES[name]
    rules = []
    for rule in row.rules:
        stem, _, kind = rule.source.rpartition(".")
        rules.append(replace(rule, source=f"{stems.get(stem, stem)}.{kind}") if rule.source else rule)
    return replace(row, rules=tuple(rules), **other)


_LAYER: Final = "v.blk.{n}."
OLLAMA_TOWERS: Final = (
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

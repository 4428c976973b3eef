"""Towers inside the files of Ollama's own converters: the rows are those of Transformers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest

from akunu.api.vision.tower import Tower
from akunu.api.vision.towers import TowerFiles, find_tower

from . import seeing
from .test_towers import DEVICE, LanguageModel, Patches

OLLAMAS = {
    "gemma3": (
        "gemma3",
        {"mm.tokens_per_image": 9},
        {
            "v.patch_embd": "v.patch_embedding",
            "v.position_embd": "v.position_embedding",
            "ln1": "layer_norm1",
            "ln2": "layer_norm2",
            "attn_out": "attn_output",
            "ffn_up": "mlp.fc1",
            "ffn_down": "mlp.fc2",
            "v.post_ln": "v.post_layernorm",
            "mm.soft_emb_norm": "mm.mm_soft_emb_norm",
            "mm.input_projection": "mm.mm_input_projection",
        },
    ),
    "mistral3": (
        "mistral3",
        {"spatial_merge_size": 2},
        {
            "v.patch_embd": "v.patch_conv",
            "v.pre_ln": "v.encoder_norm",
            "ln1": "attn_norm",
            "ln2": "ffn_norm",
            "attn_out": "attn_output",
            "mm.input_norm": "mm.norm",
            "mm.patch_merger": "mm.patch_merger.merging_layer",
            "mm.1": "mm.linear_1",
            "mm.2": "mm.linear_2",
        },
    ),
}
"""The architecture, keys and names of tensors of Ollama's own converters, by llama.cpp's."""


def named_by_ollama(name: str, names: dict[str, str]) -> str:
    stem, _, kind = name.rpartition(".")
    head, _, part = stem.rpartition(".")
    return f"{names[stem]}.{kind}" if stem in names else f"{head}.{names.get(part, part)}.{kind}"


@pytest.mark.parametrize("name", ["gemma4", "gemma4_whole", *OLLAMAS])
def test_a_file_of_ollama_has_the_tower_inside(tmp_path: Path, name: str) -> None:
    model = seeing.ALL[name]
    if name in OLLAMAS:
        arch, keys, names = OLLAMAS[name]
        model = replace(model, arch=arch)
        path = seeing.write_mmproj(
            model,
            tmp_path / "model.gguf",
            lambda tensor: named_by_ollama(tensor, names),
            inside=True,
            others=keys,
        )
    else:
        path = seeing.write_mmproj(model, tmp_path / "model.gguf", inside=True)
    text = LanguageModel(model)
    text.open(path)
    files = find_tower(text, path)
    assert files is not None
    assert files.name == path.name
    golden = seeing.golden(model)
    tower = Tower(files, device=DEVICE)
    rows = tower.encode(Patches(golden.pixels[0], (1, *model.grids[0]), b"")).rows.numpy()
    assert np.abs(rows - golden.rows[0]).max() < 2e-3 * golden.rows[0].std()
    tower.close()


def found(text: LanguageModel, path: Path) -> TowerFiles:
    """The tower in this file."""
    text.open(path)
    files = find_tower(text, path)
    assert files is not None
    assert files.name == path.name
    return files


def check_rows(model: seeing.Seeing, files: TowerFiles) -> None:
    """Expect the rows of Transformers."""
    golden, tower = seeing.golden(model), Tower(files, device=DEVICE)
    for pixels, grid, expected in zip(golden.pixels, model.grids, golden.rows, strict=True):
        rows = tower.encode(Patches(pixels, (1, *grid), bytes(grid))).rows.numpy()
        assert np.abs(rows - expected).max() < 4e-3 * expected.std()
    tower.close()


def split_qkv(name: str, array: seeing.Array) -> dict[str, seeing.Array]:
    """The three parts of a matrix or bias."""
    return {name.replace("qkv", part): third for part, third in zip("qkv", np.split(array, 3), strict=True)}


def qwen25(name: str, array: seeing.Array) -> dict[str, seeing.Array]:
    """Rename a folder's tensor as `convert_qwen25vl` does."""
    for old, new in (
        ("visual.", "v."), ("blocks", "blk"), ("attn.proj", "attn_out"), ("attn.qkv", "attn_qkv"),
        ("norm1", "ln1"), ("norm2", "ln2"), ("mlp.gate_proj", "ffn_gate"), ("mlp.up_proj", "ffn_up"),
        ("mlp.down_proj", "ffn_down"),
    ):  # fmt: skip
        name = name.replace(old, new)
    if "patch_embed" in name:
        return {f"v.patch_embd_{frame}.weight": array[:, :, frame] for frame in (0, 1)}
    return split_qkv(name, array) if "attn_qkv" in name else {name: array}


def qwen3(name: str, array: seeing.Array) -> dict[str, seeing.Array]:
    """Rename a folder's tensor as `convert_qwen3vl` and `convert_qwen35` do."""
    for old, new in (
        ("model.visual.", "v."), ("patch_embed.proj", "patch_embed"), ("blocks", "blk"),
        ("attn.qkv", "attn_qkv"), ("attn.proj", "attn_out"), ("deepstack_merger_list", "deepstack_merger"),
    ):  # fmt: skip
        name = name.replace(old, new)
    if name == "v.patch_embed.weight":  # rows and channels are one axis
        return {name: array.reshape(-1, *array.shape[2:])}
    return split_qkv(name, array) if "attn_qkv" in name else {name: array}


def lfm2(name: str, array: seeing.Array) -> dict[str, seeing.Array]:
    """Rename a folder's tensor as `convert_lfm2_vl` does."""
    for old, new in (
        ("model.vision_tower.embeddings.patch_embedding", "v.patch_embd"),
        ("model.vision_tower.embeddings.position_embedding", "v.position_embd"),
        ("model.vision_tower.encoder.layers", "v.blk"),
        ("model.vision_tower.post_layernorm", "v.post_ln"), ("model.multi_modal_projector.linear_", "mm."),
        ("model.multi_modal_projector.layer_norm", "mm.layer_norm"), ("self_attn.out_proj", "attn_out"),
        ("self_attn.q_proj", "attn_q"), ("self_attn.k_proj", "attn_k"), ("self_attn.v_proj", "attn_v"),
        ("layer_norm", "ln"), ("mlp.fc1", "ffn_up"), ("mlp.fc2", "ffn_down"),
    ):  # fmt: skip
        name = name.replace(old, new) if old != "layer_norm" or name[:2] == "v." else name
    if name == "v.patch_embd.weight":
        array = array.reshape(len(array), 4, 4, 3).transpose(0, 3, 1, 2)
    return {name: array}


COMMON = {
    "block_count": "depth", "embedding_length": "hidden_size", "attention.head_count": "num_heads",
    "patch_size": "patch_size", "spatial_merge_size": "spatial_merge_size",
    "temporal_patch_size": "temporal_patch_size",
}  # fmt: skip
CLIP = {
    "block_count": "num_hidden_layers", "embedding_length": "hidden_size", "patch_size": "patch_size",
    "attention.head_count": "num_attention_heads", "feed_forward_length": "intermediate_size",
}  # fmt: skip
WRITERS: Mapping[str, tuple[str, Any, Mapping[str, str], Mapping[str, object]]] = {
    "qwen2_5_vl": (
        "qwen25vl",
        qwen25,
        {**COMMON, "window_size": "window_size"},
        {"fullatt_block_indexes": [1]},
    ),
    "qwen3_vl": ("qwen3vl", qwen3, COMMON, {"deepstack_visual_indexes": [0, 2], "shortest_edge": 0}),
    "qwen3_5": ("qwen35", qwen3, COMMON, {"longest_edge": 4096, "image_mean": [0.5, 0.25, 0.5]}),
    "lfm2_vl": ("lfm2", lfm2, CLIP, {"projector.scale_factor": 2, "tile_size": 64, "use_thumbnail": False}),
}
"""The architecture, the names of tensors, and keys: those of `vision_config`, and others."""
SETTINGS = {
    "qwen3_5": {"max_pixels": 4096, "image_mean": [0.5, 0.25, 0.5]},
    "lfm2_vl": {"tile_size": 64, "use_thumbnail": False},
}
"""What is known of the images' processor afterwards."""


@pytest.mark.parametrize("name", list(WRITERS))
def test_towers_of_other_converters_of_ollama(tmp_path: Path, name: str) -> None:
    arch, named, keys, others = WRITERS[name]
    model = replace(seeing.ALL[name], arch=arch)
    path = tmp_path / "model.gguf"
    writer: Any = gguf.GGUFWriter(str(path), arch)
    for key, own in keys.items():
        writer.add_uint32(f"{arch}.vision.{key}", model.vision[own])
    for key, value in others.items():
        add = writer.add_array if isinstance(value, list) else writer.add_uint32
        (writer.add_bool if isinstance(value, bool) else add)(f"{arch}.vision.{key}", value)
    writer.add_float32(f"{arch}.vision.attention.layer_norm_epsilon", 1e-6)
    for source, array in seeing.weights(model).items():
        if any(part in source for part in ("visual", "vision_tower", "projector")):
            for tensor, values in named(source, array).items():
                writer.add_tensor(tensor, np.ascontiguousarray(values))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    sections = model.text["rope_parameters"].get("mrope_section")
    text = LanguageModel(model)
    del text.metadata[f"{arch}.rope.dimension_sections"]
    if name == "qwen2_5_vl":
        text.metadata[f"{arch}.rope.mrope_section"] = sections
    files = found(text, path)
    assert files.spec.processor == SETTINGS.get(name, {})
    if files.spec.turning is not None:  # Qwen 3 VL's files do not say the sections, which are always these
        usual = {"qwen3_vl": (24, 20, 20), "qwen3_5": (11, 11, 10)}
        assert files.spec.turning.sections == usual.get(name, tuple(sections))
    check_rows(model, files)

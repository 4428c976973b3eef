"""Files of a tower with random weights of a real one's shapes, and of a model of text for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import gguf
import numpy as np
import numpy.typing as npt

from akunu.api.vision.families import FAMILIES
from akunu.api.vision.family import Numbers, Sizes
from akunu.files.describe.tensor_rules import TensorRule
from akunu.tokenizer.bytelevel import CHAR_OF_BYTE

__all__ = ["SHAPES", "write_files"]

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Shape:
    """A family's row and its numbers by the names of `vision_config`; `more` are keys of the file besides."""

    family: str
    numbers: Mapping[str, Any]
    out: int
    more: Mapping[str, Any]


SHAPES: Final = {
    "gemma3": Shape(
        "gemma3",
        {
            "num_hidden_layers": 27, "hidden_size": 1152, "intermediate_size": 4304,
            "num_attention_heads": 16, "image_size": 896, "patch_size": 14, "layer_norm_eps": 1e-6,
        },
        2560,
        {"clip.use_gelu": True},
    ),
    "qwen3.5-4b": Shape(
        "qwen3_5",
        {
            "depth": 24, "hidden_size": 1024, "intermediate_size": 4096, "num_heads": 16, "patch_size": 16,
            "spatial_merge_size": 2, "num_position_embeddings": 2304, "out_hidden_size": 2560,
            "deepstack_visual_indexes": [],
        },
        2560,
        {
            "clip.use_gelu": True, "clip.vision.image_size": 768,
            "clip.vision.attention.layer_norm_epsilon": 1e-6,
        },
    ),
}  # fmt: skip


def _tensors(rules: tuple[TensorRule, ...], sizes: Sizes) -> Iterator[tuple[str, Floats]]:
    symbols, rng = sizes.symbols(), np.random.default_rng(1)
    for rule in rules:
        if not rule.source or rule.optional or "{k}" in rule.parts[0][0]:
            continue
        rows, columns = (
            sum(symbols[symbol] for _, symbol in rule.parts),
            symbols[rule.cols] if rule.cols else 0,
        )
        shape = (columns, rows) if rule.turned == "always" else (rows, columns) if columns else (rows,)
        for n in range(sizes.layers if "{n}" in rule.source else 1):
            values = rng.standard_normal(shape, np.float32) * 0.02
            if not columns and rule.source.endswith(".weight"):  # of a norm
                values += 1
            if rule.cols == "values":
                values = values.reshape(rows, sizes.channels, sizes.patch_size, sizes.patch_size)
            yield rule.source.replace("{n}", str(n)), values


def _write(writer: Any, tensors: Iterator[tuple[str, Floats]]) -> None:
    for name, values in tensors:
        half = values.ndim > 1 and "position" not in name
        writer.add_tensor(name, values.astype(np.float16 if half else np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write_files(name: str, folder: Path) -> tuple[Path, Path]:
    """A model of text of one layer, and the tower of the shape `name`, in F16; kept if they are there."""
    shape = SHAPES[name]
    family = FAMILIES[shape.family]
    text, tower = folder / f"{name}.gguf", folder / f"mmproj-{name}-f16.gguf"
    if text.exists() and tower.exists():
        return text, tower
    folder.mkdir(parents=True, exist_ok=True)
    numbers = {**shape.numbers, "out": shape.out}
    sizes = family.sizes(Numbers(numbers, family.defaults, name), {})
    writer: Any = gguf.GGUFWriter(tower, "clip")
    writer.add_string("general.type", "mmproj")
    writer.add_bool("clip.has_vision_encoder", True)
    writer.add_string("clip.projector_type", family.projectors[0])
    writer.add_array("clip.vision.image_mean", [0.5] * 3)
    writer.add_array("clip.vision.image_std", [0.5] * 3)
    known = {
        f"clip.vision.{key}": numbers.get(own, family.defaults.get(own))
        for own, key in family.gguf_keys.items()
    }
    deep = {"clip.vision.is_deepstack_layers": [False] * sizes.layers} if "depth" in numbers else {}
    merge = {"clip.vision.projection_dim": shape.out}
    for key, value in (known | deep | merge | dict(shape.more)).items():
        if isinstance(value, bool):
            writer.add_bool(key, value)
        elif isinstance(value, list):
            writer.add_array(key, value)
        elif isinstance(value, float):
            writer.add_float32(key, value)
        elif value is not None:
            writer.add_uint32(key, value)
    _write(writer, _tensors(family.rules, sizes))
    _write_text(shape.out, text)
    return text, tower


def _write_text(dim: int, path: Path) -> None:
    writer: Any = gguf.GGUFWriter(path, "llama")
    tokens = [CHAR_OF_BYTE[byte] for byte in range(256)]
    tokens += [2 * tokens[0], "<start_of_image>", "<end_of_image>", "<|vision_start|>", "<|vision_end|>"]
    writer.add_context_length(512)
    writer.add_embedding_length(dim)
    writer.add_block_count(1)
    writer.add_feed_forward_length(256)
    writer.add_head_count(dim // 128)
    writer.add_head_count_kv(1)
    writer.add_rope_dimension_count(128)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types([gguf.TokenType.NORMAL] * 257 + [gguf.TokenType.CONTROL] * 4)
    writer.add_token_merges([f"{tokens[0]} {tokens[0]}"])
    layer = {
        "attn_norm": (dim,), "ffn_norm": (dim,), "attn_q": (dim, dim), "attn_k": (128, dim),
        "attn_v": (128, dim), "attn_output": (dim, dim), "ffn_gate": (256, dim), "ffn_up": (256, dim),
        "ffn_down": (dim, 256),
    }  # fmt: skip
    shapes: dict[str, tuple[int, ...]] = {
        "token_embd.weight": (len(tokens), dim),
        "output_norm.weight": (dim,),
    }
    shapes |= {f"blk.0.{name}.weight": size for name, size in layer.items()}
    _write(writer, ((name, np.full(shape, 0.01, np.float32)) for name, shape in shapes.items()))

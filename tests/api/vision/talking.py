"""Tiny models that see and have a tokenizer and a chat template, as folders that `akunu.load` takes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from akunu.tokenizer.bytelevel import CHAR_OF_BYTE

from . import seeing

__all__ = ["CONTROL", "TALKING", "Talking", "write_talking"]

CONTROL = (
    "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>", "<|image_pad|>",
    "<start_of_image>", "<image_soft_token>", "<end_of_image>", "<image>", "<fake_token_around_image>",
    "<global-img>", *(f"<row_{row}_col_{column}>" for row in (1, 2) for column in (1, 2)), "[IMG]",
    "[IMG_BREAK]", "[IMG_END]", "<|image>", "<|image|>", "<image|>", "<pad>", "<|image_start|>",
    "<|image_end|>",
)  # fmt: skip
_TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.content is string %}{{ m.content }}{% else %}"
    "{% for part in m.content %}{% if part.type == 'image' %}IMAGE"
    "{% else %}{{ part.text }}{% endif %}{% endfor %}{% endif %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
_HALF = {"image_mean": [0.5] * 3, "image_std": [0.5] * 3}


@dataclass(frozen=True)
class Talking:
    """How a family's images stand in a chat.

    Attributes
    ----------
    image
        What the template writes for one.
    processor
        `preprocessor_config.json`.
    rows
        Of an image of 40 by 24 pixels.
    around
        Tokens of such an image besides its rows.
    """

    image: str
    processor: Mapping[str, Any]
    rows: int
    around: int


_QWEN = Talking(
    "<|vision_start|><|image_pad|><|vision_end|>",
    {**_HALF, "size": {"shortest_edge": 64, "longest_edge": 4096}, "patch_size": 4, "merge_size": 2},
    rows=15,
    around=2,
)
TALKING: Mapping[str, Talking] = {
    "qwen3_vl": _QWEN,
    "qwen3_5": _QWEN,
    "qwen2_5_vl": _QWEN,
    # One by three rows are what six may be at most.
    "gemma4": Talking("<|image|>", {"max_soft_tokens": 6}, rows=3, around=2),
    "gemma4_whole": Talking("<|image|>", {"max_soft_tokens": 6}, rows=3, around=2),
    "gemma3": Talking("<start_of_image>", {**_HALF, "size": {"height": 24, "width": 24}}, rows=9, around=6),
    # Two by one tiles and the whole, of four rows each; two ends of lines.
    "idefics3": Talking(
        "<image>",
        {**_HALF, "size": {"longest_edge": 48}, "max_image_size": {"longest_edge": 24}},
        rows=20,
        around=14,
    ),
    "mistral3": Talking("[IMG]", {**_HALF, "size": {"longest_edge": 64}}, rows=15, around=3),
}
"""By the names of `seeing.ALL`."""


def write_talking(model: seeing.Seeing, folder: Path) -> Path:
    """Write a model with tokens of bytes; its images are of 8 by 8 to 64 by 64 pixels."""
    talking = TALKING[model.name]
    seeing.write_folder(model, folder)
    vocabulary = {text: i for i, text in enumerate([*CHAR_OF_BYTE, *CONTROL])}
    added = [
        {"id": vocabulary[text], "content": text, "special": True, "single_word": False, "lstrip": False,
         "rstrip": False, "normalized": False}
        for text in CONTROL
    ]  # fmt: skip
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    (folder / "tokenizer.json").write_text(
        json.dumps(
            {
                "version": "1.0", "added_tokens": added, "normalizer": None, "pre_tokenizer": level,
                "post_processor": None, "decoder": level,
                "model": {"type": "BPE", "vocab": vocabulary, "merges": []},
            }
        )
    )  # fmt: skip
    template = _TEMPLATE.replace("IMAGE", talking.image)
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"chat_template": template, "eos_token": "<|im_end|>"})
    )
    (folder / "preprocessor_config.json").write_text(json.dumps(dict(talking.processor)))
    return folder

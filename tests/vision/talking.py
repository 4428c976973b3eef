"""Tiny models that see and have a tokenizer and a chat template, as folders that `akunu.load` takes."""

from __future__ import annotations

import json
from pathlib import Path

from akunu.tokenizer.bytelevel import CHAR_OF_BYTE

from . import seeing

__all__ = ["CONTROL", "write_talking"]

CONTROL = (
    "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>", "<|image_pad|>",
)  # fmt: skip
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.content is string %}{{ m.content }}{% else %}"
    "{% for part in m.content %}{% if part.type == 'image' %}<|vision_start|><|image_pad|><|vision_end|>"
    "{% else %}{{ part.text }}{% endif %}{% endfor %}{% endif %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def write_talking(model: seeing.Seeing, folder: Path) -> Path:
    """Write a model with tokens of bytes; its images are of 8 by 8 to 64 by 64 pixels."""
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
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"chat_template": TEMPLATE, "eos_token": "<|im_end|>"})
    )
    (folder / "preprocessor_config.json").write_text(
        json.dumps(
            {
                "size": {"shortest_edge": 64, "longest_edge": 4096}, "patch_size": 4, "merge_size": 2,
                "image_mean": [0.5] * 3, "image_std": [0.5] * 3,
            }
        )
    )  # fmt: skip
    return folder

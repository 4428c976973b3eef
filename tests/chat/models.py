"""A small tokenizer with the control tokens of several formats."""

from __future__ import annotations

import functools

from akunu.tokenizer import Segment, Tokenizer
from akunu.tokenizer.bytelevel import CHAR_OF_BYTE

CONTROL = [
    "<s>", "</s>", "<|im_start|>", "<|im_end|>", "<|user|>", "<|assistant|>", "<|end|>", "[INST]", "[/INST]",
    "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "<start_of_turn>", "<end_of_turn>", "\u00a7",
]  # fmt: skip


@functools.cache
def tokenizer() -> Tokenizer:
    """The 256 bytes, then `CONTROL`."""
    return Tokenizer.from_metadata(
        {
            "tokenizer.ggml.model": "gpt2",
            "tokenizer.ggml.pre": "gpt-2",
            "tokenizer.ggml.tokens": [*CHAR_OF_BYTE, *CONTROL],
            "tokenizer.ggml.token_type": [1] * 256 + [3] * len(CONTROL),
            "tokenizer.ggml.merges": [],
            "tokenizer.ggml.bos_token_id": 256,
            "tokenizer.ggml.eos_token_id": 257,
        }
    )


def text(segments: list[Segment]) -> str:
    return "".join(segment.text for segment in segments)


def controls(ids: list[int]) -> list[str]:
    """The control tokens among `ids`, in order."""
    return [tokenizer().token_text(i) for i in ids if i in tokenizer().control_ids]

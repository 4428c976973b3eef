"""A small WordPiece tokenizer for the tiny models."""

from __future__ import annotations

import json
from pathlib import Path
from string import ascii_lowercase, digits
from typing import Any

import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors

from . import tiny

__all__ = ["library", "with_files", "write_model"]

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = [
    *("the", "cat", "cats", "dog", "sits", "eat", "mice", "rome", "is", "city", "in", "of", "what", "do"),
    *("on", "mat", "hello", "world", "query", ":", "##ing", "##ed", "##er"),
]


def library() -> tokenizers.Tokenizer:
    """The tokenizer, in the library."""
    letters = [*ascii_lowercase, *digits, *".,!?'-;"]
    vocabulary = [*SPECIAL, *letters, *(f"##{letter}" for letter in letters), *WORDS]
    made = tokenizers.Tokenizer(
        models.WordPiece({text: i for i, text in enumerate(vocabulary)}, unk_token="[UNK]")
    )
    made.add_special_tokens(SPECIAL)
    made.normalizer = normalizers.BertNormalizer()
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    made.decoder = decoders.WordPiece()
    return made


def write_model(name: str, folder: Path) -> Path:
    """One of the tiny models, of BERT's, with that tokenizer."""
    tiny.write_folder(tiny.golden(name), folder)
    library().save(str(folder / "tokenizer.json"))
    return folder


def with_files(name: str, folder: Path, **files: dict[str, Any]) -> Path:
    """A model whose JSON files (named without ".json") have these keys as well."""
    write_model(name, folder)
    for stem, keys in files.items():
        path = folder / f"{stem}.json"
        path.write_text(json.dumps((json.loads(path.read_text()) if path.exists() else {}) | keys))
    return folder

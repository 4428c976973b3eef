"""Models for these tests: one that knows a little, and some whose random weights write hostile text."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from types import SimpleNamespace

import akunu
from akunu import _core
from akunu.api.model import Model
from akunu.loading.finding import find_model
from akunu.tokenizer import Tokenizer
from models.llama2c import shared_data
from sampling.engines import synthetic


@cache
def ember() -> Model:
    return akunu.load("ember", context=512, progress=False)


@cache
def hostile(vocabulary: str | None = None, parallel: int = 4) -> Model:
    """Random weights with the vocabulary of a file of the shared data, or ember's; every token is likely."""
    path = find_model("ember")
    if vocabulary is not None:
        path = shared_data("vocab") / f"ggml-vocab-{vocabulary}.gguf"
    metadata = _core.GgufFile(str(path)).metadata
    tokenizer = Tokenizer.from_metadata(metadata)
    # More logits than tokens, as in many models.
    engine = synthetic(tokenizer.vocab_size + 37, 33, head_dim=32, context=400, parallel=parallel)
    config = SimpleNamespace(vocab_size=tokenizer.vocab_size + 37, arch="llama", drafter=None)
    return Model(engine, tokenizer, config, {"general.architecture": "llama"}, Path("hostile.gguf"))

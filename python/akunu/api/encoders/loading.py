"""The part of `akunu.load` that is for models that make vectors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Final

from akunu import _core
from akunu.api.encoders.asking import check_template
from akunu.api.encoders.model import EmbeddingModel
from akunu.base.errors import UnsupportedError
from akunu.files.describe.config import ModelSpec
from akunu.files.describe.encoder_config import as_yes_no
from akunu.files.model_files import ModelFiles
from akunu.tokenizer import Tokenizer

__all__ = ["as_reranker", "load_encoder", "open_encoder"]

_ROWS: Final = ("positions", "kinds", "head.0.", "distance_embedding")
"""Matrices whose rows are taken one by one, as floats; folders of MLX may have codes of them."""


def as_reranker(opened: ModelFiles, spec: ModelSpec) -> ModelSpec:
    """The model as one that scores documents: it is one already, or it is asked for a yes or a no."""
    if spec.config.encoder is not None:
        if not spec.config.bidirectional and opened.modules.asks is not None:
            _check_question(opened, opened.tokenizer(spec.config.vocab_size))
        return spec
    tokenizer = opened.tokenizer(spec.config.vocab_size)
    words = [tokenizer.encode(word, add_special=False) for word in ("yes", "no")] if tokenizer else []
    ids = [word[0] for word in words if len(word) == 1]
    if len(ids) != 2 or tokenizer is None or "<|im_start|>" not in tokenizer.control_texts():
        raise UnsupportedError(
            'task: to rerank, a decoder needs the tokens "yes", "no" and "<|im_start|>", '
            "as Qwen3-Reranker has them"
        )
    answers = opened.modules.answers
    if answers is not None and answers != tuple(ids):
        raise UnsupportedError(
            f"modules.json: LogitScore compares the tokens {answers[0]} and {answers[1]}; supported are "
            f'"yes" and "no", {ids[0]} and {ids[1]}, of a model that is asked as Qwen3-Reranker is'
        )
    if answers is not None:
        _check_question(opened, tokenizer)
    return as_yes_no(spec, *ids)


def _check_question(opened: ModelFiles, tokenizer: Tokenizer | None) -> None:
    """Raise UnsupportedError where Sentence Transformers would give a decoder another text to score."""
    asks = opened.modules.asks
    if asks is False:
        raise UnsupportedError(
            "sentence_bert_config.json: modality_config: found no message, so that query and document stand "
            "alone; supported is a decoder that is asked as Qwen3-Reranker is"
        )
    if tokenizer is not None and (asks or opened.modules.answers):
        check_template(opened.metadata.get("tokenizer.chat_template"), tokenizer.names)


def open_encoder(
    opened: ModelFiles,
    spec: ModelSpec,
    *,
    device: str,
    context: int,
    threads: int,
    quantize: Mapping[str, str] | None,
    progress: Callable[[int, int], None] | None,
) -> _core.Encoder:
    """Open the engine of a model, without a tokenizer; `context` is the most tokens of a text."""
    floats = {name: "f32" for name, ref in spec.tensors.items() if ref.dtype and name.startswith(_ROWS)}
    return _core.Encoder(
        opened.files,
        spec,
        device=device,
        context=context,
        threads=threads,
        quantize={**floats, **(quantize or {})} or None,
        progress=progress,
    )


def load_encoder(
    opened: ModelFiles,
    spec: ModelSpec,
    path: Path,
    tokenizer: Future[Tokenizer | None],
    *,
    device: str,
    context: int | None,
    default_context: int,
    threads: int,
    quantize: Mapping[str, str] | None,
    progress: Callable[[int, int], None] | None,
) -> EmbeddingModel:
    """The loaded model; arguments are those of `akunu.load`, checked, `quantize` by tensor."""
    modules = opened.modules
    default = modules.max_tokens or min(modules.tokenizer_tokens or default_context, default_context)
    encoder = open_encoder(
        opened,
        spec,
        device=device,
        context=context or min(spec.config.context_length, default),
        threads=threads,
        quantize=quantize,
        progress=progress,
    )
    return EmbeddingModel(encoder, tokenizer.result(), spec.config, opened.metadata, path, modules)

"""The names of tensors and the keys of pooling in a GGUF file of an embedding model.

The inverse of `akunu.files.describe.encoder_config`. Names and conventions are llama.cpp's; what its reader
has no key for is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from akunu.base.errors import UnsupportedError
from akunu.files.describe.architectures import ARCHITECTURES
from akunu.files.describe.config import EncoderConfig, ModelConfig, ModelSpec
from akunu.files.describe.encoder_config import ACTIVATIONS, POOLING_TYPES, RANK
from akunu.files.describe.encoder_rows import ENCODERS, HF_ENCODERS
from akunu.files.describe.file_tensors import DENSE_NAMES, head_layers
from akunu.files.describe.gguf_numbers import local_by_period
from akunu.files.describe.hf_numbers import HfNumbers
from akunu.files.describe.hf_rotary import HfRotary

__all__ = ["encoder_layers", "pooling", "whole_window"]

Metadata = dict[str, object]

_POOLING_IDS: Final = {name: number for number, name in POOLING_TYPES.items()}


def encoder_layers(hf: Mapping[str, object], config: ModelConfig) -> Metadata:
    """The keys of an encoder's layers, besides its sizes."""
    row = ENCODERS[config.arch]
    found: Metadata = {}
    # llama.cpp's converter always says it for ModernBERT, in which two are usual.
    if config.activation != row.activation or row.window_period:
        found["hidden_activation"] = next(k for k, v in ACTIVATIONS.items() if v == config.activation)
    if row.rope:
        model_type = str(hf["model_type"])
        numbers = HfNumbers(hf, {**row.defaults, **HF_ENCODERS[model_type].defaults}, model_type)
        rope = HfRotary(hf, numbers, config.head_dim, 1, 1)
        found["rope.freq_base"] = rope.theta("full_attention")
        if row.window_period:
            found["rope.freq_base_swa"] = rope.theta("sliding_attention")
    if row.window_period:
        local = [window > 0 for window in config.layer_window]
        found["attention.sliding_window"] = whole_window(config)
        if local != local_by_period(config.n_layers, row.window_period, full_first=True):
            found["attention.sliding_window_pattern"] = local
    return found


def whole_window(config: ModelConfig) -> int:
    """The window as files say it: that of a model which sees both sides lies around a row."""
    window = max(config.layer_window, default=0)
    return 2 * (window - 1) if window and config.bidirectional else window


def pooling(hf: Mapping[str, object], spec: ModelSpec) -> Metadata:
    """The keys of what becomes of a text's rows.

    Raises
    ------
    UnsupportedError
        GGUF has no way to say it.
    """
    config, encoder = spec.config, spec.config.encoder
    assert encoder is not None
    found: Metadata = {}
    if config.bidirectional:
        found["attention.causal"] = False
        if config.arch not in ENCODERS and not ARCHITECTURES[config.arch].bidirectional:
            raise UnsupportedError(
                "config.json: the rows of a text see what comes after them, "
                f"which GGUF cannot say of {config.arch}"
            )
    if encoder.task == "rank":
        found["pooling_type"] = RANK
        for (_, activation), layer in zip(encoder.head, head_layers(spec), strict=True):
            if activation != (layer.activation or ""):
                raise UnsupportedError(
                    f"config.json: the head's activation is {activation}, "
                    f"but in GGUF files of {config.arch} it is {layer.activation}"
                )
        if config.arch in ENCODERS:
            found["classifier.pooling_type"] = _POOLING_IDS[encoder.pooling]
        if encoder.head[-1][0] != 1:
            found["classifier.output_labels"] = _labels(hf, encoder.head[-1][0])
        return found
    found["pooling_type"] = _POOLING_IDS[encoder.pooling]
    return found | (_dense(encoder, spec) if encoder.head else {})


def _labels(hf: Mapping[str, object], n: int) -> list[str]:
    labels = hf.get("id2label")
    known = labels if isinstance(labels, Mapping) else {}
    return [str(known.get(str(i), f"LABEL_{i}")) for i in range(n)]


def _dense(encoder: EncoderConfig, spec: ModelSpec) -> Metadata:
    config = spec.config
    sizes = [rows for rows, _ in encoder.head]
    plain = not any(
        activation or f"head.{i}_bias" in spec.tensors for i, (_, activation) in enumerate(encoder.head)
    )
    if (
        config.arch != "gemma-embedding"
        or len(sizes) != len(DENSE_NAMES)
        or sizes[-1] != config.dim
        or not plain
    ):
        raise UnsupportedError(
            "modules.json: GGUF has dense layers for EmbeddingGemma alone, two without biases and "
            f"activations, the second as wide as the model; found {len(sizes)}, with {sizes} elements, "
            f"behind a {config.arch} of {config.dim}"
        )
    found: Metadata = {}
    for name, n_in, n_out in zip(DENSE_NAMES, (config.dim, sizes[0]), sizes, strict=True):
        found |= {f"{name}_feat_in": n_in, f"{name}_feat_out": n_out}
    return found

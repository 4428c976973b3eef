"""What a GGUF file says of a model that makes vectors: names of its tensors, and keys of its pooling.

The inverse of `akunu.encoders.resolve`. Names and conventions are llama.cpp's; what its reader has no key for
is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from akunu.architectures import ARCHITECTURES, TensorRule
from akunu.config import EncoderConfig, ModelConfig, ModelSpec, local_by_period
from akunu.encoders.modules import DENSE
from akunu.encoders.resolve import ACTIVATIONS, POOLING_TYPES, RANK
from akunu.encoders.rows import ENCODERS, HF_ENCODERS, HeadRule
from akunu.errors import UnsupportedError
from akunu.hf_config import HfNumbers, HfRotary

__all__ = ["encoder_layers", "head_layers", "model_rules", "pooling", "whole_window"]

Metadata = dict[str, object]

_DENSE: Final = ("dense_2", "dense_3")
_POOLING_IDS: Final = {name: number for number, name in POOLING_TYPES.items()}


def model_rules(spec: ModelSpec) -> tuple[TensorRule, ...]:
    """The tensors that files have for a model of this kind."""
    config = spec.config
    row = ENCODERS.get(config.arch)
    rules = row.rules if row is not None else ARCHITECTURES[config.arch].rules
    if config.encoder is None:
        return rules
    return (*rules, *(rule for i, layer in enumerate(head_layers(spec)) for rule in _head_rules(i, layer)))


def head_layers(spec: ModelSpec) -> tuple[HeadRule, ...]:
    """The layers behind the pooling, by their names in files."""
    config = spec.config
    if config.encoder is None or not config.encoder.head:
        return ()
    row = ENCODERS.get(config.arch)
    if row is not None:
        return row.head[len(row.head) - len(config.encoder.head) :]
    if config.encoder.task == "rank":
        return (HeadRule("cls.output", "score"),)
    return tuple(HeadRule(name, f"{DENSE}{i}.linear") for i, name in enumerate(_DENSE))


def _head_rules(i: int, layer: HeadRule) -> list[TensorRule]:
    canonical = f"head.{i}"
    rules = [
        TensorRule(f"{layer.source}.weight", f"{layer.hf}.weight", ((canonical, "rows"),), "cols"),
        TensorRule(f"{layer.source}.bias", f"{layer.hf}.bias", ((f"{canonical}_bias", "rows"),)),
    ]
    if layer.norm is not None:
        names = zip(*((f"{name}.weight", f"{name}.bias") for name in layer.norm), strict=True)
        parts = (f"{canonical}_norm", f"{canonical}_norm_bias")
        rules += [
            TensorRule(source, hf, ((part, "rows"),)) for (source, hf), part in zip(names, parts, strict=True)
        ]
    return rules


def encoder_layers(hf: Mapping[str, object], config: ModelConfig) -> Metadata:
    """The keys of an encoder's layers, besides its sizes."""
    row = ENCODERS[config.arch]
    found: Metadata = {}
    # Of ModernBERT, in which two are usual, llama.cpp's converter says it always.
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
    window = max(config.layer_window)
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
    if config.arch != "gemma-embedding" or len(sizes) != len(_DENSE) or sizes[-1] != config.dim or not plain:
        raise UnsupportedError(
            "modules.json: GGUF has dense layers for EmbeddingGemma alone, two without biases and "
            f"activations, the second as wide as the model; found {len(sizes)}, with {sizes} elements, "
            f"behind a {config.arch} of {config.dim}"
        )
    found: Metadata = {}
    for name, n_in, n_out in zip(_DENSE, (config.dim, sizes[0]), sizes, strict=True):
        found |= {f"{name}_feat_in": n_in, f"{name}_feat_out": n_out}
    return found

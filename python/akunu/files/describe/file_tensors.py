"""The tensors that a model's files have, by their names there, and the type that each gets in a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from akunu.files.describe.architectures import ARCHITECTURES
from akunu.files.describe.blocks import Attention, Experts
from akunu.files.describe.config import ModelSpec
from akunu.files.describe.encoder_modules import DENSE
from akunu.files.describe.encoder_rows import ENCODERS, HeadRule
from akunu.files.describe.filetypes import tensor_dtype
from akunu.files.describe.tensor_rules import TensorRule

__all__ = [
    "DENSE_NAMES",
    "Shape",
    "head_layers",
    "matrix_type",
    "model_rules",
    "model_tensors",
    "quantized_types",
]

Shape = tuple[int, ...]

DENSE_NAMES: Final = ("dense_2", "dense_3")
"""GGUF's names of the dense layers behind the pooling."""


def quantized_types(spec: ModelSpec, file_type: str) -> dict[str, str]:
    """The type of each matrix of a model in a file of this type, by canonical name."""
    found: dict[str, str] = {}
    for rule, layer in model_tensors(spec):
        if rule.cols is None or not rule.source:
            continue
        prefix = f"layers.{layer}." if "{n}" in rule.source else ""
        for name, _ in rule.parts:
            ref = spec.tensors.get(prefix + name)
            if ref is not None and ref.n_cols:
                source = rule.source.replace("{n}", str(layer))
                found[prefix + name] = matrix_type(source, ref.n_cols, file_type, spec)
    return found


def model_tensors(
    spec: ModelSpec, rules: Sequence[TensorRule] | None = None
) -> Iterator[tuple[TensorRule, int]]:
    """The rules of tensors that the files of such a model may have, each with its layer.

    `rules` stand in place of `model_rules`.
    """
    rules = model_rules(spec) if rules is None else rules
    for in_layers in (False, True):
        for layer in range(spec.config.n_layers if in_layers else 1):
            yield from (
                (rule, layer)
                for rule in rules
                if ("{n}" in (rule.source or rule.hf)) is in_layers and _fits(rule, spec, layer)
            )


def _fits(rule: TensorRule, spec: ModelSpec, layer: int) -> bool:
    """Whether the model has what the rule needs, and lacks what it says."""
    return all(
        names is None or (f"layers.{layer}.{names[2]}" in spec.tensors) is wanted
        for names, wanted in ((rule.needs, True), (rule.lacks, False))
    )


def matrix_type(name: str, n_cols: int, file_type: str, spec: ModelSpec, weighted: bool = False) -> str:
    """The type that the mix has for a matrix of this name in GGUF."""
    config = spec.config
    first = next(iter(config.mixers(Attention)), None)
    layer, stem = 0, name.removesuffix(".weight")
    if stem.startswith("blk."):
        _, number, stem = stem.split(".", 2)
        layer = int(number)
    return tensor_dtype(
        file_type,
        stem,
        layer=layer,
        n_layers=config.n_layers,
        cols=n_cols,
        gqa=first.n_heads // first.n_kv_heads if first else 1,
        tied="output" not in spec.tensors,
        weighted=weighted,
        n_experts=max((mixer.count for mixer in config.mixers(Experts)), default=0),
    )


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
    return tuple(HeadRule(name, f"{DENSE}{i}.linear") for i, name in enumerate(DENSE_NAMES))


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

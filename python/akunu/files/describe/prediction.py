"""The layer behind a model's others that predicts a token more, by which the model drafts for itself."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from akunu.files.describe.blocks import Block, DraftHead, Mixer
from akunu.files.describe.tensor_map import TensorRef
from akunu.files.describe.tensor_rules import Architecture, LayerKind, MixerKind, Prediction, TensorRule

__all__ = ["PREDICTION", "PredictionLayer", "moved_names", "noticed", "prediction_layer", "with_names"]

PREDICTION: Final = "multi-token prediction"
"""The use of a head's tensors, for the notice that they are left out."""


@dataclass(frozen=True)
class PredictionLayer:
    """A layer that predicts a token more, as one model has it.

    Attributes
    ----------
    number
        Its number as a layer: how many layers there are besides.
    like
        The layer that it resembles.
    kind
        The kind of that layer, with the tensors that this one has besides.
    """

    number: int
    like: int
    kind: LayerKind
    normed_state: bool

    @property
    def kinds(self) -> list[LayerKind]:
        """The kind of each layer of this sort: one."""
        return [self.kind]

    @property
    def prefix(self) -> str:
        """The beginning of the canonical names of its tensors."""
        return f"layers.{self.number}."

    def head(self, makers: Mapping[MixerKind, Callable[[int], Mixer]]) -> DraftHead:
        """The head that drafts, of the mixers that `makers` make for the layer of a number."""
        blocks = [Block(self.prefix, self.number, makers[mixer](self.like)) for mixer in self.kind.mixers]
        return DraftHead(self.prefix, tuple(blocks), self.normed_state)


def prediction_layer(
    arch: Architecture, kinds: Sequence[LayerKind], has: Callable[[TensorRule, int], bool]
) -> PredictionLayer | None:
    """Return the layer of a model whose layers have these kinds, if its files have one.

    `has` says whether they have a rule's tensor in the layer of a number.
    """
    attention = [n for n, kind in enumerate(kinds) if {"attention", "latent_attention"} & set(kind.mixers)]
    if arch.prediction is None or not attention or not has(arch.prediction.tensors[0], len(kinds)):
        return None
    like = attention[-1]
    tensors = (*kinds[like].tensors, *arch.prediction.tensors)
    kind = dataclasses.replace(kinds[like], tensors=tensors)
    return PredictionLayer(len(kinds), like, kind, arch.prediction.normed_state)


def noticed(
    left_out: Mapping[str, str], layer: PredictionLayer | None, drafts: bool | None
) -> dict[str, str]:
    """Return the patterns of what is left out with a warning; `drafts` is as in `resolve`."""
    wanted = layer is not None or drafts is False
    return {pattern: what for pattern, what in left_out.items() if not (wanted and what == PREDICTION)}


def moved_names(prediction: Prediction, names: Sequence[str], prefix: str, number: int) -> dict[str, str]:
    """Names of tensors that a checkpoint has elsewhere, by those that they would have as a layer's.

    `prefix` stands before the names of the decoder's layers.
    """
    return {
        prefix + there.replace("{n}", str(number)) + name.removeprefix(here): name
        for here, there in prediction.places.items()
        for name in names
        if name.startswith(here)
    }


def with_names(refs: Mapping[str, TensorRef], names: Mapping[str, str]) -> dict[str, TensorRef]:
    """The places, with the names that the checkpoint has for tensors."""

    def real(name: str) -> str:
        return names.get(name, name)

    return {
        key: dataclasses.replace(ref, source=real(ref.source), more=tuple(map(real, ref.more)))
        for key, ref in refs.items()
    }

"""A synthetic head that drafts: its cost is a real one's, and how many of its drafts hold is set.

A head is trained with its model, and one of random weights is always wrong. So the drafts are computed as a
head's are, and then replaced by tokens that hold as often as is wanted: what the output is known to be.
Random weights write all tokens alike, but 95 % of the tokens of real outputs are common ones, so the head
takes this output's for such.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from collections.abc import Sequence as SequenceOf
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from akunu import _core
from akunu.api.scheduling import Sequence
from akunu.api.scheduling.head_proposer import HeadProposer
from akunu.files.describe.blocks import DraftHead
from akunu.files.describe.config import ModelConfig, ModelSpec
from akunu.files.describe.gguf_config import resolve
from akunu.files.describe.tensor_map import TensorRef
from akunu.loading.synthetic import SyntheticModel

__all__ = ["KnowingHead", "open_with_head"]

COMMON: Final = 0.95
"""Share of common tokens in outputs."""


def _with_head(spec: ModelSpec, types: dict[str, str]) -> tuple[ModelSpec, dict[str, str]]:
    """The model with a head that is like its last layer, and the types of all tensors."""
    config = spec.config
    last, prefix = f"layers.{config.n_layers - 1}.", f"layers.{config.n_layers}."
    blocks = [replace(b, prefix=prefix, layer=config.n_layers) for b in config.blocks if b.prefix == last]
    refs, types = dict(spec.tensors), dict(types)
    for name, ref in spec.tensors.items():
        if name.startswith(last):
            refs[name.replace(last, prefix)] = ref
            types[name.replace(last, prefix)] = types[name]
    for norm in ("embedding_norm", "state_norm", "output_norm"):
        refs[prefix + norm], types[prefix + norm] = TensorRef("", 0, config.dim, 0), "f32"
    refs[f"{prefix}joined"] = TensorRef("", 0, config.dim, 2 * config.dim)
    types[f"{prefix}joined"] = types[f"{last}ffn_up"]
    drafter = DraftHead(prefix, tuple(blocks), normed_state=True)
    return ModelSpec(replace(config, drafter=drafter), refs), types


@contextmanager
def open_with_head(
    name: str, *, context: int, threads: int, device: str = "cpu", head: bool = True
) -> Iterator[tuple[_core.Engine, ModelConfig]]:
    """Open SHAPE:TYPE with random weights and such a head, or without."""
    source = SyntheticModel(name)
    spec, types = resolve(source, context=context), source.dtypes
    if head:
        spec, types = _with_head(spec, types)
    engine = _core.Engine(None, spec, device=device, context=context, threads=threads, synthetic=types)
    try:
        yield engine, spec.config
    finally:
        engine.close()


class KnowingHead(HeadProposer):
    """A head each of whose drafts holds with the chance `accepted`, when those before it do."""

    def __init__(self, engine: _core.Engine, config: ModelConfig, accepted: float) -> None:
        super().__init__(engine, config)
        self._vocab, self._accepted, self._rng = config.vocab_size, accepted, random.Random(1)
        self.output: list[int] = []

    def write(self, wanted: SequenceOf[tuple[Sequence, int]]) -> list[list[int]]:
        """Drafts for sequences, all of which generate `output`."""
        drafts = super().write(wanted)
        return [
            self._right(self.output[len(sequence.tokens) :], len(ids))
            for (sequence, _), ids in zip(wanted, drafts, strict=True)
        ]

    def _share_of_common(self, sequences: SequenceOf[Sequence]) -> float:
        return COMMON

    def _right(self, follow: list[int], n: int) -> list[int]:
        return [
            token if self._rng.random() < self._accepted else (token + 1) % self._vocab
            for token in (follow + [0] * n)[:n]
        ]

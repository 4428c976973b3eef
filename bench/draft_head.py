"""A synthetic head that drafts: its cost is a real one's, and how many of its drafts hold is set.

A head is trained with its model, and one of random weights is nearly always wrong where tokens follow the
logits. But both sample with the same random number at each position: the higher the temperature, the more
that decides, and the more often the head is right. So there is a temperature for every acceptance. Random
weights write all tokens of a vocabulary alike; biases keep to some that are common ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

import numpy as np

from akunu import _core
from akunu.files.describe.blocks import DraftHead
from akunu.files.describe.config import ModelConfig, ModelSpec
from akunu.files.describe.gguf_config import resolve
from akunu.files.describe.tensor_map import TensorRef
from akunu.loading.synthetic import SyntheticModel

__all__ = ["open_with_head", "settings_for"]

COMMON: Final = 512
"""Tokens of outputs."""
BIAS: Final = 1e5
"""What is added to the logits of these: more than any noise at any temperature."""
COLDEST: Final = 0.3
HOTTEST: Final = 1e3
"""Temperatures between which all acceptances are."""
HALVINGS: Final = 9
TRIED: Final = 128
"""Drafts that tell how many hold."""
CHAIN: Final = 16
"""Steps of a chain meanwhile."""


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


def settings_for(engine: _core.Engine, accepted: float) -> dict[str, Any]:
    """Return settings of the sampler with which so many of the head's drafts hold."""
    if accepted == 0:  # where all tokens may come, the head is as good as never right
        return {"seed": 1, "temperature": 1.0}
    rng = np.random.default_rng(2)
    ids = rng.choice(engine.common_tokens or engine.vocab, min(COMMON, engine.vocab), replace=False)
    settings: dict[str, Any] = {"seed": 1, "logit_bias": [(int(token), BIAS) for token in ids]}
    low, high = np.log(COLDEST), np.log(HOTTEST)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if _share_held(engine, {**settings, "temperature": float(np.exp(middle))}) < accepted:
            low = middle
        else:
            high = middle
    return {**settings, "temperature": float(np.exp(high))}


def _share_held(engine: _core.Engine, settings: dict[str, Any]) -> float:
    """Return how many drafts hold, of one for each step of a text."""
    slot = engine.open()
    assert slot is not None
    engine.begin(np.arange(1, 9, dtype=np.uint32), slot=slot, reuse=False, **settings)
    assert engine.reserve(slot, 8)
    engine.step([(slot, 8, True, 0, [])])
    held = steps = 0
    while steps < TRIED:
        assert engine.reserve(slot, 1, CHAIN, 1)
        (chunk,), _ = engine.draft_and_verify([(slot, 0)], 1, CHAIN, engine.common_tokens > 0)
        held, steps = held + len(chunk.ids) - len(chunk.of_steps), steps + len(chunk.of_steps)
    engine.close_slot(slot)
    return held / steps

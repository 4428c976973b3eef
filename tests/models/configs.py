"""Configurations for tests: small models without a file, and what differs in one number from another."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from akunu.files.describe.blocks import Attention, Block, FeedForward, Mixer, RopeSet
from akunu.files.describe.config import ModelConfig
from akunu.files.describe.tensor_rules import RopeStyle

__all__ = ["changed", "plain"]


def plain(
    *,
    dim: int,
    n_layers: int,
    n_heads: int,
    n_kv_heads: int,
    head_dim: int,
    ffn_dim: int,
    vocab_size: int,
    context_length: int,
    inv_freq: npt.NDArray[np.float32],
    rope_style: RopeStyle = "half",
    scale: float = 1.0,
) -> ModelConfig:
    """A Llama-like model."""
    attention = Attention(n_heads, n_kv_heads, head_dim, scale, rope=0)
    feed_forward = FeedForward(ffn_dim, "silu")
    blocks = [Block(f"layers.{n}.", n, mixer) for n in range(n_layers) for mixer in (attention, feed_forward)]
    return ModelConfig(
        arch="llama",
        n_layers=n_layers,
        dim=dim,
        vocab_size=vocab_size,
        context_length=context_length,
        norm_eps=1e-5,
        final_softcap=0.0,
        embedding_scale=1.0,
        rope_sets=(RopeSet(inv_freq, 1.0, rope_style),),
        blocks=tuple(blocks),
    )


def changed(config: ModelConfig, kind: type[Mixer], **changes: Any | Sequence[Any]) -> ModelConfig:
    """The same model with other numbers in all mixers of a kind; a list has one number for each of them."""
    count = 0
    blocks = []
    for block in config.blocks:
        mixer = block.mixer
        if isinstance(mixer, kind):
            own = {
                name: value[count] if isinstance(value, list) else value for name, value in changes.items()
            }
            mixer = dataclasses.replace(mixer, **own)
            count += 1
        blocks.append(dataclasses.replace(block, mixer=mixer))
    return dataclasses.replace(config, blocks=tuple(blocks))

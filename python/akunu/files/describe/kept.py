"""Count what a sequence keeps in memory, by its model's numbers: for each token, and at any length."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from akunu.files.describe.blocks import (
    Attention,
    DeltaNet,
    Experts,
    LatentAttention,
    Mamba2,
    Recurrence,
    ShortConvolution,
)
from akunu.files.describe.config import ModelConfig

__all__ = ["Kept", "kept_by", "layers_text"]

_HALF, _FLOAT = 2, 4
"""Bytes of an element of keys and values in F16, and of states."""


@dataclass(frozen=True, slots=True)
class Kept:
    """Bytes that a sequence keeps.

    Attributes
    ----------
    token : int
        Bytes of each token: keys and values of layers without a window, in F16.
    windows : int
        Those of layers with a window, in F16, when it is full.
    states : int
        States of recurrent layers, F32.
    convolutions : int
        The rows that convolutions look back at, F32.
    """

    token: int = 0
    windows: int = 0
    states: int = 0
    convolutions: int = 0


def kept_by(config: ModelConfig) -> Kept:
    """Bytes that a sequence of this model keeps, without what rounding up to pages adds."""
    token = windows = states = rows = 0
    for block in config.blocks:
        match block.mixer:
            case Attention(kv_owner=None, bidirectional=False) as a:
                own = 2 * _HALF * a.n_kv_heads * a.head_dim
                token, windows = (token, windows + own * a.window) if a.window else (token + own, windows)
            case LatentAttention() as a:
                token += _HALF * (a.latent + a.rope_dim)
            case DeltaNet() as net:
                states += _FLOAT * net.value_heads * net.key_dim * net.value_dim
                channels = 2 * net.key_heads * net.key_dim + net.value_heads * net.value_dim
                rows += _FLOAT * channels * (net.taps - 1)
            case Mamba2() as net:
                states += _FLOAT * net.heads * net.head_dim * net.state_dim
                channels = net.heads * net.head_dim + 2 * net.groups * net.state_dim
                rows += _FLOAT * channels * (net.taps - 1)
            case ShortConvolution() as net:
                rows += _FLOAT * config.dim * (net.taps - 1)
            case Recurrence() as net:
                states += _FLOAT * net.dim
    return Kept(token, windows, states, rows)


def layers_text(config: ModelConfig) -> str:
    """Return how many layers there are, and what they compute."""
    counts = Counter(block.mixer.kind.replace("_", " ") for block in config.blocks)
    mixers = ", ".join(f"{n} {kind}" for kind, n in counts.items())
    experts = config.mixers(Experts)
    used = f"; a token uses {experts[0].used} of {experts[0].count} experts" if experts else ""
    return f"{config.n_layers}: {mixers}{used}"

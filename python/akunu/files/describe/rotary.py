"""Rotary frequencies and their scalings, as formulas: float64 [rope_dim/2], radians per position."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import numpy.typing as npt

__all__ = [
    "DIVISORS",
    "UNROTATED",
    "UNROTATED_DIVISOR",
    "inverse_frequencies",
    "is_divisor",
    "llama3",
    "longrope_scale",
    "proportional",
    "yarn",
    "yarn_scale",
]

Frequencies = npt.NDArray[np.float64]

UNROTATED: Final = 1e29
"""A pair with this divisor, or a greater one, is not rotated."""
UNROTATED_DIVISOR: Final = 1e30
"""The divisor that files have for such a pair."""

DIVISORS: Final = "divisors from 0.001 to 1e6, or 1e30 for no rotation"
"""The divisors that `is_divisor` takes, for messages."""


def is_divisor(value: float) -> bool:
    """Whether a number of a file may divide a frequency; NaN may not."""
    return 1e-3 <= value <= 1e6 or UNROTATED <= value < math.inf


def inverse_frequencies(theta: float, rope_dim: int) -> Frequencies:
    """theta**(-2i / rope_dim) for i < rope_dim / 2."""
    return np.asarray(theta ** -(np.arange(0, rope_dim, 2, dtype=np.float64) / rope_dim))


def proportional(theta: float, head_dim: int, share: float) -> Frequencies:
    """The frequencies of a whole head, of which the first `share` rotates: the rest are 0."""
    frequencies = inverse_frequencies(theta, head_dim)
    frequencies[int(share * head_dim // 2) :] = 0.0
    return frequencies


def yarn(
    inv_freq: Frequencies,
    *,
    theta: float,
    factor: float,
    original: int,
    beta_fast: float,
    beta_slow: float,
    truncate: bool = True,
) -> Frequencies:
    """YaRN ("NTK-by-parts", arXiv:2309.00071): high frequencies kept, low ones divided by `factor`.

    Parameters
    ----------
    original
        Positions of the first training.
    beta_fast, beta_slow
        Rotations in that context from which a frequency is kept, and below which it is divided.
    truncate
        Round the indices of those two frequencies outwards.
    """
    rope_dim = 2 * len(inv_freq)

    def index_of(rotations: float) -> float:
        """The (fractional) frequency index that makes so many rotations in the original context."""
        return rope_dim * math.log(original / (rotations * 2.0 * math.pi)) / (2.0 * math.log(theta))

    low, high = index_of(beta_fast), index_of(beta_slow)
    if truncate:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, rope_dim - 1)
    # With a short context or a small theta the range may be reversed, and its ramp falls.
    ramp = np.clip((np.arange(rope_dim // 2) - low) / (high - low or 1e-3), 0.0, 1.0)
    return np.asarray(inv_freq * (1.0 - ramp) + inv_freq / factor * ramp)


def yarn_scale(factor: float, weight: float = 1.0) -> float:
    """YaRN's factor on cos and sin: equation 22, the softmax temperature, moved there."""
    return 1.0 + 0.1 * weight * math.log(max(factor, 1.0))


def llama3(
    inv_freq: Frequencies, *, factor: float, low_freq: float, high_freq: float, original: int
) -> Frequencies:
    """Llama 3.1: with `low_freq` rotations in `original` positions or less divided, with `high_freq` kept."""
    rotations = original * inv_freq / (2.0 * math.pi)
    kept = np.clip((rotations - low_freq) / (high_freq - low_freq), 0.0, 1.0)
    return np.asarray(inv_freq * ((1.0 - kept) / factor + kept))


def longrope_scale(factor: float, original: int) -> float:
    """LongRoPE's factor on cos and sin (arXiv:2402.13753), for a context that grew by `factor`."""
    return math.sqrt(1.0 + math.log(factor) / math.log(original)) if factor > 1.0 and original > 1 else 1.0

"""What the builders share.

The bounds are normalised mean square errors against float64. A kernel sums in binary32, which costs 1e-15 to
1e-12; what an int8 activation costs on top is in INT8_NMSE, and is seen by comparing with the values before
they were rounded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from .. import reference as ref

EXACT_NMSE = 1e-11
INT8_NMSE = 1e-4
F16_KV_NMSE = 1e-7  # keys that lie between two f16 values may be rounded to either

STYLE = {"interleaved": 0, "half": 1}
ACTIVATION = {"silu": 0, "gelu": 1}
FORMAT = {"f32": 1, "q8": 2, "f16": 4}


class Traits(Protocol):
    """What a problem must know of the device: a Lab."""

    def matmul_input(self, dtype: str) -> str:
        """The activation format that a matmul with these weights reads."""


def formats(names: Sequence[str]) -> int:
    return sum(FORMAT[n] for n in names)


def act_bytes(fmt: str) -> float:
    """Bytes per element, as the table builder counts them."""
    return {"f32": 4.0, "q8": 1.5, "f16": 2.0}[fmt]


def normal(rng: np.random.Generator, *shape: int, sigma: float = 1.0) -> ref.F32:
    return (rng.standard_normal(shape) * sigma).astype(np.float32)


def kv_round(x: ref.F32, dtype: str) -> ref.F32:
    return x.astype(np.float16).astype(np.float32) if dtype == "f16" else x

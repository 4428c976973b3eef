"""What the builders share.

The bounds are normalised mean square errors against float64. A kernel sums in binary32, which costs 1e-15 to
1e-12; what an int8 activation costs on top is in INT8_NMSE, and is seen by comparing with the values before
they were rounded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from .. import reference as ref
from ..weights import dtype_row

EXACT_NMSE = 1e-11
INT8_NMSE = 1e-4
# A GPU's matmul of many rows holds weights in F16 tiles, which rounds those of the block formats: 4e-8 each.
F16_TILE_NMSE = 3e-7
# Attention of whole sequences may be by sums of two BF16, of 16 bits together.
SPLIT_NMSE = 1e-10
# Matmuls of their floats may be of 16-bit integers. Parts of n <= 128 activations are multiples of their
# norm / 32760, whose error is n / (12·32760²) of their square, at most 1e-8; rows of weights multiples of a
# part's norm / 65500, 2.5e-9 where their parts are alike. Twice that where there is a gate; and few outputs
# vary. With AMX both are multiples of 1/32639 of the greatest of 384, or of a row: 1.3e-9 each where that is
# four deviations.
FIXED_MATMUL_NMSE = 5e-8
#: Sets whose matmuls for floats of whole sequences multiply 16-bit integers.
FIXED = ("avx512_amx", "avx512_vnni", "avx2_vnni", "avx2")
# CUDA multiplies codes that lie in tiles with one row of inputs as whole numbers, multiples of 1/32512 of the
# greatest of 128: 1.3e-9 of their square where that is four deviations. Twice that where there is a gate; and
# few outputs vary.
ROW_CODES_NMSE = 5e-9
# CUDA's attention of prompts rounds queries, weights, and what a cache of Q8_0 holds to F16, whose
# squared error is 4e-8 of the square. Weights change by what their scores do, of which the cases have a
# variance of 9: so it is ten times that, and twice for keys and values that are rounded, too. Where the cache
# is F32 each is two F16 numbers, which is as good as F32.
F16_ATTENTION_NMSE = 8e-7
# Attention in both directions, before a matmul that rounds it, may round its factors to 15 bits or less.
FIXED_NMSE = 2e-7
# Squares of what was rounded to int8, or to F16: by 2^-11 at most, so by a third of that squared in the mean,
# and the error of a square is twice as large.
SQUARES_NMSE = {"f32": EXACT_NMSE, "q8": INT8_NMSE, "f16": 4 * 2.0**-22 / 3}
# Keys that lie between two values of the cache's type may be rounded to either.
KV_NMSE = {"f32": EXACT_NMSE, "f16": 1e-7, "q8_0": 1e-5, "q4_0": 1e-3}

#: Rows that may be refused, for which a record has room besides the state.
STASH = 32

STYLE = {"interleaved": 0, "half": 1}
ACTIVATION = {"silu": 0, "gelu": 1, "gelu_erf": 2, "tanh": 3, "relu": 4, "sigmoid": 5, "relu2": 6, "none": 7}
FORMAT = {"f32": 1, "q8": 2, "f16": 4}
#: What a CUDA device's set begins with: its own machine code, or code that the driver compiles for it.
CUDA = ("sm_", "compute_")


class Traits(Protocol):
    """What a problem must know of the device: a Lab."""

    @property
    def isa(self) -> str:
        """The CPU's instruction set, or the GPU."""

    def matmul_input(self, dtype: str) -> str:
        """The activation format that a matmul with these weights reads."""

    def kv_page_bytes(self, dtype: str, n_kv_heads: int, head_dim: int) -> int:
        """Bytes of a layer's keys and values of 32 positions."""


def formats(names: Sequence[str]) -> int:
    return sum(FORMAT[n] for n in names)


def act_bytes(fmt: str) -> float:
    """Bytes per element, as the table builder counts them."""
    return {"f32": 4.0, "q8": 1.5, "f16": 2.0}[fmt]


def normal(rng: np.random.Generator, *shape: int, sigma: float = 1.0) -> ref.F32:
    return (rng.standard_normal(shape) * sigma).astype(np.float32)


def kv_round(x: ref.F32, dtype: str, scale_dtype: type[np.floating[Any]] = np.float32) -> ref.F32:
    """What the cache makes of x; q8_0 and q4_0 have a scale for 32 of the last axis, or for the rest."""
    if dtype == "f16":
        return x.astype(np.float16).astype(np.float32)
    if dtype == "f32":
        return x
    out = np.empty_like(x)
    if dtype == "q4_0":
        for i in range(0, x.shape[-1], 32):
            run = x[..., i : i + 32]
            high, low = run.max(-1, keepdims=True), run.min(-1, keepdims=True)
            d = np.where(high > -low, high, low) / np.float32(-8)
            inverse = np.divide(np.float32(1), d, out=np.zeros_like(d), where=d != 0)
            codes = np.trunc(run * inverse + np.float32(8.5)).clip(0, 15)
            out[..., i : i + 32] = (codes - 8) * d.astype(np.float16).astype(np.float32) + np.float32(0)
        return out
    assert dtype == "q8_0"
    for i in range(0, x.shape[-1], 32):
        run = x[..., i : i + 32]
        d = (np.abs(run).max(-1, keepdims=True) / np.float32(127)).astype(scale_dtype).astype(np.float32)
        inverse = np.divide(np.float32(1), d, out=np.zeros_like(d), where=d > 0)
        out[..., i : i + 32] = np.rint(run * inverse).clip(-127, 127) * d + np.float32(0)  # int8 has no -0
    return out


def kv_types(kv: str) -> tuple[str, str]:
    """Types of keys and of values."""
    k, _, v = kv.partition(",")
    return k, v or k


def kv_bytes(kv: str) -> float:
    """Bytes of one element in the cache, of a key and a value on average."""
    rows = [dtype_row(name) for name in kv_types(kv)]
    return sum(row["block_bytes"] / row["block_elems"] for row in rows) / 2

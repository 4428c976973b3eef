"""Weights of every GGUF type, for tests.

Types that gguf-py can quantise are quantised from given values. For the others the blocks are random bits
with sane scales: every bit pattern of a block is valid once its scales are finite, and a test model is random
anyway.
"""

from __future__ import annotations

from dataclasses import dataclass

import gguf
import numpy as np
import numpy.typing as npt

__all__ = ["BLOCK_SIZE", "CODEBOOKS", "DTYPES", "encode", "fits"]


@dataclass(frozen=True)
class _Blocks:
    """Byte offsets of the f16 scale and, where there is one, of the f16 minimum of a block.

    `balance` is the mean quant: with minimum = balance * scale the values scatter around zero.
    """

    scale: int
    minimum: int | None = None
    balance: float = 0.0


_QUANTIZED = (
    "F32",
    "F16",
    "BF16",
    "Q4_0",
    "Q4_1",
    "Q5_0",
    "Q5_1",
    "Q8_0",
    "MXFP4",
    "TQ1_0",
    "TQ2_0",
)
_RANDOM = {
    "Q2_K": _Blocks(80, 82, 1.5),
    "Q3_K": _Blocks(108),
    "Q4_K": _Blocks(0, 2, 7.5),
    "Q5_K": _Blocks(0, 2, 15.5),
    "Q6_K": _Blocks(208),
    "IQ4_NL": _Blocks(0),
    "IQ4_XS": _Blocks(0),
    "IQ1_S": _Blocks(0),
    "IQ2_XXS": _Blocks(0),
    "IQ2_XS": _Blocks(0),
    "IQ2_S": _Blocks(0),
    "IQ3_XXS": _Blocks(0),
    "IQ3_S": _Blocks(0),
}
#: Of these, GPUs take none.
CODEBOOKS = ("IQ1_S", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S")

DTYPES = (*_QUANTIZED, *_RANDOM)
"""Every weight type that the engine supports."""

BLOCK_SIZE = {name: gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[name]][0] for name in DTYPES}
"""Elements in a block; a row is a whole number of blocks."""


def fits(dtype: str, n_cols: int) -> bool:
    """Whether a row of `n_cols` can have this type."""
    return n_cols % BLOCK_SIZE[dtype] == 0


def encode(values: npt.NDArray[np.float32], dtype: str, seed: int) -> npt.NDArray[np.uint8]:
    """Bytes [rows, row bytes] of a matrix.

    For the types in `_RANDOM` the result only has the standard deviation of `values`, not the values.
    """
    qtype = gguf.GGMLQuantizationType[dtype]
    if dtype in _QUANTIZED:
        rows = gguf.quants.quantize(values, qtype)
        return np.ascontiguousarray(rows).view(np.uint8).reshape(values.shape[0], -1)
    layout = _RANDOM[dtype]
    block_size, block_bytes = gguf.GGML_QUANT_SIZES[qtype]
    n_blocks = values.size // block_size
    rng = np.random.RandomState(seed)
    blocks = rng.randint(0, 256, (n_blocks, block_bytes), dtype=np.uint8)
    # Measure the spread at scale 1/64, then choose the scales; f16 is fine for the range that comes out.
    _set_scales(blocks, layout, np.full(n_blocks, 1.0 / 64.0))
    spread = float(np.std(gguf.quants.dequantize(blocks, qtype))) * 64.0
    scales = float(np.std(values)) / spread * rng.uniform(0.7, 1.3, n_blocks)
    if layout.minimum is None:
        scales *= rng.choice(
            [-1.0, 1.0], n_blocks
        )  # as in real files; and the quants alone are not quite centred
    _set_scales(blocks, layout, scales)
    return blocks.reshape(values.shape[0], -1)


def _set_scales(blocks: npt.NDArray[np.uint8], layout: _Blocks, scales: npt.NDArray[np.float64]) -> None:
    def put(offset: int, numbers: npt.NDArray[np.float64]) -> None:
        blocks[:, offset : offset + 2] = numbers.astype("<f2").view(np.uint8).reshape(-1, 2)

    put(layout.scale, scales)
    if layout.minimum is not None:
        put(layout.minimum, scales * layout.balance)

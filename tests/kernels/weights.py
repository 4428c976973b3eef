"""Random weights in the bytes of every format."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from akunu import _core

from .problem import Weight

#: Offset in a block of each binary16 scale or minimum, and how large it is for values of about 1.
_HALVES: dict[str, dict[int, float]] = {
    "q4_0": {0: 0.22},
    "q4_1": {0: 0.22, 2: -1.63},
    "q5_0": {0: 0.11},
    "q5_1": {0: 0.11, 2: -1.68},
    "q8_0": {0: 0.0135},
    "q2_k": {80: 0.1, 82: 0.1},
    "q3_k": {108: 0.024},
    "q4_k": {0: 0.0059, 2: 0.048},
    "q5_k": {0: 0.0029, 2: 0.048},
    "q6_k": {208: 0.00073},
    "iq4_nl": {0: 0.0154},
    "iq4_xs": {0: 0.00083},
    "iq1_s": {0: 0.139},
    "iq2_xxs": {0: 0.019},
    "iq2_xs": {0: 0.018},
    "iq2_s": {0: 0.018},
    "iq3_xxs": {0: 0.0071},
    "iq3_s": {0: 0.0071},
    "tq1_0": {52: 1.22},
    "tq2_0": {64: 0.89},
    "q1_0": {0: 1.0},
    "q2_0": {0: 0.89},
    "iq1_levels": {104: 0.076},
    "iq2_levels": {104: 0.017},
    "iq3_xxs_levels": {132: 0.0059},
    "iq3_s_levels": {132: 0.0059},
}


@cache
def dtype_row(name: str) -> dict[str, Any]:
    """The row of the dtype table."""
    return next(row for row in _core.dtypes() if row["name"] == name)


#: Of the affine types, whose kernels differ by the number of bits alone: each of these, with groups and types
#: of scales in turn.
_AFFINE = (
    "mlx_q2_g128_bf16",
    "mlx_q3_g32_f16",
    "mlx_q4_g64_bf16",
    "mlx_q5_g128_f16",
    "mlx_q6_g64_f32",
    "mlx_q8_g32_bf16",
)


def weight_dtypes() -> list[str]:
    """Every type that a weight may have; of those that differ by data alone, some."""
    names = [row["name"] for row in _core.dtypes() if row["is_weight"]]
    return [name for name in names if not name.startswith("mlx_q") or name in _AFFINE]


def is_float(dtype: str) -> bool:
    """True for f32, f16 and bf16."""
    return bool(dtype_row(dtype)["block_elems"] == 1)


def is_planar(dtype: str) -> bool:
    """True where codes, scales and biases are tensors of their own."""
    return bool(dtype_row(dtype)["planes"][1])


def is_affine(dtype: str) -> bool:
    """True where there are biases."""
    return bool(dtype_row(dtype)["planes"][2])


#: What a GPU is given in place of a file's type.
_RECODED = {
    "tq1_0": "mlx_q2_g128_f16",
    "tq2_0": "mlx_q2_g128_f16",
    "q1_0": "mlx_q2_g128_f16",
    "q2_0": "mlx_q2_g64_f16",
    "nvfp4": "mlx_nvfp4",
}


def recoded(dtype: str) -> str:
    """The type that a device without kernels for this one multiplies."""
    return _RECODED.get(dtype, dtype)


def has_levels(dtype: str) -> bool:
    """True for types with codebooks, and for what they become."""
    return dtype.startswith(("iq1", "iq2", "iq3"))


def whole_weight(rng: np.random.Generator, dtype: str, rows: int, cols: int) -> Weight:
    """Whole numbers from -8 to 8, as f32, f16 or q8_0."""
    values = rng.integers(-8, 9, (rows, cols))
    if is_float(dtype):
        data = values.astype({"f32": np.float32, "f16": np.float16}[dtype]).view(np.uint8)
        return Weight(dtype, data.reshape(-1), rows, cols)
    blocks = np.zeros((rows * cols // 32, 34), np.uint8)
    blocks[:, :2] = np.ones(1, np.float16).view(np.uint8)
    blocks[:, 2:] = values.astype(np.int8).reshape(-1, 32).view(np.uint8)
    return Weight(dtype, blocks.reshape(-1), rows, cols)


def random_weight(
    rng: np.random.Generator,
    dtype: str,
    rows: int,
    cols: int,
    prepared: bool = True,
    sigma: float | None = None,
) -> Weight:
    """All bits random but the scales, which vary and give values of about `sigma` (default 1/√cols)."""
    sigma = sigma or cols**-0.5
    row = dtype_row(dtype)
    if is_float(dtype):
        values = (rng.standard_normal((rows, cols)) * sigma).astype(np.float32)
        if dtype == "bf16":
            data = (values.view(np.uint32) >> 16).astype(np.uint16).view(np.uint8)
        else:
            data = values.astype({"f32": np.float32, "f16": np.float16}[dtype]).view(np.uint8)
        return Weight(dtype, data.reshape(-1), rows, cols, prepared)
    n = rows * cols // row["block_elems"]
    blocks = np.frombuffer(rng.bytes(n * row["block_bytes"]), np.uint8).reshape(n, row["block_bytes"]).copy()
    for offset, scale in _HALVES.get(dtype, {}).items():
        sizes = (scale * sigma * rng.uniform(0.5, 1.5, n)).astype(np.float16)
        blocks[:, offset : offset + 2] = sizes[:, None].view(np.uint8)
    if dtype == "iq1_m":  # a quarter of the scale in front of each four small ones
        sizes = (0.139 * sigma * rng.uniform(0.5, 1.5, n)).astype(np.float16).view(np.uint16)
        for i in range(4):
            blocks[:, 49 + 2 * i] = blocks[:, 49 + 2 * i] & 15 | (sizes >> 4 * i & 15) << 4
    if row["planes"][2]:
        _set_affine(rng, blocks, row, sigma)
    elif row["planes"][1]:
        _set_floats(rng, blocks, row, sigma)
    if dtype == "nvfp4":
        exponents = np.rint(np.log2(sigma / 3)) + rng.integers(-2, 3, (n, 4))
        blocks[:, :4] = (7 + exponents).clip(0, 15).astype(np.uint8) << 3
        blocks[:, :4] += rng.integers(0, 7, (n, 4), dtype=np.uint8)
    if dtype == "mxfp4":
        blocks[:, 0] = np.clip(np.rint(127 + np.log2(sigma / 3)) + rng.integers(-2, 3, n), 0, 254)
    return Weight(dtype, blocks.reshape(-1), rows, cols, prepared)


def _set_affine(
    rng: np.random.Generator, blocks: npt.NDArray[np.uint8], row: dict[str, Any], sigma: float
) -> None:
    """Scales and biases, so that the codes are about the middle."""
    codes, scale_bytes, _ = row["planes"]
    most = (1 << codes * 8 // row["block_elems"]) - 1
    scales = (sigma * 3.5 / most * rng.uniform(0.5, 1.5, len(blocks))).astype(np.float32)
    biases = (-scales * most * rng.uniform(0.4, 0.6, len(blocks))).astype(np.float32)
    for i, values in enumerate((scales, biases)):
        if row["scale_type"] == "bf16":
            raw = (values.view(np.uint32) >> 16).astype("<u2")
        else:
            raw = values.astype({"f16": "<f2", "f32": "<f4"}[row["scale_type"]])
        at = codes + i * scale_bytes
        blocks[:, at : at + scale_bytes] = raw[:, None].view(np.uint8)


def _set_floats(
    rng: np.random.Generator, blocks: npt.NDArray[np.uint8], row: dict[str, Any], sigma: float
) -> None:
    """Scales of codes that are floats; those of a byte are below 2."""
    codes = row["planes"][0]
    if codes == row["block_elems"]:
        blocks[:, :codes] &= 0xBF
    size = sigma / (0.6 if codes == row["block_elems"] else 3)
    exponents = np.rint(np.log2(size)) + rng.integers(-2, 3, (len(blocks), row["planes"][1]))
    if row["scale_type"] == "f32":
        sizes = (size * rng.uniform(0.5, 1.5, len(blocks))).astype("<f4")
        blocks[:, codes:] = sizes[:, None].view(np.uint8)
    elif row["scale_type"] == "f8_e8m0":
        blocks[:, codes:] = 127 + exponents
    else:
        blocks[:, codes:] = ((7 + exponents).clip(0, 15).astype(np.uint8) << 3) + rng.integers(
            0, 7, exponents.shape
        )


def row_slice(weight: Weight, rows: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.float32]:
    """Some rows, dequantised: [len(rows), cols] f32."""
    data = weight.data.reshape(weight.rows, -1)[rows]
    return np.asarray(_core.dequantize(weight.dtype, data, len(rows) * weight.cols)).reshape(
        len(rows), weight.cols
    )

"""MLX's quantized types dequantise to the bits that the PyPI package mlx computes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from akunu import _core

from . import mlx_planes
from .mlx_planes import BITS, GROUPS, SCALES, Planes

GOLDEN = Path(__file__).resolve().parents[1] / "data" / "golden" / "mlx_quantized.npz"


def dequantized(planes: Planes, bits: int, group: int, dtype: str) -> np.ndarray:
    blocks = mlx_planes.blocks(planes, dtype)
    n = len(blocks) * group
    flat = _core.dequantize(f"mlx_q{bits}_g{group}_{dtype.lower()}", blocks, n)
    return flat.reshape(len(planes.codes), -1)


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("bits", BITS)
def test_affine_types_have_the_values_of_mlx(bits: int, group: int) -> None:
    with np.load(GOLDEN) as golden:
        codes, scales, biases, values = (
            golden[f"affine_{bits}_{group}_{part}"] for part in ("codes", "scales", "biases", "values")
        )
    found = dequantized(Planes(codes, scales, biases), bits, group, "F32")
    np.testing.assert_array_equal(found.view(np.uint32), values.view(np.uint32))


@pytest.mark.parametrize("dtype", SCALES)
@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("bits", BITS)
def test_every_type_of_scales_is_exact(bits: int, group: int, dtype: str) -> None:
    rng = np.random.default_rng(bits * group)
    planes = mlx_planes.quantize(rng.standard_normal((2, 256)).astype(np.float32), bits, group, dtype)
    found = dequantized(planes, bits, group, dtype)
    np.testing.assert_array_equal(found.view(np.uint32), planes.values(bits).view(np.uint32))


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("bits", BITS)
def test_mlx_reads_our_planes_alike(bits: int, group: int) -> None:
    mx = pytest.importorskip("mlx.core")
    rng = np.random.default_rng(bits + group)
    planes = mlx_planes.quantize(rng.standard_normal((4, 384)).astype(np.float32), bits, group, "BF16")
    theirs = np.array(mx.dequantize(*(mx.array(p) for p in planes), group_size=group, bits=bits))
    np.testing.assert_array_equal(planes.values(bits), theirs)

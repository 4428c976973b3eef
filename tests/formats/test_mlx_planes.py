"""MLX's quantized types dequantise to the bits that the PyPI package mlx computes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from akunu import _core

from . import mlx_planes
from .mlx_planes import BITS, E2M1, E4M3, GROUPS, MODES, SCALES, Planes

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


def float_blocks(codes: np.ndarray, scales: np.ndarray, bits: int) -> np.ndarray:
    """Codes and scales of 32 elements at a time."""
    n = codes.size // bits
    parts = codes.view(np.uint8).reshape(n, 4 * bits), scales.reshape(n, -1)
    return np.concatenate(parts, axis=1)


@pytest.mark.parametrize("mode", MODES)
def test_float_modes_have_the_values_of_mlx(mode: str) -> None:
    with np.load(GOLDEN) as golden:
        codes, scales, values = (golden[f"{mode}_{part}"] for part in ("codes", "scales", "values"))
    found = _core.dequantize(f"mlx_{mode}", float_blocks(codes, scales, MODES[mode][0]), values.size)
    np.testing.assert_array_equal(found + 0, values.reshape(-1) + 0)  # a zero has no sign that matters


@pytest.mark.parametrize("mode", MODES)
def test_every_code_and_scale_of_the_float_modes(mode: str) -> None:
    bits, group = MODES[mode]
    table, step = (E2M1, 16) if bits == 4 else (E4M3, 32)
    codes = (
        np.tile(np.arange(32, dtype=np.uint8) % step, (256, 1))
        if bits == 4
        else (np.arange(32, dtype=np.uint8) + 32 * (np.arange(256, dtype=np.uint8) % 8)[:, None])
    )
    sizes = E4M3 if mode == "nvfp4" else np.exp2(np.arange(256) - 127.0)
    scales = np.arange(256, dtype=np.uint8)[:, None].repeat(32 // group, 1)
    stored = codes[:, ::2] | codes[:, 1::2] << 4 if bits == 4 else codes
    found = _core.dequantize(f"mlx_{mode}", np.concatenate([stored, scales], axis=1), 256 * 32)
    with np.errstate(over="ignore"):
        expected = (sizes[:, None] * table[codes]).astype(np.float32)
    known = slice(0, 255) if mode != "nvfp4" else slice(0, 256)  # E8M0's last is no number
    np.testing.assert_array_equal(found.reshape(256, 32)[known], expected[known])


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

"""Every weight type dequantises to the bits that the PyPI package gguf computes."""

from __future__ import annotations

import struct
from collections.abc import Callable

import gguf
import numpy as np
import pytest

from akunu import _core
from akunu.base.errors import AkunuError, InvalidArgumentError

WEIGHT_TYPES = [row for row in _core.dtypes() if row["is_weight"] and row["id"] < 0x1000]

# Byte offsets of the binary16 scales inside a block.
HALF_SCALES = {
    "q4_0": [0],
    "q4_1": [0, 2],
    "q5_0": [0],
    "q5_1": [0, 2],
    "q8_0": [0],
    "q2_k": [80, 82],
    "q3_k": [108],
    "q4_k": [0, 2],
    "q5_k": [0, 2],
    "q6_k": [208],
    "iq4_nl": [0],
    "iq4_xs": [0],
    "iq1_s": [0],
    "iq1_m": [48],
    "iq2_xxs": [0],
    "iq2_xs": [0],
    "iq2_s": [0],
    "iq3_xxs": [0],
    "iq3_s": [0],
    "tq1_0": [52],
    "tq2_0": [64],
    "q1_0": [0],
    "q2_0": [0],
}

# Zeros, smallest and largest subnormals, smallest normals, ordinary values, the largest; no NaN, no infinity.
ODD_HALVES = [
    0x0000,
    0x8000,
    0x0001,
    0x8001,
    0x03FF,
    0x83FF,
    0x0400,
    0x8400,
    0x1234,
    0x9234,
    0x3C00,
    0xBC00,
    0x7BFF,
    0xFBFF,
]


def set_half(dtype: str, blocks: np.ndarray, offset: int, halves: np.ndarray) -> None:
    """The bits of a binary16 scale of each block; of IQ1_M, four in front of each four small scales."""
    if dtype == "iq1_m":
        for i in range(4):
            blocks[:, 49 + 2 * i] = blocks[:, 49 + 2 * i] & 15 | (halves >> 4 * i & 15) << 4
    else:
        blocks[:, offset : offset + 2] = halves.astype("<u2").view(np.uint8).reshape(-1, 2)


def low_bits(blocks: np.ndarray, bits: int, levels: np.ndarray) -> np.ndarray:
    """Blocks of a binary16 scale and codes of so many bits, the first in the lowest ones of a byte."""
    scales = blocks[:, :2].copy().view(np.float16).astype(np.float32)
    codes = blocks[:, 2:, None] >> np.arange(0, 8, bits, dtype=np.uint8) & (1 << bits) - 1
    return (levels[codes.reshape(len(blocks), -1)] * scales).reshape(-1)


def reference(dtype: dict[str, object], blocks: np.ndarray) -> np.ndarray:
    # gguf does not know these yet; what they are is in ggml's ggml-quants.c.
    if dtype["name"] == "q1_0":
        return low_bits(blocks, 1, np.array([-1, 1], np.float32))
    if dtype["name"] == "q2_0":
        return low_bits(blocks, 2, np.array([-1, 0, 1, 2], np.float32))
    kind = gguf.GGMLQuantizationType(dtype["id"])
    with np.errstate(all="ignore"):
        return np.asarray(gguf.quants.dequantize(blocks, kind)).reshape(-1)


def assert_same_bits(dtype: dict[str, object], blocks: np.ndarray) -> None:
    n = len(blocks) * dtype["block_elems"]
    expected = reference(dtype, blocks)
    actual = _core.dequantize(dtype["name"], blocks, n)
    assert actual.dtype == np.float32 and actual.shape == (n,)
    np.testing.assert_array_equal(actual.view(np.uint32), expected.view(np.uint32))


def test_the_table_has_the_sizes_of_ggml() -> None:
    assert {row["name"] for row in WEIGHT_TYPES} == {
        "f32", "f16", "bf16", "q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "q2_k", "q3_k", "q4_k", "q5_k", "q6_k",
        "iq4_nl", "iq4_xs", "mxfp4", "iq1_s", "iq1_m", "iq2_xxs", "iq2_xs", "iq2_s", "iq3_xxs", "iq3_s",
        "tq1_0", "tq2_0", "nvfp4", "q1_0", "q2_0",
    }  # fmt: skip
    for row in _core.dtypes():
        if row["id"] >= 0x1000:  # ours
            continue
        if row["name"] == "q2_0":  # which gguf does not know yet
            assert (row["id"], row["block_elems"], row["block_bytes"]) == (42, 64, 18)
            continue
        kind = gguf.GGMLQuantizationType[row["name"].upper()]
        assert row["id"] == kind
        assert (row["block_elems"], row["block_bytes"]) == gguf.GGML_QUANT_SIZES[kind]


@pytest.mark.parametrize("dtype", WEIGHT_TYPES, ids=lambda row: row["name"])
def test_random_blocks_with_odd_scales(dtype: dict[str, object]) -> None:
    rng = np.random.default_rng(dtype["id"])
    blocks = rng.integers(0, 256, (3000, dtype["block_bytes"]), dtype=np.uint8)
    for i, offset in enumerate(HALF_SCALES.get(dtype["name"], [])):
        odd = np.array(ODD_HALVES, np.uint16)[
            (np.arange(3000) // (1 if i == 0 else len(ODD_HALVES))) % len(ODD_HALVES)
        ]
        # Half of the blocks get the odd values, the others any finite one.
        finite = rng.integers(0, 0x7C00, 3000).astype(np.uint16) | (
            rng.integers(0, 2, 3000).astype(np.uint16) << 15
        )
        set_half(dtype["name"], blocks, offset, np.where(np.arange(3000) < 1500, odd, finite))
    if dtype["name"] in ("f32", "bf16"):  # clear the lowest exponent bit: no NaN, no infinity
        top = dtype["block_bytes"] - 2
        blocks[:, top] &= 0x7F
    if dtype["name"] == "f16":
        blocks[:, 1] &= 0xFB
    if dtype["name"] == "mxfp4":
        blocks[:256, 0] = np.arange(256)
    if dtype["name"] == "nvfp4":  # scales are positive
        blocks[:, :4] &= 0x7F
        blocks[:128, 0] = np.arange(128)
    assert_same_bits(dtype, blocks)


@pytest.mark.parametrize(
    ("name", "entries", "block"),
    [
        ("iq2_xxs", 256, lambda i: [0, 60, *[i] * 4, 0, 0, 0, 16, *[0] * 56]),
        ("iq2_xs", 512, lambda i: [0, 60, i & 255, i >> 8, *[0] * 62, *[0] * 8]),
        ("iq2_s", 1024, lambda i: [0, 60, i & 255, *[0] * 63, i >> 8, *[0] * 7, *[0] * 8]),
        ("iq3_xxs", 256, lambda i: [0, 60, i, *[0] * 63, *[0] * 32]),
        ("iq3_s", 512, lambda i: [0, 60, i & 255, *[0] * 63, i >> 8, *[0] * 7, *[0] * 36]),
        ("iq1_s", 2048, lambda i: [0, 60, i & 255, *[0] * 31, i >> 8, *[0] * 15]),
        ("iq1_m", 2048, lambda i: [i & 255, *[0] * 31, i >> 8, *[0] * 15, 0, 0, 0, 0, 0, 0xC0, 0, 0x30]),
    ],
)
def test_every_entry_of_a_codebook(name: str, entries: int, block: Callable[[int], list[int]]) -> None:
    dtype = next(row for row in WEIGHT_TYPES if row["name"] == name)
    blocks = np.array([block(i) for i in range(entries)], np.uint8)
    assert blocks.shape[1] == dtype["block_bytes"]
    assert_same_bits(dtype, blocks)


def test_every_f16_and_bf16_value() -> None:
    every = np.arange(65536, dtype=np.uint16)
    finite = every[(every & 0x7C00) != 0x7C00]
    f16 = _core.dequantize("f16", finite.astype("<u2"), len(finite))
    np.testing.assert_array_equal(
        f16.view(np.uint32), finite.view(np.float16).astype(np.float32).view(np.uint32)
    )
    special = np.array([0x7C00, 0xFC00, 0x7E00], "<u2")
    np.testing.assert_array_equal(_core.dequantize("f16", special, 3), [np.inf, -np.inf, np.nan])
    bf16 = _core.dequantize("bf16", every.astype("<u2"), 65536)
    np.testing.assert_array_equal(bf16.view(np.uint32), every.astype(np.uint32) << 16)


def test_a_known_q8_0_block() -> None:
    block = struct.pack("<e32b", 0.5, *range(-16, 16))
    np.testing.assert_array_equal(_core.dequantize("q8_0", block, 32), np.arange(-16, 16) * 0.5)


def test_unaligned_bytes() -> None:
    values = np.arange(8, dtype="<f4")
    shifted = memoryview(b"\0" + values.tobytes())[1:]
    np.testing.assert_array_equal(_core.dequantize("f32", shifted, 8), values)


@pytest.mark.parametrize(
    ("dtype", "data", "n", "message"),
    [
        ("q9_0", b"", 0, "'q9_0' is unknown"),
        ("i32", bytes(4), 1, "i32 is not a weight type"),
        ("q4_0", bytes(18), 31, "31 elements is not whole q4_0 blocks of 32"),
        ("q4_0", bytes(17), 32, "buffer of 18 bytes, found 17"),
        ("q4_0", bytes(36), 32, "buffer of 18 bytes, found 36"),
        ("f32", b"", 2**63, "does not fit 64 bits"),
        ("f32", b"", 2**61, "found 0"),
        ("f32", np.zeros((4, 4), np.float32)[:, ::2], 8, "contiguous"),
    ],
)
def test_bad_arguments_are_refused(dtype: str, data: object, n: int, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message) as caught:
        _core.dequantize(dtype, data, n)
    assert isinstance(caught.value, (AkunuError, ValueError))

"""Quantised weights: the published layouts, errors never above those of the published quantisers."""

from __future__ import annotations

import os
import subprocess
import sys

import gguf
import numpy as np
import numpy.typing as npt
import pytest

from akunu import _core
from akunu.base.errors import InvalidArgumentError, ModelFileError, UnsupportedError

Floats = npt.NDArray[np.float32]

TYPES = {row["name"]: row for row in _core.dtypes() if row["is_weight"] and row["id"] < 0x1000}
FEW = ["tq1_0", "tq2_0", "q1_0", "q2_0"]
"""Types that are quantised as published, without a search."""
READ_ONLY = ["iq1_s", "iq1_m", "iq2_xxs", "iq2_xs", "iq2_s", "iq3_xxs", "iq3_s", "nvfp4"]
BLOCKS = [name for name, row in TYPES.items() if row["block_elems"] > 1 and name not in (*FEW, *READ_ONLY)]
BY_SQUARES = ["q4_0"]
"""Without importances, errors of these types count by the squares of the weights."""
LEGACY = ["q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "mxfp4"]
"""Types of which the package gguf has a quantiser."""

# Root mean square errors of ggml's quantisers (libggml 0.13.1, `ggml_quantize_chunk` without importances)
# for the weights of `sample`.
GGML = {
    ("q4_1", "normal"): 0.00156899,
    ("q4_1", "heavy"): 0.00262564,
    ("q4_1", "spikes"): 0.00511128,
    ("q5_0", "normal"): 0.000852828,
    ("q5_0", "heavy"): 0.00163081,
    ("q5_0", "spikes"): 0.00375654,
    ("q5_1", "normal"): 0.000758501,
    ("q5_1", "heavy"): 0.00127854,
    ("q5_1", "spikes"): 0.00236015,
    ("q8_0", "normal"): 0.000107241,
    ("q8_0", "heavy"): 0.000205583,
    ("q8_0", "spikes"): 0.000517505,
    ("q2_k", "normal"): 0.00594746,
    ("q2_k", "heavy"): 0.00973392,
    ("q2_k", "spikes"): 0.0111613,
    ("q3_k", "normal"): 0.0030194,
    ("q3_k", "heavy"): 0.00518902,
    ("q3_k", "spikes"): 0.00548763,
    ("q4_k", "normal"): 0.00143243,
    ("q4_k", "heavy"): 0.00243408,
    ("q4_k", "spikes"): 0.00426385,
    ("q5_k", "normal"): 0.000721941,
    ("q5_k", "heavy"): 0.00123353,
    ("q5_k", "spikes"): 0.00231409,
    ("q6_k", "normal"): 0.000356118,
    ("q6_k", "heavy"): 0.000640824,
    ("q6_k", "spikes"): 0.00148278,
    ("iq4_nl", "normal"): 0.00152561,
    ("iq4_nl", "heavy"): 0.00263438,
    ("iq4_nl", "spikes"): 0.00487901,
    ("iq4_xs", "normal"): 0.00153664,
    ("iq4_xs", "heavy"): 0.00266183,
    ("iq4_xs", "spikes"): 0.00496335,
    ("mxfp4", "normal"): 0.00226736,
    ("mxfp4", "heavy"): 0.00376259,
    ("mxfp4", "spikes"): 0.00708591,
}

# The same for `sample("normal")` with `importances`, by which squares are weighed (llama-quantize --imatrix).
GGML_WEIGHTED = {
    "q4_0": 0.00248809,
    "q4_1": 0.00189142,
    "q5_0": 0.001247,
    "q5_1": 0.000915054,
    "q8_0": 0.000200043,
    "q2_k": 0.00678907,
    "q3_k": 0.00420167,
    "q4_k": 0.00193277,
    "q5_k": 0.00101796,
    "q6_k": 0.00050918,
    "iq4_nl": 0.00218801,
    "iq4_xs": 0.00222506,
}


def sample(kind: str, rows: int = 64, columns: int = 1024) -> Floats:
    """Weights whose bits are the same for all versions of numpy."""
    rng = np.random.RandomState(1)
    size = (rows, columns)
    values = rng.standard_t(4, size) if kind == "heavy" else rng.standard_normal(size)
    if kind == "spikes":
        values = np.where(rng.random_sample(size) < 0.005, 30 * values, values)
    return (0.02 * values).astype(np.float32)


def importances(columns: int = 1024) -> Floats:
    """Of columns; some count a hundred times as much as others."""
    return np.exp(1.5 * np.random.RandomState(2).standard_normal(columns)).astype(np.float32)


def kind_of(dtype: str) -> gguf.GGMLQuantizationType:
    return gguf.GGMLQuantizationType[dtype.upper()]


def values_of(dtype: str, rows: npt.NDArray[np.uint8]) -> Floats:
    """What the package gguf reads; ours must read the same."""
    found = np.asarray(gguf.quants.dequantize(rows, kind_of(dtype)), np.float32)
    ours = _core.dequantize(dtype, rows.reshape(-1), found.size).reshape(found.shape)
    np.testing.assert_array_equal(ours.view(np.uint32), found.view(np.uint32))
    return found


def quantized(dtype: str, values: Floats, **options: object) -> Floats:
    rows = _core.quantize(dtype, values, values.shape[1], **options)  # type: ignore[arg-type]
    assert rows.shape == (
        values.shape[0],
        values.shape[1] // TYPES[dtype]["block_elems"] * TYPES[dtype]["block_bytes"],
    )
    return values_of(dtype, rows)


def rmse(found: Floats, values: Floats, weights: Floats | float = 1.0) -> float:
    return float(np.sqrt(np.mean(weights * (found.astype(np.float64) - values) ** 2)))


@pytest.mark.parametrize("kind", ["normal", "heavy", "spikes"])
@pytest.mark.parametrize("dtype", BLOCKS)
def test_errors_are_below_those_of_ggml(dtype: str, kind: str) -> None:
    values = sample(kind)
    if dtype in BY_SQUARES:
        published = gguf.quants.dequantize(gguf.quants.quantize(values, kind_of(dtype)), kind_of(dtype))
        assert rmse(quantized(dtype, values), values, values**2) < rmse(published, values, values**2)
    else:
        assert rmse(quantized(dtype, values), values) < GGML[dtype, kind]


@pytest.mark.parametrize("dtype", LEGACY)
def test_no_block_is_worse_than_the_published_quantiser_makes_it(dtype: str) -> None:
    values = np.concatenate(
        [sample("normal"), sample("heavy"), np.abs(sample("normal")), sample("heavy") ** 3]
    )
    published = gguf.quants.dequantize(gguf.quants.quantize(values, kind_of(dtype)), kind_of(dtype))

    weights = values.astype(np.float64) ** 2 if dtype in BY_SQUARES else 1.0

    def errors(found: Floats) -> npt.NDArray[np.float64]:
        return np.sum((weights * (found.astype(np.float64) - values) ** 2).reshape(-1, 32), axis=1)

    assert np.all(errors(quantized(dtype, values)) <= errors(published) * (1 + 1e-5))


@pytest.mark.parametrize("dtype", FEW)
def test_one_and_two_bits_are_as_published(dtype: str) -> None:
    """Of ggml's ggml-quants.c; gguf has those of tq1_0 and tq2_0."""
    values = np.concatenate([sample("normal"), sample("heavy"), np.zeros((1, 1024), np.float32)])
    found = _core.quantize(dtype, values, 1024)
    if dtype.startswith("tq"):
        np.testing.assert_array_equal(found, gguf.quants.quantize(values, kind_of(dtype)))
        return
    group = values.reshape(-1, TYPES[dtype]["block_elems"])
    if dtype == "q1_0":
        codes = (group >= 0).astype(np.uint8)
        sizes = np.abs(group).astype(np.float64).mean(axis=1)
    else:
        sizes = np.abs(group).max(axis=1)
        codes = np.rint(group / np.maximum(sizes, 1e-30)[:, None]).astype(np.int8) + 1
    bits = 1 if dtype == "q1_0" else 2
    stream = (codes.astype(np.uint8)[..., None] >> np.arange(bits, dtype=np.uint8)) & 1
    packed = np.packbits(stream.reshape(len(group), -1), axis=1, bitorder="little")
    blocks = found.reshape(len(group), -1)
    np.testing.assert_array_equal(blocks[:, 2:], packed)
    halves = blocks[:, :2].copy().view(np.float16)[:, 0].astype(np.float64)
    np.testing.assert_allclose(halves, sizes, rtol=2**-10, atol=2**-24)


@pytest.mark.parametrize("dtype", ["tq1_0", "tq2_0", "q2_0"])
def test_ternary_weights_keep_their_values(dtype: str) -> None:
    scale = np.float32(np.float16(0.013))
    values = scale * np.random.RandomState(4).randint(-1, 2, (8, 1024)).astype(np.float32)
    rows = _core.quantize(dtype, values, 1024)
    np.testing.assert_array_equal(_core.dequantize(dtype, rows.reshape(-1), values.size), values.reshape(-1))


@pytest.mark.parametrize("dtype", [name for name in BLOCKS if name not in ("iq4_nl", "iq4_xs", "mxfp4")])
def test_weights_of_three_values_keep_them(dtype: str) -> None:
    """-c, 0 and c, as of models that are trained so: an even number of levels has none in its middle."""
    values = (0.02 * np.random.RandomState(4).randint(-1, 2, (64, 1024))).astype(np.float32)
    assert rmse(quantized(dtype, values), values) < 2e-5


def test_a_block_is_near_the_best_of_all_scales() -> None:
    values = sample("heavy", 8, 256)
    blocks = values.reshape(-1, 32).astype(np.float64)
    best = np.full(len(blocks), np.inf)
    for share in np.linspace(0.5, 1.3, 2000):
        for sign in (-1, 1):
            scale = sign * share * np.abs(blocks).max(axis=1, keepdims=True) / 8
            levels = np.clip(np.rint(blocks / scale), -8, 7)
            best = np.minimum(best, np.sum((blocks - scale * levels) ** 2, axis=1))
    found = np.sum(
        (quantized("q4_0", values, importance=np.ones(256, np.float32)).reshape(-1, 32) - blocks) ** 2, axis=1
    )
    assert np.all(found < 1.15 * best)
    assert found.sum() < 1.01 * best.sum()


@pytest.mark.parametrize("dtype", BLOCKS)
def test_what_matters_more_is_nearer(dtype: str) -> None:
    values = sample("normal")
    importance = importances()
    plain = rmse(quantized(dtype, values), values, importance)
    weighted = rmse(quantized(dtype, values, importance=importance), values, importance)
    assert weighted < plain * (1.0 if dtype in ("mxfp4", "q8_0", "q6_k") else 0.985)


@pytest.mark.parametrize("dtype", GGML_WEIGHTED)
def test_weighed_errors_are_below_those_of_ggml(dtype: str) -> None:
    values, importance = sample("normal"), importances()
    assert rmse(quantized(dtype, values, importance=importance), values, importance) < GGML_WEIGHTED[dtype]


@pytest.mark.parametrize("dtype", ["q4_1", "q5_1", "q2_k", "q4_k", "q5_k"])
def test_weights_that_are_nearly_equal_stay_so_whatever_counts_more(dtype: str) -> None:
    """All have the same level then, so that a slope of values over levels is of rounding alone."""
    rng = np.random.RandomState(5)
    same = np.repeat(rng.uniform(0.1, 1, (64, 4)), 256, axis=1).astype(np.float32)
    near = (same * (1 + 0.01 * rng.standard_normal(same.shape))).astype(np.float32)
    assert np.all(np.abs(quantized(dtype, same, importance=importances()) - same) < 0.003 * same)
    assert np.all(np.abs(quantized(dtype, near, importance=importances()) - near) < 0.1 * near)


@pytest.mark.parametrize("dtype", BLOCKS)
def test_importances_count_by_column_whatever_the_shape(dtype: str) -> None:
    block = TYPES[dtype]["block_elems"]
    values = sample("normal", 7, 3 * block)
    importance = np.random.RandomState(3).uniform(0, 4, 3 * block).astype(np.float32)
    alone = [quantized(dtype, row[np.newaxis].copy(), importance=importance) for row in values]
    np.testing.assert_array_equal(quantized(dtype, values, importance=importance), np.concatenate(alone))
    flat = quantized(dtype, values, importance=np.ones(3 * block, np.float32))
    for number in (7.5, 0):
        importance = np.full(3 * block, number, np.float32)
        np.testing.assert_array_equal(quantized(dtype, values, importance=importance), flat)
    if dtype not in BY_SQUARES:
        np.testing.assert_array_equal(quantized(dtype, values), flat)


@pytest.mark.parametrize("dtype", BLOCKS)
def test_odd_blocks_stay_near(dtype: str) -> None:
    block = TYPES[dtype]["block_elems"]
    ramp = np.linspace(-1, 1, block, dtype=np.float32)
    spike = np.zeros(block, np.float32)
    spike[-1] = -3
    rows = [
        np.zeros(block),
        np.ones(block),
        -np.ones(block),
        ramp,
        spike,
        -spike,
        ramp + 9,
        np.full(block, 1e-44),
    ]
    rows += [ramp * 60000, np.where(np.arange(block) % 2, 1e-3, -1e-3), np.full(block, -0.0)]
    values = np.stack(rows).astype(np.float32)
    found = quantized(dtype, values)
    assert np.all(np.isfinite(found))
    most = np.abs(values).max(axis=1, keepdims=True)
    assert np.all(np.abs(found - values) <= 0.34 * most + 1e-20)  # half of q2_k's step from -1 to 1
    np.testing.assert_array_equal(found[[0, -1]], 0)


@pytest.mark.parametrize("source", ["f16", "bf16", "q8_0", "q6_k"])
@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16", "q8_0", "q4_k"])
def test_any_weight_type_is_a_source(source: str, dtype: str) -> None:
    rows = _core.quantize(source, sample("normal"), 1024)
    floats = values_of(source, rows)
    np.testing.assert_array_equal(
        _core.quantize(dtype, rows, 1024, source=source), _core.quantize(dtype, floats, 1024)
    )


def test_floats_round_to_nearest() -> None:
    values = sample("heavy")
    np.testing.assert_array_equal(_core.quantize("f32", values, 1024).view("<f4"), values)
    np.testing.assert_array_equal(_core.quantize("f16", values, 1024).view("<f2"), values.astype("<f2"))
    expected = gguf.quants.quantize(values, kind_of("bf16"))
    np.testing.assert_array_equal(_core.quantize("bf16", values, 1024), expected)


@pytest.mark.parametrize("threads", [2, 3])
def test_threads_do_not_change_the_bytes(threads: int) -> None:
    values = sample("normal", 300)
    np.testing.assert_array_equal(
        _core.quantize("q4_k", values, 1024, threads=threads), _core.quantize("q4_k", values, 1024, threads=1)
    )


DIGEST = """
import hashlib, os, numpy as np
from akunu import _core
values = (0.02 * np.random.RandomState(5).standard_t(4, (16, 512))).astype(np.float32)
importance = np.random.RandomState(6).uniform(0, 3, 512).astype(np.float32)
names = os.environ["TYPES"].split()
parts = [_core.quantize(n, values, 512, importance=importance).tobytes() for n in names]
print(hashlib.sha256(b"".join(parts)).hexdigest())
"""


def test_instruction_sets_do_not_change_the_bytes() -> None:
    found = {}
    for isa in ("", "generic", "avx2", "avx512"):
        done = subprocess.run(
            [sys.executable, "-c", DIGEST],
            env=os.environ | {"AKUNU_CPU_ISA": isa, "TYPES": " ".join([*BLOCKS, *FEW])},
            capture_output=True,
            text=True,
        )
        if done.returncode == 0:
            found[isa] = done.stdout
        else:  # a set that this build or this processor lacks
            assert "AKUNU_CPU_ISA" in done.stderr
    assert {"", "generic"} <= found.keys()
    assert len(set(found.values())) == 1


@pytest.mark.parametrize("source", ["f32", "f16", "bf16"])
@pytest.mark.parametrize(("bad", "name"), [(np.nan, "NaN"), (-np.inf, "an infinity")])
def test_what_is_no_number_is_named_by_tensor_and_place(bad: float, name: str, source: str) -> None:
    values = sample("normal", 200)
    values[[150, 199], [700, 3]] = bad
    if source == "bf16":
        values = (values.view(np.uint32) >> 16).astype("<u2")
    elif source == "f16":
        values = values.astype("<f2")
    message = rf"tensor 'blk\.0\.x', row 1150, column 700: found {name}; the weights are damaged"
    for dtype in ("q4_k", "q8_0", "f16", "f32"):
        with pytest.raises(ModelFileError, match=message):
            _core.quantize(dtype, values, 1024, source=source, tensor="blk.0.x", first_row=1000, threads=3)


@pytest.mark.parametrize("dtype", ["q4_0", "q4_k", "iq4_xs", "f16"])
def test_what_does_not_fit_a_scale_is_refused(dtype: str) -> None:
    values = np.zeros((1, 256), np.float32)
    values[0, 9] = 65505
    with pytest.raises(UnsupportedError, match=rf"row 0, column 9: found 65505\.0+, but {dtype} holds 65504"):
        _core.quantize(dtype, values, 256)


def test_powers_of_two_hold_any_float() -> None:
    values = np.float32([[2.0**100, -(2.0**101)] * 16, [2.0**-120, 2.0**-121] * 16, [2.0**127, 0.0] * 16])
    np.testing.assert_array_equal(quantized("mxfp4", values), values)


@pytest.mark.parametrize(
    ("dtype", "columns", "options", "message"),
    [
        ("q4_2", 32, {}, "dtype 'q4_2' is unknown"),
        ("i32", 32, {}, "i32 is not a type that weights are quantised to"),
        ("nvfp4", 64, {}, "nvfp4 is not a type that weights are quantised to"),
        ("q4_k", 32, {}, "32 elements is not whole q4_k blocks of 256"),
        ("q4_0", 96, {}, "multiple of 384 bytes, found 256"),
        ("q4_0", 0, {}, "multiple of 0 bytes"),
        ("q4_0", 32, {"source": "i8"}, "i8 is not a weight type"),
        ("q4_0", 32, {"importance": np.ones(31, np.float32)}, "importance's columns has 31, expected 32"),
        ("q4_0", 32, {"importance": np.full(32, -1, np.float32)}, "an importance is -1"),
        ("q4_0", 32, {"importance": np.full(32, np.nan, np.float32)}, "an importance is nan"),
        ("q4_0", 32, {"threads": -1}, "threads is -1"),
    ],
)
def test_bad_arguments_are_refused(
    dtype: str, columns: int, options: dict[str, object], message: str
) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        _core.quantize(dtype, np.zeros((2, 32), np.float32), columns, **options)  # type: ignore[arg-type]

"""The table: one row per case. docs/adding-a-kernel.md says how to add one.

A row names a builder (see builders/) and its arguments. CHECKS are odd on purpose: sizes that are no multiple
of any vector, tiny and deep ones, every path of the tiling. `perf_cases.py` has the sizes of real models.
A `shape` of attention is (heads, KV heads, head dimension).
"""

from __future__ import annotations

from collections.abc import Iterator

from .case import BOTH, Case, case
from .state_cases import delta_rule, gated_norm, recurrence, ssm_scan
from .weights import dtype_row, is_float, is_planar, weight_dtypes


def _embed() -> Iterator[Case]:
    for dtype in weight_dtypes():
        dim = 96 if is_float(dtype) else 3 * dtype_row(dtype)["block_elems"]
        yield case("embed", dtype=dtype, rows=5, dim=dim, vocab=37, prepared=True, scale=3.5, position=2)
        yield case("embed", dtype=dtype, rows=1, dim=dim, vocab=37, prepared=False)
    yield case("embed", dtype="f16", rows=33, dim=100, vocab=50, prepared=False, scale=8.0)
    yield case("embed", dtype="q8_0", rows=2, dim=32, vocab=1)
    for dtype, dim in (("q6_k", 512), ("q8_0", 96), ("bf16", 100), ("f32", 33)):
        yield case(
            "embed", dtype=dtype, rows=3, dim=dim, vocab=37, prepared=False, scale=8.0, accumulate=True
        )


def _elementwise() -> Iterator[Case]:
    yield case("rope_table", rows=1, half=32, position=0)
    yield case("rope_table", rows=7, half=36, position=131000, scale=1.19)
    yield case("rope_table", rows=9, half=20, position=60, scale=1.1, temperature=(0.1, 16))
    yield case("rope_table", rows=9, half=20, position=0, axes=True)
    yield case("rope_table", rows=33, half=64, position=3000, axes=True)
    yield case("insert_rows", rows=1, dim=32, encoded=1, step=1)
    yield case("insert_rows", rows=7, dim=100, encoded=5)
    yield case("insert_rows", rows=9, dim=96, encoded=9, parts=4)
    yield case("insert_rows", rows=65, dim=260, encoded=70, parts=3, part=2, accumulate=True)
    yield case("affine", rows=5, dim=33, bounds=(-0.5, 0.75))
    yield case("affine", rows=1, dim=130, scale=True)
    yield case("affine", rows=66, dim=260, scale=True, bias=True, bounds=(-1.0, float("inf")))
    for rows, dim in [(1, 64), (2, 32), (9, 896), (3, 4096)]:
        for formats in [("f32",), ("q8",), BOTH]:
            yield case("norm", rows=rows, dim=dim, formats=formats)
    yield case("norm", rows=1, dim=288, formats=BOTH, gather=(6,))
    yield case("norm", rows=4, dim=100, formats=("f32",), gather=(7, 0, 2, 2))
    yield case("norm", rows=5, dim=100, formats=("f32",), eps=1e-6)
    yield case("norm", rows=2, dim=64, formats=BOTH, sigma=1e-3)  # eps counts
    yield case("norm", rows=2, dim=2048, formats=BOTH, sigma=1e6)
    for rows, dim in [(1, 100), (3, 64), (17, 2304)]:
        yield case("norm_add", rows=rows, dim=dim)
        yield case("norm_add", rows=rows, dim=dim, sum_scale=0.0625)
    for rows, dim in [(1, 32), (3, 96), (33, 2048)]:
        for formats in [("f32",), ("q8",), BOTH]:
            yield case("quantize", rows=rows, dim=dim, formats=formats)
    for kind in ("zeros", "outliers", "huge", "ties"):
        yield case("quantize", rows=3, dim=640, formats=BOTH, kind=kind)
    yield case("quantize", rows=2, dim=50, formats=("f32",))
    for activation in ("silu", "gelu"):
        for rows, n in [(1, 32), (3, 160), (17, 1024)]:
            yield case("gate_act", rows=rows, n=n, activation=activation, formats=BOTH)
        yield case("gate_act", rows=2, n=173, activation=activation, formats=("f32",))
        yield case("gate_act", rows=3, n=64, activation=activation, formats=BOTH, up_stride=200)
        yield case("gate_act", rows=2, n=33, activation=activation, formats=("f32",), up_stride=99)
        # Where exp overflows and underflows.
        yield case("gate_act", rows=2, n=256, activation=activation, formats=("f32",), sigma=60.0)
    # More elements than a GPU has threads.
    yield case("gate_act", rows=70, n=3072, activation="silu", formats=BOTH, up_stride=6144)


def _streams() -> Iterator[Case]:
    for rows, dim in [(1, 64), (3, 100), (9, 2304)]:
        yield case("add_rows", rows=rows, dim=dim)
        yield case("add_rows", rows=rows, dim=dim, scale=0.25, accumulate=True)
        yield case("add_rows", rows=rows, dim=dim, scale=0.25, matched=True)
        yield case("add_rows", rows=rows, dim=dim, matched=True, accumulate=True, floor=1e-5)
        yield case("sparsify", rows=rows, n=dim)
        yield case("all_reduce", rows=rows, dim=dim)
        yield case("all_reduce", rows=rows, dim=dim, accumulate=True)
        yield case("all_reduce", rows=rows, dim=dim, gather=True, stride=dim + 7)
        yield case("all_reduce", rows=rows, dim=dim, gather=True, stride=2 * dim, in_place=True)
        yield case("sparsify", rows=rows, n=dim, deviations=-0.5, mean=50.0)
    yield case("add_rows", rows=2, dim=96, matched=True, floor=1e-5, sigma=1e-5)  # the floor counts
    for correct in (False, True):
        yield case("mix_streams", rows=1, dim=64, streams=4, correct=correct)
        yield case("mix_streams", rows=1, dim=33, streams=1, correct=correct)
        yield case("mix_streams", rows=5, dim=300, streams=4, correct=correct, room=3)
        yield case("mix_streams", rows=3, dim=1030, streams=8, active=5, correct=correct, scaled=correct)
    yield case("mix_streams", rows=4, dim=96, streams=3, active=2, correct=True, scaled=True, room=1)


def _matmul() -> Iterator[Case]:
    for dtype in weight_dtypes():
        block = dtype_row(dtype)["block_elems"]
        one = 5 if block == 1 else block
        few = 100 if block == 1 else 3 * block
        yield case("matmul", dtype=dtype, rows=1, n=1, k=one)
        yield case("matmul", dtype=dtype, rows=2, n=3, k=2 * one)
        yield case("matmul", dtype=dtype, rows=3, n=17, k=few, bias=True)
        yield case("matmul", dtype=dtype, rows=5, n=40, k=few, accumulate=True)
        yield case("matmul", dtype=dtype, rows=8, n=33, k=512)
        yield case("matmul", dtype=dtype, rows=9, n=100, k=256, bias=True, accumulate=True, cap=1.5)
        yield case("matmul", dtype=dtype, rows=16, n=15, k=256, cap=0.5)
        yield case("matmul", dtype=dtype, rows=17, n=31, k=512)
        yield case("matmul", dtype=dtype, rows=33, n=64, k=256)
        yield case("matmul", dtype=dtype, rows=130, n=50, k=256)
        yield case("matmul", dtype=dtype, rows=1, n=20, k=8192)
        yield case("matmul", dtype=dtype, rows=2, n=18, k=14336)
        yield case("matmul", dtype=dtype, rows=1, n=1000, k=256)
        yield case("matmul", dtype=dtype, rows=4, n=272, k=256)
        yield case("gate_up", dtype=dtype, rows=1, n=40, k=few, activation="silu", formats=("f32",))
        yield case("gate_up", dtype=dtype, rows=3, n=32, k=one, activation="gelu", formats=("q8",))
        yield case("gate_up", dtype=dtype, rows=9, n=96, k=256, activation="silu", formats=BOTH)
        yield case("gate_up", dtype=dtype, rows=11, n=24, k=2304, activation="silu", formats=("f32",))
        yield case("gate_up", dtype=dtype, rows=130, n=64, k=256, activation="gelu", formats=BOTH)
        yield case("gate_up", dtype=dtype, rows=1, n=544, k=256, activation="silu", formats=("q8",))
    # Widths of published models that 256 does not divide, in the types that their files then have.
    for i, dtype in enumerate(("q4_0", "q5_0", "q5_1", "q8_0", "iq4_nl", "mxfp4")):
        for k in (2880, 704, 2688, 1856, 1408):
            yield case("matmul", dtype=dtype, rows=1, n=40, k=k)
            yield case("matmul", dtype=dtype, rows=(12, 33, 140)[(i + k) % 3], n=72, k=k)
            yield case(
                "gate_up", dtype=dtype, rows=(1, 9, 70)[i % 3], n=64, k=k, activation="silu", formats=BOTH
            )
        yield case("matmul", dtype=dtype, rows=3, n=40, k=2880)  # a few rows, whose inputs CUDA pads
        yield case("gate_up", dtype=dtype, rows=7, n=24, k=704, activation="silu", formats=("f32",))
    for rows, dtype in ((3, "q6_k"), (6, "q4_k")):  # in parts of a row
        yield case("gate_up", dtype=dtype, rows=rows, n=64, k=8704, activation="silu", formats=BOTH)
    yield case("matmul", dtype="q8_0", rows=1, n=32800, k=32)  # a vocabulary
    for dtype in (
        "q4_0",
        "q4_k",
        "f16",
    ):  # so many weights that a GPU of ten cores takes matrices for few rows
        yield case("matmul", dtype=dtype, rows=7, n=970, k=256)
        yield case("gate_up", dtype=dtype, rows=13, n=490, k=256, activation="silu", formats=("f32",))
    for dtype in ("f32", "f16"):  # tokens behind tiles of 12 and of 6, and blocks of 132
        yield case("matmul", dtype=dtype, rows=27, n=40, k=100)
        yield case("matmul", dtype=dtype, rows=141, n=33, k=130)
    for dtype in ("f32", "f16", "q4_0", "q6_k"):  # more tokens than a cache block takes
        yield case("matmul", dtype=dtype, rows=300, n=20, k=1024)
    for dtype in (
        "f16",
        "bf16",
        "q4_0",
        "q8_0",
        "q4_k",
        "q6_k",
    ):  # more inputs than a GPU's block takes at once
        yield case("matmul", dtype=dtype, rows=12, n=300, k=4352, accumulate=True)
        yield case("matmul", dtype=dtype, rows=27, n=300, k=2304)
        yield case("matmul", dtype=dtype, rows=64, n=400, k=1280, bias=True)
        yield case("gate_up", dtype=dtype, rows=41, n=160, k=1280, activation="silu", formats=BOTH)


#: Types of q and k, and of v, in the files that llama.cpp's quantisation makes: `DeviceTraits::mixed_qkv`.
MIXED_QKV: list[tuple[str, str]] = [
    ("q2_k", "q3_k"),
    ("q2_k", "q4_k"),
    ("q2_k", "q5_k"),
    ("q3_k", "q4_k"),
    ("q3_k", "q5_k"),
    ("q4_k", "q5_k"),
    ("q4_k", "q6_k"),
    ("q5_k", "q6_k"),
    ("iq4_nl", "q5_k"),
    ("iq4_xs", "q5_k"),
    ("q4_0", "q5_0"),
    ("q4_0", "q5_1"),
    ("q5_0", "q5_1"),
    ("q5_0", "q8_0"),
    ("q5_1", "q8_0"),
    ("iq4_nl", "q5_1"),
]


def _fused() -> Iterator[Case]:
    for dtype in weight_dtypes():
        if is_planar(dtype):
            continue
        block = dtype_row(dtype)["block_elems"]
        few = 100 if block == 1 else 3 * block
        yield case("norm_qkv", dtype=dtype, n_q=96, n_kv=32, k=few, bias=True)
        yield case("norm_qkv", dtype=dtype, n_q=9, n_kv=3, k=2304)
        yield case("norm_gate_up", dtype=dtype, n=40, k=few, activation="silu", formats=BOTH)
        yield case("norm_gate_up", dtype=dtype, n=3, k=2304, activation="gelu", formats=("q8",))
    for dtype, v in MIXED_QKV:
        block = max(dtype_row(d)["block_elems"] for d in (dtype, v))
        yield case("norm_qkv", dtype=dtype, v=v, n_q=41, n_kv=19, k=3 * block, bias=True)
        yield case("norm_qkv", dtype=dtype, v=v, n_q=9, n_kv=3, k=2304)
    yield case("norm_qkv", dtype="q4_k", v="q6_k", n_q=1000, n_kv=250, k=256)
    for parts in (1, 2):  # where v, or k and v, have types that no kernel takes together
        yield case("norm_qkv", dtype="q4_k", n_q=40, n_kv=18, k=256, bias=True, parts=parts)
    yield case("norm_qkv", dtype="f16", n_q=3, n_kv=1, k=5, eps=1e-6)
    yield case("norm_qkv", dtype="q8_0", n_q=1000, n_kv=250, k=32)


def _prepare_heads() -> Iterator[Case]:
    for kv in ("f16", "f32", "q8_0"):
        for style in ("interleaved", "half"):
            yield case("prepare_heads", rows=1, shape=(4, 4, 64), style=style, kv=kv)
            yield case("prepare_heads", rows=5, shape=(6, 2, 72), style=style, kv=kv, position=13)
            yield case(
                "prepare_heads",
                rows=33,
                shape=(3, 1, 80),
                style=style,
                kv=kv,
                position=15,
                rope_dim=20,
            )
            yield case(
                "prepare_heads",
                rows=2,
                shape=(7, 1, 96),
                style=style,
                kv=kv,
                position=3,
                qk_norm=True,
            )
            yield case("prepare_heads", rows=17, shape=(8, 2, 128), style=style, kv=kv, qk_norm=True)
            yield case(
                "prepare_heads",
                rows=1,
                shape=(4, 1, 256),
                style=style,
                kv=kv,
                position=31,
                qk_norm=True,
            )
            yield case("prepare_heads", rows=3, shape=(2, 1, 6), style=style, kv=kv, position=1, rope_dim=4)
            yield case(
                "prepare_heads", rows=5, shape=(4, 2, 512), style=style, kv=kv, position=30, qk_norm=True
            )
            yield case(
                "prepare_heads", rows=3, shape=(2, 1, 320), style=style, kv=kv, position=1, rope_dim=64
            )
        yield case("prepare_heads", rows=37, shape=(3, 3, 40), style="half", kv=kv, position=5, rope_dim=0)
        yield case("prepare_heads", rows=18, shape=(6, 2, 40), style="half", kv=kv, rope_dim=12, qk_norm=2)
        yield case("prepare_heads", rows=3, shape=(4, 1, 128), style="interleaved", kv=kv, qk_norm=2)
        yield case("prepare_heads", rows=18, shape=(5, 5, 24), style="half", kv=kv, rope_dim=0, qk_norm=True)
    # More rows than a GPU has warps.
    yield case("prepare_heads", rows=70, shape=(6, 2, 72), style="half", kv="f16", position=13)
    yield case("prepare_heads", rows=1100, shape=(2, 1, 16), style="half", kv="f16", position=3)


SHAPES = [(1, 1, 64), (2, 1, 80), (6, 2, 96), (4, 1, 128), (7, 1, 72), (8, 1, 256), (9, 3, 64), (16, 8, 64)]
LENGTHS = [1, 2, 15, 16, 17, 100, 255, 256, 257, 511, 513, 768, 1024, 1100]


def _attention() -> Iterator[Case]:
    # Lengths around vectors, key groups and blocks; every group size and head dimension.
    for i, length in enumerate(LENGTHS):
        shape, slack = SHAPES[i % len(SHAPES)], i % 3 * 200
        formats = BOTH if shape[0] * shape[2] % 32 == 0 else ("f32",)
        rows = min([1, 2, 3, 5, 8, 9, 16, 33][i % 8], length)
        for kv in ("f16", "f32", "q8_0"):
            many = dict(rows=rows, position=length - rows)
            yield case("attention", **many, shape=shape, kv=kv, slack=slack)
            one = dict(rows=1, position=length - 1, split=True, formats=formats)
            yield case("attention", **one, shape=shape, kv=kv, slack=slack)
    # Heads of more than 256 elements, and more of them than a threadgroup or a tile has.
    for kv in ("f16", "f32", "q8_0"):
        for shape in ((8, 1, 512), (16, 1, 512), (6, 2, 320), (12, 1, 264), (34, 2, 40)):
            formats = BOTH if shape[0] * shape[2] % 32 == 0 else ("f32",)
            yield case("attention", rows=1, position=300, shape=shape, kv=kv, split=True, formats=formats)
            yield case("attention", rows=21, position=290, shape=shape, kv=kv, window=200)
        yield case("attention", rows=70, position=0, shape=(4, 2, 512), kv=kv, others=((1, 77), (9, 3)))
        # Prompts of heads that several of a GPU's warps share: odd rows, groups, parts of a slice, windows.
        yield case("attention", rows=21, position=9, shape=(16, 4, 256), kv=kv)
        yield case("attention", rows=19, position=20, shape=(16, 2, 512), kv=kv, window=17)
        yield case("attention", rows=33, position=5, shape=(2, 1, 192), kv=kv, cap=20.0)
        yield case("attention", rows=18, position=7, shape=(6, 2, 320), kv=kv, sinks=True)
        yield case("attention", rows=20, position=3, shape=(16, 1, 512), kv=kv, cap=5.0)
        yield case("attention", rows=37, position=300, shape=(8, 2, 256), kv=kv, window=100)
        yield case("attention", rows=130, position=40, shape=(3, 3, 160), kv=kv, others=((33, 9), (20, 0)))
        # Groups of more query heads than are taken together, in parts of 10, 16 and one.
        yield case("attention", rows=40, position=3, shape=(40, 2, 64), kv=kv, others=((3, 9), (20, 0)))
        yield case("attention", rows=21, position=9, shape=(128, 1, 32), kv=kv, sinks=True)
        yield case("attention", rows=1, position=30, shape=(46, 2, 16), kv=kv, split=True)
        yield case("attention", rows=1, position=200, shape=(128, 1, 64), kv=kv, split=True, formats=BOTH)
    for split, rows, position in [(True, 1, 299), (True, 1, 1023), (False, 7, 250), (False, 130, 200)]:
        at = dict(rows=rows, position=position, split=split)
        for window in (1, 2, 64, 256, 257, 4096):
            yield case("attention", **at, shape=(4, 2, 64), kv="f16", window=window)
        yield case("attention", **at, shape=(4, 2, 64), kv="f16", cap=5.0)
        yield case("attention", **at, shape=(3, 3, 40), kv="f32", cap=20.0, window=100, spread=30.0)
        # Scores so large that only the subtraction of their maximum keeps them finite.
        yield case("attention", **at, shape=(2, 1, 128), kv="f16", spread=100.0)
    yield case("attention", rows=130, position=0, shape=(14, 2, 64), kv="f16")
    yield case("attention", rows=260, position=0, shape=(3, 1, 72), kv="f32")
    yield case("attention", rows=1, position=40, shape=(5, 5, 6), kv="f16", split=True)
    # Around 32 blocks of 128 keys, beyond which a GPU gives a threadgroup several; the last one of one key.
    for position in (4095, 4096, 4224, 5000):
        yield case("attention", rows=1, position=position, shape=(4, 1, 16), kv="f16", split=True)
    yield case("attention", rows=1, position=5000, shape=(3, 1, 16), kv="q8_0", split=True, window=4200)
    yield case("attention", rows=1, position=9000, shape=(3, 1, 16), kv="f32", split=True, window=4090)
    # Rows of many sequences in one command: decode rows, chunks of prompts, drafts, at whatever positions.
    for kv in ("f16", "f32", "q8_0"):
        yield case(
            "attention", rows=1, position=40, shape=(8, 2, 64), kv=kv, others=((1, 0), (1, 999), (1, 31))
        )
        mixed = ((40, 300), (1, 5), (4, 1020), (1, 255), (33, 0))
        yield case("attention", rows=1, position=256, shape=(6, 2, 96), kv=kv, others=mixed)
        yield case(
            "attention", rows=70, position=0, shape=(3, 1, 72), kv=kv, others=((70, 200), (9, 3)), window=50
        )
    yield case(
        "attention",
        rows=1,
        position=70,
        shape=(4, 4, 40),
        kv="f16",
        others=tuple((1, 3 * i) for i in range(30)),
    )


def _kv_types() -> Iterator[Case]:
    """Each type of keys with each of values, where they differ or are Q4_0."""
    types = ("f16", "f32", "q8_0", "q4_0")
    pairs = [f"{k},{v}" for k in types for v in types if k != v or k == "q4_0"]
    for i, kv in enumerate(pairs):
        for style in ("interleaved", "half"):
            yield case("prepare_heads", rows=1, shape=(4, 4, 64), style=style, kv=kv)
            yield case(
                "prepare_heads", rows=37, shape=(6, 2, 72), style=style, kv=kv, position=13, qk_norm=True
            )
        yield case("prepare_heads", rows=18, shape=(5, 5, 25), style="half", kv=kv, rope_dim=0)
        yield case("prepare_heads", rows=3, shape=(2, 1, 6), style="half", kv=kv, position=1, rope_dim=4)
        for j, length in list(enumerate(LENGTHS))[i % 3 :: 3]:
            shape = SHAPES[(i + j) % len(SHAPES)]
            rows = min([1, 2, 3, 5, 8, 9, 16, 33][j % 8], length)
            yield case("attention", rows=rows, position=length - rows, shape=shape, kv=kv)
            yield case("attention", rows=1, position=length - 1, shape=shape, kv=kv, split=True)
        yield case("attention", rows=1, position=300, shape=(8, 1, 512), kv=kv, split=True)
        yield case("attention", rows=21, position=290, shape=(6, 2, 320), kv=kv, window=200)
        yield case("attention", rows=21, position=9, shape=(4, 1, 256), kv=kv)
        yield case("attention", rows=17, position=3, shape=(2, 1, 512), kv=kv)
        yield case("attention", rows=7, position=290, shape=(3, 1, 41), kv=kv, window=200)
        yield case("attention", rows=1, position=600, shape=(3, 1, 41), kv=kv, split=True)
        mixed = ((40, 300), (1, 5), (4, 1020), (1, 255), (33, 0))
        yield case("attention", rows=1, position=256, shape=(6, 2, 96), kv=kv, others=mixed)
        yield case("attention", rows=9, position=70, shape=(4, 2, 64), kv=kv, images=((2, 7),))
        yield case("copy_records", kv=kv, kv_heads=3, head_dim=72, pairs=5)
    few = dict(heads=9, latent=64, rope=16, kv="q4_0")
    for heads, latent, rope in [(16, 512, 64), (3, 38, 6), (1, 256, 64)]:
        common = dict(heads=heads, latent=latent, rope=rope, kv="q4_0")
        yield case("latent_attention", rows=5, position=37, **common)
        yield case("latent_attention", rows=1, position=299, split=True, **common)
    yield case("latent_attention", rows=70, position=0, style="half", **few)
    yield case("latent_attention", rows=1, position=600, others=((40, 255), (1, 31), (3, 1020)), **few)


def _images() -> Iterator[Case]:
    """Rows of images, which see all of theirs: in a tile of rows, over several, and a window's."""
    for kv in ("f16", "f32", "q8_0"):
        common = dict(kv=kv, shape=(4, 2, 64))
        yield case("attention", rows=9, position=70, images=((2, 7),), **common)
        yield case("attention", rows=300, position=30, images=((3, 259), (261, 300)), **common)
    mixed = dict(others=((5, 40), (33, 0)), images=((0, 64), (66, 70), (74, 100)))
    yield case("attention", rows=70, position=250, shape=(6, 2, 96), kv="f16", window=50, **mixed)
    yield case("attention", rows=70, position=0, shape=(3, 1, 72), kv="f16", cap=5.0, **mixed)
    yield case("attention", rows=70, position=5, shape=(2, 1, 256), kv="f16", window=300, **mixed)


def _column_squares() -> Iterator[Case]:
    for rows, dim in [(1, 33), (7, 100), (512, 288)]:
        yield case("column_squares", rows=rows, dim=dim, formats=("f32",))
    for rows, dim in [(1, 32), (300, 352)]:
        yield case("column_squares", rows=rows, dim=dim, formats=("q8",))
    for apart in (False, True):  # the last expert is chosen by no row
        of_experts = dict(experts=9, chosen=3, apart=apart)
        yield case("column_squares", rows=40, dim=100, formats=("f32",), **of_experts)
        yield case("column_squares", rows=7, dim=352, formats=("q8",), **of_experts)


def _latent() -> Iterator[Case]:
    for kv in ("f16", "f32", "q8_0"):
        for heads, latent, rope in [(16, 512, 64), (20, 64, 16), (128, 40, 8), (3, 38, 6), (1, 256, 64)]:
            common = dict(heads=heads, latent=latent, rope=rope, kv=kv)
            yield case("latent_attention", rows=5, position=37, **common)
            yield case("latent_attention", rows=1, position=299, split=True, **common)
        few = dict(heads=9, latent=64, rope=16, kv=kv)
        yield case("latent_attention", rows=70, position=0, style="half", **few)
        yield case("latent_attention", rows=1, position=0, split=True, **few)
        yield case(
            "latent_attention", rows=1, position=600, others=((40, 255), (1, 31), (3, 1020)), **few,
            temperature=(0.3, 64),
        )  # fmt: skip
        many = dict(heads=20, latent=512, rope=64, kv=kv)  # as GLM-4.7-Flash has them
        yield case("latent_attention", rows=37, position=250, others=((33, 0), (2, 300), (1, 9)), **many)
        yield case("latent_attention", rows=1, position=700, split=True, **many)
    yield case("latent_attention", rows=1, position=5000, split=True, heads=4, latent=32, rope=8, kv="f16")
    for dtype in weight_dtypes():
        k = max(64, dtype_row(dtype)["block_elems"])
        yield case("head_matmul", dtype=dtype, rows=1, heads=5, n=40, k=k, copied=16)
        yield case("head_matmul", dtype=dtype, rows=9, heads=3, n=43, k=k)
        yield case("head_matmul", dtype=dtype, rows=70, heads=2, n=64, k=k, copied=3)
    for dtype in ("f16", "f32"):
        yield case("head_matmul", dtype=dtype, rows=17, heads=4, n=130, k=23, copied=5)
    yield case("head_matmul", dtype="q8_0", rows=600, heads=2, n=512, k=192, copied=64)


def _lora() -> Iterator[Case]:
    for rank in (1, 2, 3, 4, 5, 16, 31, 256):
        yield case("lora", ranks=(rank,), rows=(0,), n=70, k=37)
        yield case("lora", ranks=(rank, 2), rows=(0, -1, 1, 1, 0), n=300, k=64)
    yield case("lora", ranks=(7, 0, 3), rows=(1, 2, 0, -1) * 10, n=513, k=129, stride=600)
    yield case("lora", ranks=(9, 4), rows=(1, 0, -1, 0), n=33, k=48, gather=(3, 2, 0))
    yield case("lora", ranks=(16,), rows=(-1,) * 3, n=8, k=8)
    yield case("lora", ranks=(512,), rows=(0,), n=10, k=4104, half=True)
    yield case("lora", ranks=(16, 16, 16, 16), rows=(2, 3, -1, 0, 1), n=600, k=72, half=True)
    yield case("lora", ranks=(3,), rows=(0, 0), n=70, k=37, half=True)
    # Rows of prompts: of one sequence, of some that follow one another, and of sequences in turn.
    for n, k in [(520, 264), (65, 40), (33, 31)]:
        for rows in [(0,) * 70, (1,) * 20 + (-1,) * 5 + (0,) * 31, (2, 0, -1, 1, 3) * 9]:
            yield case("lora", ranks=(16, 40, 1, 0), rows=rows, n=n, k=k, half=True, stride=n + 3)
    rows = (1, 0, -1) * 12
    yield case("lora", ranks=(8, 24), rows=rows, n=64, k=128, half=True, gather=tuple(range(35, 12, -1)))


def _encoder() -> Iterator[Case]:
    for rows, dim in [(1, 64), (9, 384), (3, 2304)]:
        for formats in [("f32",), ("q8",), BOTH]:
            yield case("layer_norm", rows=rows, dim=dim, formats=formats)
    yield case("layer_norm", rows=5, dim=100, formats=("f32",), bias=False, eps=1e-5)
    # More rows than a GPU has blocks.
    for dim, formats in [(68, ("f32",)), (1152, BOTH), (50, ("f32",))]:
        yield case("layer_norm", rows=150, dim=dim, formats=formats, bias=dim != 68, mean=30.0)
    yield case("layer_norm", rows=2, dim=384, formats=BOTH, mean=1e3)
    yield case("layer_norm", rows=4, dim=96, formats=BOTH, gather=(7, 0, 2, 2))
    yield case("embed_position", rows=5, dim=48, positions=9, kinds=0, step=4)
    for rows, dim, positions, kinds in [(1, 32, 4, 2), (9, 100, 64, 2), (33, 384, 512, 0), (5, 48, 0, 1)]:
        yield case("embed_position", rows=rows, dim=dim, positions=positions, kinds=kinds)
    for pooling in ("mean", "cls", "last"):
        yield case("pool", lengths=(1,), dim=33, pooling=pooling)
        yield case("pool", lengths=(5, 1, 300, 17), dim=384, pooling=pooling)
    for terms in ((), ("bias",), ("keys",), ("queries",), ("keys", "queries"), ("bias", "keys", "queries")):
        yield case(
            "relative_attention", lengths=(5, 1, 37), heads=3, head_dim=20, reach=9, distances=7, terms=terms
        )
    yield case(
        "relative_attention", lengths=(1, 300), heads=2, head_dim=64, reach=40, distances=32, terms=("bias",)
    )
    terms = ("keys", "queries")
    yield case(
        "relative_attention", lengths=(270,), heads=1, head_dim=72, reach=300, distances=64, terms=terms
    )
    for activation in ("silu", "gelu", "gelu_erf", "tanh", "relu", "sigmoid", "relu2"):
        yield case("gate_act", rows=3, n=160, activation=activation, formats=BOTH, gated=False)
    yield case("gate_act", rows=2, n=173, activation="gelu_erf", formats=("f32",))
    yield case("gate_act", rows=2, n=173, activation="sigmoid", formats=BOTH[:1])
    yield case("gate_act", rows=2, n=256, activation="gelu_erf", formats=("f32",), sigma=60.0)
    yield case("gate_up", dtype="f32", rows=9, n=96, k=256, activation="gelu_erf", formats=BOTH)
    # Weights for rows of whole sequences: around tiles of tokens and of k, and blocks of tokens.
    for dtype in filter(is_float, weight_dtypes()):
        for rows, n, k in [
            (1, 1, 5),
            (3, 17, 100),
            (17, 33, 160),
            (40, 100, 255),
            (130, 64, 384),
            (300, 40, 640),
        ]:
            if k % dtype_row(dtype)["block_elems"] == 0:
                yield case("matmul", dtype=dtype, rows=rows, n=n, k=k, bias=True, accumulate=True, whole=True)
        yield case("gate_up", dtype=dtype, rows=33, n=96, k=256, activation="silu", formats=BOTH, whole=True)
    for activation in ("gelu_erf", "relu", "relu2"):
        yield case("matmul", dtype="f32", rows=1, n=100, k=256, bias=True, activation=activation)
        yield case("matmul", dtype="f16", rows=40, n=43, k=256, bias=True, activation=activation)
        yield case("matmul", dtype="f32", rows=40, n=43, k=256, activation=activation, whole=True)
    for k in (16384, 16416):  # the most columns that are split, and more
        yield case("matmul", dtype="f32", rows=33, n=16, k=k, whole=True)
    yield case("gate_up", dtype="f32", rows=33, n=43, k=256, activation="silu", formats=("f32",), whole=True)
    # Rows that see all of their sequence, beside others: around pages, blocks and blocks of queries.
    for kv in ("f16", "f32"):
        for window in (0, 1, 7, 65, 300):
            yield case(
                "attention", rows=70, position=0, shape=(4, 2, 40), kv=kv, window=window, both=True,
                others=((1, 0), (33, 0), (600, 0), (256, 0)),
            )  # fmt: skip
    yield case(
        "attention", rows=16, position=0, shape=(12, 12, 32), kv="f32", both=True, others=((16, 0),) * 9
    )
    # Queries that do not fit at once, heads as large as tiles take them, and larger.
    yield case("attention", rows=300, position=0, shape=(2, 1, 64), kv="f32", both=True, cap=5.0)
    for head_dim in (512, 544):
        yield case("attention", rows=40, position=0, shape=(1, 1, head_dim), kv="f32", both=True)
    # Heads of CUDA's tiles and a little smaller, groups, and sequences that begin and end within tiles.
    for shape in ((3, 3, 8), (2, 1, 56), (8, 1, 120), (16, 2, 64), (3, 1, 128), (2, 1, 256), (1, 1, 512)):
        for kv in ("f16", "f32"):
            yield case(
                "attention",
                rows=37,
                position=0,
                shape=shape,
                kv=kv,
                both=True,
                others=((130, 0), (15, 0), (16, 0)),
            )
    # More rows than CUDA finds the runs of at once.
    yield case(
        "attention", rows=36, position=0, shape=(1, 1, 8), kv="f32", both=True, others=((36, 0),) * 200
    )


def _speech() -> Iterator[Case]:
    for length, channels, taps, stride in [(1, 1, 3, 1), (74, 7, 3, 1), (75, 33, 3, 2), (12, 80, 5, 3)]:
        yield case("unfold", length=length, channels=channels, taps=taps, stride=stride)
    # Around pages, blocks and tiles of queries.
    for kv in ("f16", "f32", "q8_0"):
        for keys in (1, 33, 256, 301):
            yield case("cross_attention", rows=(1,), keys=keys, shape=(3, 3, 16), kv=kv)
            yield case("cross_attention", rows=(1,), keys=keys, shape=(4, 4, 40), kv=kv, split=True)
            yield case("cross_attention", rows=(5, 1, 70), keys=keys, shape=(4, 2, 64), kv=kv)
            yield case("attention_weights", rows=(3, 9), keys=keys, shape=(6, 3, 24), kv=kv, chosen=(5, 0, 2))
    yield case("cross_attention", rows=(9, 1), keys=1500, shape=(6, 6, 64), kv="f16")


def _copy_records() -> Iterator[Case]:
    for kv in ("f16", "f32", "q8_0"):
        yield case("copy_records", kv=kv, kv_heads=3, head_dim=40, pairs=1)
        yield case("copy_records", kv=kv, kv_heads=8, head_dim=128, pairs=5)


def _sinks() -> Iterator[Case]:
    for kv in ("f16", "f32", "q8_0"):
        for window in (0, 7, 128):
            common = dict(shape=(8, 2, 64), kv=kv, window=window, sinks=True)
            yield case("attention", rows=1, position=600, split=True, formats=BOTH, **common)
            yield case("attention", rows=1, position=0, split=True, **common)
            yield case("attention", rows=70, position=250, others=((1, 40), (5, 0)), **common)


def _route() -> Iterator[Case]:
    for gating in ("softmax", "sigmoid", "softmax_chosen", "sqrt_softplus"):
        yield case("route", rows=1, experts=4, chosen=2, gating=gating)
        yield case("route", rows=9, experts=60, chosen=4, gating=gating, renormalise=False, scale=2.5)
    yield case("route", rows=1, experts=1, chosen=1)
    yield case("route", rows=70, experts=128, chosen=8)
    yield case("route", rows=3, experts=32, chosen=32)
    yield case("route", rows=5, experts=1024, chosen=32, gating="sigmoid", biased=True, sum_eps=1e-20)
    yield case("route", rows=4, experts=64, chosen=6, biased=True, sum_min=6.1e-5, scale=1.8, own_scale=True)
    for top in (1, 2):
        yield case(
            "route", rows=17, experts=256, chosen=8, gating="sigmoid", biased=True, groups=(8, 4, top),
            sum_eps=1e-20, scale=2.5,
        )  # fmt: skip
    yield case("route", rows=3, experts=64, chosen=6, groups=(8, 3, 1), renormalise=False)
    for chosen in (1, 7):
        yield case("route", rows=2, experts=128, chosen=chosen, ties=True)
    # Clusters of tokens, which are chosen as experts are.
    yield case("route", rows=3, experts=2048, chosen=32, gating="softmax_chosen", renormalise=False)
    for rows, vocab, clusters, chosen in [(1, 299, 23, 6), (5, 9001, 9001, 1), (2, 24576, 2048, 32)]:
        yield case("cluster_logits", rows=rows, vocab=vocab, clusters=clusters, chosen=chosen)


def _experts() -> Iterator[Case]:
    for dtype in weight_dtypes():
        block = dtype_row(dtype)["block_elems"]
        few = 100 if block == 1 else 3 * block
        common = dict(dtype=dtype, chosen=3)
        yield case("experts_gate_up", rows=1, experts=9, n=40, k=few, **common)
        yield case("experts_gate_up", rows=7, experts=5, n=96, k=256, formats=BOTH, **common)
        yield case("experts_gate_up", rows=60, experts=4, n=160, k=512, formats=("q8",), **common)
        yield case("experts_gate_up", rows=200, experts=6, n=43, k=256, ids="one", **common)
        yield case("experts_down", rows=1, experts=9, n=43, k=few, **common)
        yield case("experts_down", rows=7, experts=5, n=96, k=256, bias=True, **common)
        yield case("experts_down", rows=60, experts=4, n=300, k=512, accumulate=False, **common)
        yield case("experts_down", rows=200, experts=6, n=43, k=256, ids="one", **common)
    oss = dict(dtype="mxfp4", experts=32, chosen=4, bias=True)
    clamped = dict(limit=1.5, sharpness=1.702, up_offset=1.0)
    for rows in (1, 3, 40, 130):
        yield case("experts_gate_up", rows=rows, n=96, k=288, formats=BOTH, **clamped, **oss)
        yield case("experts_down", rows=rows, n=288, k=96, **oss)
        ungated = dict(activation="relu2", gated=False)
        yield case("experts_gate_up", rows=rows, n=96, k=288, formats=BOTH, **ungated, **oss)
        yield case("experts_gate_up", rows=rows, n=43, k=96, **ungated, **oss)
    for dtype in ("f32", "f16", "q4_k", "q8_0"):
        for rows in (1, 7, 60):
            yield case(
                "experts_gate_up", dtype=dtype, rows=rows, experts=5, chosen=3, n=96, k=256,
                activation="relu2", gated=False,
            )  # fmt: skip
    clusters = dict(experts=2048, chosen=32, n=13, k=64, activation="none", gated=False)
    for dtype in ("f32", "f16", "q8_0"):
        for rows in (1, 5):
            yield case("experts_gate_up", dtype=dtype, rows=rows, **clusters)
    # Inputs that 256 does not divide.
    for dtype, k in [("q4_0", 2880), ("q5_1", 704), ("q8_0", 1408), ("iq4_nl", 1856), ("f16", 704)]:
        for rows in (1, 30):
            yield case("experts_gate_up", dtype=dtype, rows=rows, experts=4, chosen=2, n=33, k=k)
            yield case("experts_down", dtype=dtype, rows=rows, experts=4, chosen=2, n=33, k=k, ids="few")
    for dtype in ("f32", "f16", "q8_0"):
        for rows in (1, 7, 60, 200):
            yield case("experts_down", dtype=dtype, rows=rows, experts=6, chosen=3, n=43, k=96, whole=True)
    for activation in ("gelu", "gelu_erf"):
        yield case(
            "experts_gate_up", dtype="q8_0", rows=2, experts=3, chosen=2, n=64, k=64, activation=activation
        )
    yield case("experts_gate_up", dtype="q4_k", rows=3, experts=512, chosen=10, n=32, k=256)
    yield case("experts_down", dtype="q4_k", rows=3, experts=512, chosen=10, n=32, k=256)
    yield case("experts_down", dtype="q4_k", rows=5, experts=1, chosen=1, n=40, k=256)


def _sampling() -> Iterator[Case]:
    for vocab in (1, 15, 32000, 151936):
        for kind in ("equal", "ties", "last", "peak"):
            yield case("argmax", vocab=vocab, kind=kind)
            yield case("argmax", vocab=vocab, kind=kind, rows=5 if vocab < 100_000 else 2)
    for vocab in (1, 15, 1000, 32000):
        yield case("sample_prepare", vocab=vocab)
        yield case("sample_prepare", vocab=vocab, biased=True)
        yield case("sample_prepare", vocab=vocab, masked=True)
        yield case("sample_prepare", vocab=vocab, biased=True, masked=True, rows=3, repeat_penalty=1.1)
        yield case("sample_prepare", vocab=vocab, repeat_penalty=1.3, penalty_window=20)
        yield case(
            "sample_prepare",
            vocab=vocab,
            biased=True,
            repeat_penalty=0.7,
            presence_penalty=0.5,
            frequency_penalty=-0.25,
            penalty_window=-1,
        )
    for vocab, position in [(1, 9), (4, 40), (1000, 3), (1000, 700), (32000, 100)]:
        dry = dict(vocab=vocab, position=position, dry_multiplier=0.8)
        yield case("sample_prepare", **dry)
        yield case("sample_prepare", **dry, rows=3, masked=True, breakers=True, repeat_penalty=1.1)
        yield case("sample_prepare", **dry, dry_allowed_length=0, dry_penalty_last_n=20)
        yield case("sample_prepare", **dry, dry_allowed_length=5, dry_base=1.2, breakers=True)
    for vocab, samples in [(1, 2), (15, 40), (2000, 12), (32000, 3), (151936, 1)]:
        for i, settings in enumerate(
            [
                dict(temperature=0.0),
                dict(temperature=1.0),
                dict(temperature=0.7, top_k=1),
                dict(temperature=1.5, top_k=40),
                dict(temperature=1.0, top_k=700),
                dict(temperature=0.8, top_p=0.9),
                dict(temperature=2.0, top_p=0.999),
                dict(temperature=1.2, min_p=0.05),
                dict(temperature=1.0, typical_p=0.8),
                dict(temperature=1.0, typical_p=0.97, top_p=0.9),
                dict(temperature=0.9, top_k=50, top_p=0.9, min_p=0.02, typical_p=0.95),
                dict(
                    temperature=1.1, top_k=20, repeat_penalty=1.2, presence_penalty=0.2, frequency_penalty=0.1
                ),
                dict(temperature=1.3, top_n_sigma=1.5),
                dict(temperature=1.0, top_n_sigma=1.0, top_p=0.7, min_p=0.01),
                dict(temperature=1.0, xtc_probability=0.6, xtc_threshold=0.02),
                dict(
                    temperature=1.0, top_k=30, min_p=0.02, xtc_probability=0.5, xtc_threshold=0.05, min_keep=5
                ),
                dict(temperature=1.0, top_p=0.1, typical_p=0.2, min_p=0.9, min_keep=7),
                dict(temperature=0.5, dry_multiplier=2.0, dry_allowed_length=1, top_p=0.9),
            ]
        ):
            if vocab < 100_000 or i in (1, 4, 6, 8, 13, 15):
                yield case("sample", vocab=vocab, samples=samples, seed=i << 40 | 12345 + i, **settings)
                if vocab < 30_000:
                    yield case("sample", vocab=vocab, samples=min(samples, 4), seed=i, rows=3, **settings)
    yield case("sample", vocab=2000, samples=12, sigma=0.01, temperature=1.0, top_p=0.5)  # a long list
    yield case("sample", vocab=32000, samples=2, sigma=0.01, temperature=1.0, typical_p=0.6)
    for vocab, top, step in [(1, 20, 0), (15, 20, 2), (1000, 0, 0), (32000, 20, 1), (151936, 5, 0)]:
        yield case("logprobs", vocab=vocab, top=top, step=step)
        yield case("logprobs", vocab=vocab, top=top, step=step, rows=3)
    for limit in (0, 1, 3):
        yield case("accept", drafts=(0,), holds=(0,), limit=limit)
        yield case("accept", drafts=(0, 3, 0, 5, 2), holds=(0, 1, 0, 5, 0), limit=limit)
        yield case("accept", drafts=(4, 4), holds=(4, 2), limit=limit, end=True)
    yield case("accept", drafts=(0, 2), holds=(0, 2), stopped=True)
    for axes, spans in ((False, False), (True, False), (False, True), (True, True)):
        yield case("advance", tokens=(2,), each=2, axes=axes, spans=spans)
        yield case("advance", tokens=(1, 0, 5, 3, 0, 1), each=5, axes=axes, spans=spans)
    yield case("advance", tokens=(1, 2) * 35, each=2, axes=True, spans=True)


def _fixed_attention() -> Iterator[Case]:
    """In both directions, where the output is rounded to int8: what x86 multiplies as 16-bit integers."""
    common = dict(kv="f32", both=True, formats=("q8",), position=0)
    sequences = ((1, 0), (33, 0), (600, 0), (256, 0))
    for window in (0, 1, 7, 65, 300):
        yield case("attention", rows=70, shape=(4, 2, 48), window=window, others=sequences, **common)
    yield case("attention", rows=16, shape=(12, 12, 32), others=((16, 0),) * 9, **common)
    yield case("attention", rows=600, shape=(2, 1, 64), cap=5.0, **common)  # queries that do not fit at once
    yield case("attention", rows=300, shape=(1, 1, 64), spread=10.0, **common)
    for head_dim in (16, 24, 40, 512, 528):  # of which some go in no whole strips, or are too large
        yield case("attention", rows=40, shape=(1, 1, head_dim), **common)


def _quantised_outputs() -> Iterator[Case]:
    """Matmuls whose sums become int8, after an activation function: by tiles, what they leave, and panels."""
    for dtype in ("q8_0", "q4_0", "q6_k", "f32", "f16"):
        for rows in (1, 7, 16, 130):
            for whole in (False, True) if is_float(dtype) else (False,):
                yield case(
                    "matmul", dtype=dtype, rows=rows, n=160, k=256, bias=True, activation="gelu_erf",
                    whole=whole, to="q8",
                )  # fmt: skip
    yield case("matmul", dtype="q8_0", rows=20, n=32, k=64, to="q8")


CHECKS: list[Case] = [
    *_embed(),
    *_elementwise(),
    *_streams(),
    *_matmul(),
    *_prepare_heads(),
    *_attention(),
    *_images(),
    *_copy_records(),
    *_sampling(),
]

#: Ops of encoders.
ENCODER_CHECKS: list[Case] = [*_encoder()]
#: Ops of speech.
SPEECH_CHECKS: list[Case] = [*_speech()]
#: Ops of blocks with a state.
RECURRENCE_CHECKS: list[Case] = [*recurrence()]
#: Ops of gated delta nets.
DELTA_CHECKS: list[Case] = [*delta_rule()]
#: Ops of Mamba-2.
MAMBA_CHECKS: list[Case] = [*ssm_scan(), *gated_norm()]
#: Ops of experts.
EXPERT_CHECKS: list[Case] = [*_route(), *_experts()]
#: Ops of latent attention.
LATENT_CHECKS: list[Case] = [*_latent()]

LORA_CHECKS: list[Case] = [*_lora()]
#: Ops of importance matrices.
IMPORTANCE_CHECKS: list[Case] = [*_column_squares()]
#: Attention with sinks.
SINK_CHECKS: list[Case] = [*_sinks()]
#: Types of the KV cache that differ, or are Q4_0.
KV_CHECKS: list[Case] = [*_kv_types()]
#: What runs on the CPU alone: attention in integers, and matmuls to int8.
CPU_CHECKS: list[Case] = [*_fixed_attention(), *_quantised_outputs()]
#: Ops that only devices with fused norms have; the table builder does not give them to the CPU.
FUSED_CHECKS: list[Case] = [*_fused()]

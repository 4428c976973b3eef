"""The sizes of real models, for the time that a kernel takes: `perf.py`."""

from __future__ import annotations

from collections.abc import Iterator

from .case import Case, case
from .weights import is_float, weight_dtypes


def perf_cases() -> Iterator[Case]:
    """Sizes of models of 0.6B to 8B parameters: one token, a batch, a chunk of a prompt."""
    for dtype in weight_dtypes():
        for rows in (1, 8, 512):
            yield case("matmul", dtype=dtype, rows=rows, n=2048, k=2048)
            yield case(
                "gate_up",
                dtype=dtype,
                rows=rows,
                n=3072,
                k=1024,
                activation="silu",
                formats=("f32",) if is_float(dtype) else ("q8",),
            )
        yield case("matmul", dtype=dtype, rows=1, n=2048, k=8192, accumulate=True)
        yield case("embed", dtype=dtype, rows=512, dim=2048, vocab=4000)
    for rows in (1, 512):
        yield case("rope_table", rows=rows, half=64, position=1000)
        yield case("norm", rows=rows, dim=2048, formats=("q8",))
        yield case("norm_add", rows=rows, dim=2048)
        yield case("quantize", rows=rows, dim=2048, formats=("q8",))
        yield case("gate_act", rows=rows, n=8192, activation="silu", formats=("q8",))
        yield case("gate_act", rows=rows, n=8192, activation="gelu", formats=("q8",))
        for kv in ("f16", "f32", "q8_0"):
            yield case("prepare_heads", rows=rows, shape=(32, 8, 64), style="half", kv=kv, position=64)
    for kv in ("f16", "f32", "q8_0"):
        for shape in [(32, 8, 64), (16, 8, 128), (16, 4, 256), (16, 2, 512)]:
            common = dict(shape=shape, kv=kv)
            yield case("attention", rows=1, position=511, split=True, formats=("q8",), **common)
            yield case("attention", rows=1, position=4095, split=True, formats=("q8",), **common)
            yield case("attention", rows=512, position=0, **common)
            yield case("attention", rows=128, position=3968, **common)
        for rows in (1, 5):
            yield case("cross_attention", rows=(rows,), keys=1500, shape=(8, 8, 64), kv=kv, split=rows == 1)
    # A draft of Gemma 4's E2B: all tokens, and those of 32 clusters.
    e2b, clusters = dict(rows=1, k=256), dict(experts=2048, chosen=32)
    for dtype in ("f16", "q8_0"):
        yield case("matmul", dtype=dtype, n=262144, **e2b)
        yield case("experts_gate_up", dtype=dtype, n=128, activation="none", gated=False, **e2b, **clusters)
    yield case("matmul", dtype="f32", n=2048, **e2b)
    yield case("route", rows=1, gating="softmax_chosen", renormalise=False, **clusters)
    yield case("cluster_logits", rows=1, vocab=262144, clusters=2048, chosen=32)
    # Gated delta nets: 0.8B's, and 4B's. One row of 20 sequences each, whose states no cache holds; a prompt.
    for value_heads in (16, 32):
        common = dict(heads=(16, value_heads), dims=(128, 128), formats=("q8",))
        row, prompt, drafts = (
            (((0, 48, 0),), ((48, 1, 0),)),
            (((0, 512, 0),),),
            (((0, 32, 0),), ((32, 8, 7),)),
        )
        for steps, copies in ((row, 1), (row, 40), (prompt, 1), (drafts, 1), (drafts, 40)):
            yield case("delta_rule", steps=steps, copies=copies, **common)
            yield case("short_conv", channels=(32 + value_heads) * 128, taps=4, steps=steps, copies=copies)
    # Encoders: MiniLM on a step of sequences, the base Whisper on 30 seconds.
    for rows, dim, shape in [(512, 384, (12, 12, 32)), (1500, 512, (8, 8, 64))]:
        for n, k in [(dim, dim), (4 * dim, dim), (dim, 4 * dim)]:
            yield case("matmul", dtype="f32", rows=rows, n=n, k=k, bias=True, whole=True)
        yield case("attention", rows=rows, position=0, shape=shape, kv="f32", both=True)
    for vocab in (32000, 151936):
        yield case("argmax", vocab=vocab, kind="peak")
        yield case("sample_prepare", vocab=vocab, repeat_penalty=1.1)
        for settings in [dict(), dict(top_k=40), dict(top_p=0.95), dict(typical_p=0.95), dict(min_p=0.05)]:
            yield case("sample", vocab=vocab, samples=1, temperature=1.0, **settings)
        yield case("logprobs", vocab=vocab, top=20, step=0)

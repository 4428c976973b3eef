"""The sample kernels with their references, and mutations of them; used by the emulator's own tests.

Functions here also run in child processes under a sanitizer, so arguments are plain JSON.
"""

# ruff: noqa: E501  (MSL and tables read better unbroken)
from __future__ import annotations

import struct
from pathlib import Path

import numpy as np

from metal_emulator.harness import FIFO, SCHEDULES_DEFAULT, Library, Schedule

KERNELS = Path(__file__).resolve().parents[1] / "metal_emulator" / "sample" / "kernels"
BARRIER = "threadgroup_barrier(mem_flags::mem_threadgroup);"


def source(name: str) -> str:
    return (KERNELS / f"{name}.metal").read_text()


def run_rmsnorm(library: Library, schedule: Schedule = FIFO, *, rows: int = 3, dim: int = 512) -> float:
    """Largest error of ``rmsnorm_f16`` against NumPy."""
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((rows, dim)).astype(np.float16), rng.standard_normal(dim).astype(np.float16)
    out = np.zeros_like(x)
    reference = x.astype(np.float32)
    reference = reference / np.sqrt((reference**2).mean(1, keepdims=True) + 1e-5) * w.astype(np.float32)
    library.run(
        "rmsnorm_f16",
        [x, w, out, struct.pack("If", dim, 1e-5)],
        groups=rows,
        threads=128,
        constants={"HAS_WEIGHT": True},
        schedule=schedule,
    )
    return float(np.abs(out - reference).max())


def run_gemm(library: Library, schedule: Schedule = FIFO, *, name: str = "gemm_nt_f16") -> float:
    m, n, k = 32, 64, 128
    rng = np.random.default_rng(1)
    dtype = np.float16 if name.endswith("f16") else np.float32
    a, b = rng.standard_normal((m, k)).astype(dtype), rng.standard_normal((n, k)).astype(dtype)
    c = np.zeros((m, n), np.float32)
    library.run(
        name,
        [a, b, c, struct.pack("III", m, n, k)],
        groups=(n // 32, m // 32),
        threads=128,
        schedule=schedule,
    )
    return float(np.abs(c - a.astype(np.float32) @ b.astype(np.float32).T).max())


def run_gemv(library: Library, schedule: Schedule = FIFO) -> float:
    n, k = 37, 256
    rng = np.random.default_rng(2)
    d = (rng.random((n, k // 32)) * 0.02).astype(np.float16)
    q = rng.integers(0, 16, (n, k // 32, 32), dtype=np.uint8)
    blocks = np.concatenate([d[..., None].view(np.uint8), q[..., :16] | q[..., 16:] << 4], -1)
    x, y = rng.standard_normal(k).astype(np.float32), np.zeros(n, np.float32)
    library.run(
        "gemv_q4_0",
        [np.ascontiguousarray(blocks), x, y, struct.pack("II", n, k)],
        groups=5,
        threads=64,
        schedule=schedule,
    )
    weights = (d[..., None].astype(np.float32) * (q.astype(np.float32) - 8)).reshape(n, k)
    return float(np.abs(y - weights @ x).max())


def run_attention(library: Library, schedule: Schedule = FIFO) -> float:
    heads, kv_heads, dim, length = 4, 2, 64, 37
    rng = np.random.default_rng(3)
    q = rng.standard_normal((heads, dim)).astype(np.float16)
    k, v = rng.standard_normal((2, length, kv_heads, dim)).astype(np.float16)
    out, scale = np.zeros_like(q), dim**-0.5
    params = struct.pack("IIIIf", heads, kv_heads, length, kv_heads * dim, scale)
    library.run(
        "attn_decode_f16",
        [q, k, v, out, params],
        groups=heads,
        threads=128,
        threadgroup=[4 * (dim + 2) * 4],
        constants={"HEAD_DIM": dim},
        schedule=schedule,
    )
    group = heads // kv_heads
    scores = np.einsum("hd,thd->ht", q.astype(np.float32), np.repeat(k, group, 1).astype(np.float32)) * scale
    p = np.exp(scores - scores.max(1, keepdims=True))
    reference = np.einsum(
        "ht,thd->hd", p / p.sum(1, keepdims=True), np.repeat(v, group, 1).astype(np.float32)
    )
    return float(np.abs(out - reference).max())


def run_argmax(library: Library, schedule: Schedule = FIFO) -> float:
    x = np.random.default_rng(4).standard_normal((3, 1000)).astype(np.float32)
    x[0, 17] = x[0, 900] = 9  # the lower index wins
    out = np.zeros(3, np.uint32)
    library.run("argmax_f32", [x, out, struct.pack("I", 1000)], groups=3, threads=256, schedule=schedule)
    return float((out != x.argmax(1)).sum())


def run_overlapping_writes(library: Library, schedule: Schedule = FIFO) -> float:
    out = np.zeros(40, np.float32)
    library.run("overlap", [out], groups=8, threads=8, schedule=schedule)
    return 0.0


RUNS = {
    "rmsnorm": run_rmsnorm,
    "gemm": run_gemm,
    "gemv_q4_0": run_gemv,
    "attn_decode": run_attention,
    "argmax": run_argmax,
}
TOLERANCE = {"rmsnorm": 1e-2, "gemm": 2e-4, "gemv_q4_0": 1e-5, "attn_decode": 2e-3, "argmax": 0}

# name: (kernel, text, its replacement, which occurrence).
MUTATIONS: dict[str, tuple[str, str, str, int]] = {
    "removed_barrier": ("rmsnorm", BARRIER, "", 0),
    "barrier_without_memory": ("rmsnorm", BARRIER, "threadgroup_barrier(mem_flags::mem_none);", 0),
    "removed_first_loop_barrier": ("gemm", BARRIER, "", 0),
    "removed_last_loop_barrier": ("gemm", BARRIER, "", 1),
    "uninitialised_read": (
        "rmsnorm",
        "simd_lane < n_simd ? partial[simd_lane] : 0.0f",
        "partial[simd_lane]",
        0,
    ),
    "uninitialised_local": ("gemv_q4_0", " = {0.f, 0.f, 0.f, 0.f}", "", 0),
    "divergent_barrier": ("rmsnorm", BARRIER, f"if (simd_gid == 0) {BARRIER}", 0),
    "divergent_simd_sum": (
        "rmsnorm",
        "    acc = simd_sum(acc);",
        "    if (simd_lane < 16) acc = simd_sum(acc);",
        0,
    ),
    "return_before_barrier": (
        "rmsnorm",
        "    float acc = 0.0f;",
        "    if (tid >= 100) return;\n    float acc = 0.0f;",
        0,
    ),
    "read_past_end": ("rmsnorm", "i < n4; i += tg_size) {", "i <= n4; i += tg_size) {", 0),
    "write_past_end": ("argmax", "out[tgid.x] = c.i", "out[tgid.x + 1] = c.i", 0),
    "write_past_threadgroup_array": ("rmsnorm", "partial[32]", "partial[2]", 0),
    "write_past_threadgroup_argument": ("attn_decode", "sg * (HEAD_DIM + 2);", "sg * (HEAD_DIM + 3);", 0),
    "too_much_threadgroup_memory": ("rmsnorm", "partial[32]", "partial[9000]", 0),
    "off_by_one_index": ("argmax", "ulong(tgid.x) * n;", "ulong(tgid.x) * (n - 1);", 0),
    "wrong_tie": ("argmax", "b.i < a.i", "b.i > a.i", 0),
    "wild_pointer": ("argmax", "row[i], i", "*((device const float*)ulong(i + 8)), i", 0),
    "misaligned_vector": (
        "rmsnorm",
        "device const half4* xr = x + row * n4;",
        "device const half4* xr = (device const half4*)((device const half*)x + 1) + row * n4;",
        0,
    ),
    "division_by_zero": (
        "argmax",
        "const uint nsg = (ntg.x + 31) / 32;",
        "const uint nsg = ntg.x / (tid / 2048) + (ntg.x + 31) / 32;",
        0,
    ),
    "overlapping_threadgroups": ("overlap", "", "", 0),
}
OVERLAP = """#include <metal_stdlib>
using namespace metal;
kernel void overlap(device float* o [[buffer(0)]], uint g [[threadgroup_position_in_grid]], uint t [[thread_position_in_threadgroup]]) {
    o[g * 4 + t] = float(g);
}
"""


def mutated(name: str) -> str:
    """Text of a mutated kernel; the mutation is checked to apply."""
    kernel, old, new, which = MUTATIONS[name]
    if kernel == "overlap":
        return OVERLAP
    parts = source(kernel).split(old)
    assert len(parts) > which + 1, f"{name}: the text to replace is gone"
    return old.join(parts[: which + 1]) + new + old.join(parts[which + 1 :])


def run_mutation(name: str, sanitizer: str, schedule: str = "fifo", seed: int = 0) -> float:
    kernel = MUTATIONS[name][0]
    run = RUNS.get(kernel, run_overlapping_writes)
    library = Library.compile(mutated(name), sanitizer=sanitizer)
    options = {"rows": 1} if name == "read_past_end" else {}
    return run(library, Schedule(schedule, seed, workers=2), **options)


def run_all(sanitizer: str) -> None:
    """All correct kernels, all schedules; the child's exit status tells."""
    for name, run in RUNS.items():
        library = Library.compile(KERNELS / f"{name}.metal", sanitizer=sanitizer)
        for schedule in SCHEDULES_DEFAULT[:2]:
            error = run(library, Schedule(schedule.kind, schedule.seed, workers=2))
            assert error <= TOLERANCE[name], (name, error)
    print("clean")

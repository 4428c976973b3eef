"""MSL on the CPU executor against NumPy: types, functions, SIMD groups, templates, constants."""

# ruff: noqa: E501  (MSL and tables read better unbroken)
from __future__ import annotations

import math

import numpy as np
import pytest

from metal_emulator.harness import SCHEDULES_DEFAULT, CompileError, KernelError, Library, Schedule

pytestmark = pytest.mark.long  # of the tests' own tool, which no change to the package can break

HEAD = "#include <metal_stdlib>\nusing namespace metal;\n"
RNG = np.random.default_rng(7)


def lib(body: str, **options) -> Library:
    return Library.compile(HEAD + body, **options)


def as_bfloat(x: np.ndarray) -> np.ndarray:
    """Round float32 to bfloat16 (nearest, ties to even), as float32."""
    u = x.astype(np.float32).view(np.uint32)
    return ((u + 0x7FFF + (u >> 16 & 1)) & np.uint32(0xFFFF0000)).astype(np.uint32).view(np.float32)


# ---- math --------------------------------------------------------------------------------------

UNARY = {
    "exp": (np.exp, -8, 8), "exp2": (np.exp2, -8, 8), "exp10": (lambda x: 10.0**x, -4, 4), "log": (np.log, 0.01, 50),
    "log2": (np.log2, 0.01, 50), "log10": (np.log10, 0.01, 50), "sin": (np.sin, -3, 3), "cos": (np.cos, -3, 3),
    "tan": (np.tan, -1.2, 1.2), "sinpi": (lambda x: np.sin(np.pi * x), -1, 1), "cospi": (lambda x: np.cos(np.pi * x), -1, 1),
    "tanh": (np.tanh, -5, 5), "sinh": (np.sinh, -4, 4), "cosh": (np.cosh, -4, 4), "asin": (np.arcsin, -1, 1),
    "acos": (np.arccos, -1, 1), "atan": (np.arctan, -5, 5), "sqrt": (np.sqrt, 0, 50), "rsqrt": (lambda x: 1 / np.sqrt(x), 0.01, 50),
    "floor": (np.floor, -9, 9), "ceil": (np.ceil, -9, 9), "trunc": (np.trunc, -9, 9), "rint": (np.rint, -9, 9),
    "fabs": (np.abs, -9, 9), "abs": (np.abs, -9, 9), "sign": (np.sign, -9, 9), "saturate": (lambda x: np.clip(x, 0, 1), -2, 2),
    "fract": (lambda x: x - np.floor(x), -9, 9), "round": (lambda x: np.trunc(x + np.copysign(0.5, x)), -9, 9),
    "asinh": (np.arcsinh, -5, 5), "acosh": (np.arccosh, 1, 9), "atanh": (np.arctanh, -0.9, 0.9),
}  # fmt: skip
BINARY = {
    "pow": (np.power, 0.1, 4), "powr": (np.power, 0.1, 4), "fmin": (np.minimum, -9, 9), "fmax": (np.maximum, -9, 9),
    "min": (np.minimum, -9, 9), "max": (np.maximum, -9, 9), "fmod": (np.fmod, 1, 9), "atan2": (np.arctan2, -9, 9),
    "copysign": (np.copysign, -9, 9), "fdim": (lambda x, y: np.maximum(x - y, 0), -9, 9), "step": (lambda e, x: (x >= e) * 1.0, -9, 9),
}  # fmt: skip
INTS = {
    "popcount(x)": lambda x, y: np.array([int(v).bit_count() for v in x], np.uint32),
    "clz(x)": lambda x, y: np.array([32 - int(v).bit_length() for v in x], np.uint32),
    "ctz(x)": lambda x, y: np.array([(int(v) & -int(v)).bit_length() - 1 if v else 32 for v in x], np.uint32),
    "reverse_bits(x)": lambda x, y: np.array([int(f"{v:032b}"[::-1], 2) for v in x], np.uint32),
    "extract_bits(x, 5, 7)": lambda x, y: x >> 5 & 127,
    "insert_bits(x, y, 4, 8)": lambda x, y: (x & ~np.uint32(0xFF0)) | (y << 4 & 0xFF0),
    "mulhi(x, y)": lambda x, y: (x.astype(np.uint64) * y >> 32).astype(np.uint32),
    "addsat(x, y)": lambda x, y: np.minimum(x.astype(np.uint64) + y, 2**32 - 1).astype(np.uint32),
    "subsat(x, y)": lambda x, y: np.where(x > y, x - y, 0),
    "hadd(x, y)": lambda x, y: (x.astype(np.uint64) + y >> 1).astype(np.uint32),
    "rhadd(x, y)": lambda x, y: (x.astype(np.uint64) + y + 1 >> 1).astype(np.uint32),
    "absdiff(x, y)": lambda x, y: np.where(x > y, x - y, y - x),
    "rotate(x, y & 31u)": lambda x, y: (x << (y & 31)) | np.where(y & 31 == 0, 0, x >> (32 - (y & 31)) % 32),
    "max(x, y)": lambda x, y: np.maximum(x, y),
    "clamp(x, 10u, 1000000u)": lambda x, y: np.clip(x, 10, 1000000),
    "select(x, y, x < y)": lambda x, y: np.where(x < y, y, x),
}


@pytest.fixture(scope="module")
def math_library() -> Library:
    body = "#define U(T, f) kernel void f##_##T(device const T* a [[buffer(0)]], device T* o [[buffer(1)]], uint i [[thread_position_in_grid]]) { o[i] = f(a[i]); }\n"
    body += "#define B(T, f) kernel void f##2_##T(device const T* a [[buffer(0)]], device const T* b [[buffer(1)]], device T* o [[buffer(2)]], uint i [[thread_position_in_grid]]) { o[i] = f(a[i], b[i]); }\n"
    for t in ("float", "half", "float4"):
        body += "".join(f"U({t}, {f})\n" for f in UNARY) + "".join(f"B({t}, {f})\n" for f in BINARY)
    for i, expression in enumerate(INTS):
        body += f"kernel void int_{i}(device const uint* a [[buffer(0)]], device const uint* b [[buffer(1)]], device uint* o [[buffer(2)]], uint i [[thread_position_in_grid]]) {{ uint x = a[i], y = b[i]; o[i] = {expression}; }}\n"
    return lib(body)


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("msl", ["float", "half", "float4"])
def test_unary_functions(math_library: Library, name: str, msl: str) -> None:
    f, lo, hi = UNARY[name]
    dtype = np.float16 if msl == "half" else np.float32
    x = RNG.uniform(lo, hi, 128).astype(dtype)
    out = np.zeros_like(x)
    math_library.run(f"{name}_{msl}", [x, out], grid=128 // (4 if msl == "float4" else 1), threads=32)
    expected = f(x.astype(np.float64)).astype(dtype)
    np.testing.assert_allclose(out, expected, rtol=2e-3 if msl == "half" else 2e-6, atol=1e-6)


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("msl", ["float", "half", "float4"])
def test_binary_functions(math_library: Library, name: str, msl: str) -> None:
    f, lo, hi = BINARY[name]
    dtype = np.float16 if msl == "half" else np.float32
    x, y = RNG.uniform(lo, hi, (2, 128)).astype(dtype)
    out = np.zeros_like(x)
    math_library.run(f"{name}2_{msl}", [x, y, out], grid=128 // (4 if msl == "float4" else 1), threads=32)
    np.testing.assert_allclose(
        out, f(x.astype(np.float64), y.astype(np.float64)), rtol=2e-3 if msl == "half" else 2e-6, atol=1e-6
    )


@pytest.mark.parametrize("index", range(len(INTS)), ids=list(INTS))
def test_integer_functions(math_library: Library, index: int) -> None:
    x, y = RNG.integers(0, 2**32, (2, 64), dtype=np.uint32) >> RNG.integers(0, 32, (2, 64), dtype=np.uint32)
    x[0] = y[1] = 0
    out = np.zeros_like(x)
    math_library.run(f"int_{index}", [x, y, out], grid=64, threads=32)
    np.testing.assert_array_equal(out, list(INTS.values())[index](x, y))


def test_fast_math_is_as_inaccurate_as_the_specification_allows() -> None:
    body = """
    kernel void f(device const float* x [[buffer(0)]], device float* o [[buffer(1)]], uint i [[thread_position_in_grid]]) {
        o[i] = exp(x[i]); o[64 + i] = precise::exp(x[i]); o[128 + i] = fast::exp(x[i]); o[192 + i] = sin(x[i]); o[256 + i] = precise::sin(x[i]); }
    kernel void t(device float* o [[buffer(0)]]) { o[0] = tanh(o[2]); o[1] = precise::tanh(o[2]); }
    """
    x = RNG.uniform(-3, 3, 64).astype(np.float32)
    exact, sine = np.exp(x.astype(np.float64)), np.sin(x.astype(np.float64))
    for fast in (False, True):
        out = np.zeros(320, np.float32)
        lib(body, fast_math=fast).run("f", [x, out], grid=64, threads=32)
        plain, precise, quick, sin, precise_sin = out.reshape(5, 64)
        ulp = np.spacing(exact.astype(np.float32))
        assert (np.abs(precise - exact) / ulp).max() < 1.01
        assert 2 < (np.abs(quick - exact) / ulp).max() < 10
        assert ((np.abs(plain - exact) / ulp).max() > 2) == fast
        assert np.abs(precise_sin - sine).max() < 1e-6
        assert (np.abs(sin - sine).max() > 1e-4) == fast
    o = np.array([0, 0, 60], np.float32)
    lib(body, fast_math=True).run("t", [o], grid=1, threads=1)
    assert math.isnan(o[0]) and o[1] == 1.0  # (t - 1) / (t + 1) with t = exp(120) = inf


def test_half_and_bfloat_round_after_each_operation() -> None:
    body = """
    kernel void h(device const half* x [[buffer(0)]], device half* o [[buffer(1)]], uint i [[thread_position_in_grid]]) { o[i] = x[i] * x[i] + half(1.0h); }
    kernel void b(device const ushort* x [[buffer(0)]], device ushort* o [[buffer(1)]], uint i [[thread_position_in_grid]]) {
        bfloat v = as_type<bfloat>(x[i]); o[i] = as_type<ushort>(bfloat(v * v + bfloat(1.0f))); }
    kernel void conv(device const float* x [[buffer(0)]], device bfloat* o [[buffer(1)]], uint i [[thread_position_in_grid]]) { o[i] = bfloat(x[i]); }
    kernel void wide(device const bfloat4* x [[buffer(0)]], device float4* o [[buffer(1)]], uint i [[thread_position_in_grid]]) { o[i] = float4(x[i]) * 2.0f; }
    """
    x = RNG.standard_normal(256).astype(np.float16)
    out = np.zeros_like(x)
    library = lib(body)
    library.run("h", [x, out], grid=256, threads=64)
    np.testing.assert_array_equal(out, x * x + np.float16(1))
    f = RNG.standard_normal(256).astype(np.float32)
    rounded = as_bfloat(f)
    bits = np.zeros(256, np.uint16)
    library.run("conv", [f, bits], grid=256, threads=64)
    np.testing.assert_array_equal(bits, rounded.view(np.uint32) >> 16)
    square = np.zeros(256, np.uint16)
    library.run("b", [bits, square], grid=256, threads=64)
    np.testing.assert_array_equal(
        square, as_bfloat(as_bfloat(rounded * rounded) + np.float32(1)).view(np.uint32) >> 16
    )
    wide = np.zeros(256, np.float32)
    library.run("wide", [bits, wide], grid=64, threads=32)
    np.testing.assert_array_equal(wide, rounded * 2)


# ---- types -------------------------------------------------------------------------------------


def test_vectors_swizzles_packed_types_and_layout() -> None:
    body = """
    struct Item { half4 h; uint2 u; packed_float3 p; float tail; };
    constant uchar kTable[4] = {3, 1, 4, 1};
    template <typename T, int N> struct Pair { T a; array<T, N> rest; };
    kernel void f(device float* o [[buffer(0)]], device Item* items [[buffer(1)]], device uint* size [[buffer(2)]], uint i [[thread_position_in_grid]]) {
        half4 h = half4(1.0h, 2.0h, 3.0h, 4.0h);
        h.xy = h.zw; h.w += 0.5h;
        float4 v = float4(float2(1.0f, 2.0f), 3.0f, 4.0f);
        v.yz = v.zy;
        float3 c = cross(float3(1, 0, 0), float3(0, 1, 0));
        int4 q = int4(v);
        vec<float, 2> g = vec<float, 2>(5.0f, 6.0f);
        bool4 m = v > float4(2.5f);
        Pair<float, 2> pair; pair.a = 1; pair.rest[1] = 8;
        float4x4 mat = float4x4(2.0f);
        float4 mv = mat * v;
        packed_float3 p3 = packed_float3(1, 2, 3);
        half2 hh = as_type<half2>(0x3C004000u);
        uchar4 bytes = as_type<uchar4>(0x04030201u);
        o[0] = float(h.x); o[1] = float(h.w); o[2] = v.y; o[3] = c.z; o[4] = float(q.w); o[5] = g.y;
        o[6] = any(m) ? 1.0f : 0.0f; o[7] = all(m) ? 1.0f : 0.0f; o[8] = pair.rest[1]; o[9] = mv.w; o[10] = p3.y + float3(p3).z;
        o[11] = float(hh.x); o[12] = float(bytes.z); o[13] = float(kTable[i + 2]); o[14] = dot(v, float4(1.0f)); o[15] = length(float2(3, 4));
        o[16] = select(1.0f, 2.0f, true); o[17] = mix(0.0f, 10.0f, 0.25f); o[18] = select(float4(0.0f), v, v > float4(2.5f)).w;
        o[19] = fma(2.0f, 3.0f, 1.0f); o[20] = clamp(9.0f, 0.0f, 1.0f); o[21] = normalize(float3(0, 0, 5)).z;
        float cosine; o[22] = sincos(0.0f, cosine) + cosine;
        o[23] = isnan(as_type<float>(0x7FC00000u)) && isinf(INFINITY) && !isfinite(-INFINITY) ? 1.0f : 0.0f;
        o[24] = ldexp(1.5f, 3); o[25] = numeric_limits<half>::max(); o[26] = M_PI_F; o[27] = reverse_bits(uchar(1)) + extract_bits(int(-1), 0, 4);
        Item it; it.h = half4(half(i)); it.u = uint2(i, i + 1); it.p = float3(1, 2, 3); it.tail = 9;
        items[i] = it;
        size[0] = sizeof(Item); size[1] = sizeof(float3); size[2] = sizeof(packed_float3); size[3] = sizeof(half3); size[4] = sizeof(bool4);
        size[5] = alignof(float4); size[6] = sizeof(long); size[7] = sizeof(packed_half4); size[8] = alignof(packed_half4); size[9] = sizeof(half4x4);
    }"""
    o, items, size = np.zeros(28, np.float32), np.zeros(32, np.uint8), np.zeros(10, np.uint32)
    lib(body).run("f", [o, items, size], grid=1, threads=1)
    expected = [
        3,
        4.5,
        3,
        1,
        4,
        6,
        1,
        0,
        8,
        8,
        5,
        2,
        3,
        4,
        10,
        5,
        2,
        2.5,
        4,
        7,
        1,
        1,
        1,
        1,
        12,
        65504,
        math.pi,
        127,
    ]
    np.testing.assert_allclose(o, expected, rtol=1e-6)
    assert size.tolist() == [32, 16, 12, 8, 4, 16, 8, 8, 2, 32]


def test_atomics_on_device_and_threadgroup_memory() -> None:
    body = """
    kernel void f(device atomic_uint* d [[buffer(0)]], device atomic_float* sum [[buffer(1)]], device int* out [[buffer(2)]], uint i [[thread_position_in_grid]], uint t [[thread_index_in_threadgroup]]) {
        threadgroup atomic_int count;
        threadgroup atomic_uint best;
        if (t == 0) { atomic_store_explicit(&count, 0, memory_order_relaxed); atomic_store_explicit(&best, 0u, memory_order_relaxed); }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        atomic_fetch_add_explicit(&count, 2, memory_order_relaxed);
        atomic_fetch_max_explicit(&best, i, memory_order_relaxed);
        atomic_fetch_add_explicit(&d[0], 1u, memory_order_relaxed);
        atomic_fetch_or_explicit(&d[1], 1u << (i & 31), memory_order_relaxed);
        atomic_fetch_min_explicit(&d[2], i, memory_order_relaxed);
        atomic_fetch_xor_explicit(&d[3], i, memory_order_relaxed);
        atomic_fetch_add_explicit(sum, 0.5f, memory_order_relaxed);
        uint expected = 0;
        while (!atomic_compare_exchange_weak_explicit(&d[4], &expected, expected + 3, memory_order_relaxed, memory_order_relaxed)) {}
        threadgroup_barrier(mem_flags::mem_threadgroup);
        out[i] = atomic_load_explicit(&count, memory_order_relaxed) + int(atomic_load_explicit(&best, memory_order_relaxed));
    }"""
    d, s, out = np.array([0, 0, 99, 0, 0], np.uint32), np.zeros(1, np.float32), np.zeros(128, np.int32)
    lib(body).run("f", [d, s, out], grid=128, threads=64, schedule=Schedule("uniform", 5))
    assert d.tolist() == [128, 0xFFFFFFFF, 0, 0, 384]
    assert s[0] == 64
    assert out[0] == 128 + 63 and out[127] == 128 + 127


# ---- SIMD groups -------------------------------------------------------------------------------


@pytest.mark.parametrize("schedule", SCHEDULES_DEFAULT, ids=str)
def test_simd_group_functions(schedule: Schedule) -> None:
    body = """
    kernel void f(device const float* x [[buffer(0)]], device float* o [[buffer(1)]], device uint* u [[buffer(2)]],
                  uint i [[thread_position_in_grid]], ushort lane [[thread_index_in_simdgroup]], uint n [[threads_per_grid]]) {
        float v = x[i];
        o[i] = simd_sum(v); o[n + i] = simd_max(v); o[2 * n + i] = simd_min(v); o[3 * n + i] = simd_prefix_inclusive_sum(v);
        o[4 * n + i] = simd_prefix_exclusive_sum(v); o[5 * n + i] = simd_shuffle_xor(v, 5); o[6 * n + i] = simd_shuffle_down(v, 3);
        o[7 * n + i] = simd_shuffle_up(v, 2); o[8 * n + i] = simd_broadcast(v, 7); o[9 * n + i] = simd_shuffle_rotate_down(v, 9);
        o[10 * n + i] = simd_broadcast_first(v); o[11 * n + i] = quad_sum(v); o[12 * n + i] = simd_shuffle_and_fill_up(v, x[i ^ 1], 4);
        o[13 * n + i] = float(simd_max(half(v))); o[14 * n + i] = simd_sum(float4(v)).z; o[15 * n + i] = simd_shuffle(v, ushort(31 - lane));
        u[i] = uint((simd_vote::vote_t)simd_ballot(v > 0.0f)); u[n + i] = simd_and(i | 8u); u[2 * n + i] = simd_or(i); u[3 * n + i] = simd_xor(i);
        u[4 * n + i] = simd_any(v > 100.0f) | simd_all(v < 100.0f) << 1 | simd_is_first() << 2; u[5 * n + i] = uint(simd_product(1 + int(lane == 3)));
    }"""
    n = 64
    x = np.round(RNG.standard_normal(n).astype(np.float32) * 8) / 8  # sums are exact in any order
    o, u = np.zeros((16, n), np.float32), np.zeros((6, n), np.uint32)
    lib(body).run("f", [x, o, u], grid=n, threads=n, schedule=schedule)
    g, lane = x.reshape(2, 32), np.arange(32)
    each = lambda v: np.repeat(v, 32).reshape(2, 32)  # noqa: E731
    got = o.reshape(16, 2, 32)
    np.testing.assert_array_equal(got[0], each(g.sum(1)))
    np.testing.assert_array_equal(got[1], each(g.max(1)))
    np.testing.assert_array_equal(got[2], each(g.min(1)))
    np.testing.assert_array_equal(got[3], np.cumsum(g, 1))
    np.testing.assert_array_equal(got[4], np.cumsum(g, 1) - g)
    np.testing.assert_array_equal(got[5], g[:, lane ^ 5])
    np.testing.assert_array_equal(got[6][:, :29], g[:, 3:])
    assert np.isnan(got[6][:, 29:]).all()  # from lanes that do not exist: undefined, poison here
    np.testing.assert_array_equal(got[7][:, 2:], g[:, :-2])
    np.testing.assert_array_equal(got[8], each(g[:, 7]))
    np.testing.assert_array_equal(got[9], g[:, (lane + 9) % 32])
    np.testing.assert_array_equal(got[10], each(g[:, 0]))
    np.testing.assert_array_equal(got[11], np.repeat(g.reshape(2, 8, 4).sum(2), 4, 1))
    np.testing.assert_array_equal(got[12][:, 4:], g[:, :-4])
    np.testing.assert_array_equal(got[12][:, :4], g[:, lane ^ 1][:, 28:])
    np.testing.assert_array_equal(got[13], each(g.max(1)))
    np.testing.assert_array_equal(got[14], each(g.sum(1)))
    np.testing.assert_array_equal(got[15], g[:, ::-1])
    w = u.reshape(6, 2, 32)
    np.testing.assert_array_equal(w[0], each(((g > 0) << lane).sum(1)))
    ids = np.arange(n, dtype=np.uint32).reshape(2, 32)
    np.testing.assert_array_equal(w[1], each(np.bitwise_and.reduce(ids | 8, 1)))
    np.testing.assert_array_equal(w[2], each(np.bitwise_or.reduce(ids, 1)))
    np.testing.assert_array_equal(w[3], each(np.bitwise_xor.reduce(ids, 1)))
    np.testing.assert_array_equal(w[4], np.where(lane == 0, 6, 2) * np.ones((2, 1)))
    np.testing.assert_array_equal(w[5], 2 * np.ones((2, 32)))


def test_positions_of_a_partial_grid() -> None:
    body = """
    kernel void f(device uint* o [[buffer(0)]], uint3 p [[thread_position_in_grid]], uint3 n [[threads_per_grid]], uint3 g [[threadgroup_position_in_grid]],
                  uint3 t [[threads_per_threadgroup]], uint3 d [[dispatch_threads_per_threadgroup]], uint3 gs [[threadgroups_per_grid]],
                  ushort sg [[simdgroup_index_in_threadgroup]], ushort nsg [[simdgroups_per_threadgroup]], uint w [[threads_per_simdgroup]], ushort q [[thread_index_in_quadgroup]]) {
        uint i = (p.z * n.y + p.y) * n.x + p.x;
        o[i] = g.x | t.x << 4 | d.x << 8 | gs.x << 12 | gs.y << 16 | uint(sg) << 20 | uint(nsg) << 24;
        if (w != 32 || q > 3) o[i] = 0;
    }"""
    o = np.zeros((2, 3, 10), np.uint32)
    lib(body).run("f", [o], grid=(10, 3, 2), threads=(4, 3, 2))
    x = np.arange(10)
    expected = x // 4 | np.where(x < 8, 4, 2) << 4 | 4 << 8 | 3 << 12 | 1 << 16 | 1 << 24
    np.testing.assert_array_equal(o, np.broadcast_to(expected, o.shape))


@pytest.mark.parametrize(("msl", "tolerance"), [("float", 1e-6), ("half", 2e-3), ("bfloat", 2e-2)])
def test_simdgroup_matrix(msl: str, tolerance: float) -> None:
    body = f"""#include <metal_simdgroup_matrix>
    kernel void f(device const float* a [[buffer(0)]], device const float* b [[buffer(1)]], device float* o [[buffer(2)]], ushort lane [[thread_index_in_simdgroup]]) {{
        threadgroup {msl} ta[8 * 8], tb[8 * 8];
        for (ushort i = lane; i < 64; i += 32) {{ ta[i] = {msl}(a[i]); tb[i] = {msl}(b[i]); }}
        threadgroup_barrier(mem_flags::mem_threadgroup);
        simdgroup_matrix<{msl}, 8, 8> ma, mb, mt;
        simdgroup_load(ma, ta, 8); simdgroup_load(mb, tb, 8); simdgroup_load(mt, tb, 8, ulong2(0, 0), true);
        simdgroup_matrix<float, 8, 8> c = make_filled_simdgroup_matrix<float, 8, 8>(1.0f), d(2.0f), t;
        simdgroup_multiply_accumulate(c, ma, mb, c);
        simdgroup_multiply(t, ma, mt);
        simdgroup_store(c, o, 8); simdgroup_store(t, o + 64, 16); simdgroup_store(d, o + 64, 16, ulong2(8, 0)); simdgroup_store(c, o + 192, 8, ulong2(0, 0), true);
    }}"""
    a, b = RNG.standard_normal((2, 8, 8)).astype(np.float32)
    o = np.zeros(256, np.float32)
    lib(body).run("f", [a, b, o], groups=1, threads=32)
    np.testing.assert_allclose(o[:64].reshape(8, 8), a @ b + 1, atol=tolerance * 8)
    both = o[64:192].reshape(8, 16)
    np.testing.assert_allclose(both[:, :8], a @ b.T, atol=tolerance * 8)
    np.testing.assert_array_equal(both[:, 8:], 2 * np.eye(8))
    np.testing.assert_array_equal(o[192:].reshape(8, 8), o[:64].reshape(8, 8).T)


# ---- constants, templates, preprocessor --------------------------------------------------------

CONSTANTS = """
constant uint N [[function_constant(0)]];
constant bool OPTIONAL [[function_constant(1)]];
constant float SCALE [[function_constant(2)]];
constant bool USE = is_function_constant_defined(OPTIONAL) ? OPTIONAL : false;
constant float DOUBLE = is_function_constant_defined(SCALE) ? SCALE * 2.0f : -1.0f;
constant uint SQUARE = N * N;
static inline uint through_a_helper() { return SQUARE + 1; }
kernel void f(device float* o [[buffer(0)]]) { o[0] = float(N); o[1] = USE ? 1.0f : 0.0f; o[2] = DOUBLE; o[3] = float(max(SQUARE, 3u)); o[4] = float(through_a_helper()); o[5] = is_function_constant_defined(SCALE); }
kernel void g(device float* o [[buffer(0)]]) { o[0] = 1; }
kernel void h(device float* o [[buffer(0)]], device const float* bias [[buffer(1), function_constant(USE)]]) { o[0] = USE ? bias[0] : 5.0f; }
"""


def test_function_constants_and_what_is_derived_from_them() -> None:
    library = lib(CONSTANTS)
    assert library.kernels["f"].required == {0} and library.kernels["g"].required == frozenset()
    o = np.zeros(6, np.float32)
    library.run("f", [o], grid=1, threads=1, constants={"N": 3})
    assert o.tolist() == [3, 0, -1, 9, 10, 0]
    library.run("f", [o], grid=1, threads=1, constants={"N": 4, 1: True, "SCALE": 0.5})
    assert o.tolist() == [4, 1, 1, 16, 17, 1]
    library.run("f", [o], grid=1, threads=1, constants={"N": 3})  # nothing is left from the last run
    assert o.tolist() == [3, 0, -1, 9, 10, 0]
    with pytest.raises(KeyError, match="needs the function constants"):
        library.run("f", [o], grid=1, threads=1)


def test_a_parameter_switched_by_a_function_constant() -> None:
    library = lib(CONSTANTS)
    o = np.zeros(1, np.float32)
    library.run("h", [o], grid=1, threads=1)
    assert o[0] == 5
    library.run("h", [o, np.array([8], np.float32)], grid=1, threads=1, constants={"OPTIONAL": True})
    assert o[0] == 8


def test_templates_instantiated_by_macro_with_host_names() -> None:
    body = """
    template <typename T> struct Traits { static T twice(T x) { return x + x; } };
    template <typename T, int K, bool kSquare = false>
    [[kernel, max_total_threads_per_threadgroup(64)]] void scale(device T* x [[buffer(0)]], uint i [[thread_position_in_grid]]) {
        threadgroup T tile[K];
        tile[i % K] = Traits<T>::twice(x[i]);
        threadgroup_barrier(mem_flags::mem_threadgroup);
        x[i] = kSquare ? tile[i % K] * tile[i % K] : tile[i % K] * T(K);
    }
    typedef decltype(scale<float, 32>) scale_t;
    template [[host_name("scale_alias")]] kernel scale_t scale<float, 32>;
    #define INSTANTIATE(T, K) template [[host_name("scale_" #T "_" #K)]] kernel decltype(scale<T, K>) scale<T, K>; template [[host_name("square_" #T)]] kernel void scale<T, K, true>(device T*, uint);
    INSTANTIATE(float, 32)
    INSTANTIATE(half, 32)
    """
    library = lib(body)
    assert set(library.kernels) == {
        "scale_alias",
        "scale_float_32",
        "square_float",
        "scale_half_32",
        "square_half",
    }
    assert library.kernels["square_half"].max_threads == 64
    for name, dtype, f in (
        ("scale_half_32", np.float16, lambda x: 64 * x),
        ("square_float", np.float32, lambda x: 4 * x * x),
        ("scale_alias", np.float32, lambda x: 64 * x),
    ):
        x = np.arange(32, dtype=dtype)
        expected = f(x)
        library.run(name, [x], grid=32, threads=32)
        np.testing.assert_array_equal(x, expected)
    with pytest.raises(KernelError, match="at most 64"):
        library.run("scale_float_32", [np.zeros(128, np.float32)], grid=128, threads=128)


def test_includes_and_defines(tmp_path) -> None:
    (tmp_path / "common.h").write_text(
        "#pragma once\n#define BODY(x) ((x) * FACTOR)\nstruct Params { uint n; float s; };\n"
    )
    (tmp_path / "k.metal").write_text(
        '#include <metal_stdlib>\n#include "common.h"\nusing namespace metal;\n#if __METAL_VERSION__ < 300\n#error old\n#endif\n'
        "#if 0\nkernel void not_there() {}\n#endif\n"
        "kernel void k(device float* o [[buffer(0)]], constant Params& p [[buffer(1)]], uint i [[thread_position_in_grid]]) { if (i < p.n) o[i] = BODY(p.s); }\n"
    )
    library = Library.compile(tmp_path / "k.metal", defines=["FACTOR=3"], include=[tmp_path])
    assert list(library.kernels) == ["k"]
    o = np.zeros(4, np.float32)
    library.run(
        "k", [o, np.array([3], np.uint32).tobytes() + np.array([2], np.float32).tobytes()], grid=4, threads=4
    )
    assert o.tolist() == [6, 6, 6, 0]


# ---- what Apple's compiler would refuse --------------------------------------------------------


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("float4 v = (float4)(int4(1));", "functional cast"),
        ("float4 v = static_cast<float4>(int4(1)); o[0] = v.x;", "functional cast"),
        ("o[0] = max(o[0], 1);", "ambiguous in MSL"),
        ("o[0] = float(clamp(half(1), 0.0f, 1.0f));", "ambiguous in MSL"),
        ("float4 v = int4(1);", "cannot initialize"),
        ("float3 v = float3(1.0f, 2.0f);", "wrong number of components"),
        ("threadgroup float t = 1.0f; o[0] = t;", "cannot have an initializer"),
        ("simdgroup_half8x8 m; simdgroup_load(m, o, 8);", "one element type"),
        ("atomic_uint a; a = a;", "deleted"),
    ],
)
def test_refused(statement: str, message: str) -> None:
    body = f"#include <metal_simdgroup_matrix>\nkernel void f(device float* o [[buffer(0)]]) {{\n    {statement}\n}}\n"
    with pytest.raises(CompileError, match=message) as e:
        lib(body)
    if "functional" in message:
        assert "text.metal:5" in str(e.value)  # the line of the .metal file


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kernel void f(device float* o [[buffer(0)]], device float* p [[buffer(0)]]) {}", "bound twice"),
        ("kernel void f(float* o [[buffer(0)]]) {}", "needs an address space"),
        ("kernel void f(device float* o [[buffer(0)]], uint i) {}", "needs an attribute"),
        ("kernel void f(device float* o [[buffer(31)]]) {}", "highest index is 30"),
        ("kernel void f(device float* o [[buffer(1 + 1)]]) {}", "must be a number"),
        ("kernel void f(device float* o [[buffer(kNowhere)]]) {}", "must be a number"),
        (
            "enum At : uint { kFirst = 1 };\n"
            "kernel void f(device float* o [[buffer(1)]], device float* p [[buffer(kFirst)]]) {}",
            r"buffer\(1\) is bound twice",
        ),
        ("kernel void f(device float* o [[buffer(0)]], uint i [[thread_somewhere]]) {}", "unknown attribute"),
        ("static inline float g() { threadgroup float t[4]; return t[0]; }", "must be declared in a kernel"),
    ],
)
def test_refused_declarations(text: str, message: str) -> None:
    with pytest.raises(CompileError, match=message):
        lib(text + "\n")

// Moves positions of one layer's K or V: what a text that has lost its beginning needs (a shift by which every key's RoPE
// angle changes), and a copy from one cache to another.
//
// Source and destination may overlap. A threadgroup owns a KV head and takes its positions in an order in which none is
// overwritten before it was read: rising when they move down, falling when they move up. It reads a row for each of its
// SIMD-groups, and only then writes them.
#include <metal_stdlib>
using namespace metal;

#include "kv_move.h"

// cos and sin of turn · inv_freq. The product's rounding error, some 1e-3 where the angle is large, is made good.
static inline float2 rotation(int turn, float inv_freq) {
    const float angle = float(turn) * inv_freq, error = fma(float(turn), inv_freq, -angle);
    const float c = precise::cos(angle), s = precise::sin(angle);
    const float cos_error = 1.0f - 0.5f * error * error;
    return float2(c * cos_error - s * error, s * cos_error + c * error);
}

constant bool TURN [[function_constant(0)]];  // keys

// A row's elements lane, lane + 32, ... of a cache: elements, or Q8_0's two planes. Where nothing turns, bytes stay as they
// are: of Q8_0 the integers are loaded, and the scales kept.
template <typename T>
struct Plain {
    static float load(device const uchar* unit, uint, uint head_dim, uint position, uint i, thread half&) {
        return float(((device const T*)unit)[ulong(position) * head_dim + i]);
    }
    // All lanes.
    static void store(device uchar* unit, uint, uint head_dim, uint position, uint i, float x, half) {
        if (i < head_dim) ((device T*)unit)[ulong(position) * head_dim + i] = T(x);
    }
    static ulong unit_bytes(uint context, uint head_dim) { return ulong(context) * head_dim * sizeof(T); }
};
struct Q8 {
    static float load(device const uchar* unit, uint context, uint head_dim, uint position, uint i, thread half& scale) {
        device const half* scales = (device const half*)(unit + q8_scales_offset(context, head_dim));
        scale = scales[ulong(position) * q8_row_blocks(head_dim) + i / kQ8Block];
        const float q = float(((device const char*)unit)[ulong(position) * head_dim + i]);
        return TURN ? q * float(scale) : q;
    }
    static void store(device uchar* unit, uint context, uint head_dim, uint position, uint i, float x, half scale) {
        const float d = simd_max(i < head_dim ? fabs(x) : 0.0f) / 127.0f;
        const float q = !TURN ? x : d > 0.0f ? rint(clamp(x / d, -127.0f, 127.0f)) : 0.0f;
        if (i < head_dim) ((device char*)unit)[ulong(position) * head_dim + i] = char(q);
        if (i < head_dim && i % kQ8Block == 0) {
            device half* scales = (device half*)(unit + q8_scales_offset(context, head_dim));
            scales[ulong(position) * q8_row_blocks(head_dim) + i / kQ8Block] = TURN ? half(min(d, 65504.0f)) : scale;
        }
    }
    static ulong unit_bytes(uint context, uint head_dim) { return q8_unit_bytes(context, head_dim); }
};

template <typename Cache>
[[kernel]] void kv_move(
    device const uchar* from [[buffer(0)]],
    device uchar* to [[buffer(1)]],  // may be `from`
    device const float* inv_freq [[buffer(2)]],
    constant KvMoveParams& p [[buffer(8)]],
    uint head [[threadgroup_position_in_grid]],
    ushort lane [[thread_index_in_simdgroup]],
    ushort simd [[simdgroup_index_in_threadgroup]]) {
    threadgroup float rows[kMoveSimds][kMaxHeadDim];
    device const uchar* source = from + head * Cache::unit_bytes(p.from_context, p.head_dim);
    device uchar* target = to + head * Cache::unit_bytes(p.to_context, p.head_dim);
    const bool down = p.to_position <= p.from_position;
    for (uint begin = 0; begin < p.count; begin += kMoveSimds) {
        const uint n = begin + simd;
        const uint at = down ? n : p.count - 1 - n;
        half scales[kMaxHeadDim / 32];
        if (n < p.count) {
            for (uint i = lane; i < p.head_dim; i += 32) {
                rows[simd][i] = Cache::load(source, p.from_context, p.head_dim, p.from_position + at, i, scales[i / 32]);
            }
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (TURN && n < p.count) {
            const uint half_dim = p.rope_dim / 2;
            for (uint i = lane; i < half_dim; i += 32) {
                const uint a = p.style == kRopeInterleaved ? 2 * i : i;
                const uint b = p.style == kRopeInterleaved ? 2 * i + 1 : i + half_dim;
                const float2 r = rotation(p.turn, inv_freq[i]);
                const float x = rows[simd][a], y = rows[simd][b];
                rows[simd][a] = x * r.x - y * r.y;
                rows[simd][b] = x * r.y + y * r.x;
            }
        }
        // Every row is read before any is written. What follows reads only positions that come later in the order.
        threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);
        if (n < p.count) {
            for (uint i = lane; i < (p.head_dim + 31) / 32 * 32; i += 32) {
                const float x = i < p.head_dim ? rows[simd][i] : 0.0f;
                Cache::store(target, p.to_context, p.head_dim, p.to_position + at, i, x, scales[i / 32]);
            }
        }
    }
}

template [[host_name("kv_move_f16")]] [[kernel]] void kv_move<Plain<half>>(
    device const uchar*, device uchar*, device const float*, constant KvMoveParams&, uint, ushort, ushort);
template [[host_name("kv_move_f32")]] [[kernel]] void kv_move<Plain<float>>(
    device const uchar*, device uchar*, device const float*, constant KvMoveParams&, uint, ushort, ushort);
template [[host_name("kv_move_q8_0")]] [[kernel]] void kv_move<Q8>(
    device const uchar*, device uchar*, device const float*, constant KvMoveParams&, uint, ushort, ushort);

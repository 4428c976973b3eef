// One row of x times weights: every SIMD-group computes ROWS_PER_SIMD rows of each matrix, so that x is loaded once for
// them.
//
// K_SPLIT SIMD-groups share those rows when there are too few to fill the GPU: each takes a part of k, and the first
// adds the parts up. Loops over the rows are unrolled to kMaxRows, with a condition where the function constants say
// fewer: an index that is not known when the kernel is compiled would put the sums into memory. A norm before the
// matmul costs no pass of its own: Σ x² grows along with Σ x·g·w, whose result is scaled at the end.
#pragma once

#include "buffer_index.h"
#include "dequant.h"
#include "matmul_output.h"
#include "matmul_sizes.h"
#include "vector_load.h"

constant uint ROWS_PER_SIMD [[function_constant(1)]];  // of a matrix, per SIMD-group: up to kMaxRows / matrices
constant uint K_SPLIT [[function_constant(2)]];        // SIMD-groups per set of rows

// Partial results of a threadgroup: rows and the sum of squares.
static constant constexpr ushort kPartials = kMaxSimdgroups * (kMaxRows + 1);

// The input as it is.
template <typename F>
struct PlainInput {
    device const typename F::Input* x;
    float4 quad(uint e, uint k, thread float&) const { return load_quad<F::kGuarded>(x + e, k > e ? k - e : 0); }
    static float scale(float, uint) { return 1; }
};

// x·g, with Σ x².
template <typename F>
struct NormInput {
    device const float* x;
    device const float* g;
    float eps;
    float4 quad(uint e, uint k, thread float& squares) const {
        const uint left = k > e ? k - e : 0;
        const float4 v = load_quad<F::kGuarded>(x + e, left);
        squares += dot(v, v);
        return v * load_quad<F::kGuarded>(g + e, left);
    }
    float scale(float squares, uint k) const { return precise::rsqrt(squares / float(k) + eps); }
};

// Where a thread is.
struct GemvThread {
    uint group;    // threadgroup
    ushort simd;   // SIMD-group of it
    ushort simds;  // SIMD-groups of a threadgroup
    ushort lane;
    uint base_row() const { return (group * (simds / K_SPLIT) + simd / K_SPLIT) * ROWS_PER_SIMD; }
    uint part() const { return simd % K_SPLIT; }
    // This lane stores the row base_row() + lane.
    bool stores(uint n) const { return part() == 0 && lane < ROWS_PER_SIMD && base_row() + lane < n; }
};

// sums[i] += the lane's share of Σ x·w for `count` rows.
template <typename F, typename Input>
inline void accumulate_rows(thread const Input& x, thread const typename F::Row (&w)[kMaxRows], ushort count, uint k,
                            uint first, uint step, thread float (&sums)[kMaxRows], thread float& squares) {
    constexpr ushort kQuads = F::kSlice / 4, kRuns = kQuads / F::kRun, kSlices = F::kBlock / F::kSlice;
    const uint slices = (k + F::kSlice - 1) / F::kSlice;
    for (uint s = first; s < slices; s += step) {
        const uint block = s / kSlices, base = block * F::kBlock;
        const ushort sub = s % kSlices;
        float4 v[kQuads];
        float total[kRuns];  // for the minimum, which is added to each weight
#pragma clang loop unroll(full)
        for (ushort r = 0; r < kQuads; ++r) v[r] = x.quad(base + F::place(sub, r), k, squares);
#pragma clang loop unroll(full)
        for (ushort run = 0; run < kRuns; ++run) {
            float4 t = v[run * F::kRun];
#pragma clang loop unroll(full)
            for (ushort r = 1; r < F::kRun; ++r) t += v[run * F::kRun + r];
            total[run] = dot(t, float4(1));
        }
#pragma clang loop unroll(full)
        for (ushort i = 0; i < kMaxRows; ++i) {
            if (i >= count) continue;
#pragma clang loop unroll(full)
            for (ushort run = 0; run < kRuns; ++run) {
                Quad q;
                float sum = 0;
#pragma clang loop unroll(full)
                for (ushort r = run * F::kRun; r < (run + 1) * F::kRun; ++r) {
                    q = F::quad(w[i], block, F::place(sub, r), k - base);
                    sum += dot(q.q, v[r]);
                }
                sums[i] += q.scale * sum;
                if (F::kHasMin) sums[i] += q.min * total[run];
            }
        }
    }
}

// The products of the lane's row with x: element m of the result for matrix m. Only lanes that store have them.
template <typename F, ushort kMatrices, typename Input>
inline float2 gemv(thread const Input& x, thread const typename F::Matrix (&w)[kMatrices], uint n, uint k,
                   thread const GemvThread& at, threadgroup float* partial) {
    float sums[kMaxRows];
    float squares = 0;
#pragma clang loop unroll(full)
    for (ushort i = 0; i < kMaxRows; ++i) sums[i] = 0;
    const ushort count = kMatrices * ROWS_PER_SIMD;
    if (at.base_row() < n) {
        typename F::Row rows[kMaxRows];
#pragma clang loop unroll(full)
        for (ushort i = 0; i < kMaxRows; ++i) {
            typename F::Matrix matrix = w[0];  // rows from `count` on are not used
            if (i >= ROWS_PER_SIMD) matrix = w[kMatrices - 1];
            rows[i] = matrix.row(min(at.base_row() + i % ROWS_PER_SIMD, n - 1), k);
        }
        accumulate_rows<F>(x, rows, count, k, at.part() * 32 + at.lane, K_SPLIT * 32, sums, squares);
    }
#pragma clang loop unroll(full)
    for (ushort i = 0; i < kMaxRows; ++i) {
        if (i < count) sums[i] = simd_sum(sums[i]);
    }
    squares = simd_sum(squares);
    if (K_SPLIT > 1) {
        threadgroup float* mine = partial + at.simd * (kMaxRows + 1);
        if (at.lane == 0) {
#pragma clang loop unroll(full)
            for (ushort i = 0; i < kMaxRows; ++i) {
                if (i < count) mine[i] = sums[i];
            }
            mine[kMaxRows] = squares;
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (at.part() == 0) {
            for (ushort s = 1; s < K_SPLIT; ++s) {
                mine += kMaxRows + 1;
#pragma clang loop unroll(full)
                for (ushort i = 0; i < kMaxRows; ++i) {
                    if (i < count) sums[i] += mine[i];
                }
                squares += mine[kMaxRows];
            }
        }
    }
    float2 result = 0;
#pragma clang loop unroll(full)
    for (ushort i = 0; i < kMaxRows; ++i) {
        if (i >= count || at.lane != i % ROWS_PER_SIMD) continue;
        if (i < ROWS_PER_SIMD) {
            result.x = sums[i];
        } else {
            result.y = sums[i];
        }
    }
    return result * x.scale(squares, k);
}

// y = x·Wᵀ (+ bias), capped, or added to what is there
template <typename F>
kernel void matmul_gemv(device const typename F::Input* x [[buffer(0)]], device const uchar* w [[buffer(1)]],
                        device float* y [[buffer(2)]], device const float* bias [[buffer(3)]],
                        constant MatmulParams& p [[buffer(kParamsIndex)]], uint group [[threadgroup_position_in_grid]],
                        ushort simd [[simdgroup_index_in_threadgroup]], ushort simds [[simdgroups_per_threadgroup]],
                        ushort lane [[thread_index_in_simdgroup]]) {
    threadgroup float partial[kPartials];
    const GemvThread at = {group, simd, simds, lane};
    const typename F::Matrix matrix[1] = {{w}};
    const PlainInput<F> input = {x};
    const float v = gemv<F, 1>(input, matrix, p.n, p.k, at, partial).x;
    if (at.stores(p.n)) store_product(y, bias, p, 0, at.base_row() + lane, v);
}

// act(x·Gᵀ)·(x·Uᵀ)
template <typename F>
kernel void gate_up_gemv(device const typename F::Input* x [[buffer(0)]], device const uchar* gate [[buffer(1)]],
                         device const uchar* up [[buffer(2)]], device float* out [[buffer(3)]],
                         device half* compact [[buffer(4)]], constant GateUpParams& p [[buffer(kParamsIndex)]],
                         uint group [[threadgroup_position_in_grid]], ushort simd [[simdgroup_index_in_threadgroup]],
                         ushort simds [[simdgroups_per_threadgroup]], ushort lane [[thread_index_in_simdgroup]]) {
    threadgroup float partial[kPartials];
    const GemvThread at = {group, simd, simds, lane};
    const typename F::Matrix matrices[2] = {{gate}, {up}};
    const PlainInput<F> input = {x};
    const float2 v = gemv<F, 2>(input, matrices, p.n, p.k, at, partial);
    if (at.stores(p.n)) store_gated(out, compact, p, 0, at.base_row() + lane, v.x, v.y);
}

// One of the three parts of norm_qkv: n rows, whose results go to y and whose biases are at `bias`.
template <typename F>
inline void norm_part(device const float* x, device const float* g, device const uchar* w, device float* y,
                      device const float* bias, uint n, constant NormQkvParams& p, thread const GemvThread& at,
                      threadgroup float* partial) {
    const typename F::Matrix matrix[1] = {{w}};
    const NormInput<F> input = {x, g, p.eps};
    const float v = gemv<F, 1>(input, matrix, n, p.k, at, partial).x;
    if (!at.stores(n)) return;
    const uint row = at.base_row() + at.lane;
    y[row] = p.has_bias ? v + bias[row] : v;
}

// q, k, v = norm(x)·Wᵀ (+ bias). A threadgroup works on one of the three; v's weights are of type V.
template <typename F, typename V = F>
kernel void norm_qkv(device const float* x [[buffer(0)]], device const float* g [[buffer(1)]],
                     device const uchar* wq [[buffer(2)]], device const uchar* wk [[buffer(3)]],
                     device const uchar* wv [[buffer(4)]], device float* y [[buffer(5)]],
                     device const float* bias [[buffer(6)]], constant NormQkvParams& p [[buffer(kParamsIndex)]],
                     uint group [[threadgroup_position_in_grid]], ushort simd [[simdgroup_index_in_threadgroup]],
                     ushort simds [[simdgroups_per_threadgroup]], ushort lane [[thread_index_in_simdgroup]]) {
    threadgroup float partial[kPartials];
    const uint rows = simds / K_SPLIT * ROWS_PER_SIMD;
    const uint q_groups = (p.n_q + rows - 1) / rows, kv_groups = (p.n_kv + rows - 1) / rows;
    GemvThread at = {group, simd, simds, lane};
    device const uchar* w = wq;
    uint n = p.n_q, to = 0, first = 0;
    const bool is_v = group >= q_groups + kv_groups;
    if (is_v) {
        at.group -= q_groups + kv_groups;
        w = wv;
        n = p.n_kv;
        to = p.v_offset;
        first = p.n_q + p.n_kv;
    } else if (group >= q_groups) {
        at.group -= q_groups;
        w = wk;
        n = p.n_kv;
        to = p.k_offset;
        first = p.n_q;
    }
    if (is_v && !is_same_v<F, V>) {
        norm_part<V>(x, g, w, y + to, bias + first, n, p, at, partial);
    } else {
        norm_part<F>(x, g, w, y + to, bias + first, n, p, at, partial);
    }
}

// act(norm(x)·Gᵀ)·(norm(x)·Uᵀ)
template <typename F>
kernel void norm_gate_up(device const float* x [[buffer(0)]], device const float* g [[buffer(1)]],
                         device const uchar* gate [[buffer(2)]], device const uchar* up [[buffer(3)]],
                         device float* out [[buffer(4)]], device half* compact [[buffer(5)]],
                         constant NormGateUpParams& p [[buffer(kParamsIndex)]], uint group [[threadgroup_position_in_grid]],
                         ushort simd [[simdgroup_index_in_threadgroup]], ushort simds [[simdgroups_per_threadgroup]],
                         ushort lane [[thread_index_in_simdgroup]]) {
    threadgroup float partial[kPartials];
    const GemvThread at = {group, simd, simds, lane};
    const typename F::Matrix matrices[2] = {{gate}, {up}};
    const NormInput<F> input = {x, g, p.eps};
    const float2 v = gemv<F, 2>(input, matrices, p.n, p.k, at, partial);
    if (at.stores(p.n)) store_gated(out, compact, p, 0, at.base_row() + lane, v.x, v.y);
}

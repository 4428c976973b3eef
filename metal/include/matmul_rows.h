// 2 to 16 rows of x: a SIMD-group reads kRowsOfW rows of the weights once for all of them.
//
// Loops over the arrays of a thread are unrolled, with a condition where there may be fewer tokens: an index that is
// not known when the kernel is compiled would put the array into memory.
#pragma once

#include "buffer_index.h"
#include "dequant.h"
#include "matmul_output.h"
#include "matmul_sizes.h"
#include "vector_load.h"

// sums[t][i] = Σ x[t]·w[i] over the lane's share of k.
template <typename F>
inline void accumulate_tokens(device const typename F::Input* x, thread const typename F::Row (&w)[kRowsOfW],
                              uint tokens, uint k, ushort lane, thread float (&sums)[kMaxTokens][kRowsOfW]) {
    constexpr ushort kQuads = F::kSlice / 4, kSlices = F::kBlock / F::kSlice;
    const uint slices = (k + F::kSlice - 1) / F::kSlice;
    for (uint s = lane; s < slices; s += 32) {
        const uint block = s / kSlices, base = block * F::kBlock;
        const ushort sub = s % kSlices;
        for (ushort r = 0; r < kQuads; ++r) {
            const ushort e = F::place(sub, r);
            const uint left = k > base + e ? k - base - e : 0;
            float4 weights[kRowsOfW];
#pragma clang loop unroll(full)
            for (ushort i = 0; i < kRowsOfW; ++i) {
                const Quad q = F::quad(w[i], block, e, k - base);
                weights[i] = q.scale * q.q + q.min;
            }
            device const typename F::Input* at = x + base + e;
#pragma clang loop unroll(full)
            for (ushort t = 0; t < kMaxTokens; ++t) {
                if (t >= tokens) continue;
                const float4 v = load_quad<F::kGuarded>(at, left);
#pragma clang loop unroll(full)
                for (ushort i = 0; i < kRowsOfW; ++i) sums[t][i] += dot(weights[i], v);
                at += k;
            }
        }
    }
}

// The sums of all lanes, token by token: what a lane keeps in `kept` is value `lane`, row i of token t being number
// t·kRowsOfW + i of 32 for tokens 0..7, and of 32 more for tokens 8..15.
inline void reduce_tokens(thread float (&sums)[kMaxTokens][kRowsOfW], uint tokens, ushort lane,
                          thread float (&kept)[2]) {
#pragma clang loop unroll(full)
    for (ushort t = 0; t < kMaxTokens; ++t) {
        if (t >= tokens) continue;
#pragma clang loop unroll(full)
        for (ushort i = 0; i < kRowsOfW; ++i) {
            const float sum = simd_sum(sums[t][i]);
            if (lane == t % 8 * kRowsOfW + i) kept[t / 8] = sum;
        }
    }
}

template <typename F, ushort kMatrices>
inline void multiply_tokens(device const typename F::Input* x, thread const typename F::Matrix (&w)[kMatrices],
                            uint first, uint n, uint k, uint tokens, ushort lane, thread float (&kept)[2]) {
    constexpr ushort kRows = kRowsOfW / kMatrices;
    float sums[kMaxTokens][kRowsOfW];
#pragma clang loop unroll(full)
    for (ushort t = 0; t < kMaxTokens; ++t) {
#pragma clang loop unroll(full)
        for (ushort i = 0; i < kRowsOfW; ++i) sums[t][i] = 0;
    }
    kept[0] = kept[1] = 0;
    if (first < n) {
        typename F::Row rows[kRowsOfW];
#pragma clang loop unroll(full)
        for (ushort i = 0; i < kRowsOfW; ++i) rows[i] = w[i / kRows].row(min(first + i % kRows, n - 1), k);
        accumulate_tokens<F>(x, rows, tokens, k, lane, sums);
    }
    reduce_tokens(sums, tokens, lane, kept);
}

static inline void store_tokens(device float* y, device const float* bias, constant MatmulParams& p, uint first,
                                ushort lane, thread float (&kept)[2]) {
    const uint row = first + lane % kRowsOfW;
#pragma clang loop unroll(full)
    for (ushort i = 0; i < 2; ++i) {
        const uint token = 8 * i + lane / kRowsOfW;
        if (row < p.n && token < p.rows) store_product(y, bias, p, token, row, kept[i]);
    }
}

template <typename F>
kernel void matmul_rows(device const typename F::Input* x [[buffer(0)]], device const uchar* w [[buffer(1)]],
                        device float* y [[buffer(2)]], device const float* bias [[buffer(3)]],
                        constant MatmulParams& p [[buffer(kParamsIndex)]], uint group [[threadgroup_position_in_grid]],
                        ushort simd [[simdgroup_index_in_threadgroup]], ushort simds [[simdgroups_per_threadgroup]],
                        ushort lane [[thread_index_in_simdgroup]]) {
    const uint first = (group * simds + simd) * kRowsOfW;
    const typename F::Matrix matrix[1] = {{w}};
    float kept[2];
    multiply_tokens<F, 1>(x, matrix, first, p.n, p.k, p.rows, lane, kept);
    store_tokens(y, bias, p, first, lane, kept);
}

// Rows 0 and 1 of a SIMD-group are the gate's, 2 and 3 the same rows of up.
template <typename F>
kernel void gate_up_rows(device const typename F::Input* x [[buffer(0)]], device const uchar* gate [[buffer(1)]],
                         device const uchar* up [[buffer(2)]], device float* out [[buffer(3)]],
                         device half* compact [[buffer(4)]], constant GateUpParams& p [[buffer(kParamsIndex)]],
                         uint group [[threadgroup_position_in_grid]], ushort simd [[simdgroup_index_in_threadgroup]],
                         ushort simds [[simdgroups_per_threadgroup]], ushort lane [[thread_index_in_simdgroup]]) {
    const uint first = (group * simds + simd) * (kRowsOfW / 2), row = first + lane % 2;
    const typename F::Matrix matrices[2] = {{gate}, {up}};
    float kept[2];
    multiply_tokens<F, 2>(x, matrices, first, p.n, p.k, p.rows, lane, kept);
#pragma clang loop unroll(full)
    for (ushort i = 0; i < 2; ++i) {
        const float gate_value = kept[i], up_value = simd_shuffle_down(gate_value, 2);
        const uint token = 8 * i + lane / kRowsOfW;
        if (lane % kRowsOfW >= 2 || row >= p.n || token >= p.rows) continue;
        store_gated(out, compact, p, token, row, gate_value, up_value);
    }
}

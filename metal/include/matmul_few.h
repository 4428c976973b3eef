// 5 to 16 rows of x: 8x8 matrices of SIMD-groups, whose products cost as much for 16 rows as for one.
//
// A SIMD-group has kFewRows rows of the weights, which it dequantises once for all rows of x, k in steps of kFewDepth. The
// rows of x are shared by the threadgroup. Weights are staged as float, so that results are as exact as those of
// matmul_rows.h. With two matrices half of the rows are the gate's and half the same rows of up. Results pass through
// threadgroup memory, so that any edge is only a bound when storing.
#pragma once

#include <metal_simdgroup_matrix>

#include "buffer_index.h"
#include "dequant.h"
#include "matmul_gemm.h"
#include "matmul_output.h"
#include "matmul_sizes.h"
#include "vector_load.h"

// Threadgroup memory, each tile as contiguous 8x8 blocks: [SIMD-group][depth / 8][row][depth % 8], later as results
// [SIMD-group][token][row]; and [depth / 8][token / 8][token % 8][depth % 8].
template <typename F>
struct FewShared {
    float weights[kFewSimdgroups * kFewRows * kFewDepth];
    typename F::Input x[kMaxTokens * kFewDepth];
};

// Leaves the SIMD-group's products as float [kMaxTokens][kFewRows] at what it returns.
template <typename F, ushort kMatrices>
inline threadgroup const float* multiply_few(device const typename F::Input* x,
                                             thread const typename F::Matrix (&w)[kMatrices], uint first, uint n, uint k,
                                             uint tokens, ushort simd, ushort lane,
                                             threadgroup FewShared<F>& shared) {
    constexpr ushort kRows = kFewRows / kMatrices, kLanes = 32 / kFewRows, kEach = kFewDepth / kLanes;
    simdgroup_float8x8 sums[kMaxTokens / 8];
#pragma clang loop unroll(full)
    for (ushort i = 0; i < kMaxTokens / 8; ++i) sums[i] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
    // Eight elements of a row for each lane.
    const ushort r = lane / kLanes, segment = lane % kLanes;
    typename F::Matrix matrix = w[0];
    if (r >= kRows) matrix = w[kMatrices - 1];
    const typename F::Row row = matrix.row(min(first + r % kRows, n - 1), k);
    threadgroup float* mine = shared.weights + simd * (kFewRows * kFewDepth);
    for (uint k0 = 0; k0 < k; k0 += kFewDepth) {
        const uint at_k = k0 + segment * kEach, block = at_k / F::kBlock, base = block * F::kBlock;
        for (ushort i = 0; i < kEach / 4; ++i) {
            Quad q = {float4(0), 0, 0};
            if (!F::kGuarded || base < k) q = F::quad(row, block, at_k - base + 4 * i, k - base);
            store_tile_quad(mine + segment * 64 + r * 8 + 4 * i, q.scale * q.q + q.min);
        }
        for (ushort i = simd * 32 + lane; i < kMaxTokens * (kFewDepth / 4); i += kFewSimdgroups * 32) {
            const ushort token = i / (kFewDepth / 4), quad = i % (kFewDepth / 4);
            const uint e = k0 + 4 * quad;
            float4 v = float4(0);
            if (token < tokens) v = load_quad<F::kGuarded>(x + ulong(token) * k + e, k > e ? k - e : 0);
            store_tile_quad(shared.x + (quad / 2 * (kMaxTokens / 8) + token / 8) * 64 + token % 8 * 8 + quad % 2 * 4, v);
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (ushort kb = 0; kb < kFewDepth / 8; ++kb) {
            simdgroup_float8x8 b;
            simdgroup_load(b, mine + kb * 64, 8, ulong2(0, 0), true);
#pragma clang loop unroll(full)
            for (ushort i = 0; i < kMaxTokens / 8; ++i) {
                if (i * 8 >= tokens) continue;
                simdgroup_matrix<typename F::Input, 8, 8> a;
                simdgroup_load(a, shared.x + (kb * (kMaxTokens / 8) + i) * 64, 8);
                simdgroup_multiply_accumulate(sums[i], a, b, sums[i]);
            }
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
#pragma clang loop unroll(full)
    for (ushort i = 0; i < kMaxTokens / 8; ++i) simdgroup_store(sums[i], mine + i * 8 * kFewRows, kFewRows);
    simdgroup_barrier(mem_flags::mem_threadgroup);
    return mine;
}

static inline void store_few(threadgroup const float* products, device float* y, device const float* bias,
                             constant MatmulParams& p, uint first, ushort lane) {
    for (ushort i = lane; i < kMaxTokens * kFewRows; i += 32) {
        const uint token = i / kFewRows, row = first + i % kFewRows;
        if (token < p.rows && row < p.n) store_product(y, bias, p, token, row, products[i]);
    }
}

template <typename F>
kernel void matmul_few(device const typename F::Input* x [[buffer(0)]], device const uchar* w [[buffer(1)]],
                       device float* y [[buffer(2)]], device const float* bias [[buffer(3)]],
                       constant MatmulParams& p [[buffer(kParamsIndex)]], uint group [[threadgroup_position_in_grid]],
                       ushort simd [[simdgroup_index_in_threadgroup]], ushort lane [[thread_index_in_simdgroup]]) {
    threadgroup FewShared<F> shared;
    const uint first = (group * kFewSimdgroups + simd) * kFewRows;
    const typename F::Matrix matrix[1] = {{w}};
    store_few(multiply_few<F, 1>(x, matrix, first, p.n, p.k, p.rows, simd, lane, shared), y, bias, p, first, lane);
}

template <typename F>
kernel void gate_up_few(device const typename F::Input* x [[buffer(0)]], device const uchar* gate [[buffer(1)]],
                        device const uchar* up [[buffer(2)]], device float* out [[buffer(3)]],
                        device half* compact [[buffer(4)]], constant GateUpParams& p [[buffer(kParamsIndex)]],
                        uint group [[threadgroup_position_in_grid]], ushort simd [[simdgroup_index_in_threadgroup]],
                        ushort lane [[thread_index_in_simdgroup]]) {
    constexpr ushort kRows = kFewRows / 2;
    threadgroup FewShared<F> shared;
    const uint first = (group * kFewSimdgroups + simd) * kRows;
    const typename F::Matrix matrices[2] = {{gate}, {up}};
    threadgroup const float* products =
        multiply_few<F, 2>(x, matrices, first, p.n, p.k, p.rows, simd, lane, shared);
    for (ushort i = lane; i < kMaxTokens * kRows; i += 32) {
        const uint token = i / kRows, row = first + i % kRows;
        threadgroup const float* product = products + token * kFewRows + i % kRows;
        if (token < p.rows && row < p.n) store_gated(out, compact, p, token, row, product[0], product[kRows]);
    }
}

// Many rows of x: 8x8 matrices of SIMD-groups on tiles of kTokens x 64, k in steps of 32.
//
// Four SIMD-groups dequantise 64 rows of weights and copy kTokens rows of x to threadgroup memory, each tile as
// contiguous 8x8 blocks, and multiply them, accumulating in F32. With two matrices, 32 rows are the gate's and 32 the
// same rows of up. Results pass through threadgroup memory too, so that any edge is only a bound when storing.
#pragma once

#include <metal_simdgroup_matrix>

#include "buffer_index.h"
#include "dequant.h"
#include "matmul_output.h"
#include "matmul_sizes.h"
#include "vector_load.h"

// float4s of threadgroup memory: the two input tiles, later the output tile.
template <typename F, ushort kTokens>
constexpr ushort gemm_memory() {
    constexpr uint kIn = (kTokens + kTileRows) * kTileDepth * sizeof(typename F::Tile);
    constexpr uint kOut = kTokens * kTileRows * sizeof(float);
    return (kIn > kOut ? kIn : kOut) / sizeof(float4);
}

// Which tile a threadgroup computes. Threadgroups that run at the same time share rows of weights as well as of x:
// strips of kStrip tiles of tokens, within which tokens run fastest. Every tile is visited once whatever the counts.
inline uint2 tile_of(uint2 group, uint2 groups) {
    constexpr uint kStrip = 8;
    const uint linear = group.y * groups.x + group.x, first = linear / (kStrip * groups.x) * kStrip;
    const uint height = min(kStrip, groups.y - first), within = linear - first * groups.x;
    return uint2(within / height, first + within % height);
}

template <typename T>
inline void store_tile_quad(threadgroup T* at, float4 v) {
    *(threadgroup vec<T, 4>*)at = vec<T, 4>(v);
}

// Rows of weights of the tile: row r of 64 is row first + r of one matrix, or first + r % 32 of one of two.
template <typename F, ushort kMatrices>
inline typename F::Row tile_row(thread const typename F::Matrix (&w)[kMatrices], ushort r, uint first, uint n, uint k) {
    constexpr ushort kRows = kTileRows / kMatrices;
    typename F::Matrix matrix = w[0];
    if (r >= kRows) matrix = w[kMatrices - 1];
    return matrix.row(min(first + r % kRows, n - 1), k);
}

// Leaves the products in `memory` as float [kTokens][64].
template <typename F, ushort kTokens, ushort kMatrices>
inline void gemm(device const typename F::Input* x, thread const typename F::Matrix (&w)[kMatrices], uint tokens,
                 uint n, uint k, uint2 tile, ushort thread_index, ushort simd, threadgroup float4* memory) {
    using Tile = typename F::Tile;
    const uint first_row = tile.x * (kTileRows / kMatrices), first_token = tile.y * kTokens;
    constexpr ushort kSimdsAcross = kTokens / 16;          // SIMD-groups side by side in tokens; each has 16
    constexpr ushort kColumns = 2 * kSimdsAcross;          // 8x8 blocks of weights' rows per SIMD-group
    threadgroup Tile* w_tile = (threadgroup Tile*)memory;  // [depth / 8][rows / 8] blocks, [row][depth] in a block
    threadgroup Tile* x_tile = w_tile + kTileRows * kTileDepth;  // [depth / 8][tokens / 8] blocks

    simdgroup_float8x8 sums[2][kColumns];
#pragma clang loop unroll(full)
    for (ushort i = 0; i < 2; ++i) {
#pragma clang loop unroll(full)
        for (ushort j = 0; j < kColumns; ++j) sums[i][j] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
    }

    const ushort tile_r = thread_index / 2, tile_k = thread_index % 2 * 16;  // 16 elements of a row per thread
    const typename F::Row row = tile_row<F>(w, tile_r, first_row, n, k);
    threadgroup Tile* w_to = w_tile + (tile_k / 8 * (kTileRows / 8) + tile_r / 8) * 64 + tile_r % 8 * 8;
    const ushort simd_m = simd % kSimdsAcross * 2, simd_n = simd / kSimdsAcross * kColumns;  // first blocks

    for (uint k0 = 0; k0 < k; k0 += kTileDepth) {
        const uint at_k = k0 + tile_k, block = at_k / F::kBlock, base = block * F::kBlock;
        for (ushort r = 0; r < 4; ++r) {
            Quad q = {float4(0), 0, 0};
            if (!F::kGuarded || base < k) q = F::quad(row, block, at_k - base + 4 * r, k - base);
            store_tile_quad(w_to + r / 2 * (kTileRows / 8 * 64) + r % 2 * 4, q.scale * q.q + q.min);
        }
        for (ushort i = thread_index; i < kTokens * (kTileDepth / 4); i += kGemmThreads) {
            const ushort token = i / (kTileDepth / 4), quad = i % (kTileDepth / 4);
            const uint e = k0 + 4 * quad;
            float4 v = float4(0);
            if (first_token + token < tokens) {
                v = load_quad<F::kGuarded>(x + ulong(first_token + token) * k + e, k > e ? k - e : 0);
            }
            store_tile_quad(x_tile + (quad / 2 * (kTokens / 8) + token / 8) * 64 + token % 8 * 8 + quad % 2 * 4, v);
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (ushort kb = 0; kb < kTileDepth / 8; ++kb) {
            simdgroup_matrix<Tile, 8, 8> a[2];
#pragma clang loop unroll(full)
            for (ushort i = 0; i < 2; ++i) simdgroup_load(a[i], x_tile + (kb * (kTokens / 8) + simd_m + i) * 64, 8);
#pragma clang loop unroll(full)
            for (ushort j = 0; j < kColumns; ++j) {
                simdgroup_matrix<Tile, 8, 8> b;
                simdgroup_load(b, w_tile + (kb * (kTileRows / 8) + simd_n + j) * 64, 8, ulong2(0, 0), true);
#pragma clang loop unroll(full)
                for (ushort i = 0; i < 2; ++i) simdgroup_multiply_accumulate(sums[i][j], a[i], b, sums[i][j]);
            }
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    threadgroup float* out = (threadgroup float*)memory;
#pragma clang loop unroll(full)
    for (ushort i = 0; i < 2; ++i) {
#pragma clang loop unroll(full)
        for (ushort j = 0; j < kColumns; ++j) {
            simdgroup_store(sums[i][j], out + (simd_m + i) * 8 * kTileRows + (simd_n + j) * 8, kTileRows);
        }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
}

template <ushort kTokens>
inline void store_tile(threadgroup const float* products, device float* y, device const float* bias,
                       constant MatmulParams& p, uint2 tile, ushort thread_index) {
    for (ushort i = thread_index; i < kTokens * kTileRows; i += kGemmThreads) {
        const uint token = tile.y * kTokens + i / kTileRows, row = tile.x * kTileRows + i % kTileRows;
        if (token < p.rows && row < p.n) store_product(y, bias, p, token, row, products[i]);
    }
}

template <typename F, ushort kTokens>
kernel void matmul_gemm(device const typename F::Input* x [[buffer(0)]], device const uchar* w [[buffer(1)]],
                        device float* y [[buffer(2)]], device const float* bias [[buffer(3)]],
                        constant MatmulParams& p [[buffer(kParamsIndex)]], uint2 group [[threadgroup_position_in_grid]],
                        uint2 groups [[threadgroups_per_grid]], ushort thread_index [[thread_index_in_threadgroup]],
                        ushort simd [[simdgroup_index_in_threadgroup]]) {
    threadgroup float4 memory[gemm_memory<F, kTokens>()];
    const uint2 tile = tile_of(group, groups);
    const typename F::Matrix matrix[1] = {{w}};
    gemm<F, kTokens, 1>(x, matrix, p.rows, p.n, p.k, tile, thread_index, simd, memory);
    store_tile<kTokens>((threadgroup const float*)memory, y, bias, p, tile, thread_index);
}

template <typename F, ushort kTokens>
kernel void gate_up_gemm(device const typename F::Input* x [[buffer(0)]], device const uchar* gate [[buffer(1)]],
                         device const uchar* up [[buffer(2)]], device float* out [[buffer(3)]],
                         device half* compact [[buffer(4)]], constant GateUpParams& p [[buffer(kParamsIndex)]],
                         uint2 group [[threadgroup_position_in_grid]], uint2 groups [[threadgroups_per_grid]],
                         ushort thread_index [[thread_index_in_threadgroup]],
                         ushort simd [[simdgroup_index_in_threadgroup]]) {
    constexpr ushort kRows = kTileRows / 2;
    threadgroup float4 memory[gemm_memory<F, kTokens>()];
    const uint2 tile = tile_of(group, groups);
    const typename F::Matrix matrices[2] = {{gate}, {up}};
    gemm<F, kTokens, 2>(x, matrices, p.rows, p.n, p.k, tile, thread_index, simd, memory);
    for (ushort i = thread_index; i < kTokens * kRows; i += kGemmThreads) {
        const uint token = tile.y * kTokens + i / kRows, row = tile.x * kRows + i % kRows;
        threadgroup const float* product = (threadgroup const float*)memory + i / kRows * kTileRows + i % kRows;
        if (token < p.rows && row < p.n) store_gated(out, compact, p, token, row, product[0], product[kRows]);
    }
}

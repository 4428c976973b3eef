// The kernels of an MLX format: those of matmul_*.h with scales and biases as buffers 4 and 5.
#pragma once

#include "buffer_index.h"
#include "dequant_mlx.h"
#include "instantiate.h"
#include "matmul_embed.h"
#include "matmul_experts.h"
#include "matmul_few.h"
#include "matmul_gemm.h"
#include "matmul_gemv.h"
#include "matmul_rows.h"

template <typename F>
kernel void mlx_embed(device const uint* history [[buffer(0)]], device const uchar* table [[buffer(1)]],
                      device float* hidden [[buffer(2)]], device const Row* rows [[buffer(3)]],
                      device const uchar* scales [[buffer(4)]],
                      device const uchar* biases [[buffer(5)]], constant EmbedParams& p [[buffer(kParamsIndex)]],
                      uint2 at [[thread_position_in_grid]]) {
    const typename F::Matrix matrix = {table, scales, biases};
    embed_quad<F>(history, matrix, hidden, rows, p, at);
}

template <typename F>
kernel void mlx_gemv(device const half* x [[buffer(0)]], device const uchar* w [[buffer(1)]],
                     device float* y [[buffer(2)]], device const float* bias [[buffer(3)]],
                     device const uchar* scales [[buffer(4)]], device const uchar* biases [[buffer(5)]],
                     constant MatmulParams& p [[buffer(kParamsIndex)]], uint group [[threadgroup_position_in_grid]],
                     ushort simd [[simdgroup_index_in_threadgroup]], ushort simds [[simdgroups_per_threadgroup]],
                     ushort lane [[thread_index_in_simdgroup]]) {
    threadgroup float partial[kPartials];
    const typename F::Matrix matrix[1] = {{w, scales, biases}};
    const GemvThread at = {group, simd, simds, lane};
    const PlainInput<F> input = {x};
    const float v = gemv<F, 1>(input, matrix, p.n, p.k, at, partial).x;
    if (at.stores(p.n)) store_product(y, bias, p, 0, at.base_row() + lane, v);
}

template <typename F>
kernel void mlx_rows(device const half* x [[buffer(0)]], device const uchar* w [[buffer(1)]],
                     device float* y [[buffer(2)]], device const float* bias [[buffer(3)]],
                     device const uchar* scales [[buffer(4)]], device const uchar* biases [[buffer(5)]],
                     constant MatmulParams& p [[buffer(kParamsIndex)]], uint group [[threadgroup_position_in_grid]],
                     ushort simd [[simdgroup_index_in_threadgroup]], ushort simds [[simdgroups_per_threadgroup]],
                     ushort lane [[thread_index_in_simdgroup]]) {
    const typename F::Matrix matrix[1] = {{w, scales, biases}};
    const uint first = (group * simds + simd) * kRowsOfW;
    float kept[2];
    multiply_tokens<F, 1>(x, matrix, first, p.n, p.k, p.rows, lane, kept);
    store_tokens(y, bias, p, first, lane, kept);
}

template <typename F>
kernel void mlx_few(device const half* x [[buffer(0)]], device const uchar* w [[buffer(1)]],
                    device float* y [[buffer(2)]], device const float* bias [[buffer(3)]],
                    device const uchar* scales [[buffer(4)]], device const uchar* biases [[buffer(5)]],
                    constant MatmulParams& p [[buffer(kParamsIndex)]], uint group [[threadgroup_position_in_grid]],
                    ushort simd [[simdgroup_index_in_threadgroup]], ushort lane [[thread_index_in_simdgroup]]) {
    threadgroup FewShared<F> shared;
    const uint first = (group * kFewSimdgroups + simd) * kFewRows;
    const typename F::Matrix matrix[1] = {{w, scales, biases}};
    store_few(multiply_few<F, 1>(x, matrix, first, p.n, p.k, p.rows, simd, lane, shared), y, bias, p, first, lane);
}

template <typename F, ushort kTokens>
kernel void mlx_gemm(device const half* x [[buffer(0)]], device const uchar* w [[buffer(1)]],
                     device float* y [[buffer(2)]], device const float* bias [[buffer(3)]],
                     device const uchar* scales [[buffer(4)]], device const uchar* biases [[buffer(5)]],
                     constant MatmulParams& p [[buffer(kParamsIndex)]], uint2 group [[threadgroup_position_in_grid]],
                     uint2 groups [[threadgroups_per_grid]], ushort thread_index [[thread_index_in_threadgroup]],
                     ushort simd [[simdgroup_index_in_threadgroup]]) {
    threadgroup float4 memory[gemm_memory<F, kTokens>()];
    const typename F::Matrix matrix[1] = {{w, scales, biases}};
    const uint2 tile = tile_of(group, groups);
    gemm<F, kTokens, 1>(x, matrix, p.rows, p.n, p.k, tile, thread_index, simd, memory);
    store_tile<kTokens>((threadgroup const float*)memory, y, bias, p, tile, thread_index);
}

#define AKUNU_MLX_KERNELS(bits)                                      \
    AKUNU_KERNEL("embed_mlx_q" #bits, mlx_embed<Mlx<bits>>)          \
    AKUNU_KERNEL("matmul_gemv_mlx_q" #bits, mlx_gemv<Mlx<bits>>)     \
    AKUNU_KERNEL("experts_gate_up_mlx_q" #bits, experts_gate_up<Mlx<bits>>) \
    AKUNU_KERNEL("experts_down_mlx_q" #bits, experts_down<Mlx<bits>>) \
    AKUNU_KERNEL("experts_gate_up_tiles_mlx_q" #bits, experts_gate_up_tiles<Mlx<bits>>) \
    AKUNU_KERNEL("experts_down_tiles_mlx_q" #bits, experts_down_tiles<Mlx<bits>>) \
    AKUNU_KERNEL("head_matmul_mlx_q" #bits, head_matmul<Mlx<bits>>)  \
    AKUNU_KERNEL("matmul_rows_mlx_q" #bits, mlx_rows<Mlx<bits>>)     \
    AKUNU_KERNEL("matmul_few_mlx_q" #bits, mlx_few<Mlx<bits>>)       \
    AKUNU_KERNEL("matmul_gemm_mlx_q" #bits, mlx_gemm<Mlx<bits>, kTileTokens>) \
    AKUNU_KERNEL("matmul_gemm_small_mlx_q" #bits, mlx_gemm<Mlx<bits>, kSmallTileTokens>)

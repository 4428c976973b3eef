// Every kernel of a weight type: what a file of kernels/matmul instantiates.
#pragma once

#include "instantiate.h"
#include "matmul_embed.h"
#include "matmul_experts.h"
#include "matmul_few.h"
#include "matmul_gemm.h"
#include "matmul_gemv.h"
#include "matmul_rows.h"

#define AKUNU_MATMUL_KERNELS(name, F)                            \
    AKUNU_KERNEL("embed_" #name, embed<F>)                       \
    AKUNU_KERNEL("matmul_gemv_" #name, matmul_gemv<F>)           \
    AKUNU_KERNEL("gate_up_gemv_" #name, gate_up_gemv<F>)         \
    AKUNU_KERNEL("norm_qkv_" #name, norm_qkv<F>)                 \
    AKUNU_KERNEL("norm_gate_up_" #name, norm_gate_up<F>)         \
    AKUNU_KERNEL("experts_gate_up_" #name, experts_gate_up<F>)   \
    AKUNU_KERNEL("experts_down_" #name, experts_down<F>)         \
    AKUNU_KERNEL("experts_gate_up_tiles_" #name, experts_gate_up_tiles<F>) \
    AKUNU_KERNEL("experts_down_tiles_" #name, experts_down_tiles<F>) \
    AKUNU_KERNEL("head_matmul_" #name, head_matmul<F>)           \
    AKUNU_KERNEL("matmul_rows_" #name, matmul_rows<F>)           \
    AKUNU_KERNEL("gate_up_rows_" #name, gate_up_rows<F>)         \
    AKUNU_KERNEL("matmul_few_" #name, matmul_few<F>)           \
    AKUNU_KERNEL("gate_up_few_" #name, gate_up_few<F>)         \
    AKUNU_KERNEL("matmul_gemm_" #name, matmul_gemm<F, kTileTokens>)       \
    AKUNU_KERNEL("matmul_gemm_small_" #name, matmul_gemm<F, kSmallTileTokens>) \
    AKUNU_KERNEL("gate_up_gemm_" #name, gate_up_gemm<F, kTileTokens>)

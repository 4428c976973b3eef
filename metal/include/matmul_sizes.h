// Sizes of the matmul kernels' tiles, for kernels and for the host that chooses among them.
#pragma once

#include "core/params.h"

#ifndef __METAL_VERSION__
namespace akunu::metal {
#endif

// An enum, since Metal has no constants at file scope but in constant memory.
enum MatmulSizes : u32 {
    // matmul_gemv.h: one row of x
    kMaxRows = 8,  // of weights per SIMD-group, of all matrices together
    kMaxSimdgroups = 16,
    // matmul_rows.h: a few rows of x
    kMaxTokens = 16,
    kRowsOfW = 4,  // of weights per SIMD-group, of all matrices together
    // matmul_few.h: a few that fill a matrix of a SIMD-group
    kFewTokens = 5,  // at least
    kFewSimdgroups = 4,
    kFewRows = 8,  // of weights per SIMD-group, of all matrices together
    kFewDepth = 32,
    // matmul_gemm.h: many
    kGemmThreads = 128,
    kTileRows = 64,    // of weights, of all matrices together
    kTileTokens = 32,  // rows of x
    kSmallTileTokens = 16,
    kTileDepth = 32,
};

#ifndef __METAL_VERSION__
}  // namespace akunu::metal
#endif

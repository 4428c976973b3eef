// Scalar reference dequantisers: the definition of what a weight's bytes mean.
//
// Every operation is one binary32 operation in the order of `gguf.quants` (the PyPI package gguf),
// so results are equal bit for bit. Kernels are tested against these.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/dtype.h"

namespace akunu {

// Writes `n` elements from `src`, which holds row_bytes(dtype, n) bytes of any alignment.
// InvalidArgumentError when `dtype` is neither a weight type nor E8M0, of scales, or `n` not a whole number of blocks.
void dequantize_row(DType dtype, const std::byte* src, float* dst, uint64_t n);

}  // namespace akunu

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

// Scale and minimum, of six bits each, of a sub-block of Q4_K and Q5_K.
struct ScaleMin {
    std::uint32_t scale, min;
};
inline ScaleMin scale_min(const std::byte* packed, std::uint32_t j) {
    const auto byte = [&](std::uint32_t i) { return std::to_integer<std::uint32_t>(packed[i]); };
    if (j < 4) return {byte(j) & 63, byte(j + 4) & 63};
    return {(byte(j + 4) & 15) | byte(j - 4) >> 6 << 4, byte(j + 4) >> 4 | byte(j) >> 6 << 4};
}

}  // namespace akunu

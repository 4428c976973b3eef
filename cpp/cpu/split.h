// Float weights as sums of two BF16 (x = high + low, 16 bits of mantissa), in tiles as processors with AMX multiply
// them. An F16 is exact so; a BF16 has no second part.
//
// Rows lie in groups of kSplitRows. A group is a run of steps of kSplitColumns columns, and a step a tile of the high
// parts and, but for BF16, one of the low ones: [column / 2][row][column % 2]. Rows and columns past the end are zeros.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/dtype.h"

namespace akunu::cpu {

constexpr std::size_t kSplitRows = 16, kSplitColumns = 32, kSplitTile = kSplitRows * kSplitColumns * 2;
// More do not fit in a worker's memory.
constexpr std::uint64_t kMostSplitColumns = 16384;

// Whether weights of that type, with so many columns, can be split.
constexpr bool can_split(DType dtype, std::uint64_t cols) {
    return (dtype == DType::F32 || dtype == DType::F16 || dtype == DType::BF16) && cols <= kMostSplitColumns;
}
constexpr std::size_t split_steps(std::size_t cols) { return (cols + kSplitColumns - 1) / kSplitColumns; }
constexpr std::size_t split_step_bytes(DType dtype) { return dtype == DType::BF16 ? kSplitTile : 2 * kSplitTile; }
constexpr std::size_t split_group_bytes(DType dtype, std::size_t cols) {
    return split_steps(cols) * split_step_bytes(dtype);
}

// Splits groups [first, last) of a row-major weight.
void split_groups(DType dtype, std::uint64_t rows, std::uint64_t cols, const std::byte* source, std::byte* split,
                  std::uint64_t first, std::uint64_t last);

}  // namespace akunu::cpu

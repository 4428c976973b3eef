// Float weights as sums of two BF16 (x = high + low, 16 bits of mantissa), in tiles as processors with AMX multiply
// them. An F16 is exact so; a BF16 has no second part.
//
// A step of a group is a tile of the high parts and, but for BF16, one of the low ones: [column / 2][row][column % 2].
#pragma once

#include <cstddef>

#include "cpu/whole.h"

namespace akunu::cpu {

constexpr std::size_t kSplitTile = kWholeRows * kWholeColumns * 2;

constexpr std::size_t split_step_bytes(DType dtype) { return dtype == DType::BF16 ? kSplitTile : 2 * kSplitTile; }
constexpr std::size_t split_group_bytes(DType dtype, std::size_t cols) {
    return whole_steps(cols) * split_step_bytes(dtype);
}

extern const WholeFormat kSplitFormat;

}  // namespace akunu::cpu

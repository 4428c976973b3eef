// Float weights as 16-bit integers, multiples of a scale that each row has, for processors that sum up more products
// of those than of F32.
//
// A group is its rows' scales, F32, and its elements: [column / 2][row][column % 2].
//
// Sums of kFixedBlock products are of 32 bits and cannot overflow: so many weights of a row have at most
// kMostWeightNorm for their norm, activations, each so many of which have a scale of their own, kMostFixedNorm, and no
// sum is more than the product of the norms. Of numbers like noise a weight has 12 bits and a sign, an activation 11;
// rounding both adds 1.2e-8 of a sum's square.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpu/whole.h"

namespace akunu::cpu {

constexpr std::size_t kFixedBlock = 128;
// Before rounding, which adds at most half the square root of the number of elements.
constexpr float kMostFixedNorm = 32760, kMostWeightNorm = 65500;
static_assert((32760.0 + 6) * (65500.0 + 6) < 2147483648.0 && kFixedBlock <= 4 * 6 * 6);

constexpr std::size_t kFixedScales = kWholeRows * sizeof(float);
constexpr std::size_t fixed_group_bytes(DType, std::size_t cols) {
    return kFixedScales + whole_steps(cols) * kWholeColumns * kWholeRows * sizeof(std::int16_t);
}

extern const WholeFormat kFixedFormat;

// A row of a group, of `cols` numbers.
void load_fixed_row(const std::byte* group, std::size_t cols, std::size_t row, float* x);

}  // namespace akunu::cpu

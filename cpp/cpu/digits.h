// Float weights as 16-bit integers, multiples of a scale that each row has, for processors that multiply tiles of bytes
// (AMX). An integer is 256·high + low, two digits of -128 to 127.
//
// A group is its rows' scales, F32, and steps of kDigitColumns columns: a tile of high digits and one of low ones, each
// [column / 4][row][column % 4].
//
// Sums of products are of 32 bits and cannot overflow, however many columns there are. Activations have a scale for
// each kDigitBlock columns. An integer is off by at most half of 1/32639 of the greatest in its row, or block; of
// numbers like noise, where that is four times their deviation, rounding both adds 2.5e-9 of a sum's square.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpu/whole.h"

namespace akunu::cpu {

constexpr std::size_t kDigitColumns = 64, kDigitBlock = 384;
constexpr std::size_t kDigitTile = kWholeRows * kDigitColumns;  // bytes
constexpr float kMostDigits = 127 * 256 + 127;
static_assert(2 * 128 * 128 * kMostWholeColumns < 2147483648 && kDigitBlock % kDigitColumns == 0);

constexpr std::size_t kDigitScales = kWholeRows * sizeof(float);
constexpr std::size_t digit_steps(std::size_t cols) { return (cols + kDigitColumns - 1) / kDigitColumns; }
constexpr std::size_t digit_group_bytes(DType, std::size_t cols) {
    return kDigitScales + digit_steps(cols) * 2 * kDigitTile;
}

extern const WholeFormat kDigitFormat;

}  // namespace akunu::cpu

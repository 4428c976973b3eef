// Types that devices do not multiply as a file has them, and the types of our own that their weights become when they
// are loaded. Nothing is lost: what either says of a weight is the same number.
//
// The codebooks of IQ1_S to IQ3_S (core/codebooks.h) save a file's bytes, but to look up each group of weights takes a
// processor longer than to read more bytes. Behind a codebook there are a few levels, whose numbers three or four bits
// hold. Ternary weights, and those of one and two bits, are affine.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/dtype.h"

namespace akunu {

// The type that weights of this one become: itself, where devices take it as it is.
DType recoded_type(DType dtype);

// Writes a row of `n` elements as joined blocks of recoded_type(dtype), which is another one.
void recode_row(DType dtype, const std::byte* src, std::byte* dst, std::uint64_t n);

// Where the fields of a block of 256 levels are. A weight is d/8 · (2s + 1) · level; d is a binary16 number, s of four
// bits, in the order of nibbles. Of three bits, each 16 weights have their s, and codes lie as those of Q3_K do; of
// four bits, each 32 have theirs, and codes lie as those of IQ4_XS.
struct LevelsLayout {
    std::size_t high, scales, d;  // codes begin a block; `high`: the third bits
};
inline constexpr LevelsLayout kThreeBitLevels{64, 96, 104}, kFourBitLevels{0, 128, 132};

// The levels of such a type by code, sixteen numbers of which three bits take eight; null of any other one.
const std::int8_t* levels_of(DType dtype);
constexpr bool has_four_bit_levels(DType dtype) { return dtype == DType::Iq3XxsLevels || dtype == DType::Iq3SLevels; }

}  // namespace akunu

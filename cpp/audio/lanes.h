// Four frames side by side: the operations of a frame, once for all four.
//
// The compiler's vectors of 16 bytes are one register on every processor of the targets, so that nothing has to be
// chosen at run time.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace akunu::audio {

inline constexpr std::size_t kLanes = 4;
using Lanes __attribute__((vector_size(kLanes * sizeof(float)))) = float;

using IntLanes __attribute__((vector_size(kLanes * sizeof(std::int32_t)))) = std::int32_t;

struct Complex {
    Lanes re, im;
};

// log10 of positive normal numbers, within 2e-7 of the result or of 1.
inline Lanes log10(Lanes x) {
    // x = 2^exponent m, where m is between sqrt(1/2) and sqrt(2).
    constexpr std::int32_t root_half = std::bit_cast<std::int32_t>(0.70710678f);
    const IntLanes bits = std::bit_cast<IntLanes>(x) - root_half;
    const Lanes exponent = __builtin_convertvector(bits >> 23, Lanes);
    const Lanes m = std::bit_cast<Lanes>((bits & 0x7fffff) + root_half);
    // ln m = 2 atanh((m - 1) / (m + 1)), as its series; s is at most 0.172.
    const Lanes s = (m - 1) / (m + 1), s2 = s * s;
    const Lanes ln = 2 * s * (1 + s2 * (1.f / 3 + s2 * (1.f / 5 + s2 * (1.f / 7 + s2 * (1.f / 9)))));
    return exponent * 0.301029996f + ln * 0.434294482f;
}

}  // namespace akunu::audio

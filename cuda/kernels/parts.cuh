// F32 numbers as two of F16, for the tensor cores: the second is what the first does not hold, times 2^11. Of the
// products of parts that of the second ones, a 2^24th of the whole, is left out. Numbers beyond 65,504 saturate.
#pragma once

#include "platform.cuh"

namespace akunu::cuda {

// So that a second part is no smaller than the first one's last places.
constexpr float kSecondPart = 2048.0f;
// The second part of two numbers whose first parts are `high`.
AKUNU_DEVICE unsigned second_halves(unsigned high, float a, float b) {
    return pack_halves((a - half_to_float(u16(high))) * kSecondPart,
                       (b - half_to_float(u16(high >> 16))) * kSecondPart);
}

// Eight elements; their second parts, if they have some, so many bytes behind.
template <unsigned kParts>
AKUNU_DEVICE void store_halves(unsigned at, unsigned behind, const float4& a, const float4& b) {
    const uint4 high{pack_halves(a.x, a.y), pack_halves(a.z, a.w), pack_halves(b.x, b.y), pack_halves(b.z, b.w)};
    *reinterpret_cast<uint4*>(shared_memory() + at) = high;
    if constexpr (kParts == 2) {
        *reinterpret_cast<uint4*>(shared_memory() + at + behind) =
            uint4{second_halves(high.x, a.x, a.y), second_halves(high.y, a.z, a.w), second_halves(high.z, b.x, b.y),
                  second_halves(high.w, b.z, b.w)};
    }
}

}  // namespace akunu::cuda

// The int8 activation format "q8": a row of K values in blocks of 32, as separate planes.
//
//   q      int8  [K]       round(x / d), in -127..127
//   d      f32   [K / 32]  scale, max|x| / 127; 0 where that would be subnormal
//   s      f32   [K / 32]  the sum of the block's q, which a weight's minimum or offset multiplies
//   s16    f32   [K / 16]  the same for half blocks
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

namespace akunu {

// The scale of values up to `max` in int8. The inverse of a subnormal one may overflow: such values count as zeros.
constexpr float q8_scale(float max) {
    const float d = max / 127.0f;
    return d < std::numeric_limits<float>::min() ? 0.0f : d;
}

struct Q8Layout {
    std::size_t d, s, s16, stride;
    constexpr explicit Q8Layout(std::size_t k)
        : d(round_up(k)),
          s(d + round_up(k / 8)),
          s16(s + round_up(k / 8)),
          // The extra line keeps rows of a power-of-two length from sharing cache sets.
          stride(s16 + round_up(k / 4) + 64) {}
    static constexpr std::size_t round_up(std::size_t n) { return (n + 63) & ~std::size_t{63}; }
};

// One row of it.
struct Q8Row {
    std::byte* base;
    Q8Layout at;
    std::int8_t* q() const { return reinterpret_cast<std::int8_t*>(base); }
    float* d() const { return reinterpret_cast<float*>(base + at.d); }
    float* s() const { return reinterpret_cast<float*>(base + at.s); }
    float* s16() const { return reinterpret_cast<float*>(base + at.s16); }
};

}  // namespace akunu

// Probability masses as 64-bit integers in units of 2^-44: sums do not depend on their order, and 2^18 tokens fit.
// Included by .metal files only.
#pragma once

#include "tokens.h"

static constant constexpr float kMassUnit = 0x1p44f;

// How far a token is below the best one, over the temperature, as the bits of a float: |(x - best) / T|. An inverse
// temperature beyond the largest float is that.
static inline uint distance_below(uint bits, float best, float inverse_temperature) {
    if (bits == kMinusInfinity) return kDropped;
    return as_type<uint>((as_type<float>(bits) - best) * inverse_temperature) & 0x7FFFFFFFu;
}
static inline float inverse_of(float temperature) {
    // Below the smallest normal float, which GPUs take for 0.
    if (as_type<uint>(temperature) < 0x00800000u) return as_type<float>(0x7F7FFFFFu);
    const float inverse = 1.0f / temperature;
    return fma(fma(-inverse, temperature, 1.0f), inverse, inverse);  // to the last bit under fast math too
}

// exp(-distance)
static inline ulong mass_of(uint distance) {
    constexpr float kNone = 31.0f;  // below half a unit
    const float d = as_type<float>(distance);
    return distance == kDropped || d > kNone ? 0 : ulong(precise::exp(-d) * kMassUnit);
}

// Adds to a 64-bit sum of two words. Each carry is seen by exactly one of those who add.
static inline void add_mass(threadgroup atomic_uint* low_high, ulong mass) {
    const uint low = uint(mass), old = atomic_fetch_add_explicit(&low_high[0], low, memory_order_relaxed);
    const uint high = uint(mass >> 32) + (old + low < old ? 1 : 0);
    if (high != 0) atomic_fetch_add_explicit(&low_high[1], high, memory_order_relaxed);
}
static inline ulong mass_in(threadgroup atomic_uint* low_high) {
    return ulong(atomic_load_explicit(&low_high[0], memory_order_relaxed)) |
           ulong(atomic_load_explicit(&low_high[1], memory_order_relaxed)) << 32;
}

// The smallest mass that is at least a share p < 1 of `total`, exactly.
static inline ulong share_of(ulong total, float p) {
    const uint bits = as_type<uint>(p);
    if (bits < 0x00800000u) return 1;
    const uint mantissa = (bits & 0x7FFFFFu) | 0x800000u, shift = 150 - (bits >> 23);  // p = mantissa / 2^shift
    const ulong low = (total & 0xFFFFFFFFu) * mantissa, rest = low & 0xFFFFFFFFu;
    const ulong high = (total >> 32) * mantissa + (low >> 32);  // total · mantissa = high · 2^32 + rest
    if (shift < 32) {
        const bool more = (rest & ((1ul << shift) - 1)) != 0;
        return (high << (32 - shift)) + (rest >> shift) + (more ? 1 : 0);
    }
    if (shift >= 96) return 1;
    const bool more = rest != 0 || (high & ((1ul << (shift - 32)) - 1)) != 0;
    return (high >> (shift - 32)) + (more ? 1 : 0);
}

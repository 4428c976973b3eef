// Conversions between binary32 and the 16-bit floats. All round to nearest, ties to even, keep
// subnormals and signed zeros, and keep a NaN a NaN. Always inlined, so that the kernels of one instruction set leave
// no copy that the linker could give to all.
#pragma once

#include <bit>
#include <cstdint>

namespace akunu {

// IEEE 754 binary16 to binary32; exact.
[[gnu::always_inline]] constexpr float half_to_float(uint16_t half) {
    const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
    const uint32_t exponent = (half >> 10) & 0x1Fu;
    const uint32_t mantissa = half & 0x3FFu;
    if (exponent == 0) {  // zero or subnormal: mantissa * 2^-24, a normal binary32
        const uint32_t bits = std::bit_cast<uint32_t>(static_cast<float>(mantissa) * 0x1p-24f);
        return std::bit_cast<float>(sign | bits);
    }
    const uint32_t wide = exponent == 0x1Fu ? 0xFFu : exponent + (127u - 15u);
    return std::bit_cast<float>(sign | wide << 23 | mantissa << 13);
}

// binary32 to IEEE 754 binary16; beyond 65504 (from 65520 on) the result is infinite.
[[gnu::always_inline]] constexpr uint16_t float_to_half(float value) {
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    const uint32_t sign = (bits >> 16) & 0x8000u;
    const uint32_t magnitude = bits & 0x7FFFFFFFu;
    if (magnitude > 0x7F800000u) {  // NaN: quiet, upper payload bits kept
        return static_cast<uint16_t>(sign | 0x7E00u | ((magnitude >> 13) & 0x3FFu));
    }
    if (magnitude >= 0x477FF000u) {  // 65520 rounds up to 2^16
        return static_cast<uint16_t>(sign | 0x7C00u);
    }
    if (magnitude < 0x38800000u) {  // below 2^-14: a multiple of 2^-24
        // Adding 0.5 puts the value's 2^-24 unit in the last place of the sum, which rounds it.
        const float sum = std::bit_cast<float>(magnitude) + 0.5f;
        return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(sum) - 0x3F000000u));
    }
    const uint32_t odd = (magnitude >> 13) & 1u;
    const uint32_t rounded = magnitude + 0xFFFu + odd - ((127u - 15u) << 23);
    return static_cast<uint16_t>(sign | rounded >> 13);
}

// bfloat16 to binary32; exact.
[[gnu::always_inline]] constexpr float bf16_to_float(uint16_t value) {
    return std::bit_cast<float>(static_cast<uint32_t>(value) << 16);
}

// binary32 to bfloat16.
[[gnu::always_inline]] constexpr uint16_t float_to_bf16(float value) {
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    if ((bits & 0x7FFFFFFFu) > 0x7F800000u) {  // NaN: quiet
        return static_cast<uint16_t>(bits >> 16 | 0x40u);
    }
    return static_cast<uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

}  // namespace akunu

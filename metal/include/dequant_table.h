// Four-bit types whose codes are no integers.
//
// Those of IQ4_NL and IQ4_XS index a table: its sixteen values follow no rule that bits could be built from, and taken
// out of constants in registers a code would cost about nine integer operations (two comparisons with three selections
// among four words, a shift and its amount, two masks).
#pragma once

#include "dequant_legacy.h"

// The non-linear code of IQ4_NL and IQ4_XS.
static constant half kIq4Values[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

// Twice the E2M1 values (OCP Microscaling specification 1.0, table 5) of two codes in half words. A code's exponent and
// its bit of mantissa, put where binary16 has the ends of its own, are its value times 2^-14, subnormal numbers too:
// Apple's GPUs keep those of binary16 (Mesa's driver for them, hk_physical_device.c, shaderDenormPreserveFloat16). Zero
// has no sign, as everywhere else: the sum has bit 3 where the value is none.
inline half2 e2m1_doubled(uint codes) {
    const uint value = codes & 0x00070007u, sign = codes & 0x00080008u & (value + 0x00070007u);
    return as_type<half2>(value << 9 | sign << 12) * half(32768);
}

inline float4 looked_up(constant half* table, uint codes) {
    return float4(table[codes & 15], table[codes >> 8 & 15], table[codes >> 16 & 15], table[codes >> 24 & 15]);
}

// d·value[q]
struct IQ4_NL : NibbleBlocks<18> {
    static constexpr constant bool kHasMin = false;
    static Quad quad(Row row, uint block, ushort e, uint) {
        Row b = row + block * 18;
        return {looked_up(kIq4Values, nibbles(load_u32_at2(b + 2 + (e & 15)), e)), load_half(b), 0};
    }
};

// 2^(d - 127)·value[q], the scale halved since values are doubled. The two smallest exponents make subnormals, which a GPU
// may take for 0.
struct MXFP4 : NibbleBlocks<17> {
    using Tile = float;  // the exponents are those of a float
    static constexpr constant bool kHasMin = false;
    static Quad quad(Row row, uint block, ushort e, uint) {
        Row b = row + block * 17;
        const uint d = b[0];
        const uint half_scale = d < 2 ? 0x00200000u << d : (d - 1) << 23;
        const uint codes = nibbles(load_u32_at1(b + 1 + (e & 15)), e);
        const half2 even = e2m1_doubled(codes), odd = e2m1_doubled(codes >> 8);
        return {float4(half4(even.x, odd.x, even.y, odd.y)), as_type<float>(half_scale), 0};
    }
};

// d·(s - 32)·value[q], a six-bit s per 32 elements
struct IQ4_XS : Blocks<256, 136> {
    static constexpr constant ushort kSlice = 32;
    static constexpr constant ushort kRun = 8;
    static constexpr constant bool kHasMin = false;
    static ushort place(ushort sub, ushort r) { return 32 * sub + 4 * r; }
    static Quad quad(Row row, uint block, ushort e, uint) {
        Row b = row + block * 136;
        const ushort j = e >> 5;
        const uint high = *(device const ushort*)(b + 2);
        const uint s = (b[4 + (j >> 1)] >> (4 * (j & 1)) & 15) | (high >> (2 * j) & 3) << 4;
        const uint codes = NibbleBlocks<18>::nibbles(load_u32(b + 8 + 16 * j + (e & 15)), e);
        return {looked_up(kIq4Values, codes), load_half(b) * float(int(s) - 32), 0};
    }
};

// Codes of four bits, and of a fifth, as tensor cores take them: bytes for products with whole numbers, or F16 numbers.
//
// Sixteen bytes have 32 codes, the low nibbles first. Of a word of them `fifth` are its codes' fifth bits, moved so
// that bit 8b is that of byte b's low nibble and bit 8b + 4 that of its high one.
#pragma once

#include "block.cuh"
#include "formats.cuh"

namespace akunu::cuda {

// The same number twice.
AKUNU_DEVICE u32 twice(u32 half) { return half | half << 16; }
AKUNU_DEVICE u32 twice(float v) { return twice(u32(to_half(v))); }

// Nibbles of bytes 0 and 2 (as two halves) of a word: 1024 + low, 64 + high.
constexpr u32 kThousand = 0x64006400u, kSixtyFour = 0x54005400u;
AKUNU_DEVICE u32 low_nibbles(u32 two) { return (two & 0x000F000Fu) | kThousand; }
AKUNU_DEVICE u32 high_nibbles(u32 two) { return (two & 0x00F000F0u) | kSixtyFour; }
// The same of codes of E2M1, what they count: a code's bits, its exponent's and its mantissa's, are those of an F16
// number 2^-14 times as large.
AKUNU_DEVICE u32 low_e2m1(u32 two) {
    return multiply_halves((two & 0x00070007u) << 9 | (two & 0x00080008u) << 12, 0x74007400u);
}
AKUNU_DEVICE u32 high_e2m1(u32 two) {
    return multiply_halves((two & 0x00700070u) << 5 | (two & 0x00800080u) << 8, 0x74007400u);
}
// Bytes 2i and 2i + 1 of a word, each in a half.
AKUNU_DEVICE u32 two_bytes(u32 word, u32 i, u32 above = 0) { return choose_bytes(word, above, i ? 0x7362u : 0x5140u); }

// Nibbles as signed bytes, 16 times what they are above 8.
AKUNU_DEVICE u32 signed_nibbles(u32 w) { return masked_xor(w, 0xF0F0F0F0u, 0x80808080u); }

// Codes of E2M1 as signed bytes, twice what they count.
AKUNU_DEVICE u32 signed_e2m1(u32 magnitudes, u32 signs) {
    constexpr u32 kSigns = 0x80808080u;
    const u32 all = byte_signs(signs);
    const u32 below = kSigns - (magnitudes & all);  // without a carry: none is above 12
    return (below ^ kSigns) | (magnitudes & ~all);
}
// The low and the high nibbles of a word.
AKUNU_DEVICE void signed_e2m1(u32 w, u32& low, u32& high) {
    constexpr u32 kLeast = 0x03020100u, kMost = 0x0C080604u;  // magnitudes by their three bits
    const u32 which = w & 0x77777777u;
    const u32 first = choose_bytes(kLeast, kMost, which), last = choose_bytes(kLeast, kMost, which >> 16);
    low = signed_e2m1(choose_bytes(first, last, 0x6420u), w << 4);
    high = signed_e2m1(choose_bytes(first, last, 0x7531u), w);
}
// The same of IQ4_NL and IQ4_XS, as signed bytes.
AKUNU_DEVICE void signed_iq4(u32 w, u32& low, u32& high) {
    const u32 which = w & 0x77777777u;
    constexpr u32 kValues[4] = AKUNU_IQ4_VALUES;
    u32 words[2][2];  // of the lower eight values and of the upper ones: low nibbles, high ones
    AKUNU_UNROLL
    for (u32 upper = 0; upper < 2; ++upper) {
        const u32 least = kValues[2 * upper], most = kValues[2 * upper + 1];
        const u32 first = choose_bytes(least, most, which), last = choose_bytes(least, most, which >> 16);
        words[upper][0] = choose_bytes(first, last, 0x6420u);
        words[upper][1] = choose_bytes(first, last, 0x7531u);
    }
    const u32 low_is_upper = byte_signs(w << 4), high_is_upper = byte_signs(w);
    low = (words[0][0] & ~low_is_upper) | (words[1][0] & low_is_upper);
    high = (words[0][1] & ~high_is_upper) | (words[1][1] & high_is_upper);
}

// Of the types whose codes are nibbles: bytes(w, fifth, low, high), signed or not, of which each unit counts kUnit, and
// halves, which count what codes do.
template <u32 kReader>
struct Nibbles;

// Codes that count from `kZero` on.
template <u32 kZero, bool kFive>
struct LinearNibbles {
    static constexpr bool kSigned = kZero != 0, kFifth = kFive;
    static constexpr float kUnit = !kSigned ? 1.0f : kFifth ? 0.125f : 0.0625f;
    static AKUNU_DEVICE void bytes(u32 w, u32 fifth, u32& low, u32& high) {
        if constexpr (kSigned && kFifth) {
            constexpr u32 kNibble = 0x78787878u, kTop = 0x80808080u;
            low = masked_xor(w << 3, kNibble, masked_xor(fifth << 7, kTop, kTop));
            high = masked_xor(w >> 1, kNibble, masked_xor(fifth << 3, kTop, kTop));
        } else if constexpr (kSigned) {
            low = signed_nibbles(w << 4);
            high = signed_nibbles(w);
        } else {
            constexpr u32 kNibble = 0x0F0F0F0Fu, kBit = 0x10101010u;
            low = (w & kNibble) | (kFifth ? fifth << 4 & kBit : 0u);
            high = (w >> 4 & kNibble) | (kFifth ? fifth & kBit : 0u);
        }
    }
    // Of bytes 0 and 2 of words.
    static AKUNU_DEVICE u32 low_halves(u32 two, u32 fifth) {
        const u32 more = kFifth ? fifth << 4 & 0x00100010u : 0u;
        return add_halves(low_nibbles(two) | more, twice(0xE400u + kZero));  // - 1024 - zero
    }
    static AKUNU_DEVICE u32 high_halves(u32 two, u32 fifth) {
        const u32 more = kFifth ? fifth << 4 & 0x01000100u : 0u;
        return add_halves(high_nibbles(two) | more, twice(0xD400u + 16 * kZero));  // - 64 - zero
    }
};
template <>
struct Nibbles<kReadQ4_0> : LinearNibbles<8, false> {};
template <>
struct Nibbles<kReadQ4_1> : LinearNibbles<0, false> {};
template <>
struct Nibbles<kReadQ5_0> : LinearNibbles<16, true> {};
template <>
struct Nibbles<kReadQ5_1> : LinearNibbles<0, true> {};
template <>
struct Nibbles<kReadQ5_K> : LinearNibbles<0, true> {};

struct CodedNibbles {
    static constexpr bool kSigned = true, kFifth = false;
    static constexpr float kUnit = 1.0f;
};
template <>
struct Nibbles<kReadIq4Nl> : CodedNibbles {
    static AKUNU_DEVICE void bytes(u32 w, u32, u32& low, u32& high) { signed_iq4(w, low, high); }
};
template <>
struct Nibbles<kReadIq4Xs> : Nibbles<kReadIq4Nl> {};
// Bytes are twice what codes count, and scales half of what theirs do.
template <>
struct Nibbles<kReadMxfp4> : CodedNibbles {
    static AKUNU_DEVICE void bytes(u32 w, u32, u32& low, u32& high) { signed_e2m1(w, low, high); }
    static AKUNU_DEVICE u32 low_halves(u32 two, u32) { return low_e2m1(two); }
    static AKUNU_DEVICE u32 high_halves(u32 two, u32) { return high_e2m1(two); }
};

// Of Q4_K and Q5_K, whose high nibbles are those of another group: those of Q4_K count 16 times what they are.
template <u32 kReader>
AKUNU_DEVICE void k_bytes(u32 w, u32 fifth, u32& low, u32& high) {
    if constexpr (kReader == kReadQ5_K) {
        Nibbles<kReadQ5_K>::bytes(w, fifth, low, high);
    } else {
        constexpr u32 kLow = 0x0F0F0F0Fu;
        low = w & kLow;
        high = w & ~kLow;
    }
}

// A word's codes as halves, two to a word each: of low nibbles, and of high ones. Codes of bytes i and i + 2 are side
// by side, or neighbours' are.
template <u32 kReader, bool kNeighbours>
AKUNU_DEVICE void nibble_halves(u32 w, u32 fifth, u32 (&low)[2], u32 (&high)[2]) {
    using N = Nibbles<kReader>;
    if constexpr (kReader == kReadIq4Nl || kReader == kReadIq4Xs) {
        constexpr u32 kSigns = 0x80808080u, kAbove = 0x64646464u;  // 1024 + 128 + code
        u32 bytes[2];
        N::bytes(w, 0, bytes[0], bytes[1]);
        AKUNU_UNROLL
        for (u32 i = 0; i < 2; ++i) {
            const u32 which = kNeighbours ? (i ? 0x7362u : 0x5140u) : (i ? 0x7361u : 0x7260u);
            low[i] = add_halves(choose_bytes(bytes[0] ^ kSigns, kAbove, which), 0xE480E480u);
            high[i] = add_halves(choose_bytes(bytes[1] ^ kSigns, kAbove, which), 0xE480E480u);
        }
    } else {
        AKUNU_UNROLL
        for (u32 i = 0; i < 2; ++i) {
            const u32 two = kNeighbours ? two_bytes(w, i) : w >> 8 * i;
            const u32 bits = N::kFifth ? (kNeighbours ? two_bytes(fifth, i) : fifth >> 8 * i) : 0;
            low[i] = N::low_halves(two, bits);
            high[i] = N::high_halves(two, bits);
        }
    }
}

}  // namespace akunu::cuda

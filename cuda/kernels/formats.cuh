// Weights in groups of 32: value = scale·code + offset, with a scale and an offset for each half of the group.
//
// Some types lie in tiles, see tile_layout.h. Others of one piece are stored as two planes, see cuda/host/pack.h: the
// codes, whose blocks begin at multiples of 16 bytes, and what else a block has. Within each the order is the file's.
#pragma once

#include "platform.cuh"
#include "tile_layout.h"

namespace akunu::cuda {

// One matrix as kernels see it.
struct Weights {
    const u8* codes;
    const u8* extras;
    const u8* biases;
    u32 cols, spec;
};

AKUNU_DEVICE Weights weights_of(const WeightPlanes& w, u32 cols) {
    return {reinterpret_cast<const u8*>(w.codes), reinterpret_cast<const u8*>(w.extras),
            reinterpret_cast<const u8*>(w.biases), cols, w.spec};
}

struct Group {
    float code[32];
    float scale[2], offset[2];
};

// The float of a code below 2^23, by its bits: conversions run at an eighth of the rate of additions.
constexpr u32 kMagic = 0x4B000000u;
constexpr float kMagicFloat = 8388608.0f;
AKUNU_DEVICE float code_float(u32 code, float zero) { return bits_to_float(kMagic | code) - (kMagicFloat + zero); }

AKUNU_DEVICE void set_scale(Group& g, float scale, float offset = 0.0f) {
    g.scale[0] = g.scale[1] = scale;
    g.offset[0] = g.offset[1] = offset;
}

AKUNU_DEVICE float load_half(const u8* p) { return half_to_float(load_weights2(p)); }
AKUNU_DEVICE u32 load_u32_by_halves(const u8* p) { return load_weights2(p) | u32(load_weights2(p + 2)) << 16; }

// Codes of 16 bytes: low nibbles, then high ones.
AKUNU_DEVICE void nibbles(Group& g, const uint4& q, float zero) {
    const u32 words[4] = {q.x, q.y, q.z, q.w};
    AKUNU_UNROLL
    for (int w = 0; w < 4; ++w) {
        AKUNU_UNROLL
        for (int i = 0; i < 4; ++i) {
            g.code[4 * w + i] = code_float(words[w] >> (8 * i) & 15, zero);
            g.code[16 + 4 * w + i] = code_float(words[w] >> (8 * i + 4) & 15, zero);
        }
    }
}
// The same with a fifth bit each, which lie as tile_layout.h says.
AKUNU_DEVICE void nibbles5(Group& g, const uint4& q, u32 fifth, float zero) {
    const u32 words[4] = {q.x, q.y, q.z, q.w};
    AKUNU_UNROLL
    for (int w = 0; w < 4; ++w) {
        AKUNU_UNROLL
        for (int i = 0; i < 4; ++i) {
            const int e = 4 * w + i, bit = 8 * i + w;
            g.code[e] = code_float((words[w] >> (8 * i) & 15) | (fifth >> bit & 1) << 4, zero);
            g.code[16 + e] = code_float((words[w] >> (8 * i + 4) & 15) | (fifth >> (bit + 4) & 1) << 4, zero);
        }
    }
}
// 32 bytes of one code each, by `code(byte, index)`: an even piece and the next, which lie side by side.
template <typename Code>
AKUNU_DEVICE void bytes32(Group& g, const u8* p, Code&& code) {
    const uint4 a = load_weights16(p), b = load_weights16(p + 16);
    const u32 words[8] = {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w};
    AKUNU_UNROLL
    for (int w = 0; w < 8; ++w) {
        AKUNU_UNROLL
        for (int i = 0; i < 4; ++i) g.code[4 * w + i] = code(words[w] >> (8 * i) & 255, 4 * w + i);
    }
}

// Values of the non-linear 4-bit codes of IQ4_NL and IQ4_XS, four signed bytes in a word.
#define AKUNU_IQ4_VALUES {0xBFAD9881u, 0xF6EADDCFu, 0x26190D01u, 0x71594535u}
AKUNU_DEVICE float iq4_value(u32 q) {
    constexpr u32 kValues[4] = AKUNU_IQ4_VALUES;
    const u32 word = q < 8 ? (q < 4 ? kValues[0] : kValues[1]) : q < 12 ? kValues[2] : kValues[3];
    return code_float((word >> (8 * (q & 3)) & 255) ^ 128, 128.0f);
}
// Twice a value of E2M1 (OCP Microscaling 1.0).
AKUNU_DEVICE float e2m1_doubled(u32 q) {
    const u32 magnitude = 0xC8643210u >> (4 * (q & 7)) & 15;
    const float v = code_float(magnitude, 0.0f);
    return q & 8 ? 0.0f - v : v;
}
AKUNU_DEVICE float e8m0_half(u32 e) { return bits_to_float(e < 2 ? 0x00200000u << e : (e - 1) << 23); }
AKUNU_DEVICE float e4m3(u32 bits) {
    const u32 exponent = bits >> 3 & 15, mantissa = bits & 7;
    if (exponent == 15 && mantissa == 7) return bits_to_float(0x7FC00000u);
    const float v =
        exponent == 0 ? code_float(mantissa, 0.0f) * 0x1p-9f : bits_to_float((exponent + 120) << 23 | mantissa << 20);
    return bits & 128 ? -v : v;
}

template <u32 kReader>
struct Format;

// Of a type that lies in tiles where its rows are long enough: piece i of a row's codes; and the extras of the unit, or
// of as many inputs, that has input `col`.
template <u32 kReader>
AKUNU_DEVICE const u8* row_piece(const Weights& w, u64 row, u32 i) {
    constexpr TileLayout kLayout = tile_layout(kReader);
    constexpr u32 kPieces = kLayout.code_bytes / kPiece;
    if (!in_tiles(kReader, w.cols)) return w.codes + row * w.cols * kLayout.code_bytes / kLayout.inputs + i * kPiece;
    return w.codes + unit_at(kReader, w.cols, row, i / kPieces * kLayout.inputs) + piece_at(u32(row), i % kPieces);
}
// Of floats.
template <u32 kReader>
AKUNU_DEVICE const u8* row_float_piece(const Weights& w, u64 row, u32 i) {
    if (!in_tiles(kReader, w.cols)) return w.codes + row * w.cols * 2 + i * kPiece;
    return w.codes + unit_at(kReader, w.cols, row, i * 8) + float_piece_at(u32(row), i % 16);
}
template <u32 kReader>
AKUNU_DEVICE const u8* row_extras(const Weights& w, u64 row, u32 col) {
    constexpr TileLayout kLayout = tile_layout(kReader);
    if (!in_tiles(kReader, w.cols)) return w.extras + (row * w.cols + col) / kLayout.inputs * kLayout.extra_bytes;
    return w.codes + unit_at(kReader, w.cols, row, col) + extras_at(kLayout, u32(row));
}

// Element by element where rows are no multiples of 16 bytes, or end within the group; else by `piece(i)` of a row.
template <u32 kBytes, typename Piece, typename Convert>
AKUNU_DEVICE void float_group(const Weights& w, u64 row, u32 group, Group& g, Piece&& piece, Convert&& convert) {
    set_scale(g, 1.0f);
    const u32 left = w.cols - group * 32;
    if (left >= 32 && w.cols * kBytes % 16 == 0) {
        constexpr u32 kEach = 16 / kBytes;
        AKUNU_UNROLL
        for (u32 i = 0; i < 32 / kEach; ++i) {
            const uint4 q = load_weights16(piece(group * (32 / kEach) + i));
            const u32 words[4] = {q.x, q.y, q.z, q.w};
            AKUNU_UNROLL
            for (u32 e = 0; e < kEach; ++e) {
                g.code[i * kEach + e] =
                    convert(kBytes == 4 ? words[e % 4] : words[e / 2 % 4] >> (16 * (e % 2)) & 0xFFFF);
            }
        }
        return;
    }
    const u8* p = w.codes + (row * w.cols + group * 32) * kBytes;
    AKUNU_UNROLL
    for (u32 i = 0; i < 32; ++i) {
        g.code[i] = i < left ? convert(kBytes == 4 ? load_weights4(p + 4 * i) : load_weights2(p + 2 * i)) : 0.0f;
    }
}

template <>
struct Format<kReadF32> {
    static constexpr u32 kReader = kReadF32, kFloatBytes = 4;
    static constexpr bool kScaled = false, kOffset = false;
    static AKUNU_DEVICE float convert(u32 bits) { return bits_to_float(bits); }
    static AKUNU_DEVICE void load(const Weights& w, u64 row, u32 group, Group& g) {
        float_group<4>(
            w, row, group, g, [&](u32 i) { return w.codes + row * w.cols * 4 + i * 16; },
            [](u32 bits) { return convert(bits); });
    }
};
template <>
struct Format<kReadF16> {
    static constexpr u32 kReader = kReadF16, kFloatBytes = 2;
    static constexpr bool kScaled = false, kOffset = false;
    static AKUNU_DEVICE float convert(u32 bits) { return half_to_float(u16(bits)); }
    static AKUNU_DEVICE void load(const Weights& w, u64 row, u32 group, Group& g) {
        float_group<2>(
            w, row, group, g, [&](u32 i) { return row_float_piece<kReadF16>(w, row, i); },
            [](u32 bits) { return convert(bits); });
    }
};
template <>
struct Format<kReadBf16> {
    static constexpr u32 kReader = kReadBf16, kFloatBytes = 2;
    static constexpr bool kScaled = false, kOffset = false;
    static AKUNU_DEVICE float convert(u32 bits) { return bits_to_float(bits << 16); }
    static AKUNU_DEVICE void load(const Weights& w, u64 row, u32 group, Group& g) {
        const bool tiles = in_tiles(kReadBf16, w.cols);
        const float factor = tiles ? bits_to_float(load_weights4(w.extras)) : 0.0f;
        float_group<2>(
            w, row, group, g, [&](u32 i) { return row_float_piece<kReadBf16>(w, row, i); },
            [&](u32 bits) { return tiles ? factor * half_to_float(u16(bits)) : convert(bits); });
    }
};

// Blocks of 32, by their index among all of the matrix'.
AKUNU_DEVICE u64 block32(const Weights& w, u64 row, u32 group) { return row * (w.cols / 32) + group; }
// Where a block of 32 has its scale, behind which its minimum is, and its fifth bits.
struct BlockPlaces {
    const u8 *scale, *fifth;
};
// In the extras of a tile's row, and in a plane, of a block's.
template <u32 kReader>
AKUNU_DEVICE BlockPlaces in_unit(const u8* extras, u32 group) {
    return {extras + block_extras(kReader).scale_at(group % 4), extras + group % 4 * 4};
}
template <u32 kReader>
AKUNU_DEVICE BlockPlaces in_plane(const u8* extras) {
    return {extras, extras + block_extras(kReader).scale};
}
template <u32 kReader>
AKUNU_DEVICE BlockPlaces block_places(const Weights& w, u64 row, u32 group) {
    if (in_tiles(kReader, w.cols)) return in_unit<kReader>(row_extras<kReader>(w, row, group * 32), group);
    return in_plane<kReader>(w.extras + block32(w, row, group) * block_extras(kReader).bytes());
}

// Blocks of 32 nibbles: d(q - zero), or dq + m.
template <u32 kReader, u32 kZero>
struct NibbleFormat {
    static constexpr BlockExtras kExtras = block_extras(kReader);
    static constexpr u32 kFloatBytes = 0;
    static constexpr bool kScaled = true, kOffset = has_minima(kReader);
    static AKUNU_DEVICE void load(const Weights& w, u64 row, u32 group, Group& g) {
        const uint4 q = load_weights16(row_piece<kReader>(w, row, group));
        const BlockPlaces at = block_places<kReader>(w, row, group);
        if constexpr (kExtras.fifth) {
            nibbles5(g, q, load_u32_by_halves(at.fifth), float(kZero));
        } else {
            nibbles(g, q, float(kZero));
        }
        set_scale(g, load_half(at.scale), kOffset ? load_half(at.scale + 2) : 0.0f);
    }
};
template <>
struct Format<kReadQ4_0> : NibbleFormat<kReadQ4_0, 8> {};
template <>
struct Format<kReadQ4_1> : NibbleFormat<kReadQ4_1, 0> {};
template <>
struct Format<kReadQ5_0> : NibbleFormat<kReadQ5_0, 16> {};
template <>
struct Format<kReadQ5_1> : NibbleFormat<kReadQ5_1, 0> {};
template <>
struct Format<kReadQ8_0> {  // dq
    static constexpr u32 kFloatBytes = 0;
    static constexpr bool kScaled = true, kOffset = false;
    static AKUNU_DEVICE void load(const Weights& w, u64 row, u32 group, Group& g) {
        bytes32(g, row_piece<kReadQ8_0>(w, row, 2 * group), [](u32 q, int) { return code_float(q ^ 128, 128.0f); });
        set_scale(g, load_half(block_places<kReadQ8_0>(w, row, group).scale));
    }
};
template <>
struct Format<kReadIq4Nl> {  // d·value[q]
    static constexpr u32 kFloatBytes = 0;
    static constexpr bool kScaled = true, kOffset = false;
    static AKUNU_DEVICE void load_codes(Group& g, const uint4& q) {
        const u32 words[4] = {q.x, q.y, q.z, q.w};
        AKUNU_UNROLL
        for (int e = 0; e < 16; ++e) {
            g.code[e] = iq4_value(words[e / 4] >> (8 * (e % 4)) & 15);
            g.code[16 + e] = iq4_value(words[e / 4] >> (8 * (e % 4) + 4) & 15);
        }
    }
    static AKUNU_DEVICE void load(const Weights& w, u64 row, u32 group, Group& g) {
        load_codes(g, load_weights16(row_piece<kReadIq4Nl>(w, row, group)));
        set_scale(g, load_half(block_places<kReadIq4Nl>(w, row, group).scale));
    }
};
template <>
struct Format<kReadMxfp4> {  // 2^(e - 127)·value[q]
    static constexpr u32 kFloatBytes = 0;
    static constexpr bool kScaled = true, kOffset = false;
    static AKUNU_DEVICE void load(const Weights& w, u64 row, u32 group, Group& g) {
        const uint4 q = load_weights16(row_piece<kReadMxfp4>(w, row, group));
        const u32 words[4] = {q.x, q.y, q.z, q.w};
        AKUNU_UNROLL
        for (int e = 0; e < 16; ++e) {
            g.code[e] = e2m1_doubled(words[e / 4] >> (8 * (e % 4)) & 15);
            g.code[16 + e] = e2m1_doubled(words[e / 4] >> (8 * (e % 4) + 4) & 15);
        }
        set_scale(g, e8m0_half(load_weights1(block_places<kReadMxfp4>(w, row, group).scale)));
    }
};

// Blocks of 256 have eight groups.
struct Super {
    u64 block;
    u32 j;
};
AKUNU_DEVICE Super super_block(const Weights& w, u64 row, u32 group) {
    return {row * (w.cols / 256) + group / 8, group % 8};
}
// Two-bit fields: per half of a block 32 bytes hold element 32j + l at bits 2j of byte l.
AKUNU_DEVICE u32 shift_of(u32 j) { return 2 * (j % 4); }

template <>
struct Format<kReadQ2_K> {  // d(s & 15)q - dmin(s >> 4)
    static constexpr u32 kFloatBytes = 0;
    static constexpr bool kScaled = true, kOffset = true;
    static AKUNU_DEVICE void load(const Weights& w, u64 row, u32 group, Group& g) {
        const Super s = super_block(w, row, group);
        const u32 shift = shift_of(s.j);
        bytes32(g, w.codes + s.block * 64 + s.j / 4 * 32, [=](u32 q, int) { return code_float(q >> shift & 3, 0.0f); });
        const u8* extras = w.extras + s.block * 20;
        const u32 scales = load_weights2(extras + 2 * s.j), both = load_weights4(extras + 16);
        const float d = half_to_float(u16(both)), dmin = half_to_float(u16(both >> 16));
        AKUNU_UNROLL
        for (int h = 0; h < 2; ++h) {
            g.scale[h] = mul_rn(d, code_float(scales >> (8 * h) & 15, 0.0f));
            g.offset[h] = -mul_rn(dmin, code_float(scales >> (8 * h + 4) & 15, 0.0f));
        }
    }
};
template <>
struct Format<kReadQ3_K> {  // d(s - 32)(q - 4)
    static constexpr u32 kFloatBytes = 0;
    static constexpr bool kScaled = true, kOffset = false;
    static AKUNU_DEVICE void load(const Weights& w, u64 row, u32 group, Group& g) {
        const Super s = super_block(w, row, group);
        const u8* codes = w.codes + s.block * 96;
        const uint4 a = load_weights16(codes), b = load_weights16(codes + 16);
        const u32 high[8] = {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w};
        const u32 shift = shift_of(s.j), j = s.j;
        bytes32(g, codes + 32 + s.j / 4 * 32, [&](u32 q, int i) {
            return code_float((q >> shift & 3) | (high[i / 4] >> (8 * (i % 4) + j) & 1) << 2, 4.0f);
        });
        const u8* extras = w.extras + s.block * 14;
        const float d = load_half(extras + 12);
        AKUNU_UNROLL
        for (u32 h = 0; h < 2; ++h) {
            const u32 t = 2 * s.j + h;
            const u32 low = load_weights1(extras + t % 8) >> (t < 8 ? 0 : 4) & 15;
            const u32 top = load_weights1(extras + 8 + t % 4) >> (2 * (t / 4)) & 3;
            g.scale[h] = mul_rn(d, code_float(low | top << 4, 32.0f));
        }
        g.offset[0] = g.offset[1] = 0.0f;
    }
};

// Q4_K and Q5_K: what a block's scales and minima are to be multiplied by, and those of a word's two groups, as
// tile_layout.h says.
struct KFactors {
    float scale, min;
};
AKUNU_DEVICE KFactors k_factors(const uint4& e) {
    constexpr u32 kTops = 0x73;  // of two words
    return {half_to_float(u16(choose_bytes(e.x, e.y, kTops))), half_to_float(u16(choose_bytes(e.z, e.w, kTops)))};
}
AKUNU_DEVICE u32 k_scale_of(u32 groups, u32 which) { return groups >> 6 * which & 63; }
AKUNU_DEVICE u32 k_min_of(u32 groups, u32 which) { return groups >> (12 + 6 * which) & 63; }
// Q5_K: where a block's extras have the fifth bits of one of its eight pieces.
AKUNU_DEVICE u32 k_fifth_at(u32 piece) { return 16 + piece * 4; }

// Q6_K: the codes of group j of a block, of a byte or of two, from words of nibbles and of the other bits, of which
// words of even numbers have other ones than odd words. See tile_layout.h.
struct SixBits {
    u32 shift, nibble, rest;
    AKUNU_DEVICE explicit SixBits(u32 j)
        : shift(j % 4 < 2 ? 0 : 2),
          nibble(j % 4 < 2 ? 0x000F000Fu : 0x003C003Cu),
          rest(j % 4 < 2 ? 0x00300030u : 0x00030003u) {}
    AKUNU_DEVICE u32 of(u32 nibbles, u32 others, u32 odd) const {
        return (nibbles >> shift & nibble) | (others >> (odd ? 0 : 2) & rest);
    }
};

// Scale and offset of group j of a block.
struct KScale {
    float scale, offset;
};
AKUNU_DEVICE KScale k_scale(const uint4& e, u32 j) {
    const u32 groups = j < 4 ? (j < 2 ? e.x : e.y) : (j < 6 ? e.z : e.w);
    const KFactors f = k_factors(e);
    return {mul_rn(f.scale, code_float(k_scale_of(groups, j % 2), 0.0f)),
            -mul_rn(f.min, code_float(k_min_of(groups, j % 2), 0.0f))};
}
AKUNU_DEVICE void k_scales(Group& g, const u8* extras, u32 j) {
    const KScale s = k_scale(load_weights16(extras), j);
    set_scale(g, s.scale, s.offset);
}
template <u32 kReader>
struct KFormat {  // d s q - dmin m
    static constexpr u32 kFloatBytes = 0;
    static constexpr bool kScaled = true, kOffset = true;
    static AKUNU_DEVICE void load(const Weights& w, u64 row, u32 group, Group& g) {
        const u32 j = group % 8, shift = 4 * (j % 2);
        const u8* const extras = row_extras<kReader>(w, row, group * 32);
        u32 fifth[2] = {};
        AKUNU_UNROLL
        for (u32 i = 0; i < 2; ++i) {
            if constexpr (kReader == kReadQ5_K) fifth[i] = load_weights4(extras + k_fifth_at(j / 2 * 2 + i)) >> shift;
        }
        bytes32(g, row_piece<kReader>(w, row, group / 2 * 2), [&](u32 q, int i) {
            return code_float((q >> shift & 15) | (fifth[i / 16] >> (8 * (i % 4) + i % 16 / 4) & 1) << 4, 0.0f);
        });
        k_scales(g, extras, j);
    }
};
template <>
struct Format<kReadQ4_K> : KFormat<kReadQ4_K> {};
template <>
struct Format<kReadQ5_K> : KFormat<kReadQ5_K> {};
template <>
struct Format<kReadQ6_K> {  // d s(q - 32)
    static constexpr u32 kFloatBytes = 0;
    static constexpr bool kScaled = true, kOffset = false;
    static AKUNU_DEVICE void load(const Weights& w, u64 row, u32 group, Group& g) {
        const u32 j = group % 8, block = group / 8 * 12;  // pieces: eight of nibbles, four of the other bits
        const uint4 a = load_weights16(row_piece<kReadQ6_K>(w, row, block + 8 + j / 4 * 2 + j % 2));
        const u32 rest[4] = {a.x, a.y, a.z, a.w};
        const SixBits bits(j);
        bytes32(g, row_piece<kReadQ6_K>(w, row, block + j / 4 * 4 + j % 2 * 2), [&](u32 q, int i) {
            return code_float(bits.of(q, rest[i / 8] >> 8 * (i % 4) & 255, i / 4 % 2), 32.0f);
        });
        const u8* extras = row_extras<kReadQ6_K>(w, row, group * 32);
        const float d = load_half(extras + 16);
        const u32 scales = load_weights2(extras + 2 * j);
        AKUNU_UNROLL
        for (int h = 0; h < 2; ++h) g.scale[h] = mul_rn(d, code_float((scales >> (8 * h) & 255) ^ 128, 128.0f));
        g.offset[0] = g.offset[1] = 0.0f;
    }
};
// Of group j of a block, from its extras.
AKUNU_DEVICE float iq4_xs_scale(const uint2& extras, u32 j) {
    constexpr u32 kTops = 0x73;
    const float d = half_to_float(u16(choose_bytes(extras.x, extras.y, kTops)));
    return mul_rn(d, code_float((j < 4 ? extras.x : extras.y) >> 6 * (j % 4) & 63, 32.0f));
}
template <>
struct Format<kReadIq4Xs> {  // d(s - 32)·value[q]
    static constexpr u32 kFloatBytes = 0;
    static constexpr bool kScaled = true, kOffset = false;
    static AKUNU_DEVICE void load(const Weights& w, u64 row, u32 group, Group& g) {
        Format<kReadIq4Nl>::load_codes(g, load_weights16(row_piece<kReadIq4Xs>(w, row, group)));
        const u8* const extras = row_extras<kReadIq4Xs>(w, row, group * 32);
        set_scale(g, iq4_xs_scale({load_weights4(extras), load_weights4(extras + 4)}, group % 8));
    }
};

AKUNU_DEVICE float scale_value(u32 type, const u8* plane, u64 index) {
    switch (type) {
        case kScaleF32:
            return bits_to_float(load_weights4(plane + index * 4));
        case kScaleF16:
            return load_half(plane + index * 2);
        case kScaleBf16:
            return bits_to_float(u32(load_weights2(plane + index * 2)) << 16);
        case kScaleE8M0:
            return 2.0f * e8m0_half(load_weights1(plane + index));
        default:
            return e4m3(load_weights1(plane + index));
    }
}

template <>
struct Format<kReadAffine> {  // s q + b; codes are a stream of words, lowest bits first
    static constexpr u32 kFloatBytes = 0;
    static constexpr bool kScaled = true, kOffset = true;
    static AKUNU_DEVICE void load(const Weights& w, u64 row, u32 group, Group& g) {
        const u32 bits = w.spec & 255, of = w.spec >> 8 & 255, type = w.spec >> 16, mask = (1u << bits) - 1;
        const u8* p = w.codes + (row * (w.cols / 32) + group) * (4 * bits);
        u64 window = 0;
        u32 have = 0;
        AKUNU_UNROLL
        for (int i = 0; i < 32; ++i) {
            if (have < bits) {
                window |= u64(load_weights4(p)) << have;
                p += 4;
                have += 32;
            }
            g.code[i] = code_float(u32(window) & mask, 0.0f);
            window >>= bits;
            have -= bits;
        }
        const u64 index = row * (w.cols / of) + group * 32 / of;
        set_scale(g, scale_value(type, w.extras, index), scale_value(type, w.biases, index));
    }
};
template <>
struct Format<kReadFloatCodes> {  // s·code, of E2M1 or E4M3
    static constexpr u32 kFloatBytes = 0;
    static constexpr bool kScaled = true, kOffset = false;
    static AKUNU_DEVICE void load(const Weights& w, u64 row, u32 group, Group& g) {
        const u32 bits = w.spec & 255, of = w.spec >> 8 & 255, type = w.spec >> 16;
        const u8* p = w.codes + (row * (w.cols / 32) + group) * (4 * bits);
        AKUNU_UNROLL
        for (u32 i = 0; i < 32; ++i) {
            g.code[i] = bits == 8 ? e4m3(load_weights1(p + i))
                                  : 0.5f * e2m1_doubled(load_weights1(p + i / 2) >> (i % 2 * 4) & 15);
        }
        AKUNU_UNROLL
        for (u32 h = 0; h < 2; ++h) {
            g.scale[h] = scale_value(type, w.extras, row * (w.cols / of) + (group * 32 + 16 * h) / of);
        }
        g.offset[0] = g.offset[1] = 0.0f;
    }
};

// A group's values, each as two roundings of the definition.
template <typename F>
AKUNU_DEVICE float value_of(const Group& g, int i) {
    if (!F::kScaled) return g.code[i];
    const float v = mul_rn(g.scale[i / 16], g.code[i]);
    return F::kOffset ? add_rn(v, g.offset[i / 16]) : v;
}

}  // namespace akunu::cuda

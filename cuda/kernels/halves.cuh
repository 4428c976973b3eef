// Weights as F16, for products of many rows: what is loaded of a group of 32, and its values two to a word.
//
// Of the types that lie in tiles codes become halves by their bits, and scales are F16; of others values are computed
// as F32 and rounded.
#pragma once

#include "block.cuh"
#include "formats.cuh"

namespace akunu::cuda {

// place(w, row) is where a row is, worked out once a tile; fetch(cols, place, group) what is loaded of a group of a row
// that has so many columns.
template <typename F>
struct GroupHalves {
    using Raw = Group;
    struct Place {
        Weights matrix;
        u32 row;
    };
    static AKUNU_DEVICE Place place(const Weights& w, u32 row) { return {w, row}; }
    static AKUNU_DEVICE Raw fetch(u32, const Place& p, u32 group) {
        Group g;
        F::load(p.matrix, p.row, group, g);
        return g;
    }
    static AKUNU_DEVICE void convert(const Raw& g, u32, u32 (&h)[16]) {
        AKUNU_UNROLL
        for (int i = 0; i < 16; ++i) h[i] = pack_halves(value_of<F>(g, 2 * i), value_of<F>(g, 2 * i + 1));
    }
};
template <typename F>
struct Halves : GroupHalves<F> {};

// Eight halves of a row, zeros behind its end.
AKUNU_DEVICE uint4 load_halves8(const u16* row, u32 at, u32 k) {
    if (k % 8 == 0 && reinterpret_cast<u64>(row) % 16 == 0) {
        return at < k ? *reinterpret_cast<const uint4*>(row + at) : uint4{0, 0, 0, 0};
    }
    u32 v[4];
    AKUNU_UNROLL
    for (u32 i = 0; i < 4; ++i) {
        const u32 j = at + 2 * i;
        v[i] = (j < k ? row[j] : 0u) | (j + 1 < k ? u32(row[j + 1]) : 0u) << 16;
    }
    return {v[0], v[1], v[2], v[3]};
}

// The same number twice.
AKUNU_DEVICE u32 twice(u32 half) { return half | half << 16; }
AKUNU_DEVICE u32 twice(float v) { return twice(u32(to_half(v))); }

// Nibbles of bytes 0 and 2 (as two halves) of a word: 1024 + low, 64 + high.
constexpr u32 kThousand = 0x64006400u, kSixtyFour = 0x54005400u;
AKUNU_DEVICE u32 low_nibbles(u32 two) { return (two & 0x000F000Fu) | kThousand; }
AKUNU_DEVICE u32 high_nibbles(u32 two) { return (two & 0x00F000F0u) | kSixtyFour; }
// Bits 0 and 16, where two nibbles that begin `at - 4` bits into their halves have their fifth.
AKUNU_DEVICE u32 fifth_bits(u32 two, u32 at) { return (two & 0x00010001u) << at; }
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

// Of a type that lies in tiles where its rows are long enough, see row_piece.
template <u32 kReader>
struct TiledHalves {
    static constexpr TileLayout kLayout = tile_layout(kReader);
    static constexpr u32 kPieces = kLayout.code_bytes / kPiece;
    struct Place {
        const u8 *codes, *extras;
    };
    static AKUNU_DEVICE Place place(const Weights& w, u32 row) {
        if (!in_tiles(kReader, w.cols)) {
            return {w.codes + u64(row) * w.cols * kLayout.code_bytes / kLayout.inputs,
                    w.extras + u64(row) * w.cols * kLayout.extra_bytes / kLayout.inputs};
        }
        const u8* tile = w.codes + row / kTileRows * tile_bytes(kReader, w.cols);
        return {tile + piece_at(row, 0), tile + extras_at(kLayout, row)};
    }
    // Piece i of the row, and the extras of the unit that has a group of 32 inputs.
    static AKUNU_DEVICE uint4 piece(u32 cols, const Place& p, u32 i) {
        const u32 in_tile = i / kPieces * kLayout.unit_bytes() + piece_at(0, i % kPieces);
        return load_weights16(p.codes + (in_tiles(kReader, cols) ? in_tile : i * kPiece));
    }
    static AKUNU_DEVICE const u8* extras(u32 cols, const Place& p, u32 group) {
        const u32 unit = group * 32 / kLayout.inputs;
        return p.extras + unit * (in_tiles(kReader, cols) ? kLayout.unit_bytes() : kLayout.extra_bytes);
    }
};

// The scale of a block of 32 that has nothing else.
template <u32 kReader>
struct ScaledHalves : TiledHalves<kReader> {
    using typename TiledHalves<kReader>::Place;
    static AKUNU_DEVICE const u8* scale_of_32(u32 cols, const Place& p, u32 group) {
        if (!in_tiles(kReader, cols)) return p.extras + group * 2;
        return TiledHalves<kReader>::extras(cols, p, group) + group % 4 * 2;
    }
};

// Pieces of a row, 16 bytes each.
template <u32 kPieces>
struct Pieces {
    uint4 q[kPieces];
    AKUNU_DEVICE u32 word(u32 i) const {
        const uint4& p = q[i / 4];
        return i % 4 == 0 ? p.x : i % 4 == 1 ? p.y : i % 4 == 2 ? p.z : p.w;
    }
};

template <>
struct Halves<Format<kReadQ4_0>> : ScaledHalves<kReadQ4_0> {
    struct Raw : Pieces<1> {
        u32 d;
    };
    static AKUNU_DEVICE Raw fetch(u32 cols, const Place& p, u32 group) {
        Raw r;
        r.q[0] = piece(cols, p, group);
        r.d = load_weights2(scale_of_32(cols, p, group));
        return r;
    }
    static AKUNU_DEVICE void convert(const Raw& r, u32, u32 (&h)[16]) {
        const u32 d = twice(r.d);
        AKUNU_UNROLL
        for (u32 i = 0; i < 8; ++i) {
            const u32 two = two_bytes(r.word(i / 2), i % 2);
            h[i] = multiply_halves(add_halves(low_nibbles(two), 0xE408E408u), d);       // - 1032
            h[8 + i] = multiply_halves(add_halves(high_nibbles(two), 0xD480D480u), d);  // - 72
        }
    }
};

template <>
struct Halves<Format<kReadQ5_0>> : TiledHalves<kReadQ5_0> {
    struct Raw : Pieces<1> {
        u32 d, tops;
    };
    static AKUNU_DEVICE Raw fetch(u32 cols, const Place& p, u32 group) {
        const u8* e = extras(cols, p, group) + group % 4 * 6;
        Raw r;
        r.q[0] = piece(cols, p, group);
        r.d = load_weights2(e), r.tops = load_u32_by_halves(e + 2);
        return r;
    }
    static AKUNU_DEVICE void convert(const Raw& r, u32, u32 (&h)[16]) {
        const u32 d = twice(r.d);
        AKUNU_UNROLL
        for (u32 i = 0; i < 8; ++i) {
            const u32 two = two_bytes(r.word(i / 2), i % 2), tops = two_bytes(r.tops >> i / 2, i % 2);
            const u32 low = low_nibbles(two) | fifth_bits(tops, 4), high = high_nibbles(two) | fifth_bits(tops >> 4, 8);
            h[i] = multiply_halves(add_halves(low, 0xE410E410u), d);       // - 1040
            h[8 + i] = multiply_halves(add_halves(high, 0xD500D500u), d);  // - 80
        }
    }
};

template <>
struct Halves<Format<kReadQ8_0>> : ScaledHalves<kReadQ8_0> {
    struct Raw : Pieces<2> {
        u32 d;
    };
    static AKUNU_DEVICE Raw fetch(u32 cols, const Place& p, u32 group) {
        Raw r;
        r.q[0] = piece(cols, p, 2 * group), r.q[1] = piece(cols, p, 2 * group + 1);
        r.d = load_weights2(scale_of_32(cols, p, group));
        return r;
    }
    static AKUNU_DEVICE void convert(const Raw& r, u32, u32 (&h)[16]) {
        const u32 d = twice(r.d);
        AKUNU_UNROLL
        for (u32 i = 0; i < 16; ++i) {
            const u32 two = two_bytes(r.word(i / 2) ^ 0x80808080u, i % 2, 0x64646464u);
            h[i] = multiply_halves(add_halves(two, 0xE480E480u), d);  // - 1152
        }
    }
};

template <>
struct Halves<Format<kReadQ4_K>> : TiledHalves<kReadQ4_K> {
    struct Raw : Pieces<2> {
        uint4 extras;
    };
    static AKUNU_DEVICE Raw fetch(u32 cols, const Place& p, u32 group) {
        Raw r;
        r.q[0] = piece(cols, p, group / 2 * 2), r.q[1] = piece(cols, p, group / 2 * 2 + 1);
        r.extras = load_weights16(extras(cols, p, group));
        return r;
    }
    static AKUNU_DEVICE void convert(const Raw& r, u32 group, u32 (&h)[16]) {
        const KScale s = k_scale(r.extras, group % 8);
        const u32 scale = twice(s.scale), offset = twice(s.offset), shift = 4 * (group % 2);
        AKUNU_UNROLL
        for (u32 i = 0; i < 16; ++i) {
            const u32 q = add_halves(low_nibbles(two_bytes(r.word(i / 2), i % 2) >> shift), 0xE400E400u);  // - 1024
            h[i] = multiply_add_halves(q, scale, offset);
        }
    }
};

template <>
struct Halves<Format<kReadQ6_K>> : TiledHalves<kReadQ6_K> {
    struct Raw : Pieces<2> {
        uint4 rest;
        u32 scales, d;
    };
    static AKUNU_DEVICE Raw fetch(u32 cols, const Place& p, u32 group) {
        const u32 j = group % 8, block = group / 8 * 12;  // see Format
        const u32 nibbles = block + j / 4 * 4 + j % 2 * 2;
        const u8* e = extras(cols, p, group);
        Raw r;
        r.q[0] = piece(cols, p, nibbles), r.q[1] = piece(cols, p, nibbles + 1);
        r.rest = piece(cols, p, block + 8 + j / 4 * 2 + j % 2);
        r.scales = load_weights2(e + 2 * j), r.d = load_weights2(e + 16);
        return r;
    }
    static AKUNU_DEVICE void convert(const Raw& r, u32 group, u32 (&h)[16]) {
        const SixBits bits(group % 8);
        const Pieces<1> rest{r.rest};
        const float d = half_to_float(u16(r.d));
        AKUNU_UNROLL
        for (u32 i = 0; i < 16; ++i) {
            const u32 code = bits.of(two_bytes(r.word(i / 2), i % 2), two_bytes(rest.word(i / 4), i % 2), i / 2 % 2);
            const u32 q = add_halves(code | kThousand, 0xE420E420u);  // - 1056
            h[i] = multiply_halves(q, twice(d * code_float((r.scales >> (i / 8 * 8) & 255) ^ 128, 128.0f)));
        }
    }
};

// Halves as they are, where rows have whole pieces.
template <u32 kReader>
struct FloatHalves : TiledHalves<kReader> {
    using typename TiledHalves<kReader>::Place;
    using Raw = Pieces<4>;
    static AKUNU_DEVICE Raw fetch(u32 cols, const Place& p, u32 group) {
        Raw r;
        if (cols % 32 == 0) {
            AKUNU_UNROLL
            for (u32 i = 0; i < 4; ++i) r.q[i] = TiledHalves<kReader>::piece(cols, p, 4 * group + i);
        } else {
            AKUNU_UNROLL
            for (u32 i = 0; i < 4; ++i) {
                r.q[i] = load_halves8(reinterpret_cast<const u16*>(p.codes), group * 32 + 8 * i, cols);
            }
        }
        return r;
    }
};
template <>
struct Halves<Format<kReadF16>> : FloatHalves<kReadF16> {
    static AKUNU_DEVICE void convert(const Raw& r, u32, u32 (&h)[16]) {
        AKUNU_UNROLL
        for (u32 i = 0; i < 16; ++i) h[i] = r.word(i);
    }
};
template <>
struct Halves<Format<kReadBf16>> : FloatHalves<kReadBf16> {
    static AKUNU_DEVICE void convert(const Raw& r, u32, u32 (&h)[16]) {
        AKUNU_UNROLL
        for (u32 i = 0; i < 16; ++i) {
            h[i] = pack_halves(bits_to_float(r.word(i) << 16), bits_to_float(r.word(i) & 0xFFFF0000u));
        }
    }
};

}  // namespace akunu::cuda

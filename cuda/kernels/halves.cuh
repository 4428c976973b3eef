// Weights as F16, for products of many rows: what is loaded of a group of 32, and its values two to a word.
//
// Of the types that lie in tiles codes become halves by their bits, and scales are F16; of others values are computed
// as F32 and rounded.
#pragma once

#include "block.cuh"
#include "formats.cuh"
#include "nibbles.cuh"

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

// What a block of 32 has besides its codes, as it lies; see BlockExtras.
struct BlockBits {
    u32 scale, fifth;
};
template <u32 kReader>
struct BlockHalves : TiledHalves<kReader> {
    using typename TiledHalves<kReader>::Place;
    static AKUNU_DEVICE BlockBits block_bits(u32 cols, const Place& p, u32 group) {
        constexpr BlockExtras kExtras = block_extras(kReader);
        const BlockPlaces at = in_tiles(kReader, cols)
                                   ? in_unit<kReader>(TiledHalves<kReader>::extras(cols, p, group), group)
                                   : in_plane<kReader>(p.extras + group * kExtras.bytes());
        return {kExtras.scale == 4 ? load_weights4(at.scale) : load_weights2(at.scale),
                kExtras.fifth ? load_u32_by_halves(at.fifth) : 0};
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

// A block's values: codes times d, and m more where the type has minima. Each is the same number twice.
template <u32 kReader>
AKUNU_DEVICE void nibble_values(const Pieces<1>& q, u32 fifth, u32 d, u32 m, u32 (&h)[16]) {
    const auto value = [&](u32 code) {
        return has_minima(kReader) ? multiply_add_halves(code, d, m) : multiply_halves(code, d);
    };
    AKUNU_UNROLL
    for (u32 w = 0; w < 4; ++w) {
        u32 low[2], high[2];
        nibble_halves<kReader, true>(q.word(w), fifth >> w, low, high);
        AKUNU_UNROLL
        for (u32 i = 0; i < 2; ++i) {
            h[2 * w + i] = value(low[i]);
            h[8 + 2 * w + i] = value(high[i]);
        }
    }
}

// Blocks of 32 nibbles.
template <u32 kReader>
struct NibbleHalves : BlockHalves<kReader> {
    using typename TiledHalves<kReader>::Place;
    struct Raw : Pieces<1> {
        BlockBits bits;
    };
    static AKUNU_DEVICE Raw fetch(u32 cols, const Place& p, u32 group) {
        Raw r;
        r.q[0] = TiledHalves<kReader>::piece(cols, p, group);
        r.bits = BlockHalves<kReader>::block_bits(cols, p, group);
        return r;
    }
    static AKUNU_DEVICE void convert(const Raw& r, u32, u32 (&h)[16]) {
        const u32 scale = r.bits.scale;
        nibble_values<kReader>(r, r.bits.fifth, twice(scale & 0xFFFF), twice(scale >> 16), h);
    }
};
template <>
struct Halves<Format<kReadQ4_0>> : NibbleHalves<kReadQ4_0> {};
template <>
struct Halves<Format<kReadQ4_1>> : NibbleHalves<kReadQ4_1> {};
template <>
struct Halves<Format<kReadQ5_0>> : NibbleHalves<kReadQ5_0> {};
template <>
struct Halves<Format<kReadQ5_1>> : NibbleHalves<kReadQ5_1> {};
template <>
struct Halves<Format<kReadIq4Nl>> : NibbleHalves<kReadIq4Nl> {};

// A step's scales of IQ4_XS lie in a word.
template <>
struct Halves<Format<kReadIq4Xs>> : TiledHalves<kReadIq4Xs> {
    struct Raw : Pieces<1> {
        uint2 extras;
    };
    static AKUNU_DEVICE Raw fetch(u32 cols, const Place& p, u32 group) {
        const u8* const e = extras(cols, p, group);
        Raw r;
        r.q[0] = piece(cols, p, group);
        r.extras = {load_weights4(e), load_weights4(e + 4)};
        return r;
    }
    static AKUNU_DEVICE void convert(const Raw& r, u32 group, u32 (&h)[16]) {
        nibble_values<kReadIq4Xs>(r, 0, twice(iq4_xs_scale(r.extras, group % 8)), 0, h);
    }
};

template <>
struct Halves<Format<kReadQ8_0>> : BlockHalves<kReadQ8_0> {
    struct Raw : Pieces<2> {
        u32 d;
    };
    static AKUNU_DEVICE Raw fetch(u32 cols, const Place& p, u32 group) {
        Raw r;
        r.q[0] = piece(cols, p, 2 * group), r.q[1] = piece(cols, p, 2 * group + 1);
        r.d = block_bits(cols, p, group).scale;
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

// Q4_K and Q5_K.
template <u32 kReader>
struct KHalves : TiledHalves<kReader> {
    using typename TiledHalves<kReader>::Place;
    static constexpr bool kFifth = kReader == kReadQ5_K;
    struct Raw : Pieces<2> {
        uint4 extras;
        u32 fifth[2];  // of a piece's two groups each
    };
    static AKUNU_DEVICE Raw fetch(u32 cols, const Place& p, u32 group) {
        using Base = TiledHalves<kReader>;
        const u8* const e = Base::extras(cols, p, group);
        Raw r;
        AKUNU_UNROLL
        for (u32 i = 0; i < 2; ++i) {
            const u32 number = group / 2 * 2 + i;
            r.q[i] = Base::piece(cols, p, number);
            r.fifth[i] = kFifth ? load_weights4(e + k_fifth_at(number % 8)) : 0;
        }
        r.extras = load_weights16(e);
        return r;
    }
    static AKUNU_DEVICE void convert(const Raw& r, u32 group, u32 (&h)[16]) {
        const KScale s = k_scale(r.extras, group % 8);
        const u32 scale = twice(s.scale), offset = twice(s.offset), shift = 4 * (group % 2);
        AKUNU_UNROLL
        for (u32 i = 0; i < 16; ++i) {
            u32 code = low_nibbles(two_bytes(r.word(i / 2), i % 2) >> shift);
            if constexpr (kFifth) code |= two_bytes(r.fifth[i / 8] >> i / 2 % 4 >> shift, i % 2) << 4 & 0x00100010u;
            h[i] = multiply_add_halves(add_halves(code, 0xE400E400u), scale, offset);  // - 1024
        }
    }
};
template <>
struct Halves<Format<kReadQ4_K>> : KHalves<kReadQ4_K> {};
template <>
struct Halves<Format<kReadQ5_K>> : KHalves<kReadQ5_K> {};

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

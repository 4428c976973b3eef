// 16 rows of weights times one row of inputs on the tensor cores, 128 inputs a step. Weights lie as tile_layout.h says,
// in shared memory. Lane 4g + t of a warp holds weights of rows g and g + 8.
//
// Codes are multiplied as bytes. An input is a whole number, of up to 127·256 for the largest of its step, and that is
// 256·high + low, a byte each. Column 2t of a product has the high bytes of what the lanes t hold, column 2t + 1 the
// low ones, and zeros elsewhere, so that a product's columns are sums of groups, ready for their scales. Sums are
// exact.
//
// Floats have no groups: inputs x·2^e are F16 numbers high + low·2^-11, columns 0 and 1 of all.
#pragma once

#include "block.cuh"
#include "formats.cuh"
#include "nibbles.cuh"
#include "tile_layout.h"

namespace akunu::cuda {

// By an offset in shared memory, so that the compiler knows that it is one.
template <typename V>
AKUNU_DEVICE V& shared_at(u32 offset) {
    return *reinterpret_cast<V*>(shared_memory() + offset);
}

// What a lane has of a step's inputs.
template <u32 kPieces>
struct StepInputs {
    uint4 x[kPieces];
    float factor;  // of a whole number, or of the first part
    u32 sums;      // of 16 whole numbers each; where in shared memory
    u32 t;
};

// What stands at an offset in shared memory, or at an address in the device's memory that no command writes.
template <typename V>
AKUNU_DEVICE V weights_at(u32 at) {
    return shared_at<const V>(at);
}
template <typename V>
AKUNU_DEVICE V weights_at(const u8* at) {
    if constexpr (sizeof(V) == 16) {
        return load_weights16(at);
    } else if constexpr (sizeof(V) == 8) {
        return {load_weights4(at), load_weights4(at + 4)};
    } else if constexpr (sizeof(V) == 4) {
        return load_weights4(at);
    } else if constexpr (sizeof(V) == 2) {
        return load_weights2(at);
    } else {
        return load_weights1(at);
    }
}

// Of a unit at `unit`: this lane's piece of a quad, in row g + 8·upper; and where that row's extras are.
template <typename At>
AKUNU_DEVICE uint4 lane_piece(At unit, u32 quad, u32 lane, u32 upper) {
    return weights_at<uint4>(unit + quad * (kTileRows * 64) + upper * 512 + lane * 16);
}
AKUNU_DEVICE uint4 lane_float_piece(u32 unit, u32 quad, u32 lane, u32 upper) {
    return shared_at<const uint4>(unit + float_piece_at(lane / 4 + 8 * upper, quad * 4 + lane % 4));
}
template <u32 kReader, typename At>
AKUNU_DEVICE At lane_extras(At unit, u32 lane, u32 upper) {
    return unit + extras_at(tile_layout(kReader), lane / 4 + 8 * upper);
}

// Of the readers that have tiles: load(unit, in_unit, lane, upper, part) takes what a lane needs of a row for one of
// the unit's steps, and multiply adds its share of both rows' sums. Inputs of a step lie in kStepBytes: this lane's
// first piece at lane_at, the next ones kApart behind one another.
template <u32 kReader>
struct Fragments;

// The least and the greatest input are -127·256 and 127·256.
constexpr float kMostCode = 127.0f * 256.0f;
// Added to a float, this leaves the number's bytes in the lowest two of its bits', each with its sign inverted.
constexpr float kCodeMagic = 0x1.8p23f + 0x8080;

// The largest of a step's inputs is found by their bits, of which NaN's are the largest.
AKUNU_DEVICE u32 largest_bits(const float (&x)[4]) {
    u32 top = 0;
    AKUNU_UNROLL
    for (u32 e = 0; e < 4; ++e) top = larger(top, float_to_bits(fabsf(x[e])));
    return top;
}
// Four inputs of a step whose largest has the bits `top`, as whole numbers: their high and low bytes, each signed,
// their sum, as a float and as a signed number, and what a whole number counts.
struct InputCodes {
    u32 high, low, total;
    float sum, factor;

    AKUNU_DEVICE InputCodes(const float (&x)[4], u32 top) {
        const float most = fmaxf(bits_to_float(top), 0x1p-100f), scale = kMostCode * reciprocal(most);
        float v[4];
        AKUNU_UNROLL
        for (u32 e = 0; e < 4; ++e) v[e] = x[e] * scale + kCodeMagic;
        total = float_to_bits(v[0]) + float_to_bits(v[1]) + float_to_bits(v[2]) + float_to_bits(v[3]) -
                4 * float_to_bits(kCodeMagic);
        sum = (v[0] - kCodeMagic) + (v[1] - kCodeMagic) + ((v[2] - kCodeMagic) + (v[3] - kCodeMagic));
        constexpr u32 kTwo = 0x5140u, kLow = 0x5410u, kHigh = 0x7632u, kSigns = 0x80808080u;
        const u32 first = choose_bytes(float_to_bits(v[0]), float_to_bits(v[1]), kTwo);
        const u32 second = choose_bytes(float_to_bits(v[2]), float_to_bits(v[3]), kTwo);
        high = choose_bytes(first, second, kHigh) ^ kSigns;
        low = choose_bytes(first, second, kLow) ^ kSigns;
        factor = bits_to_float(top) * (1.0f / kMostCode);
    }
};

struct CodeFragments {
    static constexpr bool kFloats = false;
    static constexpr u32 kParts = 1, kPieces = 2, kStepBytes = 2 * kStepInputs;
    static AKUNU_DEVICE bool owns(u32 g, u32 t) { return g / 2 == t; }
    static AKUNU_DEVICE u32 part(u32) { return 0; }
    // Inputs are [group of 32][high, low][32].
    static AKUNU_DEVICE u32 group_at(u32 g, u32 group, u32 input) { return group * 64 + g % 2 * 32 + input; }
};

// Of a row, 0 or 1.
AKUNU_DEVICE int whole_number(const int (&product)[4], u32 r) { return product[2 * r] * 256 + product[2 * r + 1]; }
AKUNU_DEVICE float whole(const int (&product)[4], u32 r) { return float(whole_number(product, r)); }

// Two rows' pieces, of signed bytes or unsigned ones. Pairs of words of inputs lie side by side, as products want them.
AKUNU_DEVICE void multiply_piece(int (&product)[4], const u32 (&a)[4], const u32 (&b)[4], const uint4& x) {
    mma_s8(product, {a[0], b[0], a[1], b[1]}, {x.x, x.y});
    mma_s8(product, {a[2], b[2], a[3], b[3]}, {x.z, x.w});
}
AKUNU_DEVICE void multiply_unsigned(int (&product)[4], const u32 (&a)[4], const u32 (&b)[4], const uint4& x) {
    mma_u8_s8(product, {a[0], b[0], a[1], b[1]}, {x.x, x.y});
    mma_u8_s8(product, {a[2], b[2], a[3], b[3]}, {x.z, x.w});
}

// Whether sums of a row's inputs are staged for weights of a type, because a type that is loaded may stand beside it.
constexpr bool is_staged_with_sums(u32 reader) {
#define X(other) || stages_sums(reader, other)
    return has_minima(reader) AKUNU_READERS;
#undef X
}

// What a block of nibbles counts, one of its unit's, loaded from the extras of its tile's row.
template <u32 kReader>
struct NibbleScale {
    u32 bits;
    template <typename At>
    AKUNU_DEVICE void load(At extras, u32 block) {
        constexpr BlockExtras kExtras = block_extras(kReader);
        const At at = extras + kExtras.scale_at(block);
        if constexpr (kExtras.scale == 4) {
            bits = weights_at<u32>(at);
        } else if constexpr (kExtras.scale == 2) {
            bits = weights_at<u16>(at);
        } else {
            bits = weights_at<u8>(at);
        }
    }
    AKUNU_DEVICE float scale(u32) const { return kReader == kReadMxfp4 ? e8m0_half(bits) : half_to_float(u16(bits)); }
    AKUNU_DEVICE float minimum() const { return half_to_float(u16(bits >> 16)); }
};
template <>
struct NibbleScale<kReadIq4Xs> {
    uint2 words;
    template <typename At>
    AKUNU_DEVICE void load(At extras, u32) {
        words = weights_at<uint2>(extras);
    }
    AKUNU_DEVICE float scale(u32 block) const { return iq4_xs_scale(words, block); }
};

// Blocks of 32 nibbles: a lane has one of its rows' blocks of a step.
template <u32 kReader>
struct NibbleFragments : CodeFragments {
    using N = Nibbles<kReader>;
    static constexpr bool kSums = is_staged_with_sums(kReader);
    static constexpr u32 kApart = 16;
    struct Loaded {
        uint4 q;
        u32 fifth, block;
        NibbleScale<kReader> scale;
    };
    static AKUNU_DEVICE u32 lane_at(u32 g, u32 t) { return group_at(g, t, 0); }
    template <typename At>
    static AKUNU_DEVICE void load(At unit, u32 in_unit, u32 lane, u32 upper, Loaded& p) {
        const At extras = lane_extras<kReader>(unit, lane, upper);
        p.block = in_unit * 4 + lane % 4;
        p.q = lane_piece(unit, in_unit, lane, upper);
        p.fifth = 0;
        if constexpr (N::kFifth) p.fifth = weights_at<u32>(extras + lane % 4 * 4);
        p.scale.load(extras, p.block);
    }
    static AKUNU_DEVICE void multiply(const Loaded (&p)[2], const StepInputs<2>& in, float (&sum)[2]) {
        u32 low[2][4], high[2][4];  // of both rows
        AKUNU_UNROLL
        for (u32 r = 0; r < 2; ++r) {
            const u32 words[4] = {p[r].q.x, p[r].q.y, p[r].q.z, p[r].q.w};
            AKUNU_UNROLL
            for (u32 i = 0; i < 4; ++i) N::bytes(words[i], p[r].fifth >> i, low[r][i], high[r][i]);
        }
        int product[2][4] = {};  // two chains
        if constexpr (N::kSigned) {
            multiply_piece(product[0], low[0], low[1], in.x[0]);
            multiply_piece(product[1], high[0], high[1], in.x[1]);
        } else {
            multiply_unsigned(product[0], low[0], low[1], in.x[0]);
            multiply_unsigned(product[1], high[0], high[1], in.x[1]);
        }
        AKUNU_UNROLL
        for (u32 r = 0; r < 2; ++r) {
            const float v = whole(product[0], r) + whole(product[1], r);
            sum[r] += v * (p[r].scale.scale(p[r].block) * (in.factor * N::kUnit));
            if constexpr (has_minima(kReader)) {
                const float2 halves = shared_at<float2>(in.sums + in.t * 8);
                sum[r] += p[r].scale.minimum() * (in.factor * (halves.x + halves.y));
            }
        }
    }
};
template <>
struct Fragments<kReadQ4_0> : NibbleFragments<kReadQ4_0> {};
template <>
struct Fragments<kReadQ4_1> : NibbleFragments<kReadQ4_1> {};
template <>
struct Fragments<kReadQ5_0> : NibbleFragments<kReadQ5_0> {};
template <>
struct Fragments<kReadQ5_1> : NibbleFragments<kReadQ5_1> {};
template <>
struct Fragments<kReadIq4Nl> : NibbleFragments<kReadIq4Nl> {};
template <>
struct Fragments<kReadIq4Xs> : NibbleFragments<kReadIq4Xs> {};
template <>
struct Fragments<kReadMxfp4> : NibbleFragments<kReadMxfp4> {};

template <>
struct Fragments<kReadQ8_0> : CodeFragments {
    static constexpr bool kSums = false;
    static constexpr u32 kApart = 128;
    struct Loaded {
        uint4 q[2];
        u16 d[2];
    };
    static AKUNU_DEVICE u32 lane_at(u32 g, u32 t) { return group_at(g, t / 2, t % 2 * 16); }
    template <typename At>
    static AKUNU_DEVICE void load(At unit, u32, u32 lane, u32 upper, Loaded& p) {
        const At extras = lane_extras<kReadQ8_0>(unit, lane, upper) + lane % 4 / 2 * 2;
        AKUNU_UNROLL
        for (u32 i = 0; i < 2; ++i) {
            p.q[i] = lane_piece(unit, i, lane, upper);
            p.d[i] = weights_at<u16>(extras + i * 4);
        }
    }
    static AKUNU_DEVICE void multiply(const Loaded (&p)[2], const StepInputs<2>& in, float (&sum)[2]) {
        int product[2][4] = {};
        AKUNU_UNROLL
        for (u32 i = 0; i < 2; ++i) {
            const uint4 &a = p[0].q[i], &b = p[1].q[i];
            multiply_piece(product[i], {a.x, a.y, a.z, a.w}, {b.x, b.y, b.z, b.w}, in.x[i]);
        }
        AKUNU_UNROLL
        for (u32 r = 0; r < 2; ++r) {
            sum[r] += in.factor * (whole(product[0], r) * half_to_float(p[r].d[0]) +
                                   whole(product[1], r) * half_to_float(p[r].d[1]));
        }
    }
};

// Q4_K and Q5_K: a lane has half of two groups.
template <u32 kReader>
struct KFragments : CodeFragments {
    static constexpr bool kSums = true, kFifth = kReader == kReadQ5_K;
    static constexpr u32 kApart = 64;
    struct Loaded {
        uint4 q;
        u32 fifth;
        u32 groups;  // the two groups' scales and minima
        KFactors factors;
    };
    static AKUNU_DEVICE u32 lane_at(u32 g, u32 t) { return group_at(g, t / 2 * 2, t % 2 * 16); }
    template <typename At>
    static AKUNU_DEVICE void load(At unit, u32 in_unit, u32 lane, u32 upper, Loaded& p) {
        const At extras = lane_extras<kReader>(unit, lane, upper);
        p.q = lane_piece(unit, in_unit, lane, upper);
        p.fifth = 0;
        if constexpr (kFifth) p.fifth = weights_at<u32>(extras + k_fifth_at(in_unit * 4 + lane % 4));
        p.groups = weights_at<u32>(extras + in_unit * 8 + lane % 4 / 2 * 4);
        p.factors = k_factors(weights_at<uint4>(extras));
    }
    static AKUNU_DEVICE void multiply(const Loaded (&p)[2], const StepInputs<2>& in, float (&sum)[2]) {
        u32 low[2][4], high[2][4];  // of both rows
        AKUNU_UNROLL
        for (u32 r = 0; r < 2; ++r) {
            const u32 words[4] = {p[r].q.x, p[r].q.y, p[r].q.z, p[r].q.w};
            AKUNU_UNROLL
            for (u32 i = 0; i < 4; ++i) k_bytes<kReader>(words[i], p[r].fifth >> i, low[r][i], high[r][i]);
        }
        int product[2][4] = {};
        multiply_unsigned(product[0], low[0], low[1], in.x[0]);
        multiply_unsigned(product[1], high[0], high[1], in.x[1]);
        // A lane has half of two groups' products, and all of one group's minimum.
        const float2 halves = shared_at<float2>(in.sums + in.t * 8);
        const float inputs = in.factor * (halves.x + halves.y);
        AKUNU_UNROLL
        for (u32 r = 0; r < 2; ++r) {
            const u32 groups = p[r].groups;
            // Below 2^31: 16 inputs of 127·256 times codes of 31 and scales of 63, twice.
            const int scaled = whole_number(product[0], r) * int(k_scale_of(groups, 0)) +
                               (whole_number(product[1], r) >> (kFifth ? 0 : 4)) * int(k_scale_of(groups, 1));
            sum[r] += p[r].factors.scale * in.factor * float(scaled);
            sum[r] -= p[r].factors.min * code_float(k_min_of(groups, in.t % 2), 0.0f) * inputs;
        }
    }
};
template <>
struct Fragments<kReadQ4_K> : KFragments<kReadQ4_K> {};
template <>
struct Fragments<kReadQ5_K> : KFragments<kReadQ5_K> {};

// Codes of six bits as signed bytes, four times what they are above 32: the first 64's of a step, and the last 64's.
// See tile_layout.h.
AKUNU_DEVICE u32 first_six_bits(u32 nibbles, u32 rest) {
    return masked_xor(nibbles << 2, 0x3C3C3C3Cu, masked_xor(rest, 0xC0C0C0C0u, 0x80808080u));
}
AKUNU_DEVICE u32 last_six_bits(u32 nibbles, u32 rest) {
    return masked_xor(nibbles, 0xF0F0F0F0u, masked_xor(rest, 0x0C0C0C0Cu, 0x80808080u));
}

template <>
struct Fragments<kReadQ6_K> : CodeFragments {
    static constexpr bool kSums = false;
    static constexpr u32 kApart = 128;
    struct Loaded {
        uint4 q;
        uint2 rest;
        u8 scales[2];
        u16 d;
    };
    static AKUNU_DEVICE u32 lane_at(u32 g, u32 t) { return group_at(g, t / 2, t % 2 * 16); }
    template <typename At>
    static AKUNU_DEVICE void load(At unit, u32 in_unit, u32 lane, u32 upper, Loaded& p) {
        p.q = lane_piece(unit, in_unit, lane, upper);
        p.rest =
            weights_at<uint2>(unit + piece_at(lane / 4 + 8 * upper, 8 + in_unit * 2 + lane % 4 / 2) + lane % 2 * 8);
        const At extras = lane_extras<kReadQ6_K>(unit, lane, upper), scales = extras + in_unit * 8 + lane % 4;
        p.scales[0] = weights_at<u8>(scales);
        p.scales[1] = weights_at<u8>(scales + 4);
        p.d = weights_at<u16>(extras + 16);
    }
    static AKUNU_DEVICE void multiply(const Loaded (&p)[2], const StepInputs<2>& in, float (&sum)[2]) {
        u32 low[2][4], high[2][4];  // of both rows
        AKUNU_UNROLL
        for (u32 r = 0; r < 2; ++r) {
            const u32 q[4] = {p[r].q.x, p[r].q.y, p[r].q.z, p[r].q.w};
            const u32 rest[4] = {p[r].rest.x, p[r].rest.x << 2, p[r].rest.y, p[r].rest.y << 2};
            AKUNU_UNROLL
            for (u32 e = 0; e < 4; ++e) {
                low[r][e] = first_six_bits(q[e], rest[e]);
                high[r][e] = last_six_bits(q[e], rest[e]);
            }
        }
        int product[2][4] = {};
        multiply_piece(product[0], low[0], low[1], in.x[0]);
        multiply_piece(product[1], high[0], high[1], in.x[1]);
        AKUNU_UNROLL
        for (u32 r = 0; r < 2; ++r) {
            const auto scale = [](u32 bits) { return code_float(bits ^ 128, 128.0f); };
            const float v = whole(product[0], r) * scale(p[r].scales[0]) + whole(product[1], r) * scale(p[r].scales[1]);
            sum[r] += v * (half_to_float(p[r].d) * (in.factor * 0.25f));
        }
    }
};

// Halves, eight to 16 bytes.
constexpr float kPartShift = 0x1p11f;  // from a part of the inputs to the next
struct FloatFragments {
    static constexpr bool kFloats = true, kSums = false;
    static constexpr u32 kParts = 2, kPieces = 4, kStepBytes = 2 * kStepInputs, kApart = 64;
    struct Loaded {
        uint4 q[4];
    };
    static AKUNU_DEVICE bool owns(u32 g, u32) { return g < kParts; }
    static AKUNU_DEVICE u32 part(u32 g) { return g; }
    static AKUNU_DEVICE u32 lane_at(u32, u32 t) { return 16 * t; }
    static AKUNU_DEVICE void load(u32 unit, u32, u32 lane, u32 upper, Loaded& p) {
        AKUNU_UNROLL
        for (u32 i = 0; i < 4; ++i) p.q[i] = lane_float_piece(unit, i, lane, upper);
    }
    static AKUNU_DEVICE void multiply(const Loaded (&p)[2], const StepInputs<4>& in, float (&sum)[2]) {
        const float used = in.t == 0 ? in.factor : 0.0f;  // of the lane's two columns
        float product[2][4] = {};                         // two chains
        AKUNU_UNROLL
        for (u32 i = 0; i < 4; ++i) {
            const uint4 &a = p[0].q[i], &b = p[1].q[i];
            mma_f16(product[0], {a.x, b.x, a.y, b.y}, {in.x[i].x, in.x[i].y});
            mma_f16(product[1], {a.z, b.z, a.w, b.w}, {in.x[i].z, in.x[i].w});
        }
        AKUNU_UNROLL
        for (u32 r = 0; r < 2; ++r) {
            sum[r] += used * ((product[0][2 * r] + product[1][2 * r]) +
                              (product[0][2 * r + 1] + product[1][2 * r + 1]) * (1.0f / kPartShift));
        }
    }
};
template <>
struct Fragments<kReadF16> : FloatFragments {};
template <>
struct Fragments<kReadBf16> : FloatFragments {};

}  // namespace akunu::cuda

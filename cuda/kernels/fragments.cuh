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
    u32 step, t;
};

// Of a unit at `unit`: this lane's piece of a quad, in row g + 8·upper; and where that row's extras are.
AKUNU_DEVICE uint4 lane_piece(u32 unit, u32 quad, u32 lane, u32 upper) {
    return shared_at<const uint4>(unit + quad * (kTileRows * 64) + upper * 512 + lane * 16);
}
AKUNU_DEVICE uint4 lane_float_piece(u32 unit, u32 quad, u32 lane, u32 upper) {
    return shared_at<const uint4>(unit + float_piece_at(lane / 4 + 8 * upper, quad * 4 + lane % 4));
}
template <u32 kReader>
AKUNU_DEVICE u32 lane_extras(u32 unit, u32 lane, u32 upper) {
    return unit + extras_at(tile_layout(kReader), lane / 4 + 8 * upper);
}

// Of the readers that have tiles: load(unit, step, lane, upper, part) takes what a lane needs of a row for a step, and
// multiply adds its share of both rows' sums. Inputs of a step lie in kStepBytes: this lane's first piece at lane_at,
// the next ones kApart behind one another.
template <u32 kReader>
struct Fragments;

// The least and the greatest input are -127·256 and 127·256.
constexpr float kMostCode = 127.0f * 256.0f;
// Added to a float, this leaves the number's bytes in the lowest two of its bits', each with its sign inverted.
constexpr float kCodeMagic = 0x1.8p23f + 0x8080;

struct CodeFragments {
    static constexpr bool kFloats = false;
    static constexpr u32 kParts = 1, kPieces = 2, kStepBytes = 2 * kStepInputs;
    static AKUNU_DEVICE bool takes(u32 g, u32 t) { return g / 2 == t; }
    static AKUNU_DEVICE u32 part(u32) { return 0; }
    // Inputs are [group of 32][high, low][32].
    static AKUNU_DEVICE u32 group_at(u32 g, u32 group, u32 input) { return group * 64 + g % 2 * 32 + input; }
};

// Bytes of two rows times two words of inputs.
AKUNU_DEVICE void multiply_bytes(int (&product)[4], u32 a, u32 b, u32 a_next, u32 b_next, u32 x, u32 x_next) {
    mma_s8(product, {a, b, a_next, b_next}, {x, x_next});
}
// Of a row, 0 or 1.
AKUNU_DEVICE float whole(const int (&product)[4], u32 r) { return float(product[2 * r] * 256 + product[2 * r + 1]); }

// Nibbles as signed bytes, 16 times what they are above 8.
AKUNU_DEVICE u32 signed_nibbles(u32 w) { return masked_xor(w, 0xF0F0F0F0u, 0x80808080u); }

// Words 2i and 2i + 1 of two rows' pieces. Pairs of words of inputs lie side by side, as products want them.
AKUNU_DEVICE void multiply_piece(int (&product)[4], const u32 (&a)[4], const u32 (&b)[4], const uint4& x) {
    multiply_bytes(product, a[0], b[0], a[1], b[1], x.x, x.y);
    multiply_bytes(product, a[2], b[2], a[3], b[3], x.z, x.w);
}

template <>
struct Fragments<kReadQ4_0> : CodeFragments {
    static constexpr bool kSums = false;
    static constexpr u32 kApart = 16;
    struct Part {
        uint4 q;
        u16 d;
    };
    static AKUNU_DEVICE u32 lane_at(u32 g, u32 t) { return group_at(g, t, 0); }
    static AKUNU_DEVICE void load(u32 unit, u32, u32 lane, u32 upper, Part& p) {
        p.q = lane_piece(unit, 0, lane, upper);
        p.d = shared_at<const u16>(lane_extras<kReadQ4_0>(unit, lane, upper) + lane % 4 * 2);
    }
    static AKUNU_DEVICE void multiply(const Part (&p)[2], const StepInputs<2>& in, float (&sum)[2]) {
        const u32 wa[4] = {p[0].q.x, p[0].q.y, p[0].q.z, p[0].q.w}, wb[4] = {p[1].q.x, p[1].q.y, p[1].q.z, p[1].q.w};
        u32 a[2][4], b[2][4];  // of the low nibbles, and of the high ones
        AKUNU_UNROLL
        for (u32 i = 0; i < 4; ++i) {
            a[0][i] = signed_nibbles(wa[i] << 4);
            b[0][i] = signed_nibbles(wb[i] << 4);
            a[1][i] = signed_nibbles(wa[i]);
            b[1][i] = signed_nibbles(wb[i]);
        }
        int product[2][4] = {};  // two chains
        AKUNU_UNROLL
        for (u32 i = 0; i < 2; ++i) multiply_piece(product[i], a[i], b[i], in.x[i]);
        AKUNU_UNROLL
        for (u32 r = 0; r < 2; ++r) {
            const float v = whole(product[0], r) + whole(product[1], r);
            sum[r] += v * (half_to_float(p[r].d) * (in.factor * 0.0625f));
        }
    }
};

template <>
struct Fragments<kReadQ8_0> : CodeFragments {
    static constexpr bool kSums = false;
    static constexpr u32 kApart = 128;
    struct Part {
        uint4 q[2];
        u16 d[2];
    };
    static AKUNU_DEVICE u32 lane_at(u32 g, u32 t) { return group_at(g, t / 2, t % 2 * 16); }
    static AKUNU_DEVICE void load(u32 unit, u32, u32 lane, u32 upper, Part& p) {
        const u32 extras = lane_extras<kReadQ8_0>(unit, lane, upper) + lane % 4 / 2 * 2;
        AKUNU_UNROLL
        for (u32 i = 0; i < 2; ++i) {
            p.q[i] = lane_piece(unit, i, lane, upper);
            p.d[i] = shared_at<const u16>(extras + i * 4);
        }
    }
    static AKUNU_DEVICE void multiply(const Part (&p)[2], const StepInputs<2>& in, float (&sum)[2]) {
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

template <>
struct Fragments<kReadQ4_K> : CodeFragments {
    static constexpr bool kSums = true;
    static constexpr u32 kApart = 64;
    struct Part {
        uint4 q, extras;
    };
    static AKUNU_DEVICE u32 lane_at(u32 g, u32 t) { return group_at(g, t / 2 * 2, t % 2 * 16); }
    static AKUNU_DEVICE void load(u32 unit, u32 step, u32 lane, u32 upper, Part& p) {
        p.q = lane_piece(unit, step % 2, lane, upper);
        p.extras = shared_at<const uint4>(lane_extras<kReadQ4_K>(unit, lane, upper));
    }
    static AKUNU_DEVICE void multiply(const Part (&p)[2], const StepInputs<2>& in, float (&sum)[2]) {
        const u32 wa[4] = {p[0].q.x, p[0].q.y, p[0].q.z, p[0].q.w}, wb[4] = {p[1].q.x, p[1].q.y, p[1].q.z, p[1].q.w};
        u32 a[2][4], b[2][4];  // of the low nibbles, and of the high ones
        AKUNU_UNROLL
        for (u32 i = 0; i < 4; ++i) {
            constexpr u32 kLow = 0x0F0F0F0Fu;
            a[0][i] = wa[i] & kLow;
            b[0][i] = wb[i] & kLow;
            a[1][i] = wa[i] >> 4 & kLow;
            b[1][i] = wb[i] >> 4 & kLow;
        }
        int product[2][4] = {};
        AKUNU_UNROLL
        for (u32 i = 0; i < 2; ++i) multiply_piece(product[i], a[i], b[i], in.x[i]);
        const u32 t = in.t, runs = in.sums + (t / 2 * 4 + t % 2) * 4;
        const float inputs[2] = {shared_at<float>(runs), shared_at<float>(runs + 8)};
        AKUNU_UNROLL
        for (u32 r = 0; r < 2; ++r) {
            // Four groups' scales and minima in a word each, of six bits.
            const uint4& e = p[r].extras;
            constexpr u32 kAll = 0x3F3F3F3Fu, kLow = 0x0F0F0F0Fu, kTop = 0x30303030u;
            const bool upper = in.step % 2 != 0;
            const u32 scales = upper ? (e.w & kLow) | (e.y >> 2 & kTop) : e.y & kAll;
            const u32 minima = upper ? (e.w >> 4 & kLow) | (e.z >> 2 & kTop) : e.z & kAll;
            const u32 sc = scales >> t / 2 * 16, m = minima >> t / 2 * 16;
            const float scaled = whole(product[0], r) * code_float(sc & 63, 0.0f) +
                                 whole(product[1], r) * code_float(sc >> 8 & 63, 0.0f);
            const float offset = inputs[0] * code_float(m & 63, 0.0f) + inputs[1] * code_float(m >> 8 & 63, 0.0f);
            sum[r] += in.factor * (half_to_float(u16(e.x)) * scaled - half_to_float(u16(e.x >> 16)) * offset);
        }
    }
};

template <>
struct Fragments<kReadQ6_K> : CodeFragments {
    static constexpr bool kSums = false;
    static constexpr u32 kApart = 128;
    struct Part {
        uint4 q, top;
        u8 scales[2];
        u16 d;
    };
    static AKUNU_DEVICE u32 lane_at(u32 g, u32 t) { return group_at(g, t / 2, t % 2 * 16); }
    static AKUNU_DEVICE void load(u32 unit, u32 step, u32 lane, u32 upper, Part& p) {
        p.q = lane_piece(unit, step % 2, lane, upper);
        p.top = shared_at<const uint4>(unit + piece_at(lane / 4 + 8 * upper, 8 + step % 2 * 2 + lane % 2));
        const u32 extras = lane_extras<kReadQ6_K>(unit, lane, upper), scales = extras + step % 2 * 8 + lane % 4;
        p.scales[0] = shared_at<const u8>(scales);
        p.scales[1] = shared_at<const u8>(scales + 4);
        p.d = shared_at<const u16>(extras + 16);
    }
    static AKUNU_DEVICE void multiply(const Part (&p)[2], const StepInputs<2>& in, float (&sum)[2]) {
        // The low nibbles' upper bits are 0 and 1, or 2 and 3; the high ones' 4 more. A code of six bits becomes a
        // signed byte, four times what it is above 32.
        const u32 down = in.t / 2 * 2;
        const auto codes = [](u32 nibbles, u32 top) {
            return (nibbles & 0x3C3C3C3Cu) | masked_xor(top, 0xC0C0C0C0u, 0x80808080u);
        };
        int product[2][4] = {};  // of low nibbles, and of high ones
        AKUNU_UNROLL
        for (u32 i = 0; i < 2; ++i) {
            u32 w[2][4];  // of both rows
            AKUNU_UNROLL
            for (u32 r = 0; r < 2; ++r) {
                const u32 q[4] = {p[r].q.x, p[r].q.y, p[r].q.z, p[r].q.w};
                const u32 top[4] = {p[r].top.x, p[r].top.y, p[r].top.z, p[r].top.w};
                AKUNU_UNROLL
                for (u32 e = 0; e < 4; ++e) {
                    const u32 h = top[e] >> down;
                    w[r][e] = i == 0 ? codes(q[e] << 2, h << 6) : codes(q[e] >> 2, h << 2);
                }
            }
            multiply_piece(product[i], w[0], w[1], in.x[i]);
        }
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
    struct Part {
        uint4 q[4];
    };
    static AKUNU_DEVICE bool takes(u32 g, u32) { return g < kParts; }
    static AKUNU_DEVICE u32 part(u32 g) { return g; }
    static AKUNU_DEVICE u32 lane_at(u32, u32 t) { return 16 * t; }
    static AKUNU_DEVICE void load(u32 unit, u32, u32 lane, u32 upper, Part& p) {
        AKUNU_UNROLL
        for (u32 i = 0; i < 4; ++i) p.q[i] = lane_float_piece(unit, i, lane, upper);
    }
    static AKUNU_DEVICE void multiply(const Part (&p)[2], const StepInputs<4>& in, float (&sum)[2]) {
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

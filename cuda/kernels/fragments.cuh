// 16 rows of weights times one row of inputs on the tensor cores, 128 inputs a step. Weights lie as tile_layout.h says,
// in shared memory.
//
// Lane 4g + t of a warp holds weights of rows g and g + 8. A code q becomes an F16 number by one mask: q·2^-24, a
// subnormal. Inputs x·2^e = high + low·2^-11 stand in columns of their own: of codes, column t has the high parts of
// what the lanes t hold, column t + 4 the low ones, and zeros elsewhere, so that a product's columns are sums of
// groups, ready for their scales. Floats have no groups: column i is the i-th part of all.
#pragma once

#include "block.cuh"
#include "formats.cuh"
#include "tile_layout.h"

namespace akunu::cuda {

constexpr float kPartShift = 0x1p11f;  // from a part of the inputs to the next

// What a lane has of a step's inputs.
struct StepInputs {
    u32 x[16];
    u32 sums;  // of 16 inputs each, times 2^e; where in shared memory
    u32 step, t;
    float factor;         // 2^-e
    float first, second;  // what the product's columns count that the lane holds: see first() and second()

    // Of the four runs of 16 that belong to this lane's columns; once, with the high parts.
    AKUNU_DEVICE float4 run_sums() const {
        return *reinterpret_cast<const float4*>(shared_memory() + sums + t % 2 * 16);
    }
};

// By an offset in shared memory, so that the compiler knows that it is one.
template <typename V>
AKUNU_DEVICE V& shared_at(u32 offset) {
    return *reinterpret_cast<V*>(shared_memory() + offset);
}

// Of a unit at `unit`: this lane's piece of a quad, in row g + 8·upper; and where that row's extras are.
AKUNU_DEVICE uint4 lane_piece(u32 unit, u32 quad, u32 lane, u32 upper) {
    return shared_at<const uint4>(unit + quad * (kTileRows * 64) + upper * 512 + lane * 16);
}
template <u32 kReader>
AKUNU_DEVICE u32 lane_extras(u32 unit, u32 lane, u32 upper) {
    return unit + extras_at(tile_layout(kReader), lane / 4 + 8 * upper);
}

// Of the readers that have tiles: load(unit, step, lane, upper, part) takes what a lane needs of a row for a step.
template <u32 kReader>
struct Fragments;

struct CodeFragments {
    static constexpr bool kFloats = false, kBf16 = false;
    static constexpr u32 kParts = 2;
    static AKUNU_DEVICE bool takes(u32 g, u32 t) { return g % 4 == t; }
    static AKUNU_DEVICE u32 part(u32 g) { return g / 4; }
    // Of a code, and whether the column counts sums.
    static AKUNU_DEVICE float first(u32 t) { return t < 2 ? 0x1p24f : 0x1p24f / kPartShift; }
    static AKUNU_DEVICE float second(u32 t) { return t < 2 ? 1.0f : 0.0f; }
};

// 32 codes of each row, the low nibbles' products and 16 times the high ones'.
AKUNU_DEVICE void multiply_nibbles(const uint4& a, const uint4& b, const u32 (&x)[16], float (&low)[4],
                                   float (&high)[4]) {
    const u32 wa[4] = {a.x, a.y, a.z, a.w}, wb[4] = {b.x, b.y, b.z, b.w};
    AKUNU_UNROLL
    for (u32 i = 0; i < 4; ++i) {
        const u32 ua = wa[i] >> 8, ub = wb[i] >> 8;
        constexpr u32 kLow = 0x000F000Fu, kHigh = 0x00F000F0u;
        mma_f16(low, {wa[i] & kLow, wb[i] & kLow, ua & kLow, ub & kLow}, {x[2 * i], x[2 * i + 1]});
        mma_f16(high, {wa[i] & kHigh, wb[i] & kHigh, ua & kHigh, ub & kHigh}, {x[8 + 2 * i], x[9 + 2 * i]});
    }
}

template <>
struct Fragments<kReadQ4_0> : CodeFragments {
    struct Part {
        uint4 q;
        u32 d;
    };
    static AKUNU_DEVICE u32 piece(u32 i, u32 t) { return 32 * t + 8 * i; }
    static AKUNU_DEVICE void load(u32 unit, u32, u32 lane, u32 upper, Part& p) {
        p.q = lane_piece(unit, 0, lane, upper);
        p.d = shared_at<const u32>(lane_extras<kReadQ4_0>(unit, lane, upper) + lane % 2 * 4);
    }
    static AKUNU_DEVICE void multiply(const Part (&p)[2], const StepInputs& in, float (&sum)[2]) {
        float low[4] = {}, high[4] = {};
        multiply_nibbles(p[0].q, p[1].q, in.x, low, high);
        const float4 s = in.run_sums();
        const float zero[2] = {-8.0f * in.second * (s.x + s.y), -8.0f * in.second * (s.z + s.w)};
        AKUNU_UNROLL
        for (u32 r = 0; r < 2; ++r) {
            const float a = (low[2 * r] + high[2 * r] * 0.0625f) * in.first + zero[0];
            const float b = (low[2 * r + 1] + high[2 * r + 1] * 0.0625f) * in.first + zero[1];
            sum[r] += in.factor * (a * half_to_float(u16(p[r].d)) + b * half_to_float(u16(p[r].d >> 16)));
        }
    }
};

template <>
struct Fragments<kReadQ8_0> : CodeFragments {
    struct Part {
        uint4 q[2];
        uint2 d;  // of four groups
    };
    static AKUNU_DEVICE u32 piece(u32 i, u32 t) { return t * 16 + i / 2 * 64 + i % 2 * 8; }
    static AKUNU_DEVICE void load(u32 unit, u32, u32 lane, u32 upper, Part& p) {
        p.q[0] = lane_piece(unit, 0, lane, upper);
        p.q[1] = lane_piece(unit, 1, lane, upper);
        p.d = shared_at<const uint2>(lane_extras<kReadQ8_0>(unit, lane, upper));
    }
    static AKUNU_DEVICE void multiply(const Part (&p)[2], const StepInputs& in, float (&sum)[2]) {
        float product[2][4] = {};  // columns of groups 0 and 1, and of 2 and 3
        AKUNU_UNROLL
        for (u32 h = 0; h < 2; ++h) {
            const uint4 &a = p[0].q[h], &b = p[1].q[h];
            const u32 wa[4] = {a.x, a.y, a.z, a.w}, wb[4] = {b.x, b.y, b.z, b.w};
            AKUNU_UNROLL
            for (u32 i = 0; i < 4; ++i) {
                constexpr u32 kSigns = 0x80808080u, kEven = 0x4240u, kOdd = 0x4341u;
                const u32 ua = wa[i] ^ kSigns, ub = wb[i] ^ kSigns;
                mma_f16(product[h],
                        {choose_bytes(ua, 0, kEven), choose_bytes(ub, 0, kEven), choose_bytes(ua, 0, kOdd),
                         choose_bytes(ub, 0, kOdd)},
                        {in.x[8 * h + 2 * i], in.x[8 * h + 2 * i + 1]});
            }
        }
        const u32 s = in.sums + in.t % 2 * 8, shift = in.t % 2 * 16;
        const float zero[2] = {-128.0f * in.second * (shared_at<float>(s) + shared_at<float>(s + 4)),
                               -128.0f * in.second * (shared_at<float>(s + 16) + shared_at<float>(s + 20))};
        AKUNU_UNROLL
        for (u32 r = 0; r < 2; ++r) {
            const float a = (product[0][2 * r] + product[0][2 * r + 1]) * in.first + zero[0];
            const float b = (product[1][2 * r] + product[1][2 * r + 1]) * in.first + zero[1];
            sum[r] +=
                in.factor * (a * half_to_float(u16(p[r].d.x >> shift)) + b * half_to_float(u16(p[r].d.y >> shift)));
        }
    }
};

template <>
struct Fragments<kReadQ4_K> : CodeFragments {
    struct Part {
        uint4 q, extras;
    };
    static AKUNU_DEVICE u32 piece(u32 i, u32 t) { return t / 2 * 64 + t % 2 * 16 + i / 2 * 32 + i % 2 * 8; }
    static AKUNU_DEVICE void load(u32 unit, u32 step, u32 lane, u32 upper, Part& p) {
        p.q = lane_piece(unit, step % 2, lane, upper);
        p.extras = shared_at<const uint4>(lane_extras<kReadQ4_K>(unit, lane, upper));
    }
    static AKUNU_DEVICE void multiply(const Part (&p)[2], const StepInputs& in, float (&sum)[2]) {
        float low[4] = {}, high[4] = {};
        multiply_nibbles(p[0].q, p[1].q, in.x, low, high);
        const float4 s = in.run_sums();
        const float inputs[2] = {in.second * (s.x + s.y), in.second * (s.z + s.w)};
        AKUNU_UNROLL
        for (u32 r = 0; r < 2; ++r) {
            // Four groups' scales and minima in a word each, of six bits.
            const uint4& e = p[r].extras;
            constexpr u32 kAll = 0x3F3F3F3Fu, kLow = 0x0F0F0F0Fu, kTop = 0x30303030u;
            const bool upper = in.step % 2 != 0;
            const u32 scales = upper ? (e.w & kLow) | (e.y >> 2 & kTop) : e.y & kAll;
            const u32 minima = upper ? (e.w >> 4 & kLow) | (e.z >> 2 & kTop) : e.z & kAll;
            const u32 sc = scales >> (16 * (in.t % 2)), m = minima >> (16 * (in.t % 2));
            const float a = (low[2 * r] + low[2 * r + 1]) * in.first;
            const float b = (high[2 * r] + high[2 * r + 1]) * (0.0625f * in.first);
            const float scaled = a * code_float(sc & 63, 0.0f) + b * code_float(sc >> 8 & 63, 0.0f);
            const float offset = inputs[0] * code_float(m & 63, 0.0f) + inputs[1] * code_float(m >> 8 & 63, 0.0f);
            sum[r] += in.factor * (half_to_float(u16(e.x)) * scaled - half_to_float(u16(e.x >> 16)) * offset);
        }
    }
};

template <>
struct Fragments<kReadQ6_K> : CodeFragments {
    struct Part {
        uint4 q, top;
        u16 low_scales, high_scales, d;
    };
    static AKUNU_DEVICE u32 piece(u32 i, u32 t) { return t * 16 + i / 2 * 64 + i % 2 * 8; }
    static AKUNU_DEVICE void load(u32 unit, u32 step, u32 lane, u32 upper, Part& p) {
        p.q = lane_piece(unit, step % 2, lane, upper);
        p.top = shared_at<const uint4>(unit + piece_at(lane / 4 + 8 * upper, 8 + step % 2 * 2 + lane % 2));
        const u32 e = lane_extras<kReadQ6_K>(unit, lane, upper);
        p.low_scales = shared_at<const u16>(e + step % 2 * 8 + lane % 2 * 2);
        p.high_scales = shared_at<const u16>(e + step % 2 * 8 + 4 + lane % 2 * 2);
        p.d = shared_at<const u16>(e + 16);
    }
    static AKUNU_DEVICE void multiply(const Part (&p)[2], const StepInputs& in, float (&sum)[2]) {
        float low[4] = {}, high[4] = {};
        const u32 down = in.t / 2 * 2;  // the low nibbles' upper bits are 0 and 1, or 2 and 3; the high ones' 4 more
        const uint4 &qa = p[0].q, &qb = p[1].q, &ta = p[0].top, &tb = p[1].top;
        const u32 wa[4] = {qa.x, qa.y, qa.z, qa.w}, wb[4] = {qb.x, qb.y, qb.z, qb.w};
        const u32 ha[4] = {ta.x, ta.y, ta.z, ta.w}, hb[4] = {tb.x, tb.y, tb.z, tb.w};
        const auto codes = [](u32 nibbles, u32 top) { return (nibbles & 0x000F000Fu) | (top & 0x00300030u); };
        AKUNU_UNROLL
        for (u32 i = 0; i < 4; ++i) {
            const u32 la = ha[i] << 4 >> down, lb = hb[i] << 4 >> down, ua = ha[i] >> down, ub = hb[i] >> down;
            mma_f16(low, {codes(wa[i], la), codes(wb[i], lb), codes(wa[i] >> 8, la >> 8), codes(wb[i] >> 8, lb >> 8)},
                    {in.x[2 * i], in.x[2 * i + 1]});
            mma_f16(high,
                    {codes(wa[i] >> 4, ua), codes(wb[i] >> 4, ub), codes(wa[i] >> 12, ua >> 8),
                     codes(wb[i] >> 12, ub >> 8)},
                    {in.x[8 + 2 * i], in.x[9 + 2 * i]});
        }
        const float* s = reinterpret_cast<const float*>(shared_memory() + in.sums) + in.t % 2 * 2;
        const float zero = -32.0f * in.second;
        AKUNU_UNROLL
        for (u32 r = 0; r < 2; ++r) {
            const auto scale = [](u32 bits) { return code_float((bits & 255) ^ 128, 128.0f); };
            float v = scale(p[r].low_scales) * (low[2 * r] * in.first + zero * s[0]);
            v += scale(p[r].low_scales >> 8) * (low[2 * r + 1] * in.first + zero * s[1]);
            v += scale(p[r].high_scales) * (high[2 * r] * in.first + zero * s[4]);
            v += scale(p[r].high_scales >> 8) * (high[2 * r + 1] * in.first + zero * s[5]);
            sum[r] += in.factor * half_to_float(p[r].d) * v;
        }
    }
};

// Halves, eight to 16 bytes.
template <bool kBfloats>
struct FloatFragments {
    static constexpr bool kFloats = true, kBf16 = kBfloats;
    static constexpr u32 kParts = kBf16 ? 3 : 2;
    struct Part {
        uint4 q[4];
    };
    static AKUNU_DEVICE bool takes(u32 g, u32) { return g < kParts; }
    static AKUNU_DEVICE u32 part(u32 g) { return g; }
    static AKUNU_DEVICE float first(u32 t) { return t == 0 ? 1.0f : t == 1 ? 1.0f / (kPartShift * kPartShift) : 0.0f; }
    static AKUNU_DEVICE float second(u32 t) { return t == 0 ? 1.0f / kPartShift : 0.0f; }
    static AKUNU_DEVICE u32 piece(u32 i, u32 t) { return 32 * i + 8 * t; }
    static AKUNU_DEVICE void load(u32 unit, u32, u32 lane, u32 upper, Part& p) {
        AKUNU_UNROLL
        for (u32 i = 0; i < 4; ++i) p.q[i] = lane_piece(unit, i, lane, upper);
    }
    static AKUNU_DEVICE void multiply(const Part (&p)[2], const StepInputs& in, float (&sum)[2]) {
        float product[2][4] = {};  // two chains
        AKUNU_UNROLL
        for (u32 i = 0; i < 4; ++i) {
            const uint4 &a = p[0].q[i], &b = p[1].q[i];
            const auto add = [&](u32 c, const u32(&w)[4], u32 x) {
                kBf16 ? mma_bf16(product[c], w, {in.x[x], in.x[x + 1]})
                      : mma_f16(product[c], w, {in.x[x], in.x[x + 1]});
            };
            add(0, {a.x, b.x, a.y, b.y}, 4 * i);
            add(1, {a.z, b.z, a.w, b.w}, 4 * i + 2);
        }
        AKUNU_UNROLL
        for (u32 r = 0; r < 2; ++r) {
            sum[r] += in.factor * ((product[0][2 * r] + product[1][2 * r]) * in.first +
                                   (product[0][2 * r + 1] + product[1][2 * r + 1]) * in.second);
        }
    }
};
template <>
struct Fragments<kReadF16> : FloatFragments<false> {};
template <>
struct Fragments<kReadBf16> : FloatFragments<true> {};

}  // namespace akunu::cuda

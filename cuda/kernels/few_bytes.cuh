// Two to eight rows times weights of codes: inputs are whole numbers of 16 bits relative to the largest of their 128,
// each two bytes, as one row's are (fragments.cuh). A product's columns are the high and the low bytes of four rows, or
// two products have those of eight.
#pragma once

#include "few_memory.cuh"
#include "fragments.cuh"

namespace akunu::cuda {

// Rows of bytes in shared memory. Two groups of 32 inputs side by side have their high bytes, then their low ones; what
// rows are apart has those that are read together in other banks. Of a step and a row, what a whole number counts, and
// the sums of its four groups.
constexpr u32 kBytePad = 32;
AKUNU_DEVICE u32 bytes_at(u32 group, u32 low) { return group / 2 * 128 + low * 64 + group % 2 * 32; }
AKUNU_DEVICE u32 step_factor(u32 step, u32 m) { return kFewMemory.factors + (step * kByteRows + m) * 4; }
AKUNU_DEVICE u32 step_sums(u32 step, u32 m) { return kFewMemory.sums + (step * kByteRows + m) * 16; }

// Where a lane finds a step's inputs, the columns of its products, and those of its results: row t of four, or 2t and
// 2t + 1 of eight.
template <u32 kLaneRows>
struct LaneBytes {
    u32 columns, first_row;
    AKUNU_DEVICE LaneBytes(const FewInputs& in, u32 lane)
        : columns(in.row(kLaneRows == 1 ? lane / 8 : lane / 4) + (kLaneRows == 1 ? lane / 4 % 2 * 64 : 0) +
                  lane % 4 * 8),
          first_row(lane % 4 * kLaneRows) {}
    AKUNU_DEVICE uint2 column(u32 step, u32 group, u32 i) const {
        return shared_at<const uint2>(columns + step * (2 * kStepInputs) + bytes_at(group, i));
    }
};
// Of a lane's results, which are of two rows of weights and kLaneRows of inputs.
template <u32 kLaneRows>
struct ByteResults {
    static constexpr u32 kCount = 2 * kLaneRows;
    static AKUNU_DEVICE u32 upper(u32 e) { return e / kLaneRows; }
    static AKUNU_DEVICE int high(const int (&product)[kLaneRows][4], u32 e) {
        return product[0][kLaneRows == 1 ? 2 * e : e];
    }
    static AKUNU_DEVICE int low(const int (&product)[kLaneRows][4], u32 e) {
        return kLaneRows == 1 ? product[0][2 * e + 1] : product[kLaneRows - 1][e];
    }
};
// Products of a group of 32, or of its first or last 16 codes.
template <u32 kLaneRows, bool kUnsigned = false>
AKUNU_DEVICE void multiply_group(int (&product)[kLaneRows][4], const u32 (&a)[4], const uint2 (&x)[kLaneRows]) {
    AKUNU_UNROLL
    for (u32 i = 0; i < kLaneRows; ++i) {
        kUnsigned ? mma_u8_s8(product[i], a, {x[i].x, x[i].y}) : mma_s8(product[i], a, {x[i].x, x[i].y});
    }
}

// Of the readers of codes that have tiles: at(lane, in_unit) is what a lane reads first of a unit's step, and add adds
// its share of the step's products to its sums. Pieces of inputs are eight side by side, or four of each half (kSplit).
template <u32 kReader>
struct ByteColumns;

// Types whose groups have one scale and nothing else: load(unit, group, a) takes two rows' codes, scale(d, group) is
// what they count.
template <typename T, u32 kReader, bool kSplitPieces>
struct ScaledBytes {
    static constexpr bool kSplit = kSplitPieces, kSums = false;
    struct At {
        u32 codes, extras;
    };
    static AKUNU_DEVICE At at(u32 lane, u32) {
        return {piece_at(lane / 4, 0) + lane % 4 * T::kLaneBytes, extras_at(tile_layout(kReader), lane / 4)};
    }
    template <u32 kLaneRows>
    static AKUNU_DEVICE void add(u32 unit, const At& at, const LaneBytes<kLaneRows>& in, u32 step,
                                 float (&sum)[2 * kLaneRows]) {
        using R = ByteResults<kLaneRows>;
        constexpr u32 kUpper = 8 * tile_layout(kReader).extra_bytes;
        const typename T::Scales d[2] = {shared_at<const typename T::Scales>(unit + at.extras),
                                         shared_at<const typename T::Scales>(unit + at.extras + kUpper)};
        float part[R::kCount] = {};
        AKUNU_UNROLL
        for (u32 group = 0; group < 4; ++group) {
            u32 a[4];
            T::load(unit + at.codes, group, a);
            uint2 x[kLaneRows];
            AKUNU_UNROLL
            for (u32 i = 0; i < kLaneRows; ++i) x[i] = in.column(step, group, i);
            int product[kLaneRows][4] = {};
            multiply_group(product, a, x);
            AKUNU_UNROLL
            for (u32 e = 0; e < R::kCount; ++e) {
                part[e] += float(R::high(product, e) * 256 + R::low(product, e)) * T::scale(d[R::upper(e)], group);
            }
        }
        AKUNU_UNROLL
        for (u32 e = 0; e < R::kCount; ++e) {
            const float factor = shared_at<const float>(step_factor(step, in.first_row + e % kLaneRows));
            sum[e] += part[e] * (factor * T::kCounts);
        }
    }
};
AKUNU_DEVICE float half_of(const uint2& four, u32 i) {
    const u32 two = i < 2 ? four.x : four.y;
    return half_to_float(u16(i % 2 ? two >> 16 : two));
}

template <>
struct ByteColumns<kReadQ4_0> : ScaledBytes<ByteColumns<kReadQ4_0>, kReadQ4_0, true> {
    using Scales = uint2;
    static constexpr u32 kLaneBytes = 4;
    static constexpr float kCounts = 0.0625f;
    static AKUNU_DEVICE void load(u32 from, u32 group, u32 (&a)[4]) {
        AKUNU_UNROLL
        for (u32 upper = 0; upper < 2; ++upper) {
            const u32 w = shared_at<const u32>(from + group * kPiece + upper * 512);
            a[upper] = signed_nibbles(w << 4);
            a[2 + upper] = signed_nibbles(w);
        }
    }
    static AKUNU_DEVICE float scale(const uint2& d, u32 group) { return half_of(d, group); }
};

template <>
struct ByteColumns<kReadMxfp4> : ScaledBytes<ByteColumns<kReadMxfp4>, kReadMxfp4, true> {
    using Scales = u32;
    static constexpr u32 kLaneBytes = 4;
    static constexpr float kCounts = 1.0f;
    static AKUNU_DEVICE void load(u32 from, u32 group, u32 (&a)[4]) {
        AKUNU_UNROLL
        for (u32 upper = 0; upper < 2; ++upper) {
            signed_e2m1(shared_at<const u32>(from + group * kPiece + upper * 512), a[upper], a[2 + upper]);
        }
    }
    static AKUNU_DEVICE float scale(u32 d, u32 group) { return e8m0_half(d >> 8 * group & 255); }
};

template <>
struct ByteColumns<kReadQ8_0> : ScaledBytes<ByteColumns<kReadQ8_0>, kReadQ8_0, false> {
    using Scales = uint2;
    static constexpr u32 kLaneBytes = 8;
    static constexpr float kCounts = 1.0f;
    static AKUNU_DEVICE void load(u32 from, u32 group, u32 (&a)[4]) {
        AKUNU_UNROLL
        for (u32 upper = 0; upper < 2; ++upper) {
            const uint2 q = shared_at<const uint2>(from + piece_at(0, group * 2) + upper * 512);
            a[upper] = q.x;
            a[2 + upper] = q.y;
        }
    }
    static AKUNU_DEVICE float scale(const uint2& d, u32 group) { return half_of(d, group); }
};

// K-quants: scales are whole numbers, too, and products with them are added up as such.
template <>
struct ByteColumns<kReadQ4_K> {
    static constexpr bool kSplit = false, kSums = true;
    struct At {
        u32 codes, extras, in_unit;
    };
    static AKUNU_DEVICE At at(u32 lane, u32 in_unit) {
        return {piece_at(lane / 4, in_unit * 4) + lane % 4 * 8, extras_at(tile_layout(kReadQ4_K), lane / 4), in_unit};
    }
    template <u32 kLaneRows>
    static AKUNU_DEVICE void add(u32 unit, const At& at, const LaneBytes<kLaneRows>& in, u32 step,
                                 float (&sum)[2 * kLaneRows]) {
        using R = ByteResults<kLaneRows>;
        KFactors factors[2];
        u32 words[2][2];  // of two groups each
        AKUNU_UNROLL
        for (u32 upper = 0; upper < 2; ++upper) {
            const uint4 extras = shared_at<const uint4>(unit + at.extras + upper * 128);
            factors[upper] = k_factors(extras);
            words[upper][0] = at.in_unit ? extras.z : extras.x;
            words[upper][1] = at.in_unit ? extras.w : extras.y;
        }
        int sums[kLaneRows][4];
        AKUNU_UNROLL
        for (u32 i = 0; i < kLaneRows; ++i) {
            const uint4 v = shared_at<const uint4>(step_sums(step, in.first_row + i));
            sums[i][0] = int(v.x), sums[i][1] = int(v.y), sums[i][2] = int(v.z), sums[i][3] = int(v.w);
        }
        // Below 2^31: two groups' 32 inputs of 127·256 times codes of 15 and scales of 63. High nibbles are 16 times
        // what they count, so their high bytes' products and their low ones' stay apart.
        int even[R::kCount] = {}, odd[2][R::kCount] = {}, least[R::kCount] = {};
        AKUNU_UNROLL
        for (u32 pair = 0; pair < 2; ++pair) {
            const uint2 q[2] = {shared_at<const uint2>(unit + at.codes + pair * 32),
                                shared_at<const uint2>(unit + at.codes + pair * 32 + 512)};
            AKUNU_UNROLL
            for (u32 high = 0; high < 2; ++high) {
                const u32 group = 2 * pair + high, mask = high ? 0xF0F0F0F0u : 0x0F0F0F0Fu;
                uint2 x[kLaneRows];
                AKUNU_UNROLL
                for (u32 i = 0; i < kLaneRows; ++i) x[i] = in.column(step, group, i);
                int product[kLaneRows][4] = {};
                multiply_group<kLaneRows, true>(product, {q[0].x & mask, q[1].x & mask, q[0].y & mask, q[1].y & mask},
                                                x);
                AKUNU_UNROLL
                for (u32 e = 0; e < R::kCount; ++e) {
                    const u32 word = words[R::upper(e)][pair];
                    const int scale = int(k_scale_of(word, high));
                    if (high) {
                        odd[0][e] += R::high(product, e) * scale;
                        odd[1][e] += R::low(product, e) * scale;
                    } else {
                        even[e] += (R::high(product, e) * 256 + R::low(product, e)) * scale;
                    }
                    least[e] += sums[e % kLaneRows][group] * int(k_min_of(word, high));
                }
            }
        }
        AKUNU_UNROLL
        for (u32 e = 0; e < R::kCount; ++e) {
            const KFactors& f = factors[R::upper(e)];
            const float all = float(even[e]) + (float(odd[0][e]) * 16.0f + float(odd[1][e]) * 0.0625f);
            const float factor = shared_at<const float>(step_factor(step, in.first_row + e % kLaneRows));
            sum[e] += factor * (f.scale * all - f.min * float(least[e]));
        }
    }
};

template <>
struct ByteColumns<kReadQ6_K> {
    static constexpr bool kSplit = true, kSums = false;
    struct At {
        u32 codes, rest, scales, d, shift;
    };
    static AKUNU_DEVICE At at(u32 lane, u32 in_unit) {
        const u32 extras = extras_at(tile_layout(kReadQ6_K), lane / 4);
        return {piece_at(lane / 4, in_unit * 4) + lane % 4 * 4, piece_at(lane / 4, 8 + in_unit * 2) + lane % 4 / 2 * 4,
                extras + in_unit * 8, extras + 16, lane % 2 * 2};
    }
    template <u32 kLaneRows>
    static AKUNU_DEVICE void add(u32 unit, const At& at, const LaneBytes<kLaneRows>& in, u32 step,
                                 float (&sum)[2 * kLaneRows]) {
        using R = ByteResults<kLaneRows>;
        constexpr u32 kUpper = 8 * tile_layout(kReadQ6_K).extra_bytes;
        u32 q[4][2], rest[4][2];  // of groups 0 and 1, whose other nibbles are those of 2 and 3: their halves' words
        AKUNU_UNROLL
        for (u32 i = 0; i < 4; ++i) {
            AKUNU_UNROLL
            for (u32 upper = 0; upper < 2; ++upper) {
                q[i][upper] = shared_at<const u32>(unit + at.codes + i * kPiece + upper * 512);
                rest[i][upper] = shared_at<const u32>(unit + at.rest + i / 2 * kPiece + i % 2 * 8 + upper * 512)
                                 << at.shift;
            }
        }
        // Below 2^29: 128 inputs' high bytes of 127 times codes of 4·32 and scales of 128.
        int high[R::kCount] = {}, low[R::kCount] = {};
        AKUNU_UNROLL
        for (u32 group = 0; group < 4; ++group) {
            uint2 x[kLaneRows];
            AKUNU_UNROLL
            for (u32 i = 0; i < kLaneRows; ++i) x[i] = in.column(step, group, i);
            AKUNU_UNROLL
            for (u32 half = 0; half < 2; ++half) {
                const u32 word = group % 2 * 2 + half;
                u32 a[2];
                uint2 part[kLaneRows];
                AKUNU_UNROLL
                for (u32 upper = 0; upper < 2; ++upper) {
                    a[upper] = group < 2 ? first_six_bits(q[word][upper], rest[word][upper])
                                         : last_six_bits(q[word][upper], rest[word][upper]);
                }
                AKUNU_UNROLL
                for (u32 i = 0; i < kLaneRows; ++i) part[i] = {half ? x[i].y : x[i].x, 0};
                int product[kLaneRows][4] = {};
                multiply_group(product, {a[0], a[1], 0, 0}, part);
                AKUNU_UNROLL
                for (u32 e = 0; e < R::kCount; ++e) {
                    const u32 from = unit + at.scales + R::upper(e) * kUpper + group * 2 + half;
                    const int scale = shared_at<const signed char>(from);
                    high[e] += R::high(product, e) * scale;
                    low[e] += R::low(product, e) * scale;
                }
            }
        }
        AKUNU_UNROLL
        for (u32 e = 0; e < R::kCount; ++e) {
            const float d = half_to_float(shared_at<const u16>(unit + at.d + R::upper(e) * kUpper));
            const float factor = shared_at<const float>(step_factor(step, in.first_row + e % kLaneRows));
            sum[e] += (float(high[e]) * 256.0f + float(low[e])) * (0.25f * d * factor);
        }
    }
};

// Loads the inputs from k0 to `end` of all rows. Those behind the last row are whatever lies there: nobody asks for
// them.
template <typename T>
AKUNU_DEVICE void stage_bytes(const FewInputs& in, u32 k0, u32 end) {
    constexpr u32 kSteps = 2, kRows = 4;  // at once
    const u32 lane = lane_id(), warp = same_in_warp(warp_id()), rows = same_in_warp(in.rows);
    const u32 steps = same_in_warp((end - k0) / kStepInputs);
    // Piece t of a group has eight inputs side by side, or four of each half.
    const u32 of = bytes_at(lane / 8, 0) + (T::kSplit ? lane % 4 * 8 + lane % 8 / 4 * 4 : lane % 8 * 4);
    for (u32 first = warp; first < steps; first += kWarps * kSteps) {
        for (u32 m0 = 0; m0 < rows; m0 += kRows) {
            uint2 x[kSteps][kRows];
            AKUNU_UNROLL
            for (u32 s = 0; s < kSteps; ++s) {
                const u32 step = first + s * kWarps, i = k0 + step * kStepInputs + lane * 4;
                AKUNU_UNROLL
                for (u32 m = 0; m < kRows; ++m) {
                    const bool there = step < steps && i < in.k && m0 + m < rows;
                    x[s][m] = there ? *reinterpret_cast<const uint2*>(in.x + u64(m0 + m) * in.k + i) : uint2{0, 0};
                }
            }
            AKUNU_UNROLL
            for (u32 s = 0; s < kSteps; ++s) {
                const u32 step = first + s * kWarps;
                if (step >= steps) break;
                AKUNU_UNROLL
                for (u32 m = 0; m < kRows; ++m) {
                    if (m0 + m >= rows) break;
                    const uint2 h = x[s][m];
                    const float v[4] = {half_to_float(u16(h.x)), half_to_float(u16(h.x >> 16)), half_to_float(u16(h.y)),
                                        half_to_float(u16(h.y >> 16))};
                    const InputCodes c(v, largest_of_warp(largest_bits(v)));
                    if constexpr (T::kSums) {
                        u32 sum = c.total;
                        sum += shuffle_xor(sum, 1);
                        sum += shuffle_xor(sum, 2);
                        sum += shuffle_xor(sum, 4);
                        if (lane % 8 == 0) shared_at<u32>(step_sums(step, m0 + m) + lane / 8 * 4) = sum;
                    }
                    if (lane == 0) shared_at<float>(step_factor(step, m0 + m)) = c.factor;
                    const u32 to = in.row(m0 + m) + step * (2 * kStepInputs) + of;
                    shared_at<u32>(to) = c.high;
                    shared_at<u32>(to + 64) = c.low;
                }
            }
        }
    }
}

}  // namespace akunu::cuda

// Two to eight rows times weights of codes: inputs are whole numbers of 16 bits relative to the largest of their 128,
// each two bytes, as one row's are (fragments.cuh). A product's columns are the high and the low bytes of four rows, or
// two products have those of eight.
#pragma once

#include "few_memory.cuh"
#include "fragments.cuh"

namespace akunu::cuda {

// What a lane has of two rows' group of 32, as signed or unsigned bytes: the first factors of a product, of which the
// first and the second half may have scales of their own.
template <u32 kScales>
struct RowBytes {
    u32 a[2][2];  // [half][upper]
    float scale[kScales][2], offset[2];
};

// Of the readers of codes that have tiles: load(unit, step, group, lane, rows) takes group 0 to 3 of a step.
template <u32 kReader>
struct ByteColumns;

template <u32 kOf, bool kSplitPieces, bool kWithSums, bool kUnsignedCodes>
struct ByteColumnsOf {
    static constexpr u32 kScales = kOf;
    static constexpr bool kSplit = kSplitPieces, kSums = kWithSums, kUnsigned = kUnsignedCodes;
    using Rows = RowBytes<kOf>;
};

template <>
struct ByteColumns<kReadQ4_0> : ByteColumnsOf<1, true, false, false> {
    static AKUNU_DEVICE void load(u32 unit, u32, u32 group, u32 lane, Rows& r) {
        AKUNU_UNROLL
        for (u32 upper = 0; upper < 2; ++upper) {
            const u32 w = lane_word(unit, group, lane, upper);
            r.a[0][upper] = signed_nibbles(w << 4);
            r.a[1][upper] = signed_nibbles(w);
            r.scale[0][upper] =
                0.0625f * half_to_float(shared_at<const u16>(lane_extras<kReadQ4_0>(unit, lane, upper) + group * 2));
        }
    }
};

template <>
struct ByteColumns<kReadMxfp4> : ByteColumnsOf<1, true, false, false> {
    static AKUNU_DEVICE void load(u32 unit, u32, u32 group, u32 lane, Rows& r) {
        AKUNU_UNROLL
        for (u32 upper = 0; upper < 2; ++upper) {
            signed_e2m1(lane_word(unit, group, lane, upper), r.a[0][upper], r.a[1][upper]);
            r.scale[0][upper] = e8m0_half(shared_at<const u8>(lane_extras<kReadMxfp4>(unit, lane, upper) + group));
        }
    }
};

template <>
struct ByteColumns<kReadQ8_0> : ByteColumnsOf<1, false, false, false> {
    static AKUNU_DEVICE void load(u32 unit, u32, u32 group, u32 lane, Rows& r) {
        AKUNU_UNROLL
        for (u32 upper = 0; upper < 2; ++upper) {
            const uint2 q = lane_words(unit, group * 2, lane, upper);
            r.a[0][upper] = q.x;
            r.a[1][upper] = q.y;
            r.scale[0][upper] =
                half_to_float(shared_at<const u16>(lane_extras<kReadQ8_0>(unit, lane, upper) + group * 2));
        }
    }
};

template <>
struct ByteColumns<kReadQ4_K> : ByteColumnsOf<1, false, true, true> {
    static AKUNU_DEVICE void load(u32 unit, u32 step, u32 group, u32 lane, Rows& r) {
        const u32 mask = group % 2 ? 0xF0F0F0F0u : 0x0F0F0F0Fu;  // the high nibbles are 16 times what they count
        AKUNU_UNROLL
        for (u32 upper = 0; upper < 2; ++upper) {
            const uint2 q = lane_words(unit, step % 2 * 4 + group / 2 * 2, lane, upper);
            r.a[0][upper] = q.x & mask;
            r.a[1][upper] = q.y & mask;
            const KScale s =
                k_scale(shared_at<const uint4>(lane_extras<kReadQ4_K>(unit, lane, upper)), step % 2 * 4 + group);
            r.scale[0][upper] = group % 2 ? s.scale * 0.0625f : s.scale;
            r.offset[upper] = s.offset;
        }
    }
};

template <>
struct ByteColumns<kReadQ6_K> : ByteColumnsOf<2, true, false, false> {
    static AKUNU_DEVICE void load(u32 unit, u32 step, u32 group, u32 lane, Rows& r) {
        AKUNU_UNROLL
        for (u32 upper = 0; upper < 2; ++upper) {
            const u32 extras = lane_extras<kReadQ6_K>(unit, lane, upper);
            const float d = 0.25f * half_to_float(shared_at<const u16>(extras + 16));
            const u32 others = piece_at(lane / 4 + 8 * upper, 8 + step % 2 * 2 + group % 2) + lane % 4 / 2 * 4;
            AKUNU_UNROLL
            for (u32 i = 0; i < 2; ++i) {
                const u32 q = lane_word(unit, step % 2 * 4 + group % 2 * 2 + i, lane, upper);
                const u32 rest = shared_at<const u32>(unit + others + i * 8) << lane % 2 * 2;
                r.a[i][upper] = group < 2 ? first_six_bits(q, rest) : last_six_bits(q, rest);
                const u32 scale = shared_at<const u8>(extras + step % 2 * 8 + group * 2 + i);
                r.scale[i][upper] = d * code_float(scale ^ 128, 128.0f);
            }
        }
    }
};

// Rows of bytes in shared memory. Two groups of 32 inputs side by side have their high bytes, then their low ones; what
// rows are apart has those that are read together in other banks.
constexpr u32 kBytePad = 32;
AKUNU_DEVICE u32 step_factor(u32 step, u32 m) { return kFewMemory.factors + (step * kByteRows + m) * 4; }
AKUNU_DEVICE u32 bytes_at(u32 group, u32 low) { return group / 2 * 128 + low * 64 + group % 2 * 32; }

// Loads the inputs from k0 on of all rows. Those behind the last row are whatever lies there: nobody asks for them.
template <typename T>
AKUNU_DEVICE void stage_bytes(const FewInputs& in, u32 k0, u32 end) {
    constexpr u32 kSteps = 2, kRows = 4;  // at once
    const u32 lane = lane_id(), steps = (end - k0) / kStepInputs;
    for (u32 first = warp_id(); first < steps; first += kWarps * kSteps) {
        for (u32 m0 = 0; m0 < in.rows; m0 += kRows) {
            uint2 x[kSteps][kRows];
            AKUNU_UNROLL
            for (u32 s = 0; s < kSteps; ++s) {
                const u32 step = first + s * kWarps, i = k0 + step * kStepInputs + lane * 4;
                AKUNU_UNROLL
                for (u32 m = 0; m < kRows; ++m) {
                    const bool there = step < steps && i < in.k && m0 + m < in.rows;
                    x[s][m] = there ? *reinterpret_cast<const uint2*>(in.x + u64(m0 + m) * in.k + i) : uint2{0, 0};
                }
            }
            AKUNU_UNROLL
            for (u32 s = 0; s < kSteps; ++s) {
                const u32 step = first + s * kWarps, group = step * 4 + lane / 8;
                if (step >= steps) break;
                AKUNU_UNROLL
                for (u32 m = 0; m < kRows; ++m) {
                    if (m0 + m >= in.rows) break;
                    const uint2 h = x[s][m];
                    const float v[4] = {half_to_float(u16(h.x)), half_to_float(u16(h.x >> 16)), half_to_float(u16(h.y)),
                                        half_to_float(u16(h.y >> 16))};
                    const InputCodes c(v, largest_of_warp(largest_bits(v)));
                    if constexpr (T::kSums) {
                        float sum = c.sum;
                        sum += shuffle_xor(sum, 1);
                        sum += shuffle_xor(sum, 2);
                        sum += shuffle_xor(sum, 4);
                        if (lane % 8 == 0) shared_at<float>(in.sums(group) + (m0 + m) * 4) = sum * c.factor;
                    }
                    if (lane == 0) {
                        shared_at<float>(step_factor(step, m0 + m)) = c.factor;
                    }
                    // Piece t of a group has eight inputs side by side, or four of each half.
                    const u32 of = T::kSplit ? lane % 4 * 8 + lane % 8 / 4 * 4 : lane % 8 * 4;
                    const u32 to = in.row(m0 + m) + of;
                    shared_at<u32>(to + bytes_at(group, 0)) = c.high;
                    shared_at<u32>(to + bytes_at(group, 1)) = c.low;
                }
            }
        }
    }
}

// A step of 128 inputs, from `at` of those in shared memory on, for rows g and g + 8 of a tile: a lane's sums of its
// rows of inputs, t of four or 2t and 2t + 1 of eight.
template <typename T, u32 kLaneRows>
AKUNU_DEVICE void multiply_bytes(const FewInputs& in, u32 unit, u32 step, u32 at, u32 lane,
                                 float (&sum)[2 * kLaneRows]) {
    const u32 g = lane / 4, t = lane % 4, row = in.row(kLaneRows == 1 ? g / 2 : g) + t * 8;
    float part[2 * kLaneRows] = {};
    AKUNU_UNROLL
    for (u32 group = 0; group < 4; ++group) {
        typename T::Rows w;
        T::load(unit, step, group, lane, w);
        int product[T::kScales][kLaneRows][4] = {};
        AKUNU_UNROLL
        for (u32 i = 0; i < kLaneRows; ++i) {
            const uint2 x = shared_at<const uint2>(row + bytes_at(at / 32 + group, kLaneRows == 1 ? g % 2 : i));
            const auto add = [](int(&to)[4], const u32(&a)[4], const u32(&b)[2]) {
                T::kUnsigned ? mma_u8_s8(to, a, b) : mma_s8(to, a, b);
            };
            if constexpr (T::kScales == 1) {
                add(product[0][i], {w.a[0][0], w.a[0][1], w.a[1][0], w.a[1][1]}, {x.x, x.y});
            } else {
                add(product[0][i], {w.a[0][0], w.a[0][1], 0, 0}, {x.x, 0});
                add(product[1][i], {w.a[1][0], w.a[1][1], 0, 0}, {x.y, 0});
            }
        }
        AKUNU_UNROLL
        for (u32 e = 0; e < 2 * kLaneRows; ++e) {
            const u32 upper = e / kLaneRows, high = kLaneRows == 1 ? 2 * upper : e;
            AKUNU_UNROLL
            for (u32 s = 0; s < T::kScales; ++s) {
                const int low = kLaneRows == 1 ? product[s][0][high + 1] : product[s][kLaneRows - 1][high];
                part[e] += float(product[s][0][high] * 256 + low) * w.scale[s][upper];
            }
            if constexpr (T::kSums) {
                const u32 m = kLaneRows * t + e % kLaneRows;
                sum[e] += w.offset[upper] * shared_at<const float>(in.sums(at / 32 + group) + m * 4);
            }
        }
    }
    AKUNU_UNROLL
    for (u32 e = 0; e < 2 * kLaneRows; ++e) {
        const u32 m = kLaneRows * t + e % kLaneRows;
        sum[e] += part[e] * shared_at<const float>(step_factor(at / kStepInputs, m));
    }
}

}  // namespace akunu::cuda

// Two to four rows times K-quants: inputs are whole numbers of 16 bits relative to the largest of their 128, each two
// bytes, as one row's are (fragments.cuh). A product's columns are the high and the low bytes of four rows. Scales are
// whole numbers, too, and products with them are added up as such.
#pragma once

#include "few_memory.cuh"
#include "fragments.cuh"

namespace akunu::cuda {

// Rows of bytes in shared memory. Two groups of 32 inputs side by side have their high bytes, then their low ones; what
// rows are apart has those that are read together in other banks. Of a step and a row there are what a whole number
// counts, and the sums of its four groups.
constexpr u32 kBytePad = 32;
AKUNU_DEVICE u32 bytes_at(u32 group, u32 low) { return group / 2 * 128 + low * 64 + group % 2 * 32; }
AKUNU_DEVICE u32 step_factor(u32 step, u32 m) { return kFewMemory.factors + (step * kByteRows + m) * 4; }
AKUNU_DEVICE u32 step_sums(u32 step, u32 m) { return kFewMemory.sums + (step * kByteRows + m) * 16; }

// Where a lane finds a step's inputs, the columns of its products, and the row of its results.
struct LaneBytes {
    u32 columns, row;
    AKUNU_DEVICE LaneBytes(const FewInputs& in, u32 lane)
        : columns(in.row(lane / 8) + bytes_at(0, lane / 4 % 2) + lane % 4 * 8), row(lane % 4) {}
    AKUNU_DEVICE uint2 column(u32 step, u32 group) const {
        return shared_at<const uint2>(columns + step * (2 * kStepInputs) + bytes_at(group, 0));
    }
};

// at(lane, in_unit) is what a lane reads first of a unit's step, and add adds its share of the step's products to its
// sums, of rows g and g + 8 of the weights. Pieces of inputs are eight side by side, or four of each half (kSplit).
template <u32 kReader>
struct ByteColumns;

template <>
struct ByteColumns<kReadQ4_K> {
    static constexpr bool kSplit = false, kSums = true;
    struct At {
        u32 codes, extras, in_unit;
    };
    static AKUNU_DEVICE At at(u32 lane, u32 in_unit) {
        return {piece_at(lane / 4, in_unit * 4) + lane % 4 * 8, extras_at(tile_layout(kReadQ4_K), lane / 4), in_unit};
    }
    static AKUNU_DEVICE void add(u32 unit, const At& at, const LaneBytes& in, u32 step, float (&sum)[2]) {
        KFactors factors[2];
        u32 words[2][2];  // of two groups each
        AKUNU_UNROLL
        for (u32 upper = 0; upper < 2; ++upper) {
            const uint4 extras = shared_at<const uint4>(unit + at.extras + upper * 128);
            factors[upper] = k_factors(extras);
            words[upper][0] = at.in_unit ? extras.z : extras.x;
            words[upper][1] = at.in_unit ? extras.w : extras.y;
        }
        const uint4 groups = shared_at<const uint4>(step_sums(step, in.row));
        const int sums[4] = {int(groups.x), int(groups.y), int(groups.z), int(groups.w)};
        // Below 2^31: two groups' 32 inputs of 127·256 times codes of 15 and scales of 63. High nibbles are 16 times
        // what they count, so their high bytes' products and their low ones' stay apart.
        int even[2] = {}, odd[2][2] = {}, least[2] = {};
        AKUNU_UNROLL
        for (u32 pair = 0; pair < 2; ++pair) {
            const uint2 q[2] = {shared_at<const uint2>(unit + at.codes + pair * 32),
                                shared_at<const uint2>(unit + at.codes + pair * 32 + 512)};
            AKUNU_UNROLL
            for (u32 high = 0; high < 2; ++high) {
                const u32 group = 2 * pair + high, mask = high ? 0xF0F0F0F0u : 0x0F0F0F0Fu;
                const uint2 x = in.column(step, group);
                int product[4] = {};
                mma_u8_s8(product, {q[0].x & mask, q[1].x & mask, q[0].y & mask, q[1].y & mask}, {x.x, x.y});
                AKUNU_UNROLL
                for (u32 upper = 0; upper < 2; ++upper) {
                    const u32 word = words[upper][pair];
                    const int scale = int(k_scale_of(word, high));
                    if (high) {
                        odd[0][upper] += product[2 * upper] * scale;
                        odd[1][upper] += product[2 * upper + 1] * scale;
                    } else {
                        even[upper] += whole_number(product, upper) * scale;
                    }
                    least[upper] += sums[group] * int(k_min_of(word, high));
                }
            }
        }
        const float factor = shared_at<const float>(step_factor(step, in.row));
        AKUNU_UNROLL
        for (u32 upper = 0; upper < 2; ++upper) {
            const KFactors& f = factors[upper];
            const float all = float(even[upper]) + (float(odd[0][upper]) * 16.0f + float(odd[1][upper]) * 0.0625f);
            sum[upper] += factor * (f.scale * all - f.min * float(least[upper]));
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
    static AKUNU_DEVICE void add(u32 unit, const At& at, const LaneBytes& in, u32 step, float (&sum)[2]) {
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
        int high[2] = {}, low[2] = {};
        AKUNU_UNROLL
        for (u32 group = 0; group < 4; ++group) {
            const uint2 x = in.column(step, group);
            AKUNU_UNROLL
            for (u32 half = 0; half < 2; ++half) {
                const u32 word = group % 2 * 2 + half;
                u32 a[2];
                AKUNU_UNROLL
                for (u32 upper = 0; upper < 2; ++upper) {
                    a[upper] = group < 2 ? first_six_bits(q[word][upper], rest[word][upper])
                                         : last_six_bits(q[word][upper], rest[word][upper]);
                }
                int product[4] = {};
                mma_s8(product, {a[0], a[1], 0, 0}, {half ? x.y : x.x, 0});
                AKUNU_UNROLL
                for (u32 upper = 0; upper < 2; ++upper) {
                    const u32 from = unit + at.scales + upper * kUpper + group * 2 + half;
                    const int scale = shared_at<const signed char>(from);
                    high[upper] += product[2 * upper] * scale;
                    low[upper] += product[2 * upper + 1] * scale;
                }
            }
        }
        const float factor = shared_at<const float>(step_factor(step, in.row));
        AKUNU_UNROLL
        for (u32 upper = 0; upper < 2; ++upper) {
            const float d = half_to_float(shared_at<const u16>(unit + at.d + upper * kUpper));
            sum[upper] += (float(high[upper]) * 256.0f + float(low[upper])) * (0.25f * d * factor);
        }
    }
};

// Loads the inputs from k0 to `end` of all rows. Those behind the last row are whatever lies there: nobody asks for
// them.
template <typename T>
AKUNU_DEVICE void stage_bytes(const FewInputs& in, u32 k0, u32 end) {
    constexpr u32 kSteps = 2;  // at once
    const u32 lane = lane_id(), warp = same_in_warp(warp_id()), rows = same_in_warp(in.rows);
    const u32 steps = same_in_warp((end - k0) / kStepInputs);
    // Piece t of a group has eight inputs side by side, or four of each half.
    const u32 of = bytes_at(lane / 8, 0) + (T::kSplit ? lane % 4 * 8 + lane % 8 / 4 * 4 : lane % 8 * 4);
    for (u32 first = warp; first < steps; first += kWarps * kSteps) {
        uint2 x[kSteps][kByteRows];
        AKUNU_UNROLL
        for (u32 s = 0; s < kSteps; ++s) {
            const u32 step = first + s * kWarps, i = k0 + step * kStepInputs + lane * 4;
            AKUNU_UNROLL
            for (u32 m = 0; m < kByteRows; ++m) {
                const bool there = step < steps && i < in.k && m < rows;
                x[s][m] = there ? *reinterpret_cast<const uint2*>(in.x + u64(m) * in.k + i) : uint2{0, 0};
            }
        }
        AKUNU_UNROLL
        for (u32 s = 0; s < kSteps; ++s) {
            const u32 step = first + s * kWarps;
            if (step >= steps) break;
            AKUNU_UNROLL
            for (u32 m = 0; m < kByteRows; ++m) {
                if (m >= rows) break;
                const uint2 h = x[s][m];
                const float v[4] = {half_to_float(u16(h.x)), half_to_float(u16(h.x >> 16)), half_to_float(u16(h.y)),
                                    half_to_float(u16(h.y >> 16))};
                const InputCodes c(v, largest_of_warp(largest_bits(v)));
                if constexpr (T::kSums) {
                    u32 sum = c.total;
                    sum += shuffle_xor(sum, 1);
                    sum += shuffle_xor(sum, 2);
                    sum += shuffle_xor(sum, 4);
                    if (lane % 8 == 0) shared_at<u32>(step_sums(step, m) + lane / 8 * 4) = sum;
                }
                if (lane == 0) shared_at<float>(step_factor(step, m)) = c.factor;
                const u32 to = in.row(m) + step * (2 * kStepInputs) + of;
                shared_at<u32>(to + bytes_at(0, 0)) = c.high;
                shared_at<u32>(to + bytes_at(0, 1)) = c.low;
            }
        }
    }
}

}  // namespace akunu::cuda

// Two to four rows times codes: inputs are whole numbers of 16 bits relative to the largest of their 128, each two
// bytes, as one row's are (fragments.cuh). A product's columns are the high and the low bytes of four rows. Where
// scales are whole numbers, products with them are added up as such.
#pragma once

#include "few_layout.h"
#include "fragments.cuh"
#include "ring.cuh"
#include "tile_job.cuh"

namespace akunu::cuda {

// Where the rows' inputs and their tiles' sums are in shared memory. Two groups of 32 inputs side by side have their
// high bytes, then their low ones; what rows are apart has those that are read together in other banks.
struct ByteMemory {
    static constexpr u32 kSquares = kSharedHead, kFactors = kSharedHead + kByteFactors;
    u32 chunk, inputs, behind;
    AKUNU_DEVICE ByteMemory(u32 k, u32 rows)
        : chunk(byte_chunk(kSizes, k)),
          inputs(kSharedHead + byte_inputs(chunk)),
          behind(inputs + rows * byte_row(chunk)) {}
    AKUNU_DEVICE u32 row(u32 m) const { return inputs + m * byte_row(chunk); }
    static AKUNU_DEVICE u32 factor(u32 step, u32 m) { return kFactors + (step * kByteRows + m) * 4; }
    static AKUNU_DEVICE u32 squares(u32 m) { return kSquares + m * (kSquareParts * 4); }
};
AKUNU_DEVICE u32 bytes_at(u32 group, u32 low) { return group / 2 * 128 + low * 64 + group % 2 * 32; }

// How a lane's eight inputs of a group of 32 lie: side by side; four of each half; or side by side, of which a product
// has a column for each half of the group.
enum BytePieces : u32 { kSideBySide, kOfBothHalves, kHalvesApart };

// Where a lane finds the inputs of its column of products, and the row of its results.
template <BytePieces kPieces>
struct ByteColumn {
    static constexpr bool kApart = kPieces == kHalvesApart;
    u32 at, factors;
    bool owns;
    // Columns of rows that are not there are those of the last one, for which nobody asks.
    AKUNU_DEVICE ByteColumn(const ByteMemory& m, u32 rows, u32 lane)
        : at(m.row(smaller(lane / 8, rows - 1)) + (kApart ? 0 : bytes_at(0, lane / 4 % 2)) +
             lane % 4 * (kPieces == kOfBothHalves ? 4 : 8)),
          factors(ByteMemory::factor(0, lane % 4)),
          owns(!kApart || lane % 4 / 2 == lane / 4 % 2) {}
    AKUNU_DEVICE uint2 group(u32 step, u32 group, u32 low) const {
        const u32 from = at + step * (2 * kStepInputs) + bytes_at(group, low);
        if constexpr (kPieces == kOfBothHalves) return {shared_at<const u32>(from), shared_at<const u32>(from + 16)};
        uint2 x{0, 0};
        if (owns) x = shared_at<const uint2>(from);
        return x;
    }
    AKUNU_DEVICE float factor(u32 step) const { return shared_at<const float>(factors + step * (kByteRows * 4)); }
};

// What a lane has of a step's inputs: of each group its column's; where halves are apart the high bytes', then the low
// ones'.
template <BytePieces kPieces>
struct ByteStep {
    static constexpr u32 kColumns = kPieces == kHalvesApart ? 2 : 1;
    uint2 x[4][kColumns];
    float factor;
    AKUNU_DEVICE ByteStep(const ByteColumn<kPieces>& from, u32 step) : factor(from.factor(step)) {
        AKUNU_UNROLL
        for (u32 group = 0; group < 4; ++group) {
            AKUNU_UNROLL
            for (u32 low = 0; low < kColumns; ++low) x[group][low] = from.group(step, group, low);
        }
    }
};

// at(lane, in_unit) is where a lane finds what it reads of one of a unit's steps, and add adds its share of the step's
// products to its sums, of rows g and g + 8 of the weights.
template <u32 kReader>
struct ByteColumns;

// What the groups of a step count, of a row: loaded at once.
template <u32 kReader>
struct StepScales {
    static constexpr BlockExtras kExtras = block_extras(kReader);
    u32 words[kExtras.scale];  // four groups'
    AKUNU_DEVICE StepScales(u32 extras, u32) {
        const u32 at = extras + kExtras.scale_at(0);
        if constexpr (kExtras.scale == 4) {
            const uint4 v = shared_at<const uint4>(at);
            words[0] = v.x, words[1] = v.y, words[2] = v.z, words[3] = v.w;
        } else if constexpr (kExtras.scale == 2) {
            const uint2 v = shared_at<const uint2>(at);
            words[0] = v.x, words[1] = v.y;
        } else {
            words[0] = shared_at<const u32>(at);
        }
    }
    AKUNU_DEVICE float scale(u32 group) const {
        if constexpr (kExtras.scale == 1) return e8m0_half(u8(words[0] >> 8 * group));
        return half_to_float(u16(kExtras.scale == 4 ? words[group] : words[group / 2] >> 16 * (group % 2)));
    }
    AKUNU_DEVICE float minimum(u32 group) const { return half_to_float(u16(words[group] >> 16)); }
};
template <>
struct StepScales<kReadIq4Xs> {
    uint2 words;
    u32 first;
    AKUNU_DEVICE StepScales(u32 extras, u32 in_unit) : words(shared_at<const uint2>(extras)), first(in_unit * 4) {}
    AKUNU_DEVICE float scale(u32 group) const { return iq4_xs_scale(words, first + group); }
};

// Groups of 32 codes that have one scale each, a number of their own: nibbles, of which a lane has four bytes of a
// row's group, or bytes, of which it has eight.
template <u32 kReader>
struct GroupColumns {
    static constexpr bool kNibbles = kReader != kReadQ8_0;
    static constexpr BytePieces kPieces = kNibbles ? kOfBothHalves : kSideBySide;
    static constexpr TileLayout kLayout = tile_layout(kReader);
    struct At {
        u32 codes, extras, in_unit, t;
    };
    static AKUNU_DEVICE At at(u32 lane, u32 in_unit) {
        return {piece_at(lane / 4, in_unit * 4) + lane % 4 * (kNibbles ? 4 : 8), extras_at(kLayout, lane / 4), in_unit,
                lane % 4};
    }
    static AKUNU_DEVICE void add(u32 unit, const At& at, const ByteStep<kPieces>& in, float (&sum)[2]) {
        constexpr u32 kUpper = kTileRows / 2 * kLayout.extra_bytes;
        const u32 codes = unit + at.codes, extras = unit + at.extras;
        const StepScales<kReader> scales[2] = {{extras, at.in_unit}, {extras + kUpper, at.in_unit}};
        float part[2] = {};
        AKUNU_UNROLL
        for (u32 group = 0; group < 4; ++group) {
            const u32 x[2] = {in.x[group][0].x, in.x[group][0].y};
            u32 a[4];
            int product[4] = {};
            if constexpr (!kNibbles) {
                AKUNU_UNROLL
                for (u32 upper = 0; upper < 2; ++upper) {
                    const uint2 q = shared_at<const uint2>(codes + piece_at(0, group * 2) + upper * 512);
                    a[upper] = q.x, a[2 + upper] = q.y;
                }
                mma_s8(product, a, x);
            } else {
                using N = Nibbles<kReader>;
                AKUNU_UNROLL
                for (u32 upper = 0; upper < 2; ++upper) {
                    const u32 w = shared_at<const u32>(codes + group * kPiece + upper * 512);
                    u32 fifth = 0;
                    if constexpr (N::kFifth) fifth = shared_at<const u32>(extras + upper * kUpper + group * 4) >> at.t;
                    N::bytes(w, fifth, a[upper], a[2 + upper]);
                }
                if constexpr (N::kSigned) {
                    mma_s8(product, a, x);
                } else {
                    mma_u8_s8(product, a, x);
                }
                if constexpr (has_minima(kReader)) {
                    constexpr u32 kOnes = 0x01010101u;
                    int inputs[4] = {};  // their sums
                    mma_u8_s8(inputs, {kOnes, kOnes, kOnes, kOnes}, x);
                    AKUNU_UNROLL
                    for (u32 upper = 0; upper < 2; ++upper) {
                        part[upper] += whole(inputs, upper) * scales[upper].minimum(group);
                    }
                }
            }
            AKUNU_UNROLL
            for (u32 upper = 0; upper < 2; ++upper) part[upper] += whole(product, upper) * scales[upper].scale(group);
        }
        constexpr float kUnit = unit_of();
        AKUNU_UNROLL
        for (u32 upper = 0; upper < 2; ++upper) sum[upper] += in.factor * part[upper] * kUnit;
    }

  private:
    static constexpr float unit_of() {
        if constexpr (kNibbles) return Nibbles<kReader>::kUnit;
        return 1.0f;
    }
};
template <>
struct ByteColumns<kReadQ4_0> : GroupColumns<kReadQ4_0> {};
template <>
struct ByteColumns<kReadQ4_1> : GroupColumns<kReadQ4_1> {};
template <>
struct ByteColumns<kReadQ5_0> : GroupColumns<kReadQ5_0> {};
template <>
struct ByteColumns<kReadQ5_1> : GroupColumns<kReadQ5_1> {};
template <>
struct ByteColumns<kReadQ8_0> : GroupColumns<kReadQ8_0> {};
template <>
struct ByteColumns<kReadIq4Nl> : GroupColumns<kReadIq4Nl> {};
template <>
struct ByteColumns<kReadIq4Xs> : GroupColumns<kReadIq4Xs> {};
template <>
struct ByteColumns<kReadMxfp4> : GroupColumns<kReadMxfp4> {};

// Q4_K and Q5_K.
template <u32 kReader>
struct KByteColumns {
    static constexpr bool kFifth = kReader == kReadQ5_K;
    static constexpr TileLayout kLayout = tile_layout(kReader);
    static constexpr BytePieces kPieces = kSideBySide;
    struct At {
        u32 codes, extras, fifth, bits, in_unit;
    };
    static AKUNU_DEVICE At at(u32 lane, u32 in_unit) {
        return {piece_at(lane / 4, in_unit * 4) + lane % 4 * 8, extras_at(kLayout, lane / 4),
                k_fifth_at(in_unit * 4 + lane % 4 / 2), lane % 2 * 2, in_unit};
    }
    // A group's minimum, in each byte of a word: its products with the inputs are what it counts of their sum.
    static AKUNU_DEVICE u32 minimum(u32 groups, u32 which) { return k_min_of(groups, which) * 0x01010101u; }
    static AKUNU_DEVICE void add(u32 unit, const At& at, const ByteStep<kPieces>& in, float (&sum)[2]) {
        constexpr u32 kUpper = kTileRows / 2 * kLayout.extra_bytes;
        KFactors factors[2];
        u32 words[2][2];  // of two groups each
        AKUNU_UNROLL
        for (u32 upper = 0; upper < 2; ++upper) {
            const uint4 extras = shared_at<const uint4>(unit + at.extras + upper * kUpper);
            factors[upper] = k_factors(extras);
            words[upper][0] = at.in_unit ? extras.z : extras.x;
            words[upper][1] = at.in_unit ? extras.w : extras.y;
        }
        // Below 2^31: two groups' 32 inputs of 127·256 times codes of 15 and scales of 63. High nibbles are 16 times
        // what they count, so their high bytes' products and their low ones' stay apart; those of codes of 31, too.
        int even[2] = {}, odd[2][2] = {}, least[4] = {};
        AKUNU_UNROLL
        for (u32 pair = 0; pair < 2; ++pair) {
            const uint2 q[2] = {shared_at<const uint2>(unit + at.codes + pair * 32),
                                shared_at<const uint2>(unit + at.codes + pair * 32 + 512)};
            u32 codes[2][4];  // of the low nibbles, and of the high ones
            AKUNU_UNROLL
            for (u32 upper = 0; upper < 2; ++upper) {
                const u32 from = unit + at.extras + upper * kUpper + at.fifth + pair * 8;
                u32 fifth = 0;
                if constexpr (kFifth) fifth = shared_at<const u32>(from) >> at.bits;
                k_bytes<kReader>(q[upper].x, fifth, codes[0][upper], codes[1][upper]);
                k_bytes<kReader>(q[upper].y, fifth >> 1, codes[0][2 + upper], codes[1][2 + upper]);
            }
            AKUNU_UNROLL
            for (u32 high = 0; high < 2; ++high) {
                const u32 group = 2 * pair + high;
                const u32 x[2] = {in.x[group][0].x, in.x[group][0].y};
                int product[4] = {};
                mma_u8_s8(product, codes[high], x);
                const u32 first = minimum(words[0][pair], high), second = minimum(words[1][pair], high);
                mma_u8_s8(least, {first, second, first, second}, x);
                AKUNU_UNROLL
                for (u32 upper = 0; upper < 2; ++upper) {
                    const int scale = int(k_scale_of(words[upper][pair], high));
                    if (high || kFifth) {
                        odd[0][upper] += product[2 * upper] * scale;
                        odd[1][upper] += product[2 * upper + 1] * scale;
                    } else {
                        even[upper] += whole_number(product, upper) * scale;
                    }
                }
            }
        }
        constexpr float kOdd = kFifth ? 1.0f : 0.0625f;
        AKUNU_UNROLL
        for (u32 upper = 0; upper < 2; ++upper) {
            const KFactors& f = factors[upper];
            const float all =
                float(even[upper]) + (float(odd[0][upper]) * (256.0f * kOdd) + float(odd[1][upper]) * kOdd);
            sum[upper] += in.factor * (f.scale * all - f.min * whole(least, upper));
        }
    }
};
template <>
struct ByteColumns<kReadQ4_K> : KByteColumns<kReadQ4_K> {};
template <>
struct ByteColumns<kReadQ5_K> : KByteColumns<kReadQ5_K> {};

template <>
struct ByteColumns<kReadQ6_K> {
    static constexpr BytePieces kPieces = kHalvesApart;  // scales are of 16
    struct At {
        u32 codes, rest, scales, d;
    };
    static AKUNU_DEVICE At at(u32 lane, u32 in_unit) {
        const u32 extras = extras_at(tile_layout(kReadQ6_K), lane / 4);
        return {piece_at(lane / 4, in_unit * 4) + lane % 4 * 8, piece_at(lane / 4, 8 + in_unit * 2) + lane % 4 * 4,
                extras + in_unit * 8, extras + 16};
    }
    static AKUNU_DEVICE void add(u32 unit, const At& at, const ByteStep<kPieces>& in, float (&sum)[2]) {
        constexpr u32 kUpper = 8 * tile_layout(kReadQ6_K).extra_bytes;
        // Of groups 0 and 1, whose other nibbles are those of 2 and 3; a word of the other bits serves two.
        uint2 q[2][2];
        u32 rest[2][2];
        AKUNU_UNROLL
        for (u32 i = 0; i < 2; ++i) {
            AKUNU_UNROLL
            for (u32 upper = 0; upper < 2; ++upper) {
                q[i][upper] = shared_at<const uint2>(unit + at.codes + i * 32 + upper * 512);
                rest[i][upper] = shared_at<const u32>(unit + at.rest + i * kPiece + upper * 512);
            }
        }
        // Below 2^29: 128 inputs' high bytes of 127 times codes of 4·32 and scales of 128.
        int high[2] = {}, low[2] = {};
        AKUNU_UNROLL
        for (u32 group = 0; group < 4; ++group) {
            u32 a[4];
            AKUNU_UNROLL
            for (u32 upper = 0; upper < 2; ++upper) {
                const uint2 nibbles = q[group % 2][upper];
                const u32 others = rest[group % 2][upper];
                a[upper] = group < 2 ? first_six_bits(nibbles.x, others) : last_six_bits(nibbles.x, others);
                a[2 + upper] =
                    group < 2 ? first_six_bits(nibbles.y, others << 2) : last_six_bits(nibbles.y, others << 2);
            }
            int highs[4] = {}, lows[4] = {};  // of each row those of the group's halves
            mma_s8(highs, a, {in.x[group][0].x, in.x[group][0].y});
            mma_s8(lows, a, {in.x[group][1].x, in.x[group][1].y});
            AKUNU_UNROLL
            for (u32 upper = 0; upper < 2; ++upper) {
                const u16 scales = shared_at<const u16>(unit + at.scales + upper * kUpper + group * 2);
                AKUNU_UNROLL
                for (u32 half = 0; half < 2; ++half) {
                    const int scale = static_cast<signed char>(scales >> 8 * half);
                    high[upper] += highs[2 * upper + half] * scale;
                    low[upper] += lows[2 * upper + half] * scale;
                }
            }
        }
        AKUNU_UNROLL
        for (u32 upper = 0; upper < 2; ++upper) {
            const float d = half_to_float(shared_at<const u16>(unit + at.d + upper * kUpper));
            sum[upper] += (float(high[upper]) * 256.0f + float(low[upper])) * (0.25f * d * in.factor);
        }
    }
};

}  // namespace akunu::cuda

// Two to 16 rows times weights on the tensor cores, tile by tile as they come through the ring: the steps of a tile's
// inputs are dealt to the warps, which leave their sums in shared memory, where a thread for each result adds them up.
//
// Weights are the first factor and rows of inputs the second's columns, eight to a product. Codes are F16 numbers by
// their bits, and exact; what a product of a group gives is scaled as F32.
#pragma once

#include "halves.cuh"
#include "matvec.cuh"
#include "row_tiles.cuh"

namespace akunu::cuda {

// Inputs in shared memory: rows of as many as there is room for, in pieces of 16 bytes. A piece has what a lane
// multiplies of a group of 32: piece t of a group eight inputs side by side, or four of each half.
constexpr u32 kFewInputs = 64 << 10, kFewPad = 64;  // bytes of all rows, and behind each, for other banks
constexpr u32 kColumnRows = 8;                      // rows of inputs in a product
constexpr u32 kPartStride = 20;                     // floats of a warp's sums for a row of inputs
struct FewMemory {
    u32 inputs, sums, partials;
};
constexpr FewMemory kFewMemory = {kSharedHead, kSharedHead + kFewInputs + kFewRows* kFewPad,
                                  kSharedHead + kFewInputs + kFewRows* kFewPad + kFewInputs / 16};
constexpr u32 kPartBytes = kFewRows * kPartStride * 4;
static_assert(kFewMemory.partials + 2 * kWarps * kPartBytes <= kSharedHead + kFewRowsBytes,
              "the ring begins behind it");

// What a lane has of two rows' group of 32: the first factors of two products, and what each counts.
template <u32 kScales>
struct RowGroup {
    u32 a[2][4];
    float scale[kScales][2], offset[2];
};

// Of the readers that have tiles: load(unit, step, group, lane, rows) takes group 0 to 3 of a step.
template <u32 kReader>
struct Columns;

template <u32 kOf, bool kSplitPieces, bool kWithSums>
struct CodeColumns {
    // Scales of a group; whether pieces have four inputs of each half; whether sums of inputs are wanted.
    static constexpr u32 kScales = kOf;
    static constexpr bool kFloats = false, kBf16 = false, kSplit = kSplitPieces, kSums = kWithSums;
    using Rows = RowGroup<kOf>;
};

// Word t of a lane's piece in row g + 8·upper.
AKUNU_DEVICE u32 lane_word(u32 unit, u32 piece, u32 lane, u32 upper) {
    return shared_at<const u32>(unit + piece_at(lane / 4 + 8 * upper, piece) + lane % 4 * 4);
}
// Words 2t and 2t + 1 of the 32 bytes that begin with a piece.
AKUNU_DEVICE uint2 lane_words(u32 unit, u32 piece, u32 lane, u32 upper) {
    return shared_at<const uint2>(unit + piece_at(lane / 4 + 8 * upper, piece) + lane % 4 * 8);
}

template <>
struct Columns<kReadQ4_0> : CodeColumns<1, true, false> {
    static AKUNU_DEVICE void load(u32 unit, u32, u32 group, u32 lane, Rows& r) {
        AKUNU_UNROLL
        for (u32 upper = 0; upper < 2; ++upper) {
            const u32 w = lane_word(unit, group, lane, upper);
            AKUNU_UNROLL
            for (u32 i = 0; i < 2; ++i) {
                r.a[0][2 * i + upper] = add_halves(low_nibbles(w >> 8 * i), 0xE408E408u);   // - 1032
                r.a[1][2 * i + upper] = add_halves(high_nibbles(w >> 8 * i), 0xD480D480u);  // - 72
            }
            r.scale[0][upper] =
                half_to_float(shared_at<const u16>(lane_extras<kReadQ4_0>(unit, lane, upper) + group * 2));
        }
    }
};

template <>
struct Columns<kReadQ8_0> : CodeColumns<1, false, false> {
    static AKUNU_DEVICE void load(u32 unit, u32, u32 group, u32 lane, Rows& r) {
        AKUNU_UNROLL
        for (u32 upper = 0; upper < 2; ++upper) {
            const uint2 q = lane_words(unit, group * 2, lane, upper);
            const u32 words[2] = {q.x ^ 0x80808080u, q.y ^ 0x80808080u};
            AKUNU_UNROLL
            for (u32 i = 0; i < 2; ++i) {
                r.a[i][upper] = add_halves(choose_bytes(words[i], 0x64646464u, 0x7260u), 0xE480E480u);  // - 1152
                r.a[i][2 + upper] = add_halves(choose_bytes(words[i], 0x64646464u, 0x7361u), 0xE480E480u);
            }
            r.scale[0][upper] =
                half_to_float(shared_at<const u16>(lane_extras<kReadQ8_0>(unit, lane, upper) + group * 2));
        }
    }
};

template <>
struct Columns<kReadQ4_K> : CodeColumns<1, false, true> {
    static AKUNU_DEVICE void load(u32 unit, u32 step, u32 group, u32 lane, Rows& r) {
        AKUNU_UNROLL
        for (u32 upper = 0; upper < 2; ++upper) {
            const uint2 q = lane_words(unit, step % 2 * 4 + group / 2 * 2, lane, upper);
            const u32 words[2] = {q.x >> 4 * (group % 2), q.y >> 4 * (group % 2)};
            AKUNU_UNROLL
            for (u32 i = 0; i < 2; ++i) {
                r.a[i][upper] = add_halves(low_nibbles(words[i]), 0xE400E400u);  // - 1024
                r.a[i][2 + upper] = add_halves(low_nibbles(words[i] >> 8), 0xE400E400u);
            }
            const KScale s =
                k_scale(shared_at<const uint4>(lane_extras<kReadQ4_K>(unit, lane, upper)), step % 2 * 4 + group);
            r.scale[0][upper] = s.scale;
            r.offset[upper] = s.offset;
        }
    }
};

template <>
struct Columns<kReadQ6_K> : CodeColumns<2, true, false> {
    static AKUNU_DEVICE void load(u32 unit, u32 step, u32 group, u32 lane, Rows& r) {
        // Groups 0 and 1 of a step are the low nibbles of its codes, 2 and 3 the high ones.
        const u32 shift = group / 2 * 4;
        AKUNU_UNROLL
        for (u32 upper = 0; upper < 2; ++upper) {
            const u32 extras = lane_extras<kReadQ6_K>(unit, lane, upper);
            const float d = half_to_float(shared_at<const u16>(extras + 16));
            AKUNU_UNROLL
            for (u32 i = 0; i < 2; ++i) {
                const u32 q = lane_word(unit, step % 2 * 4 + group % 2 * 2 + i, lane, upper) >> shift;
                const u32 top = lane_word(unit, 8 + step % 2 * 2 + i, lane, upper) >> 2 * group;
                AKUNU_UNROLL
                for (u32 odd = 0; odd < 2; ++odd) {
                    const u32 bits = low_nibbles(q >> 8 * odd) | (top >> 8 * odd & 0x00030003u) << 4;
                    r.a[i][2 * odd + upper] = add_halves(bits, 0xE420E420u);  // - 1056
                }
                const u32 scale = shared_at<const u8>(extras + step % 2 * 8 + group * 2 + i);
                r.scale[i][upper] = d * code_float(scale ^ 128, 128.0f);
            }
        }
    }
};

template <bool kBfloats>
struct FloatColumns {
    static constexpr u32 kScales = 1;
    static constexpr bool kFloats = true, kBf16 = kBfloats, kSplit = false, kSums = false;
    using Rows = RowGroup<1>;
    static AKUNU_DEVICE void load(u32 unit, u32, u32 group, u32 lane, Rows& r) {
        AKUNU_UNROLL
        for (u32 upper = 0; upper < 2; ++upper) {
            const uint4 q = lane_piece(unit, group, lane, upper);
            r.a[0][upper] = q.x;
            r.a[0][2 + upper] = q.y;
            r.a[1][upper] = q.z;
            r.a[1][2 + upper] = q.w;
        }
    }
};
template <>
struct Columns<kReadF16> : FloatColumns<false> {};
template <>
struct Columns<kReadBf16> : FloatColumns<true> {};

// The inputs that are in shared memory: so many of each row, from a multiple of that number on.
struct FewInputs {
    const u16* x;
    u32 rows, k, columns, log2_inputs, stride;  // columns: rows with those up to a whole product; bytes of a row
    AKUNU_DEVICE FewInputs(const u16* x, u32 rows, u32 k, u32 parts)
        : x(x), rows(rows), k(k), columns(rows > kColumnRows ? kFewRows : kColumnRows) {
        log2_inputs = 31 - leading_zeros(kFewInputs / (columns * 2 * parts));
        while (log2_inputs > 7 && 1u << (log2_inputs - 1) >= k) --log2_inputs;
        stride = (2 * parts << log2_inputs) + kFewPad;
    }
    // A part of row m.
    AKUNU_DEVICE u32 row(u32 m, u32 part) const { return kFewMemory.inputs + m * stride + (part * 2 << log2_inputs); }
    AKUNU_DEVICE u32 sums(u32 group) const { return kFewMemory.sums + group * columns * 4; }
};

// Eight inputs of the row that begins at `to`, the first of which is its input `at`, to where T multiplies them.
template <typename T>
AKUNU_DEVICE void put_few(u32 to, u32 at, const uint4& x) {
    if constexpr (T::kFloats) {
        shared_at<uint4>(to + at * 2) = x;
        return;
    }
    // A word's nibbles are taken byte 0 beside byte 2.
    const uint2 first = {choose_bytes(x.x, x.y, 0x5410u), choose_bytes(x.x, x.y, 0x7632u)};
    const uint2 second = {choose_bytes(x.z, x.w, 0x5410u), choose_bytes(x.z, x.w, 0x7632u)};
    if constexpr (T::kSplit) {
        const u32 piece = to + at / 32 * 64 + at % 16 * 4 + at % 32 / 16 * 8;
        shared_at<uint2>(piece) = first;
        shared_at<uint2>(piece + 16) = second;
    } else {
        shared_at<uint4>(to + at * 2) = uint4{first.x, first.y, second.x, second.y};
    }
}
// The same of row m as BF16 numbers, and what these leave.
AKUNU_DEVICE void put_bfloats(const FewInputs& in, u32 m, u32 at, const uint4& x) {
    const u32 words[4] = {x.x, x.y, x.z, x.w};
    u32 high[4], low[4];
    AKUNU_UNROLL
    for (u32 i = 0; i < 4; ++i) {
        const float a = half_to_float(u16(words[i])), b = half_to_float(u16(words[i] >> 16));
        const u32 ha = float_to_bfloat(a), hb = float_to_bfloat(b);
        high[i] = ha | hb << 16;
        low[i] = float_to_bfloat(a - bits_to_float(ha << 16)) | u32(float_to_bfloat(b - bits_to_float(hb << 16))) << 16;
    }
    shared_at<uint4>(in.row(m, 0) + at * 2) = uint4{high[0], high[1], high[2], high[3]};
    shared_at<uint4>(in.row(m, 1) + at * 2) = uint4{low[0], low[1], low[2], low[3]};
}

// Brings the inputs from k0 on of all rows. Those behind the last row are whatever lies there: nobody asks for them.
template <typename T>
AKUNU_DEVICE void stage_few(const FewInputs& in, u32 k0) {
    constexpr u32 kAtOnce = 4;
    const u32 vectors = in.rows << (in.log2_inputs - 3);
    for (u32 base = thread_id(); base < vectors; base += kThreads * kAtOnce) {
        uint4 x[kAtOnce];
        AKUNU_UNROLL
        for (u32 j = 0; j < kAtOnce; ++j) {
            const u32 v = base + j * kThreads, m = v >> (in.log2_inputs - 3), at = v * 8 & ((1u << in.log2_inputs) - 1);
            x[j] = {0, 0, 0, 0};
            if (v < vectors && k0 + at < in.k) x[j] = *reinterpret_cast<const uint4*>(in.x + u64(m) * in.k + k0 + at);
        }
        AKUNU_UNROLL
        for (u32 j = 0; j < kAtOnce; ++j) {
            const u32 v = base + j * kThreads, m = v >> (in.log2_inputs - 3), at = v * 8 & ((1u << in.log2_inputs) - 1);
            if (v >= vectors) break;  // where sums are wanted for whole warps: a row has 256 inputs or more
            if constexpr (T::kSums) {
                const u32 words[4] = {x[j].x, x[j].y, x[j].z, x[j].w};
                float sum = 0.0f;
                AKUNU_UNROLL
                for (u32 i = 0; i < 4; ++i) sum += half_to_float(u16(words[i])) + half_to_float(u16(words[i] >> 16));
                sum += shuffle_xor(sum, 1);
                sum += shuffle_xor(sum, 2);
                if (v % 4 == 0) shared_at<float>(in.sums(at / 32) + m * 4) = sum;
            }
            if constexpr (T::kBf16) {
                put_bfloats(in, m, at, x[j]);
            } else {
                put_few<T>(in.row(m, 0), at, x[j]);
            }
        }
    }
}

// A step of 128 inputs, from `at` of those in shared memory on, for rows g and g + 8 of a tile: of each block of eight
// rows of inputs the lane's four sums.
template <typename T, u32 kReader>
AKUNU_DEVICE void multiply_few(const FewInputs& in, u32 unit, u32 step, u32 at, u32 lane, float (&sum)[2][4]) {
    AKUNU_UNROLL
    for (u32 group = 0; group < 4; ++group) {
        typename T::Rows w;
        T::load(unit, step, group, lane, w);
        AKUNU_UNROLL
        for (u32 n = 0; n < 2; ++n) {
            if (n != 0 && in.rows <= kColumnRows) break;
            const u32 m = n * kColumnRows + lane / 4;
            float product[2][4] = {};
            AKUNU_UNROLL
            for (u32 part = 0; part < (T::kBf16 ? 2 : 1); ++part) {
                const uint4 x = shared_at<const uint4>(in.row(m, part) + (at + group * 32) * 2 + lane % 4 * 16);
                const auto multiply = [](float(&d)[4], const u32(&a)[4], const u32(&b)[2]) {
                    T::kBf16 ? mma_bf16(d, a, b) : mma_f16(d, a, b);
                };
                multiply(product[0], w.a[0], {x.x, x.y});
                multiply(product[T::kScales - 1], w.a[1], {x.z, x.w});
            }
            float2 inputs{0.0f, 0.0f};
            if constexpr (T::kSums) {
                inputs = shared_at<const float2>(in.sums(at / 32 + group) + (n * kColumnRows + lane % 4 * 2) * 4);
            }
            AKUNU_UNROLL
            for (u32 e = 0; e < 4; ++e) {
                if constexpr (T::kFloats) {
                    sum[n][e] += product[0][e];
                } else {
                    AKUNU_UNROLL
                    for (u32 s = 0; s < T::kScales; ++s) sum[n][e] += product[s][e] * w.scale[s][e / 2];
                    if constexpr (T::kSums) sum[n][e] += w.offset[e / 2] * (e % 2 ? inputs.y : inputs.x);
                }
            }
        }
    }
}

// Result `row` of row m; of gate and up `v` and `up`.
AKUNU_DEVICE void store_few(Block b, u32 m, u32 row, float v, float up) {
    if (b.command().op == kOpGateUp) {
        const auto& p = b.params<GateUpParams>();
        const Output out{b.buffer<float>(3), b.buffer<u16>(4), p.formats};
        out.store(u64(m) * p.n + row, activate(p.activation, v) * up);
    } else {
        MatmulOutput{b.params<MatmulParams>(), b.buffer<float>(2), b.buffer<float>(3)}.store(m, row, v);
    }
}

template <u32 kReader>
AKUNU_DEVICE_CALL void few_rows(Block b) {
    using T = Columns<kReader>;
    constexpr TileLayout kLayout = tile_layout(kReader);
    constexpr u32 kSlotSteps = kLayout.slot_units() * kLayout.steps();
    const TileJob job = tile_job(b, 0);
    const u32 rows = ring_rows(b.command()), steps = job.k / kStepInputs, lane = lane_id(), warp = warp_id();
    const FewInputs in(b.buffer<u16>(0), rows, job.k, T::kBf16 ? 2 : 1);
    const u32 chunk = 1u << in.log2_inputs, begin = share_begin(job.tiles()), end = share_end(job.tiles());
    RingReader ring(warp);
    u32 staged = job.k;  // from which input on
    b.ready();
    for (u32 tile = begin; tile < end; ++tile) {
        for (u32 half = 0; half <= job.pairs; ++half) {
            float sum[2][4] = {};
            for (u32 from = 0; from < steps; from += kSlotSteps) {
                const u32 k0 = from * kStepInputs & ~(chunk - 1);
                if (k0 != staged) {
                    sync_block();  // what is there has been read
                    stage_few<T>(in, k0);
                    sync_block();
                    staged = k0;
                }
                const u32 slot = ring.wait();
                for (u32 j = (warp - from) % kWarps; j < smaller(kSlotSteps, steps - from); j += kWarps) {
                    multiply_few<T, kReader>(in, slot + j / kLayout.steps() * kLayout.unit_bytes(), from + j,
                                             (from + j) * kStepInputs - k0, lane, sum);
                }
                ring.free(lane);
            }
            if (half == 0) sync_block();  // the tile before has been added up
            const u32 to = kFewMemory.partials + (half * kWarps + warp) * kPartBytes + lane / 4 * 4;
            AKUNU_UNROLL
            for (u32 n = 0; n < 2; ++n) {
                AKUNU_UNROLL
                for (u32 e = 0; e < 4; ++e) {
                    const u32 m = n * kColumnRows + lane % 4 * 2 + e % 2;
                    shared_at<float>(to + (m * kPartStride + e / 2 * 8) * 4) = sum[n][e];
                }
            }
        }
        sync_block();
        const u32 m = thread_id() / kTileRows, row = tile * kTileRows + thread_id() % kTileRows;
        if (m >= rows || row >= job.rows[0]) continue;
        const u32 of = kFewMemory.partials + (m * kPartStride + thread_id() % kTileRows) * 4;
        float v = 0.0f, up = 0.0f;
        AKUNU_UNROLL
        for (u32 w = 0; w < kWarps; ++w) {
            v += shared_at<float>(of + w * kPartBytes);
            if (job.pairs) up += shared_at<float>(of + (kWarps + w) * kPartBytes);
        }
        store_few(b, m, row, v, up);
    }
    ring.keep(warp, lane);
}

}  // namespace akunu::cuda

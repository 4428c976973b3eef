// Two to kFewRows rows times weights on the tensor cores, tile by tile as they come through the ring. Teams of warps
// have 16 rows each; the steps of a tile's inputs are dealt to a team's warps, which leave their sums in shared memory,
// where a thread for each result adds them up.
//
// Weights are the first factor and rows of inputs the second's columns, eight to a product. K-quants'
// codes and up to kByteRows rows are multiplied as whole numbers (few_bytes.cuh). Others' codes are F16 numbers by
// their bits, and exact; what a product of a group gives is scaled as F32.
#pragma once

#include "adapters.cuh"
#include "few_bytes.cuh"
#include "halves.cuh"
#include "matvec.cuh"
#include "row_tiles.cuh"

namespace akunu::cuda {

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
    static constexpr bool kFloats = false, kSplit = kSplitPieces, kSums = kWithSums;
    using Rows = RowGroup<kOf>;
};

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
struct Columns<kReadMxfp4> : CodeColumns<1, true, false> {
    static AKUNU_DEVICE void load(u32 unit, u32, u32 group, u32 lane, Rows& r) {
        AKUNU_UNROLL
        for (u32 upper = 0; upper < 2; ++upper) {
            const u32 w = lane_word(unit, group, lane, upper);
            AKUNU_UNROLL
            for (u32 i = 0; i < 2; ++i) {
                r.a[0][2 * i + upper] = low_e2m1(w >> 8 * i);
                r.a[1][2 * i + upper] = high_e2m1(w >> 8 * i);
            }
            r.scale[0][upper] =
                2.0f * e8m0_half(shared_at<const u8>(lane_extras<kReadMxfp4>(unit, lane, upper) + group));
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
        const SixBits bits(group);
        AKUNU_UNROLL
        for (u32 upper = 0; upper < 2; ++upper) {
            const u32 extras = lane_extras<kReadQ6_K>(unit, lane, upper);
            const float d = half_to_float(shared_at<const u16>(extras + 16));
            const u32 others = piece_at(lane / 4 + 8 * upper, 8 + step % 2 * 2 + group % 2) + lane % 4 / 2 * 4;
            AKUNU_UNROLL
            for (u32 i = 0; i < 2; ++i) {
                const u32 q = lane_word(unit, step % 2 * 4 + group % 2 * 2 + i, lane, upper);
                const u32 rest = shared_at<const u32>(unit + others + i * 8);
                AKUNU_UNROLL
                for (u32 odd = 0; odd < 2; ++odd) {
                    const u32 code = bits.of(q >> 8 * odd, rest >> 8 * odd, lane % 2);
                    r.a[i][2 * odd + upper] = add_halves(code | kThousand, 0xE420E420u);  // - 1056
                }
                const u32 scale = shared_at<const u8>(extras + step % 2 * 8 + group * 2 + i);
                r.scale[i][upper] = d * code_float(scale ^ 128, 128.0f);
            }
        }
    }
};

struct FloatColumns {
    static constexpr u32 kScales = 1;
    static constexpr bool kFloats = true, kSplit = false, kSums = false;
    using Rows = RowGroup<1>;
    static AKUNU_DEVICE void load(u32 unit, u32, u32 group, u32 lane, Rows& r) {
        AKUNU_UNROLL
        for (u32 upper = 0; upper < 2; ++upper) {
            const uint4 q = lane_float_piece(unit, group, lane, upper);
            r.a[0][upper] = q.x;
            r.a[0][2 + upper] = q.y;
            r.a[1][upper] = q.z;
            r.a[1][2 + upper] = q.w;
        }
    }
};
template <>
struct Columns<kReadF16> : FloatColumns {};
template <>
struct Columns<kReadBf16> : FloatColumns {};

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

// Loads the inputs from k0 on of all rows. Those behind the last row are whatever lies there: nobody asks for them.
template <typename T>
AKUNU_DEVICE void stage_few(const FewInputs& in, u32 k0) {
    constexpr u32 kAtOnce = 8;
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
            put_few<T>(in.row(m), at, x[j]);
        }
    }
}

// A step of 128 inputs, from `at` of those in shared memory on, for rows g and g + 8 of a tile: of each block of eight
// of a team's rows of inputs, which begin with m0, the lane's four sums.
template <typename T>
AKUNU_DEVICE void multiply_few(const FewInputs& in, u32 m0, u32 unit, u32 step, u32 at, u32 lane, float (&sum)[2][4]) {
    AKUNU_UNROLL
    for (u32 group = 0; group < 4; ++group) {
        typename T::Rows w;
        T::load(unit, step, group, lane, w);
        AKUNU_UNROLL
        for (u32 n = 0; n < 2; ++n) {
            if (n != 0 && in.rows <= m0 + kColumnRows) break;
            const u32 m = m0 + n * kColumnRows + lane / 4;
            float product[2][4] = {};
            const uint4 x = shared_at<const uint4>(in.row(m) + (at + group * 32) * 2 + lane % 4 * 16);
            mma_f16(product[0], w.a[0], {x.x, x.y});
            mma_f16(product[T::kScales - 1], w.a[1], {x.z, x.w});
            float2 inputs{0.0f, 0.0f};
            if constexpr (T::kSums) {
                inputs = shared_at<const float2>(in.sums(at / 32 + group) + (m0 + n * kColumnRows + lane % 4 * 2) * 4);
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

// How few rows are multiplied: stage(from, end) brings some of their inputs to shared memory; multiply adds a step's
// products to a lane's sums, of rows g and g + 8 of a tile's weights and, in each block of its team's rows of inputs,
// of kLaneRows. `at` is the step's place among the inputs in shared memory.
template <u32 kReader>
struct HalfProducts {
    static constexpr u32 kPad = kFewPad, kBlocks = 2, kLaneRows = 2;
    const FewInputs& in;
    u32 m0, lane;
    AKUNU_DEVICE HalfProducts(const FewInputs& in, u32 m0, u32, u32 lane) : in(in), m0(m0), lane(lane) {}
    AKUNU_DEVICE void stage(u32 from, u32) const { stage_few<Columns<kReader>>(in, from); }
    AKUNU_DEVICE void multiply(u32 unit, u32 step, u32 at, float (&sum)[kBlocks][2 * kLaneRows]) const {
        multiply_few<Columns<kReader>>(in, m0, unit, step, at * kStepInputs, lane, sum);
    }
};
template <u32 kReader>
struct ByteProducts {
    using T = ByteColumns<kReader>;
    static constexpr u32 kPad = kBytePad, kBlocks = 1, kLaneRows = 1;
    const FewInputs& in;
    LaneBytes bytes;
    typename T::At place;
    // All of a warp's steps are the same ones of their units: there are eight warps, and parts of a row begin with such
    // a step.
    AKUNU_DEVICE ByteProducts(const FewInputs& in, u32, u32 warp, u32 lane)
        : in(in), bytes(in, lane), place(T::at(lane, warp % tile_layout(kReader).steps())) {}
    AKUNU_DEVICE void stage(u32 from, u32 end) const { stage_bytes<T>(in, from, end); }
    AKUNU_DEVICE void multiply(u32 unit, u32, u32 at, float (&sum)[kBlocks][2 * kLaneRows]) const {
        T::add(unit, place, bytes, at, sum[0]);
    }
};

// A warp's sums of a tile: a lane's of a block of rows are side by side, and lanes in such an order that those who
// write and those who read find them in other banks.
AKUNU_DEVICE u32 lane_sums(u32 n, u32 lane) { return (n * 32 + (lane ^ lane / 8)) * 16; }
template <u32 kSums>
AKUNU_DEVICE void load_lane_sums(u32 at, float (&sum)[kSums]) {
    if constexpr (kSums == 2) {
        const float2 v = shared_at<const float2>(at);
        sum[0] = v.x, sum[1] = v.y;
    } else {
        const float4 v = shared_at<const float4>(at);
        sum[0] = v.x, sum[1] = v.y, sum[2] = v.z, sum[3] = v.w;
    }
}
template <u32 kSums>
AKUNU_DEVICE void store_lane_sums(u32 at, const float (&sum)[kSums]) {
    if constexpr (kSums == 2) {
        shared_at<float2>(at) = float2{sum[0], sum[1]};
    } else {
        shared_at<float4>(at) = float4{sum[0], sum[1], sum[2], sum[3]};
    }
}

// Of a team's warps the sums of its row m and the tile's row r.
template <u32 kLaneRows>
AKUNU_DEVICE float team_sum(u32 sums, u32 warps, u32 m, u32 r) {
    constexpr u32 kBlockRows = 4 * kLaneRows;
    const u32 lane = r % 8 * 4 + m % kBlockRows / kLaneRows;
    const u32 at = sums + lane_sums(m / kBlockRows, lane) + (r / 8 * kLaneRows + m % kLaneRows) * 4;
    float v = 0.0f;
    AKUNU_UNROLL
    for (u32 w = 0; w < kWarps; ++w) {
        if (w < warps) v += shared_at<float>(at + w * kWarpSumsBytes);
    }
    return v;
}

// The results of some tiles, or of pairs, whose sums begin there.
template <u32 kLaneRows, typename Added>
AKUNU_DEVICE void store_tiles(Block b, const TileJob& job, u32 rows, u32 team_warps, u32 first, u32 behind, u32 sums,
                              const Added& adapters) {
    const u32 r = thread_id() % kTileRows;
    u32 tile = first, m = thread_id() / kTileRows;
    while (true) {
        for (; m >= rows; m -= rows) ++tile;
        if (tile >= behind) return;
        const u32 row = tile * kTileRows + r;
        if (row < job.rows[0]) {
            const u32 team =
                sums + ((tile - first) << job.pairs) * kTileSumsBytes + m / kTeamRows * team_warps * kWarpSumsBytes;
            const auto sum = [&](u32 at) { return team_sum<kLaneRows>(at, team_warps, m % kTeamRows, r); };
            const auto add = [&](float v, u32 matrix) { return adapters.add(v, matrix, m, row, kFewMemory.tiles); };
            const float v = add(job.factor[0] * sum(team), 0);
            store_few(b, m, row, v, job.pairs ? add(job.factor[1] * sum(team + kTileSumsBytes), 1) : 0.0f);
        }
        m += kThreads / kTileRows;
    }
}

template <u32 kReader, typename Products, typename Added>
AKUNU_DEVICE_CALL void few_rows_by(Block b) {
    constexpr TileLayout kLayout = tile_layout(kReader);
    constexpr u32 kSlotSteps = kLayout.slot_units(kSizes.slot_bytes) * kLayout.steps();
    constexpr u32 kBlocks = Products::kBlocks, kLaneRows = Products::kLaneRows;
    const TileJob& job = b.job(0);
    const u32 rows = ring_rows(b.command()), lane = lane_id(), warp = warp_id();
    const FewInputs in(b.buffer<u16>(0), rows, job.inputs(), Products::kPad);
    const u32 end = job.end, pass = few_pass(kSizes, job.pairs);
    const u32 team_warps = kWarps / larger(1, in.columns / kTeamRows), m0 = warp / team_warps * kTeamRows;
    const Products products(in, m0, warp, lane);
    RingReader ring(warp);
    u32 staged = job.k;  // from which input on
    const Added adapters(b, job, rows);
    const u32 tiles = kFewMemory.tiles + adapters.bytes();
    const auto first_unit = adapters.ask(job);
    b.wait();
    adapters.leave(in.x, first_unit);
    for (u32 first = job.begin; first < end; first += pass) {
        const u32 behind = smaller(first + pass, end);
        for (u32 k0 = 0; k0 < job.k; k0 += in.chunk()) {
            const u32 chunk_end = smaller(k0 + in.chunk(), job.k), step_end = chunk_end / kStepInputs;
            if (k0 != staged) {
                sync_block();  // what is there has been read
                products.stage(k0, chunk_end);
                sync_block();
                staged = k0;
            }
            for (u32 part = first << job.pairs; part < behind << job.pairs; ++part) {
                const u32 to = tiles + (part - (first << job.pairs)) * kTileSumsBytes + warp * kWarpSumsBytes;
                float sum[kBlocks][2 * kLaneRows] = {};
                if (k0 != 0) {
                    AKUNU_UNROLL
                    for (u32 n = 0; n < kBlocks; ++n) load_lane_sums(to + lane_sums(n, lane), sum[n]);
                }
                for (u32 from = k0 / kStepInputs; from < step_end; from += kSlotSteps) {
                    const u32 slot = ring.wait(), behind_slot = smaller(from + kSlotSteps, step_end);
                    // Of a team's warps each has every so manieth step.
                    for (u32 step = from + (warp - from) % team_warps; step < behind_slot && m0 < rows;
                         step += team_warps) {
                        products.multiply(slot + (step - from) / kLayout.steps() * kLayout.unit_bytes(), step,
                                          step - k0 / kStepInputs, sum);
                    }
                    ring.free(lane);
                }
                if (k0 == 0 && part == first << job.pairs) sync_block();  // the pass before has been added up
                AKUNU_UNROLL
                for (u32 n = 0; n < kBlocks; ++n) store_lane_sums(to + lane_sums(n, lane), sum[n]);
            }
        }
        if (first == job.begin) adapters.take(kFewMemory.tiles);
        sync_block();
        store_tiles<kLaneRows>(b, job, rows, team_warps, first, behind, tiles, adapters);
    }
    ring.keep(warp, lane);
}

template <u32 kReader, typename Added>
AKUNU_DEVICE void few_rows_with(Block b) {
    if constexpr (kReader == kReadQ4_K || kReader == kReadQ6_K) {
        if (ring_rows(b.command()) <= kByteRows) return few_rows_by<kReader, ByteProducts<kReader>, Added>(b);
    }
    few_rows_by<kReader, HalfProducts<kReader>, Added>(b);
}
template <u32 kReader>
AKUNU_DEVICE void few_rows(Block b) {
#if AKUNU_ADAPTERS
    if (any_of_warp(is_adapted(b))) return few_rows_with<kReader, FewAdapters>(b);
#endif
    few_rows_with<kReader, NoAdapters>(b);
}

}  // namespace akunu::cuda

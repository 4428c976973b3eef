// Two to kFewRows rows times weights on the tensor cores, tile by tile as they come through the ring. Teams of warps
// have 16 rows each; the steps of a tile's inputs are dealt to a team's warps, which leave their sums in shared memory,
// where a thread for each result adds them up.
//
// Weights are the first factor and rows of inputs the second's columns, eight to a product. Codes are F16 numbers by
// their bits, and exact; what a product of a group gives is scaled as F32. Codes of up to kByteRows rows are multiplied
// as whole numbers instead (byte_rows.cuh).
#pragma once

#include "byte_rows.cuh"
#include "few_memory.cuh"
#include "halves.cuh"

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

// Blocks of 32 nibbles: a lane has four of the low ones and four of the high ones.
template <u32 kReader>
struct NibbleColumns : CodeColumns<1, true, has_minima(kReader)> {
    using N = Nibbles<kReader>;
    static AKUNU_DEVICE void load(u32 unit, u32 step, u32 group, u32 lane, RowGroup<1>& r) {
        const u32 block = step % tile_layout(kReader).steps() * 4 + group;
        AKUNU_UNROLL
        for (u32 upper = 0; upper < 2; ++upper) {
            const u32 w = lane_word(unit, block, lane, upper), extras = lane_extras<kReader>(unit, lane, upper);
            const u32 fifth = N::kFifth ? shared_at<const u32>(extras + group * 4) >> lane % 4 : 0;
            u32 low[2], high[2];
            nibble_halves<kReader, false>(w, fifth, low, high);
            AKUNU_UNROLL
            for (u32 i = 0; i < 2; ++i) {
                r.a[0][2 * i + upper] = low[i];
                r.a[1][2 * i + upper] = high[i];
            }
            NibbleScale<kReader> scale;
            scale.load(extras, block);
            r.scale[0][upper] = (kReader == kReadMxfp4 ? 2.0f : 1.0f) * scale.scale(block);
            if constexpr (has_minima(kReader)) r.offset[upper] = scale.minimum();
        }
    }
};
template <>
struct Columns<kReadQ4_0> : NibbleColumns<kReadQ4_0> {};
template <>
struct Columns<kReadQ4_1> : NibbleColumns<kReadQ4_1> {};
template <>
struct Columns<kReadQ5_0> : NibbleColumns<kReadQ5_0> {};
template <>
struct Columns<kReadQ5_1> : NibbleColumns<kReadQ5_1> {};
template <>
struct Columns<kReadIq4Nl> : NibbleColumns<kReadIq4Nl> {};
template <>
struct Columns<kReadIq4Xs> : NibbleColumns<kReadIq4Xs> {};
template <>
struct Columns<kReadMxfp4> : NibbleColumns<kReadMxfp4> {};

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

// Q4_K and Q5_K.
template <u32 kReader>
struct KColumns : CodeColumns<1, false, true> {
    static AKUNU_DEVICE void load(u32 unit, u32 step, u32 group, u32 lane, RowGroup<1>& r) {
        const u32 piece = step % 2 * 4 + group / 2 * 2, shift = 4 * (group % 2);
        AKUNU_UNROLL
        for (u32 upper = 0; upper < 2; ++upper) {
            const uint2 q = lane_words(unit, piece, lane, upper);
            const u32 words[2] = {q.x >> shift, q.y >> shift}, extras = lane_extras<kReader>(unit, lane, upper);
            u32 fifth = 0;
            if constexpr (kReader == kReadQ5_K) {
                fifth = shared_at<const u32>(extras + k_fifth_at(piece + lane % 4 / 2)) >> lane % 2 * 2 + shift;
            }
            AKUNU_UNROLL
            for (u32 i = 0; i < 2; ++i) {
                AKUNU_UNROLL
                for (u32 odd = 0; odd < 2; ++odd) {
                    u32 code = low_nibbles(words[i] >> 8 * odd);
                    if constexpr (kReader == kReadQ5_K) code |= fifth >> i >> 8 * odd << 4 & 0x00100010u;
                    r.a[i][2 * odd + upper] = add_halves(code, 0xE400E400u);  // - 1024
                }
            }
            const KScale s = k_scale(shared_at<const uint4>(extras), step % 2 * 4 + group);
            r.scale[0][upper] = s.scale;
            r.offset[upper] = s.offset;
        }
    }
};
template <>
struct Columns<kReadQ4_K> : KColumns<kReadQ4_K> {};
template <>
struct Columns<kReadQ5_K> : KColumns<kReadQ5_K> {};

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

// A warp's sums of a tile: a lane's of a block of rows are side by side, and lanes in such an order that those who
// write and those who read find them in other banks.
AKUNU_DEVICE u32 lane_sums(u32 n, u32 lane) { return (n * 32 + (lane ^ lane / 8)) * 16; }

// Of a team's warps the sums of its row m and the tile's row r.
AKUNU_DEVICE float team_sum(u32 sums, u32 warps, u32 m, u32 r) {
    const u32 lane = r % 8 * 4 + m % kColumnRows / 2;
    const u32 at = sums + lane_sums(m / kColumnRows, lane) + (r / 8 * 2 + m % 2) * 4;
    float v = 0.0f;
    AKUNU_UNROLL
    for (u32 w = 0; w < kWarps; ++w) {
        if (w < warps) v += shared_at<float>(at + w * kWarpSumsBytes);
    }
    return v;
}

// The results of some tiles, or of pairs, whose sums begin there.
template <typename Added>
AKUNU_DEVICE void store_tiles(const TileJob& job, u32 rows, u32 team_warps, u32 first, u32 behind, u32 sums,
                              const Added& adapters) {
    const auto tile_of = [&](u32 i) { return first + i; };
    each_result(job, rows, behind - first, tile_of, [&](u32 i, u32 m, u32 r, const TileRow& at, u32) {
        const u32 team = sums + (i << job.pairs) * kTileSumsBytes + m / kTeamRows * team_warps * kWarpSumsBytes;
        const auto result = [&](u32 of, u32 matrix) {
            const float v = job.factor[matrix] * team_sum(of, team_warps, m % kTeamRows, r);
            return at.there ? adapters.add(v, matrix, m, at.row, kFewMemory.tiles) : 0.0f;
        };
        const float v = result(team, 0);
        const float up = job.pairs ? result(team + kTileSumsBytes, 1) : 0.0f;
        store_result(job, at, m, v, up, result_base(job, at, m));
    });
}

template <u32 kReader, typename Added>
AKUNU_DEVICE_CALL void half_rows(Block b) {
    using T = Columns<kReader>;
    constexpr TileLayout kLayout = tile_layout(kReader);
    constexpr u32 kSlotSteps = kLayout.slot_units(kSizes.slot_bytes) * kLayout.steps();
    const TileJob& job = b.job(0);
    const u32 rows = ring_rows(b.command()), lane = lane_id(), warp = warp_id();
    const FewInputs in(b.buffer<u16>(0), rows, job.inputs(), kFewPad);
    const u32 end = job.end, pass = few_pass(kSizes, job.pairs);
    const u32 team_warps = kWarps / larger(1, in.columns / kTeamRows), m0 = warp / team_warps * kTeamRows;
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
            const u32 step_end = smaller(k0 + in.chunk(), job.k) / kStepInputs;
            if (k0 != staged) {
                sync_block();  // what is there has been read
                stage_few<T>(in, k0);
                sync_block();
                staged = k0;
            }
            for (u32 part = first << job.pairs; part < behind << job.pairs; ++part) {
                const u32 to = tiles + (part - (first << job.pairs)) * kTileSumsBytes + warp * kWarpSumsBytes;
                const auto place = [&](u32 n) -> float4& { return shared_at<float4>(to + lane_sums(n, lane)); };
                float sum[2][4] = {};
                if (k0 != 0) {
                    AKUNU_UNROLL
                    for (u32 n = 0; n < 2; ++n) {
                        const float4 v = place(n);
                        sum[n][0] = v.x, sum[n][1] = v.y, sum[n][2] = v.z, sum[n][3] = v.w;
                    }
                }
                for (u32 from = k0 / kStepInputs; from < step_end; from += kSlotSteps) {
                    const u32 slot = ring.wait(), behind_slot = smaller(from + kSlotSteps, step_end);
                    // Of a team's warps each has every so manieth step.
                    for (u32 step = from + (warp - from) % team_warps; step < behind_slot && m0 < rows;
                         step += team_warps) {
                        multiply_few<T>(in, m0, slot + (step - from) / kLayout.steps() * kLayout.unit_bytes(), step,
                                        step * kStepInputs - k0, lane, sum);
                    }
                    ring.free(lane);
                }
                if (k0 == 0 && part == first << job.pairs) sync_block();  // the pass before has been added up
                AKUNU_UNROLL
                for (u32 n = 0; n < 2; ++n) place(n) = float4{sum[n][0], sum[n][1], sum[n][2], sum[n][3]};
            }
        }
        if (first == job.begin) adapters.take(kFewMemory.tiles);
        sync_block();
        store_tiles(job, rows, team_warps, first, behind, tiles, adapters);
    }
    ring.keep(warp, lane);
}

// Of `second` and the others of a command's jobs: see byte_rows.
template <u32 kReader, typename Added>
AKUNU_DEVICE void few_rows_with(Block b, u32 second) {
    if constexpr (input_parts(kReader) == 1) {
        if (any_of_warp(ring_rows(b.command()) <= kByteRows)) return byte_rows<kReader, Added>(b, second);
    }
    half_rows<kReader, Added>(b);
}
template <u32 kReader>
AKUNU_DEVICE void few_rows(Block b, u32 second) {
#if AKUNU_ADAPTERS
    if (any_of_warp(is_adapted(b))) return few_rows_with<kReader, FewAdapters>(b, second);
#endif
    few_rows_with<kReader, NoAdapters>(b, second);
}

}  // namespace akunu::cuda

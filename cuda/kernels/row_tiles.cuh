// A row times weights on the tensor cores, tile by tile as they come through the ring: the steps of a tile's inputs are
// dealt to the warps, which leave their sums in shared memory, where a thread for each row adds them up.
//
// One function serves kMatmul, kGateUp, kNormQkv and kNormGateUp: what they differ in stands in a TileJob.
#pragma once

#include "activation.cuh"
#include "cards.cuh"
#include "fragments.cuh"
#include "ring.cuh"

namespace akunu::cuda {

// Offsets in shared memory: so every access is known to be one of it.
struct TileMemory {
    u32 parts;     // of codes' types bytes [k / 32][2][32], of floats u16 [kParts][k]
    u32 sums;      // float [k / 16]: of inputs as whole numbers
    u32 factors;   // float [k / kStepInputs]
    u32 squares;   // float [kWarps], where the input is to be normalised
    u32 partials;  // float [2][kTilesAtOnce][kWarps][kTileRows]

    AKUNU_DEVICE u32 other_half(u32 of) const { return 2 * partials + kPartialsBytes - of; }
};
AKUNU_DEVICE TileMemory tile_memory(u32 k, u32 parts) {
    TileMemory m;
    m.parts = kSharedHead;
    m.sums = m.parts + parts * k * 2;
    m.factors = m.sums + k / 4;
    m.squares = m.factors + (k / kStepInputs + 3) / 4 * 16;
    m.partials = m.squares + kWarps * 4;
    return m;
}
// Row r of a tile, or of the first of a pair: of which matrix, and which of its rows; false behind its end.
struct TileRow {
    u32 matrix, row;
    bool there;
};
AKUNU_DEVICE TileRow tile_row(const TileJob& job, u32 tile, u32 r) {
    const u32 first = job.rows[0], second = job.rows[1], third = job.rows[2];  // all: a branch would cost more
    const u32 n0 = job.tiles_of(0), n1 = job.pairs ? n0 : n0 + job.tiles_of(1);
    const u32 matrix = tile < n0 ? 0 : tile < n1 ? 1 : 2;
    const u32 row = (tile - (matrix == 0 ? 0 : matrix == 1 ? n0 : n1)) * kTileRows + r;
    return {matrix, row, row < (matrix == 0 ? first : matrix == 1 ? second : third)};
}

// Says where a row's inputs are, which is computed while the block waits: F32 that are to be normalised, or F16.
struct InputSource {
    const float *x, *norm;
    const u16* halves;
};

AKUNU_DEVICE float dot(const float4& a, const float4& b) { return (a.x * b.x + a.y * b.y) + (a.z * b.z + a.w * b.w); }

// What a row's experts may have besides (ExpertKind): all of it where it is not given.
#ifndef AKUNU_EXPERT_KINDS
#define AKUNU_EXPERT_KINDS X(kWithShared) X(kWithRouterNorm) X(kWithMoreRows)
#endif
#define X(kind) | (kind)
constexpr u32 kExpertKinds = 0 AKUNU_EXPERT_KINDS;
#undef X
constexpr bool kHasShared = (kExpertKinds & kWithShared) != 0, kHasRouterNorm = (kExpertKinds & kWithRouterNorm) != 0,
               kHasMoreRows = (kExpertKinds & kWithMoreRows) != 0;

// Rows of a router's F32 weights whose products with a row's normed inputs are computed while these are staged, but for
// the norm's factor: null where there is none. Where the router has a norm of its own, the last one is its weights.
struct RouterRows {
    static constexpr u32 kAtOnce = kStagedRouterRows;
    const float* at[kAtOnce];
    bool own_norm;
    float sums[kAtOnce];  // of a thread
};
struct NoRouterRows {
    static constexpr u32 kAtOnce = 0;
};

// Four inputs of a row. What is asked for is no branch's: else one load would wait for another.
template <bool kNormed, typename Router = NoRouterRows>
struct RowInputs {
    float4 x, weight;
    uint2 halves;
    float4 router[larger(Router::kAtOnce, 1)];

    AKUNU_DEVICE void load_router(const Router& rows, u32 i, bool there) {
        if constexpr (Router::kAtOnce != 0) {
            AKUNU_UNROLL
            for (u32 r = 0; r < Router::kAtOnce; ++r) {
                const bool has = there && rows.at[r] != nullptr;
                router[r] = has ? *reinterpret_cast<const float4*>(rows.at[r] + i) : float4{0.0f, 0.0f, 0.0f, 0.0f};
            }
        }
    }
    AKUNU_DEVICE void add_logits(Router& rows) const {
        if constexpr (Router::kAtOnce != 0) {
            const float4& by = kHasRouterNorm && rows.own_norm ? router[Router::kAtOnce - 1] : weight;
            const float4 v{x.x * by.x, x.y * by.y, x.z * by.z, x.w * by.w};
            AKUNU_UNROLL
            for (u32 r = 0; r < Router::kAtOnce; ++r) rows.sums[r] += dot(router[r], v);
        }
    }

    // The weights of the norm, which no command writes.
    AKUNU_DEVICE void load_weight(const InputSource& from, u32 i, bool there) {
        if constexpr (kNormed) {
            weight = there ? *reinterpret_cast<const float4*>(from.norm + i) : float4{0.0f, 0.0f, 0.0f, 0.0f};
        }
    }
    AKUNU_DEVICE void load(const InputSource& from, u32 i, bool there) {
        if constexpr (kNormed) {
            x = there ? *reinterpret_cast<const float4*>(from.x + i) : float4{0.0f, 0.0f, 0.0f, 0.0f};
        } else {
            halves = there ? *reinterpret_cast<const uint2*>(from.halves + i) : uint2{0, 0};
        }
    }
    // Reads inputs from mailbox words; false where some have not arrived.
    AKUNU_DEVICE bool poll(const u64* words, u32 i, u32 number) {
        u64 w[2];
        bool all = true;
        const auto two = [&](const u64* at) {
            load_words(at, w);
            all &= number_of(w[0]) == number && number_of(w[1]) == number;
        };
        if constexpr (kNormed) {
            two(words + i);
            x.x = bits_to_float(value_of(w[0]));
            x.y = bits_to_float(value_of(w[1]));
            two(words + i + 2);
            x.z = bits_to_float(value_of(w[0]));
            x.w = bits_to_float(value_of(w[1]));
        } else {
            two(words + i / 2);
            halves = {value_of(w[0]), value_of(w[1])};
        }
        return all;
    }
    AKUNU_DEVICE float squares() const {
        if constexpr (kNormed) return x.x * x.x + x.y * x.y + x.z * x.z + x.w * x.w;
        return 0.0f;
    }
    AKUNU_DEVICE void values(float (&v)[4]) const {
        if constexpr (kNormed) {
            v[0] = x.x * weight.x;
            v[1] = x.y * weight.y;
            v[2] = x.z * weight.z;
            v[3] = x.w * weight.w;
        } else {
            v[0] = half_to_float(u16(halves.x));
            v[1] = half_to_float(u16(halves.x >> 16));
            v[2] = half_to_float(u16(halves.y));
            v[3] = half_to_float(u16(halves.y >> 16));
        }
    }
};

// Inputs i to i + 3 of a step whose largest has the bits `top`, as T reads them; what the first parts count is
// returned.
template <typename T>
AKUNU_DEVICE float put_floats(const TileMemory& m, u32 k, u32 i, bool there, u32 top, float (&x)[4]) {
    const u32 exponent = larger(top >> 23, 15);  // the largest comes to be from 2^14 to 2^15
    const float scale = bits_to_float((268 - exponent) << 23);
    AKUNU_UNROLL
    for (u32 e = 0; e < 4; ++e) x[e] *= scale;
    AKUNU_UNROLL
    for (u32 part = 0; part < T::kParts; ++part) {
        u32 h[4];
        AKUNU_UNROLL
        for (u32 e = 0; e < 4; ++e) {
            h[e] = float_to_half(x[e]);
            x[e] = (x[e] - half_to_float(u16(h[e]))) * kPartShift;
        }
        if (there) shared_at<uint2>(m.parts + (part * k + i) * 2) = uint2{h[0] | h[1] << 16, h[2] | h[3] << 16};
    }
    return bits_to_float((exponent - 14) << 23);
}
template <typename T>
AKUNU_DEVICE float put_codes(const TileMemory& m, u32 i, bool there, u32 lane, u32 top, const float (&x)[4]) {
    const InputCodes codes(x, top);
    if constexpr (T::kSums) {
        float sum = codes.sum;
        sum += shuffle_xor(sum, 1);
        sum += shuffle_xor(sum, 2);
        if (there && lane % 4 == 0) shared_at<float>(m.sums + i / 16 * 4) = sum;
    }
    const u32 at = m.parts + i / 32 * 64 + i % 32;
    if (there) {
        shared_at<u32>(at) = codes.high;
        shared_at<u32>(at + 32) = codes.low;
    }
    return codes.factor;
}

// Inputs of a row, and with the zeros behind them. Of several rows, the one behind the first `rows` is elsewhere, and
// has so many.
struct RowLength {
    u32 inputs, padded, rows = 0, last_inputs = 0;
    const u16* last = nullptr;
};

// Waits for the row, if it has not been waited for, and splits it into parts, as kind T reads them. Where kRows, `k` is
// that of several rows one behind the other, each with its zeros.
template <typename T, bool kNormed, bool kWaits, bool kRows, typename Router>
AKUNU_DEVICE void stage_inputs(Block b, const RowLength& row, u32 k, const TileMemory& m, u32 thread, Router& router) {
    using Inputs = RowInputs<kNormed, Router>;
    constexpr u32 kEach = 4, kApart = kThreads * kEach;
    const InputSource from{b.buffer<float>(0), b.buffer<float>(1), b.buffer<u16>(0)};
    const u32 lane = thread % 32;
    float squares = 0.0f;
    // Some at once without a branch between them, for whole warps: k is a multiple of kStepInputs.
    const auto stage = [&](u32 base, const auto&... rows) {
        constexpr u32 kNow = sizeof...(rows);
        const Inputs* const inputs[] = {&rows...};
        float x[kNow][4];
        u32 top[kNow];
        AKUNU_UNROLL
        for (u32 n = 0; n < kNow; ++n) {
            inputs[n]->values(x[n]);
            top[n] = largest_bits(x[n]);  // a warp has a step's inputs
        }
        AKUNU_UNROLL
        for (u32 n = 0; n < kNow; ++n) top[n] = largest_of_warp(top[n]);
        AKUNU_UNROLL
        for (u32 n = 0; n < kNow; ++n) {
            const u32 i = base + n * kApart;
            const float factor = T::kFloats ? put_floats<T>(m, k, i, i < k, top[n], x[n])
                                            : put_codes<T>(m, i, i < k, lane, top[n], x[n]);
            if (lane == 0 && i < k) shared_at<float>(m.factors + i / kStepInputs * 4) = factor;
        }
    };
    const u64* words = kWaits ? b.taken() : nullptr;
    if (kWaits && any_of_warp(words != nullptr)) {
        constexpr u32 kAtOnce = kNormed ? 2 : 4;
        const u32 number = b.taken_number();
        for (u32 base = thread * kEach; base < k; base += kApart * kAtOnce) {
            Inputs inputs[kAtOnce];
            AKUNU_UNROLL
            for (u32 j = 0; j < kAtOnce; ++j) {
                inputs[j].load_weight(from, base + j * kApart, base + j * kApart < row.inputs);
                inputs[j].load_router(router, base + j * kApart, base + j * kApart < row.inputs);
            }
            wait_for_words([&] {
                bool all = true;
                AKUNU_UNROLL
                for (u32 j = 0; j < kAtOnce; ++j) {
                    // Behind the row's end the last ones again, which count for nothing: the weights there are 0.
                    all &= inputs[j].poll(words, smaller(base + j * kApart, row.inputs - kEach), number);
                }
                return all;
            });
            AKUNU_UNROLL
            for (u32 j = 0; j < kAtOnce; ++j) {
                squares += base + j * kApart < row.inputs ? inputs[j].squares() : 0.0f;
                inputs[j].add_logits(router);
            }
            AKUNU_UNROLL
            for (u32 j = 0; j < kAtOnce; j += 2) {
                const u32 at = base + j * kApart;
                if (at >= k) break;
                at + kApart < k ? stage(at, inputs[j], inputs[j + 1]) : stage(at, inputs[j]);
            }
        }
    } else {
        // What comes next is asked for before what is there is staged.
        constexpr u32 kAtOnce = 2;
        Inputs inputs[kAtOnce], next[kAtOnce];
        const auto load_weights = [&](Inputs(&to)[kAtOnce], u32 base) {
            AKUNU_UNROLL
            for (u32 j = 0; j < kAtOnce; ++j) {
                to[j].load_weight(from, base + j * kApart, base + j * kApart < row.inputs);
                to[j].load_router(router, base + j * kApart, base + j * kApart < row.inputs);
            }
        };
        // Which of several rows a step is of: a division is one of these products. Steps are fewer than 2^10.
        const u32 share = kRows ? (1u << 20) / (row.padded / kStepInputs) + 1 : 0;
        const auto load = [&](Inputs(&to)[kAtOnce], u32 base) {
            AKUNU_UNROLL
            for (u32 j = 0; j < kAtOnce; ++j) {
                const u32 at = base + j * kApart;
                if constexpr (kRows) {
                    const u32 of = (at / kStepInputs * share) >> 20, which = kHasShared ? smaller(of, row.rows) : of;
                    const u32 in_row = at - which * row.padded;
                    const bool last = kHasShared && which == row.rows;
                    const u16* const halves = last ? row.last : from.halves + which * row.inputs;
                    to[j].load({from.x, from.norm, halves}, in_row,
                               at < k && in_row < (last ? row.last_inputs : row.inputs));
                } else {
                    to[j].load(from, at, at < row.inputs);
                }
            }
        };
        load_weights(inputs, thread * kEach);
        if constexpr (kWaits) b.wait();
        load(inputs, thread * kEach);
        AKUNU_NO_UNROLL
        for (u32 base = thread * kEach; base < k; base += kApart * kAtOnce) {
            load_weights(next, base + kApart * kAtOnce);
            load(next, base + kApart * kAtOnce);
            AKUNU_UNROLL
            for (u32 j = 0; j < kAtOnce; ++j) {
                squares += inputs[j].squares();
                inputs[j].add_logits(router);
            }
            stage(base, inputs[0], inputs[1]);
            AKUNU_UNROLL
            for (u32 j = 0; j < kAtOnce; ++j) inputs[j] = next[j];
        }
    }
    if constexpr (kNormed) {
        squares = reduce_warp(squares, Add());
        if (lane == 0) shared_at<float>(m.squares + thread / 32 * 4) = squares;
    }
}

template <typename T, bool kNormed, bool kWaits = true, bool kRows = false>
AKUNU_DEVICE void stage_inputs(Block b, const RowLength& row, u32 k, const TileMemory& m, u32 thread) {
    NoRouterRows none;
    stage_inputs<T, kNormed, kWaits, kRows>(b, row, k, m, thread, none);
}

// 1 / sqrt(mean of squares + eps) of what was staged.
AKUNU_DEVICE float staged_norm(const TileMemory& m, float of_input, float eps) {
    float sum = 0.0f;
    AKUNU_UNROLL
    for (u32 i = 0; i < kWarps; i += 4) {
        const float4 s = shared_at<float4>(m.squares + i * 4);
        sum += (s.x + s.y) + (s.z + s.w);
    }
    return inverse_root(sum * of_input + eps);
}
AKUNU_DEVICE float tile_norm(const TileJob& job, const TileMemory& m) {
    return job.normed ? staged_norm(m, job.of_input, job.eps) : 1.0f;
}

AKUNU_DEVICE float soft_capped(float v, float cap) { return cap > 0.0f ? soft_cap(v, cap) : v; }

// Says where a row's sum goes; it is looked up while the sums are not there yet.
struct TileOutput {
    bool there;
    u32 row;
    float factor, up_factor, bias = 0.0f, base = 0.0f;
    u32 pairs, number;
    float* y;
    u64* word;  // where it is left as one; of two F16 ones by the first; null: nowhere

    AKUNU_DEVICE TileOutput(const TileJob& job, const TileRow& at)
        : there(at.there),
          row(at.row),
          factor(job.factor[at.matrix]),
          up_factor(job.factor[1]),
          pairs(job.pairs),
          number(job.number),
          y(in_global(reinterpret_cast<float*>(job.y[at.matrix]))) {
        // Without branches: each would cost a warp more than what it saves.
        u64* const words = job.words[at.matrix];
        const float* const biases = in_global(reinterpret_cast<const float*>(job.bias[at.matrix]));
        word = there && words != nullptr && (row & pairs) == 0 ? words + (row >> pairs) : nullptr;
        bias = there && job.bias[at.matrix] != 0 ? biases[row] : 0.0f;
    }
    // The result that is added to, once the block has waited for it.
    AKUNU_DEVICE void load_base(const TileJob& job) {
        if (there && job.adds) base = y[row];
    }
    // `scale` is the norm's; of pairs `up` is the sum of the second matrix. With several cards what it is added to is
    // added to the sum of all of them.
    AKUNU_DEVICE float value(const TileJob& job, float scale, float sum, float up) const {
        sum *= scale * factor;
        if (pairs) return activate(job.activation, sum) * (up * (scale * up_factor));
#if AKUNU_CARDS > 1
        return soft_capped(sum + bias, job.cap);
#else
        return base + soft_capped(sum + bias, job.cap);
#endif
    }
    // All lanes of a warp store the results, words first, since other blocks wait for them.
    AKUNU_DEVICE void store(const TileJob& job, float v) const {
        const u32 halves = pack_halves(v, shuffle_xor(v, 1));
        if (word) leave_word(word, pairs ? halves : float_to_bits(v), number);
        if (!there) return;
        if (pairs) {
            Output{y, in_global(reinterpret_cast<u16*>(job.y[1])), job.formats}.store(row, v);
        } else {
            y[row] = v;
        }
    }
};

// Says where a lane finds its inputs. Lanes without any have zeros, and read none: else they would keep the banks of
// shared memory from the others.
struct TileInputs {
    bool owns;
    u32 at;  // of the first step
    u32 sums, factors, lane, t;
};
template <typename T>
AKUNU_DEVICE TileInputs tile_inputs(u32 k, const TileMemory& m, u32 lane) {
    const u32 g = lane / 4, t = lane % 4;
    return {T::owns(g, t), m.parts + T::part(g) * k * 2 + T::lane_at(g, t), m.sums, m.factors, lane, t};
}
// The operands of a lane for a step of some tiles.
template <typename T, u32 kTiles = 1>
struct TileStep {
    typename T::Loaded part[kTiles][2];
    StepInputs<T::kPieces> in;

    // `in_unit`: which of its unit's steps it is.
    template <typename At>
    AKUNU_DEVICE void load(const At (&units)[kTiles], u32 in_unit, u32 step, const TileInputs& from) {
        AKUNU_UNROLL
        for (u32 i = 0; i < kTiles; ++i) {
            T::load(units[i], in_unit, from.lane, 0, part[i][0]);
            T::load(units[i], in_unit, from.lane, 1, part[i][1]);
        }
        AKUNU_UNROLL
        for (u32 e = 0; e < T::kPieces; ++e) {
            in.x[e] = {0, 0, 0, 0};
            if (from.owns) in.x[e] = shared_at<uint4>(from.at + step * T::kStepBytes + e * T::kApart);
        }
        in.t = from.t;
        in.sums = from.sums + step * (kStepInputs / 16) * 4;
        in.factor = shared_at<float>(from.factors + step * 4);
    }
    AKUNU_DEVICE void multiply(float (&sum)[kTiles][2]) const {
        AKUNU_UNROLL
        for (u32 i = 0; i < kTiles; ++i) T::multiply(part[i], in, sum[i]);
    }
};

// A warp's sums of its steps of some tiles, from the i-th on.
template <u32 kTiles>
AKUNU_DEVICE void store_sums(u32 partials, u32 i, u32 warp, u32 lane, float (&sums)[kTiles][2]) {
    u32 to = partials + ((i * kWarps + warp) * kTileRows + lane / 4) * 4;
    AKUNU_UNROLL
    for (auto& sum : sums) {
        AKUNU_UNROLL
        for (u32 half = 0; half < 2; ++half) sum[half] += shuffle_xor(sum[half], 1);
    }
    AKUNU_UNROLL
    for (auto& sum : sums) {
        AKUNU_UNROLL
        for (u32 half = 0; half < 2; ++half) {
            sum[half] += shuffle_xor(sum[half], 2);
            if (lane % 4 == 0) shared_at<float>(to + half * 32) = sum[half];
        }
        to += kWarps * kTileRows * 4;
    }
}
// All warps' sums of row r of the i-th tile, and of a pair those of the tile behind it.
AKUNU_DEVICE float2 sums_of_warps(u32 partials, u32 i, u32 r, u32 pair) {
    const u32 of = partials + (i * kWarps * kTileRows + r) * 4;
    float2 sum = {0.0f, 0.0f};
    AKUNU_UNROLL
    for (u32 w = 0; w < kWarps; ++w) {
        sum.x += shared_at<float>(of + w * kTileRows * 4);
        if (pair) sum.y += shared_at<float>(of + (kWarps + w) * kTileRows * 4);
    }
    return sum;
}
AKUNU_DEVICE float sum_of_warps(u32 partials, u32 i, u32 r) { return sums_of_warps(partials, i, r, 0).x; }

// A block's share of a job's tiles. The first job of a command stages the input for the second, too.
template <u32 kReader>
AKUNU_DEVICE void row_tiles(Block b, u32 second) {
    using T = Fragments<kReader>;
    static_assert(T::kParts == input_parts(kReader), "the host makes room for them");
    constexpr TileLayout kLayout = tile_layout(kReader);
    constexpr u32 kSlotSteps = kLayout.slot_units(kSizes.slot_bytes) * kLayout.steps();
    constexpr u32 kEach = kSlotSteps / kWarps;  // steps of a slot that a warp takes, all of them at once
    const u32 thread = thread_id_anew(), lane = thread % 32, warp = thread / 32;
    const TileJob& job = b.job(second);
    const u32 k = job.k, pairs = job.pairs, begin = job.begin, end = job.end, steps = k / kStepInputs;
    const TileMemory m = tile_memory(k, T::kParts);
    const u32 mine = thread / kTileRows, r = thread % kTileRows;  // the row that this thread adds up and stores
    const auto output = [&](u32 first, u32 tiles) {
        return TileOutput(job, mine < tiles ? tile_row(job, first + mine, r) : TileRow{0, 0, false});
    };
    const u32 together = kTilesAtOnce >> pairs;
    TileOutput out = output(begin, smaller(end - begin, together));
    const TileInputs in = tile_inputs<T>(k, m, lane);
    // Of a slot: where a warp's first unit is, and which of its units' steps it takes.
    const u32 unit = warp / kLayout.steps() * kLayout.unit_bytes(), in_unit = warp % kLayout.steps();
    RingReader ring(warp);
    const RowLength row{job.inputs(), k};
    if (!second)
        job.normed ? stage_inputs<T, true>(b, row, k, m, thread) : stage_inputs<T, false>(b, row, k, m, thread);
    out.load_base(job);
    // A warp has staged the very steps that it multiplies. The second job's sums take the place of the first one's.
    second ? sync_block() : sync_warp();
    u32 partials = m.partials;
    for (u32 first = begin; first < end; first += together) {
        const u32 tiles = smaller(end - first, together);
        const u32 n = tiles << pairs;
        u32 i = 0;
        // Of tiles that a slot has room for two at once.
        for (; steps <= kSlotSteps && i + 1 < n; i += 2) {
            const u32 one = ring.wait();
            u64* const first_full = ring.full();
            ring.at.advance(ring.slots);
            const u32 other = ring.wait();
            float sums[2][2] = {};
            for (u32 j = warp; j < steps; j += kWarps) {
                const u32 at = j / kLayout.steps() * kLayout.unit_bytes();
                TileStep<T, 2> both;
                both.load({one + at, other + at}, j % kLayout.steps(), j, in);
                both.multiply(sums);
            }
            ring.free_two(lane, first_full);
            store_sums(partials, i, warp, lane, sums);
        }
        for (; i < n; ++i) {
            float sum[1][2] = {};
            for (u32 from = 0; from < steps; from += kSlotSteps) {
                const u32 slot = ring.wait(), step = from + warp;
                if (kEach != 0 && from + kSlotSteps <= steps) {
                    TileStep<T> each[larger(kEach, 1)];
                    AKUNU_UNROLL
                    for (u32 j = 0; j < kEach; ++j) {
                        each[j].load({slot + unit + j * kWarps / kLayout.steps() * kLayout.unit_bytes()}, in_unit,
                                     step + j * kWarps, in);
                    }
                    AKUNU_UNROLL
                    for (u32 j = 0; j < kEach; ++j) each[j].multiply(sum);
                } else {
                    // Of slots with fewer steps than there are warps the next one's are for others.
                    for (u32 j = (warp - from) % kWarps; j < smaller(kSlotSteps, steps - from); j += kWarps) {
                        TileStep<T> one;
                        one.load({slot + j / kLayout.steps() * kLayout.unit_bytes()}, j % kLayout.steps(), from + j,
                                 in);
                        one.multiply(sum);
                    }
                }
                ring.free(lane);
            }
            store_sums(partials, i, warp, lane, sum);
        }
        if (first != begin) {
            out = output(first, tiles);
            out.load_base(job);
        }
        sync_block();
        float v = 0.0f;
        if (out.there) {
            const float2 sums = sums_of_warps(partials, mine << pairs, r, pairs);
            v = out.value(job, tile_norm(job, m), sums.x, sums.y);
        }
#if AKUNU_CARDS > 1
        if (any_of_warp(job.sum != 0)) v = sum_of_cards(job.sum, out.row, v, out.number, out.there);
        if (!pairs) v += out.base;
#endif
        out.store(job, v);
        partials = m.other_half(partials);
    }
    ring.keep(warp, lane);
}

}  // namespace akunu::cuda

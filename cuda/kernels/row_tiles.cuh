// A row times weights on the tensor cores, tile by tile as they come through the ring: the steps of a tile's inputs are
// dealt to the warps, which leave their sums in shared memory, where a thread for each row adds them up.
//
// One function serves kMatmul, kGateUp, kNormQkv and kNormGateUp: what they differ in stands in a TileJob.
#pragma once

#include "activation.cuh"
#include "adapters.cuh"
#include "cards.cuh"
#include "ring.cuh"
#include "row_inputs.cuh"

namespace akunu::cuda {

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

// What is added to a job's sums: nothing. As RowAdapter says.
struct NoAdapter {
    struct Nothing {};
    AKUNU_DEVICE NoAdapter(Block, const TileJob&, const TileMemory&, u32) {}
    AKUNU_DEVICE bool leaves_block_out(const TileJob&) const { return false; }
    template <typename T>
    AKUNU_DEVICE Nothing ask(const TileJob&, u32) const {
        return {};
    }
    AKUNU_DEVICE void leave(const TileJob&, const TileMemory&, const Nothing&) const {}
    AKUNU_DEVICE Nothing columns(const TileJob&, u32, u32, bool) const { return {}; }
    AKUNU_DEVICE void take(const TileJob&, u32) const {}
    AKUNU_DEVICE float value(const TileOutput& out, const TileJob& job, float scale, const float2& sums,
                             const Nothing&) const {
        return out.value(job, scale, sums.x, sums.y);
    }
};

#if AKUNU_ADAPTERS
// What the row's adapter adds to a job's sums.
struct RowAdapter {
    Adapters of;
    AdapterChoice choice;
    u32 sums;    // where in shared memory what A gives is
    u32 second;  // 1: the job is a command's second, of v, before which q's and k's adapters stand

    AKUNU_DEVICE RowAdapter(Block b, const TileJob& job, const TileMemory& m, u32 second)
        : of{b, job.inputs()}, choice(of.of_launch()), sums(m.partials + 2 * kPartialsBytes), second(second) {}
    AKUNU_DEVICE bool there() const { return any_of_warp(choice.number != 0); }
    // A row that has no adapter, of which the block has no tiles: those who have some may be done long since.
    AKUNU_DEVICE bool leaves_block_out(const TileJob& job) const {
        const bool has_second = !second && of.b.command().streams == 2 && of.b.job(1).begin != of.b.job(1).end;
        return any_of_warp(choice.number == 0 && job.begin == job.end && !has_second);
    }

    // Asks for what the block multiplies, before it waits for the input.
    template <typename T>
    AKUNU_DEVICE StagedProduct<T> ask(const TileJob& job, u32 thread) const {
        const u32 rank = first_rank_of_block(job);
        const bool has_rank = there() && !second && any_of_warp(rank < of.ranks());
        return {has_rank ? of.row(rank, choice.number) : nullptr, has_rank ? of.k : 0, thread};
    }
    // The rows of A that the block has, times the staged input.
    template <typename T>
    AKUNU_DEVICE void leave(const TileJob& job, const TileMemory& m, const StagedProduct<T>& first) const {
        if (there() && !second) leave_rank_sums(of, m, job.k, choice.number, first_rank_of_block(job), first);
    }
    // What is added to row r of a tile, or of a pair.
    struct Columns {
        AddedColumn first, second;
    };
    AKUNU_DEVICE Columns columns(const TileJob& job, u32 tile, u32 r, bool has) const {
        const TileRow at = has ? tile_row(job, tile, r) : TileRow{0, 0, false};
        const u32 number = at.there ? choice.number : 0, n = job.rows[at.matrix];
        return {{of, first_matrix() + at.matrix, number, n, at.row, sums},
                {of, 1, job.pairs ? number : 0, n, at.row, sums}};
    }
    // What all blocks have left, once in a command, by blocks that have tiles.
    AKUNU_DEVICE void take(const TileJob& job, u32 thread) const {
        const bool taken = second && of.b.job(0).begin != of.b.job(0).end;
        if (there() && !taken) take_rank_sums(of, choice, sums, thread);
    }
    AKUNU_DEVICE float value(const TileOutput& out, const TileJob& job, float scale, const float2& of_tile,
                             const Columns& columns) const {
        if (choice.number == 0) return out.value(job, scale, of_tile.x, of_tile.y);
        const float added = columns.first.sum() * scale;
        if (!job.pairs) return out.value(job, scale, of_tile.x, 0.0f) + added;
        const float up = of_tile.y * (scale * out.up_factor) + columns.second.sum() * scale;
        return activate(job.activation, of_tile.x * (scale * out.factor) + added) * up;
    }

  private:
    AKUNU_DEVICE u32 first_matrix() const { return second ? 2 : 0; }
};
#endif

// A block's share of a job's tiles. The first job of a command stages the input for the second, too.
template <u32 kReader, typename Adapter = NoAdapter>
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
    const Adapter adapter(b, job, m, second);
    if (adapter.leaves_block_out(job)) {
        if (!second) b.wait();
        return;
    }
    auto columns = adapter.columns(job, begin + mine, r, mine < smaller(end - begin, together));
    const auto rank = adapter.template ask<T>(job, thread);
    if (!second)
        job.normed ? stage_inputs<T, true>(b, row, k, m, thread) : stage_inputs<T, false>(b, row, k, m, thread);
    out.load_base(job);
    // A warp has staged the very steps that it multiplies. The second job's sums take the place of the first one's.
    second ? sync_block() : sync_warp();
    adapter.leave(job, m, rank);
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
            columns = adapter.columns(job, first + mine, r, mine < tiles);
        }
        if (first == begin) adapter.take(job, thread);
        sync_block();
        float v = 0.0f;
        if (out.there) {
            const float2 sums = sums_of_warps(partials, mine << pairs, r, pairs);
            v = adapter.value(out, job, tile_norm(job, m), sums, columns);
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

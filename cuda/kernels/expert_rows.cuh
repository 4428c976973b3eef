// One row times tiles of its experts' weights on the tensor cores, as row_tiles does where the weights come through the
// ring: these do not, since the router decides too late which they are. All tiles of a block are fetched to the
// second-level cache at once, while its inputs become whole numbers; then warps load a step's operands themselves.
#pragma once

#include "expert_weights.cuh"
#include "row_tiles.cuh"

namespace akunu::cuda {

// Whether weights are codes in tiles; of rows of `cols` whether they are, and so many rows' inputs have room beside
// the sums.
constexpr bool has_expert_rows(u32 reader) { return tile_layout(reader).inputs != 0 && input_parts(reader) == 1; }
template <u32 kReader>
AKUNU_DEVICE bool takes_expert_rows(u32 cols, u32 rows) {
    return in_tiles(kReader, cols) &&
           tile_memory(rows * padded_inputs(cols), 1).partials + 2 * kPartialsBytes <= kSharedHead + kOpBytes;
}

// Of an expert's weight: where a tile begins.
template <u32 kReader>
AKUNU_DEVICE const u8* expert_tile_at(Block b, u32 weight, u32 cols, u32 id, u32 tile) {
    return expert_of(b, weight, cols, id).codes + u64(tile) * tile_bytes(kReader, cols);
}

// A warp's steps of some tiles, `kAtOnce` of them loaded before it waits for one: at(step, tiles) says where the units
// of a step are, and returns which of their steps it is.
template <typename T, u32 kTiles, u32 kAtOnce, typename At>
AKUNU_DEVICE void add_steps(u32 steps, const TileInputs& in, At&& at, float (&sums)[kTiles][2]) {
    const u32 warp = thread_id_anew() / 32;
    for (u32 j = warp; j < steps; j += kAtOnce * kWarps) {
        TileStep<T, kTiles> each[kAtOnce];
        AKUNU_UNROLL
        for (u32 i = 0; i < kAtOnce; ++i) {
            const u32 step = smaller(j + i * kWarps, steps - 1);  // the last one again, of no inputs
            const u8* units[kTiles];
            const u32 in_unit = at(step, units);
            each[i].load(units, in_unit, step, in);
            if (j + i * kWarps >= steps) each[i].in.factor = 0.0f;
        }
        AKUNU_UNROLL
        for (u32 i = 0; i < kAtOnce; ++i) each[i].multiply(sums);
    }
}

// act(gate)·up of the chosen experts: pairs of tiles are dealt to the blocks.
template <u32 kReader>
AKUNU_DEVICE_CALL void experts_gate_up_row(Block b) {
    using T = Fragments<kReader>;
    constexpr TileLayout kLayout = tile_layout(kReader);
    constexpr u32 kTogether = kTilesAtOnce / 2;
    const auto& p = b.params<ExpertsGateUpParams>();
    const u32* ids = b.buffer<u32>(5);
    const Output out{b.buffer<float>(6), b.buffer<u16>(7), p.formats};
    const u32 thread = thread_id_anew(), lane = thread % 32, warp = thread / 32;
    const u32 tiles = (p.n + kTileRows - 1) / kTileRows, units = tiles * p.chosen;
    const auto id_of = [&](u32 u) { return smaller(ids[u / tiles], p.experts - 1); };
    const auto tile_of = [&](u32 weight, u32 u) {
        return expert_tile_at<kReader>(b, weight, p.k, id_of(u), u % tiles);
    };
    if (b.first() >= units) return;
    if (const u32 u = b.first() + thread / 2 * b.blocks(); thread < kTilesAtOnce && u < units) {
        fetch_to_cache(tile_of(thread % 2, u), tile_bytes(kReader, p.k));
    }
    const u32 k = padded_inputs(p.k);
    const TileMemory m = tile_memory(k, 1);
    const TileInputs in = tile_inputs<T>(k, m, lane);
    stage_inputs<T, false, false>(b, {p.k, k}, k, m, thread);
    sync_warp();  // a warp has staged the very steps that it multiplies
    u32 partials = m.partials;
    for (u32 begin = b.first(); begin < units; begin += kTogether * b.blocks()) {
        const u32 turns = smaller(kTogether, (units - begin + b.blocks() - 1) / b.blocks());
        for (u32 i = 0; i < turns; ++i) {
            const u32 u = begin + i * b.blocks();
            const u8 *gates = tile_of(0, u), *ups = tile_of(1, u);
            float sums[2][2] = {};
            add_steps<T, 2, 2>(
                k / kStepInputs, in,
                [&](u32 step, const u8*(&at)[2]) {
                    const u32 unit = step / kLayout.steps() * kLayout.unit_bytes();
                    at[0] = gates + unit;
                    at[1] = ups + unit;
                    return step % kLayout.steps();
                },
                sums);
            store_sums(partials, 2 * i, warp, lane, sums);
        }
        sync_block();
        const u32 i = thread / kTileRows, u = begin + i * b.blocks(), n = u % tiles * kTileRows + thread % kTileRows;
        if (i < turns && n < p.n) {
            const float gate = sum_of_warps(partials, 2 * i, thread % kTileRows);
            const float up = sum_of_warps(partials, 2 * i + 1, thread % kTileRows);
            out.store(u64(u / tiles) * p.n + n, gated(b, id_of(u), n, gate, up));
        }
        partials = m.other_half(partials);
    }
}

// The chosen experts' results, added up: one behind the other their inputs are one row, whose steps have the experts'
// weights as factors, and tiles of all of them are dealt to the blocks.
template <u32 kReader>
AKUNU_DEVICE_CALL void experts_down_row(Block b) {
    using T = Fragments<kReader>;
    constexpr TileLayout kLayout = tile_layout(kReader);
    const auto& p = b.params<ExpertsDownParams>();
    const u32* ids = b.buffer<u32>(4);
    const float *weights = b.buffer<float>(5), *bias = b.buffer<float>(3);
    float* y = b.buffer<float>(2);
    const u32 thread = thread_id_anew(), lane = thread % 32, warp = thread / 32;
    const RowLength row{p.k, padded_inputs(p.k)};
    const u32 tiles = (p.n + kTileRows - 1) / kTileRows, k = p.chosen * row.padded, each = row.padded / kStepInputs;
    const auto id_of = [&](u32 choice) { return smaller(ids[choice], p.experts - 1); };
    if (b.first() >= tiles) return;
    if (const u32 tile = b.first() + warp * b.blocks(); lane < p.chosen && tile < tiles) {
        fetch_to_cache(expert_tile_at<kReader>(b, 0, p.k, id_of(lane), tile), tile_bytes(kReader, p.k));
    }
    const TileMemory m = tile_memory(k, 1);
    const TileInputs in = tile_inputs<T>(k, m, lane);
    stage_inputs<T, false, false, true>(b, row, k, m, thread);
    sync_warp();
    for (u32 step = warp + lane * kWarps; step < k / kStepInputs; step += 32 * kWarps) {
        shared_at<float>(m.factors + step * 4) *= weights[step / each];
    }
    sync_warp();
    u32 partials = m.partials;
    for (u32 begin = b.first(); begin < tiles; begin += kTilesAtOnce * b.blocks()) {
        const u32 turns = smaller(kTilesAtOnce, (tiles - begin + b.blocks() - 1) / b.blocks());
        for (u32 i = 0; i < turns; ++i) {
            const u32 tile = begin + i * b.blocks();
            float sums[1][2] = {};
            add_steps<T, 1, 3>(
                k / kStepInputs, in,
                [&](u32 step, const u8*(&at)[1]) {
                    const u32 in_row = step % each;
                    at[0] = expert_tile_at<kReader>(b, 0, p.k, id_of(step / each), tile) +
                            in_row / kLayout.steps() * kLayout.unit_bytes();
                    return in_row % kLayout.steps();
                },
                sums);
            store_sums(partials, i, warp, lane, sums);
        }
        sync_block();
        const u32 i = thread / kTileRows, n = (begin + i * b.blocks()) * kTileRows + thread % kTileRows;
        if (i < turns && n < p.n) {
            float sum = sum_of_warps(partials, i, thread % kTileRows);
            for (u32 c = 0; p.has_bias && c < p.chosen; ++c) sum += weights[c] * bias[u64(id_of(c)) * p.n + n];
            y[n] = p.accumulate ? y[n] + sum : sum;
        }
        partials = m.other_half(partials);
    }
}

}  // namespace akunu::cuda

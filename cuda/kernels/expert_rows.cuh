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

// Of a command's weight: where a tile of an expert begins.
template <u32 kReader>
AKUNU_DEVICE u64 expert_tile_at(Block b, u32 weight, u32 cols, u32 id, u32 tile) {
    return reinterpret_cast<u64>(expert_of(b, weight, cols, id).codes) + u64(tile) * tile_bytes(kReader, cols);
}

// Where a warp is in the products of some tiles with `rows` rows of inputs, one behind the other, of `each` steps: the
// steps of a tile are dealt to the warps. A warp that has none of them has the last one, times 0.
struct StepPlace {
    u32 tile, step, row, in_row;  // step: counted over the rows

    AKUNU_DEVICE void begin(u32 warp, u32 rows, u32 each) {
        step = in_row = warp;
        row = 0;
        settle(rows, each);
    }
    // Whether there is another step of the tile.
    AKUNU_DEVICE bool advance(u32 rows, u32 each) {
        step += kWarps;
        in_row += kWarps;
        settle(rows, each);
        return step < rows * each;
    }
    AKUNU_DEVICE void settle(u32 rows, u32 each) {
        while (in_row >= each && row + 1 < rows) {
            in_row -= each;
            ++row;
        }
        in_row = smaller(in_row, each - 1);
    }
};

// A warp's products of `turns` times kTiles tiles, whose sums it leaves in `partials`. The operands of a step are asked
// for while the one before is multiplied, those of the first one before stage(), which brings the inputs:
// at(place, units) says where the units of a step are.
template <u32 kReader, u32 kTiles, typename At, typename Stage>
AKUNU_DEVICE void multiply_rows(u32 turns, u32 rows, u32 each, const TileInputs& in, u32 partials, u32 warp, At&& at,
                                Stage&& stage) {
    constexpr TileLayout kLayout = tile_layout(kReader);
    using Step = TileStep<Fragments<kReader>, kTiles>;
    Step one, other;
    float sums[kTiles][2] = {};
    StepPlace place{};
    place.begin(warp, rows, each);
    const auto ask = [&](Step& step) {
        const u8* units[kTiles];
        at(place, units);
        AKUNU_UNROLL
        for (const u8*& unit : units) unit += place.in_row / kLayout.steps() * kLayout.unit_bytes();
        step.load_weights(units, place.in_row % kLayout.steps(), in);
    };
    ask(one);
    stage();
    // False behind the last step.
    const auto multiply = [&](Step& now, Step& next) {
        const StepPlace of = place;
        if (!place.advance(rows, each)) {
            ++place.tile;
            place.begin(warp, rows, each);
        }
        if (any_of_warp(place.tile < turns)) ask(next);
        now.load_inputs(smaller(of.step, rows * each - 1), in);
        if (of.step >= rows * each) now.in.factor = 0.0f;
        now.multiply(sums);
        if (place.tile != of.tile) {
            store_sums(partials, of.tile * kTiles, warp, in.lane, sums);
            AKUNU_UNROLL
            for (auto& sum : sums) sum[0] = sum[1] = 0.0f;
        }
        return place.tile < turns;
    };
    while (any_of_warp(multiply(one, other)) && any_of_warp(multiply(other, one))) {
    }
}

// Fetches the block's part of the last matrix of the chosen experts, if the command says so. By the last warp, which
// has no more steps than others.
AKUNU_DEVICE void fetch_last_matrix(Block b, const ExpertsGateUpParams& p, const u32* ids) {
    const WeightPlanes& w = b.command().weights[kFetchedWeight];
    if (w.codes == 0 || warp_id() != kWarps - 1) return;
    const u32 tiles = (b.command().params[kFetchedRowsWord] + kTileRows - 1) / kTileRows;
    const u32 bytes = u32(tile_bytes(w.reader, p.n));
    for (u32 u = b.first() + lane_id() * b.blocks(); u < tiles * p.chosen; u += 32 * b.blocks()) {
        const u32 id = smaller(ids[u / tiles], p.experts - 1);
        fetch_to_cache(expert_of(b, kFetchedWeight, p.n, id).codes + u64(u % tiles) * bytes, bytes);
    }
}

// act(gate)·up of the chosen experts: pairs of tiles are dealt to the blocks.
template <u32 kReader>
AKUNU_DEVICE_CALL void experts_gate_up_row(Block b) {
    using T = Fragments<kReader>;
    constexpr u32 kTogether = kTilesAtOnce / 2;
    const auto& p = b.params<ExpertsGateUpParams>();
    const u32* ids = b.buffer<u32>(5);
    const Output out{b.buffer<float>(6), b.buffer<u16>(7), p.formats};
    const u32 thread = thread_id_anew(), lane = thread % 32, warp = thread / 32;
    const u32 shared = b.command().params[kSharedWord];
    const u32 tiles = (p.n + kTileRows - 1) / kTileRows, units = tiles * (p.chosen + shared), first = b.first();
    const auto id_of = [&](u32 u) { return smaller(ids[smaller(u / tiles, p.chosen - 1)], p.experts - 1); };
    const auto tile_of = [&](u32 u, u32 weight, u32 id) {
        if (u < tiles * p.chosen) return expert_tile_at<kReader>(b, weight, p.k, id, u % tiles);
        return b.command().buffers[kSharedGate + weight] + u % tiles * tile_bytes(kReader, p.k);
    };
    if (first >= units) return;
    const u32 k = padded_inputs(p.k);
    const TileMemory m = tile_memory(k, 1);
    const TileInputs in = tile_inputs<T>(k, m, lane);
    u32 partials = m.partials;
    for (u32 begin = first; begin < units; begin += kTogether * b.blocks()) {
        const u32 turns = smaller(kTogether, (units - begin + b.blocks() - 1) / b.blocks());
        // A lane finds the pair that has its number.
        const u32 mine = begin + smaller(lane, turns - 1) * b.blocks(), id = id_of(mine);
        const u64 gate = tile_of(mine, 0, id), up = tile_of(mine, 1, id);
        if (warp < 2 && lane < turns) {
            fetch_to_cache(reinterpret_cast<const u8*>(warp == 0 ? gate : up), tile_bytes(kReader, p.k));
        }
        // And a thread the result that has its number.
        const u32 i = thread / kTileRows, u = begin + i * b.blocks(), n = u % tiles * kTileRows + thread % kTileRows;
        const bool there = i < turns && n < p.n;
        GateUp bias{};
        if (there) bias = gate_up_bias(b, id_of(u), n);
        multiply_rows<kReader, 2>(
            turns, 1, k / kStepInputs, in, partials, warp,
            [&](const StepPlace& place, const u8*(&at)[2]) {
                at[0] = reinterpret_cast<const u8*>(shuffle_from(gate, place.tile));
                at[1] = reinterpret_cast<const u8*>(shuffle_from(up, place.tile));
            },
            [&] {
                if (begin != first) return;
                stage_inputs<T, false, false>(b, {p.k, k}, k, m, thread);
                sync_warp();  // a warp has staged the very steps that it multiplies
                fetch_last_matrix(b, p, ids);
            });
        sync_block();
        if (there) {
            const float of_gate = sum_of_warps(partials, 2 * i, thread % kTileRows),
                        of_up = sum_of_warps(partials, 2 * i + 1, thread % kTileRows);
            const float v = gated(p, of_gate + bias.gate, of_up + bias.up);
            if (u < tiles * p.chosen) {
                out.store(u64(u / tiles) * p.n + n, v);
            } else {
                b.buffer<u16>(kSharedResults)[n] = to_half(v);
            }
        }
        partials = m.other_half(partials);
    }
}

// The chosen experts' results, added up: one behind the other their inputs are one row, whose steps have the experts'
// weights as factors, and tiles of all of them are dealt to the blocks.
template <u32 kReader>
AKUNU_DEVICE_CALL void experts_down_row(Block b) {
    using T = Fragments<kReader>;
    const auto& p = b.params<ExpertsDownParams>();
    const u32* ids = b.buffer<u32>(4);
    const float *weights = b.buffer<float>(5), *bias = b.buffer<float>(3);
    float* y = b.buffer<float>(2);
    const u32 thread = thread_id_anew(), lane = thread % 32, warp = thread / 32;
    const u32 rows = p.chosen + b.command().params[kSharedWord];
    const RowLength row{p.k, padded_inputs(p.k), p.chosen, b.buffer<u16>(kSharedInputs)};
    const u32 tiles = (p.n + kTileRows - 1) / kTileRows, k = rows * row.padded, each = row.padded / kStepInputs;
    const u32 first = b.first(), bytes = u32(tile_bytes(kReader, p.k));
    const auto id_of = [&](u32 choice) { return smaller(ids[choice], p.experts - 1); };
    if (first >= tiles) return;
    // A lane finds the expert of the choice that has its number.
    const u64 mine = lane == p.chosen ? b.command().weights[1].codes
                                      : expert_tile_at<kReader>(b, 0, p.k, id_of(smaller(lane, p.chosen - 1)), 0);
    if (const u32 tile = first + warp * b.blocks(); lane < rows && tile < tiles) {
        fetch_to_cache(reinterpret_cast<const u8*>(mine + u64(tile) * bytes), bytes);
    }
    const TileMemory m = tile_memory(k, 1);
    const TileInputs in = tile_inputs<T>(k, m, lane);
    u32 partials = m.partials;
    for (u32 begin = first; begin < tiles; begin += kTilesAtOnce * b.blocks()) {
        const u32 turns = smaller(kTilesAtOnce, (tiles - begin + b.blocks() - 1) / b.blocks());
        // And a thread the result that has its number, to which it adds some choices' biases.
        const u32 i = thread / kTileRows, n = (begin + i * b.blocks()) * kTileRows + thread % kTileRows;
        const bool there = i < turns && n < p.n;
        constexpr u32 kAhead = 4;
        float ahead[kAhead] = {};
        AKUNU_UNROLL
        for (u32 c = 0; c < kAhead; ++c) {
            if (there && p.has_bias && c < p.chosen) ahead[c] = bias[u64(id_of(c)) * p.n + n];
        }
        const float base = there && p.accumulate ? y[n] : 0.0f;
        multiply_rows<kReader, 1>(
            turns, rows, each, in, partials, warp,
            [&](const StepPlace& place, const u8*(&at)[1]) {
                const u64 tile = u64(begin + place.tile * b.blocks()) * bytes;
                at[0] = reinterpret_cast<const u8*>(shuffle_from(mine, place.row) + tile);
            },
            [&] {
                if (begin != first) return;
                stage_inputs<T, false, false, true>(b, row, k, m, thread);
                sync_warp();
                for (u32 step = warp + lane * kWarps; step < k / kStepInputs; step += 32 * kWarps) {
                    const u32 choice = step / each;
                    shared_at<float>(m.factors + step * 4) *=
                        choice == p.chosen ? b.buffer<float>(kSharedFactor)[0] : weights[choice];
                }
                sync_warp();
            });
        sync_block();
        if (there) {
            float sum = sum_of_warps(partials, i, thread % kTileRows);
            AKUNU_UNROLL
            for (u32 c = 0; c < kAhead; ++c) {
                if (p.has_bias && c < p.chosen) sum += weights[c] * ahead[c];
            }
            for (u32 c = kAhead; p.has_bias && c < p.chosen; ++c) sum += weights[c] * bias[u64(id_of(c)) * p.n + n];
            y[n] = base + sum;
        }
        partials = m.other_half(partials);
    }
}

}  // namespace akunu::cuda

// One row times tiles of its experts' weights on the tensor cores, as row_tiles does where the weights come through the
// ring: these do not, since the router decides too late which they are. All tiles of a block are fetched to the
// second-level cache at once, while its inputs become whole numbers; then warps load a step's operands themselves.
#pragma once

#include "expert_weights.cuh"
#include "route.cuh"
#include "row_tiles.cuh"

namespace akunu::cuda {

// Of an expert's weight: where a tile begins.
template <u32 kReader>
AKUNU_DEVICE const u8* expert_tile_at(Block b, u32 weight, u32 cols, u32 id, u32 tile) {
    return expert_of(b, weight, cols, id).codes + u64(tile) * tile_bytes(kReader, cols);
}

// Tiles of experts, or pairs of them, on their way to the command's own memory while those before them are multiplied:
// pieces of kPieceSteps steps, in slots that take turns. All warps take all pieces, in their order; the first one asks
// for them.
template <u32 kReader, u32 kTiles>
struct TilePieces {
    static constexpr TileLayout kLayout = tile_layout(kReader);
    static constexpr u32 kTileBytes = piece_bytes(kReader), kSlotBytes = kTiles * kTileBytes;
    u32 barriers, count, warp, lane;

    // Behind `used` bytes of the command's; by all threads, which come to a barrier before they use it.
    AKUNU_DEVICE TilePieces(u64 used, u32 thread) : warp(thread / 32), lane(thread % 32) {
        barriers = kSharedHead + u32(pieces_at(used));
        count = smaller(kMostPieces, (block_state().launch.ring - barriers - kPieceBarriers) / kSlotBytes);
        if (kChecksRaces || thread != 0) return;
        for (u32 i = 0; i < count; ++i) {
            init_barrier(full(i), kTiles * kCopyLanes);
            init_barrier(empty(i), kWarps);
        }
        publish_barriers();
    }
    AKUNU_DEVICE u64* full(u32 i) const { return &shared_at<u64>(barriers + i * 8); }
    AKUNU_DEVICE u64* empty(u32 i) const { return full(kMostPieces + i); }
    AKUNU_DEVICE u32 at(u32 i) const { return barriers + kPieceBarriers + i * kSlotBytes; }

    // Of a piece: where it is of each tile, and its bytes.
    struct From {
        u64 at[kTiles];
        u32 bytes;
    };
    // Multiplies `results` results, each the sum of so many runs of `steps` steps, whose inputs follow one another.
    // tiles_of(run, at) says where a run's tiles begin, of each lane's run; done(sums) takes a result's sums of this
    // warp.
    template <typename TilesOf, typename Done>
    AKUNU_DEVICE void multiply(u32 results, u32 runs, u32 steps, const TileInputs& in, TilesOf&& tiles_of,
                               Done&& done) const {
        const u32 parts = (steps + kPieceSteps - 1) / kPieceSteps, pieces = results * runs * parts;
        // The first warp's lanes find out where 32 pieces are at a time.
        From mine{};
        const auto find = [&](u32 first) {
            const u32 piece = smaller(first + lane, pieces - 1), step = piece % parts * kPieceSteps;
            const u8* tiles[kTiles];
            tiles_of(piece / parts, tiles);
            const u32 units = (smaller(kPieceSteps, steps - step) + kLayout.steps() - 1) / kLayout.steps();
            AKUNU_UNROLL
            for (u32 i = 0; i < kTiles; ++i) {
                mine.at[i] = reinterpret_cast<u64>(tiles[i]) + step / kLayout.steps() * kLayout.unit_bytes();
            }
            mine.bytes = units * kLayout.unit_bytes();
        };
        const auto from = [&](u32 piece) {
            From f;
            AKUNU_UNROLL
            for (u32 i = 0; i < kTiles; ++i) f.at[i] = shuffle(mine.at[i], piece % 32);
            f.bytes = shuffle(mine.bytes, piece % 32);
            return f;
        };
        u32 asked = 0;
        const auto ask = [&](u32 slot) {
            if (asked % 32 == 0) find(asked);
            const From f = from(asked++);
            if (lane >= kCopyLanes) return;
            AKUNU_UNROLL
            for (u32 i = 0; i < kTiles; ++i) {
                const u8* const tile = reinterpret_cast<const u8*>(f.at[i]);
                copy_arriving(shared_memory() + at(slot) + i * kTileBytes, tile, f.bytes, full(slot));
            }
        };
        const bool asks = !kChecksRaces && warp == 0;
        AKUNU_NO_UNROLL
        for (u32 i = 0; asks && i < smaller(count, pieces); ++i) ask(i);
        float sums[kTiles][2] = {};
        u32 slot = 0, phase = 0, part = 0, run = 0;
        AKUNU_NO_UNROLL
        for (u32 piece = 0; piece < pieces; ++piece) {
            if constexpr (kChecksRaces) {
                if (piece % 32 == 0) find(piece);
                copy_checked(slot, from(piece));
            } else {
                wait_for_words([&] { return has_passed(full(slot), phase); });
            }
            // A warp takes the step whose inputs it has staged.
            const u32 first = run * steps + part * kPieceSteps, step = (warp - first) % kWarps;
            if (step < smaller(kPieceSteps, steps - part * kPieceSteps)) {
                TileStep<Fragments<kReader>, kTiles> one;
                u32 units[kTiles];
                AKUNU_UNROLL
                for (u32 i = 0; i < kTiles; ++i) {
                    units[i] = at(slot) + i * kTileBytes + step / kLayout.steps() * kLayout.unit_bytes();
                }
                one.load(units, step % kLayout.steps(), first + step, in);
                one.multiply(sums);
            }
            sync_warp();
            if (!kChecksRaces && lane == 0) arrive_at(empty(slot));
            if (asks && asked < pieces) {
                wait_for_words([&] { return has_passed(empty(slot), phase); });
                ask(slot);
            }
            if (++slot == count) {
                slot = 0;
                phase ^= 1;
            }
            if (++part < parts) continue;
            part = 0;
            if (++run < runs) continue;
            run = 0;
            done(sums);
            AKUNU_UNROLL
            for (auto& sum : sums) sum[0] = sum[1] = 0.0f;
        }
        if constexpr (kChecksRaces) return;
        sync_block();
        if (warp != 0 || lane >= count) return;
        drop_barrier(full(lane));
        drop_barrier(empty(lane));
    }
    // Where races are looked for: by all warps, between two barriers.
    AKUNU_DEVICE void copy_checked(u32 slot, const From& from) const {
        sync_block();
        AKUNU_UNROLL
        for (u32 i = 0; i < kTiles; ++i) {
            for (u32 k = (warp * 32 + lane) * 16; k < from.bytes; k += kThreads * 16) {
                copy_async16(shared_memory() + at(slot) + i * kTileBytes + k, reinterpret_cast<const u8*>(from.at[i]) + k);
            }
        }
        wait_for_copies();
        sync_block();
    }
};

// act(gate)·up of the chosen experts, of whose inputs the warps have staged the steps that they multiply: pairs of tiles
// are dealt to the blocks. id_of(choice) is asked by whole warps; results are `scale` times what was multiplied.
template <u32 kReader, typename Ids>
AKUNU_DEVICE void multiply_chosen(Block b, const ExpertsGateUpParams& p, const TileMemory& m,
                                  const TilePieces<kReader, 2>& pieces, float scale, Ids&& id_of) {
    constexpr u32 kTogether = kTilesAtOnce / 2;
    const Output out{b.buffer<float>(6), b.buffer<u16>(7), p.formats};
    const u32 thread = thread_id_anew(), lane = thread % 32, warp = thread / 32, k = padded_inputs(p.k);
    const u32 tiles = (p.n + kTileRows - 1) / kTileRows, units = tiles * p.chosen, first = b.first();
    const u32 mine = first < units ? (units - first + b.blocks() - 1) / b.blocks() : 0;
    u32 partials = m.partials, n = 0;  // units that are multiplied
    pieces.multiply(
        mine, 1, k / kStepInputs, tile_inputs<Fragments<kReader>>(k, m, lane),
        [&](u32 i, const u8*(&at)[2]) {
            const u32 u = first + i * b.blocks(), id = id_of(u / tiles);
            AKUNU_UNROLL
            for (u32 w = 0; w < 2; ++w) at[w] = expert_tile_at<kReader>(b, w, p.k, id, u % tiles);
        },
        [&](float(&sums)[2][2]) {
            store_sums(partials, 2 * (n % kTogether), warp, lane, sums);
            if (++n % kTogether != 0 && n != mine) return;
            sync_block();
            const u32 begin = (n - 1) / kTogether * kTogether, i = thread / kTileRows;
            const u32 u = first + (begin + i) * b.blocks(), at = u % tiles * kTileRows + thread % kTileRows;
            const u32 id = id_of(smaller(u / tiles, p.chosen - 1));
            if (begin + i < n && i < kTogether && at < p.n) {
                const float gate = sum_of_warps(partials, 2 * i, thread % kTileRows) * scale;
                const float up = sum_of_warps(partials, 2 * i + 1, thread % kTileRows) * scale;
                out.store(u64(u / tiles) * p.n + at, gated(b, id, at, gate, up));
            }
            partials = m.other_half(partials);
        });
}
template <u32 kReader>
AKUNU_DEVICE_CALL void experts_gate_up_row(Block b) {
    using T = Fragments<kReader>;
    const auto& p = b.params<ExpertsGateUpParams>();
    const u32* ids = b.buffer<u32>(5);
    if (b.first() >= (p.n + kTileRows - 1) / kTileRows * p.chosen) return;
    const u32 k = padded_inputs(p.k);
    const TileMemory m = tile_memory(k, 1);
    const TilePieces<kReader, 2> pieces(row_codes_bytes(k), thread_id_anew());
    stage_inputs<T, false, false>(b, {p.k, k}, k, m, thread_id_anew());
    sync_block();
    multiply_chosen<kReader>(b, p, m, pieces, 1.0f, [&](u32 choice) { return smaller(ids[choice], p.experts - 1); });
}

// Of norm_experts, behind the sums of tiles: the warps' sums of router rows, [kStagedRouterRows][kWarps], and then for
// each warp where it has all logits and chooses.
AKUNU_DEVICE u32 router_memory(const TileMemory& m) { return m.partials + 2 * kPartialsBytes; }
AKUNU_DEVICE RouteScratch scratch_of(const TileMemory& m, u32 experts, u32 groups, u32 warp) {
    const u32 first = router_memory(m) + kStagedRouterRows * kWarps * 4;
    float* const gates = &shared_at<float>(first + warp * choice_bytes(experts, groups));
    return {gates, gates + experts, gates + 2 * experts};
}

// A row's norm, its router, the choice, and gates and ups of those that are chosen. A block has the logits of some
// experts, which it leaves as words; each warp takes the words of all, and chooses: so none waits for a choice that
// another has made, and nothing but words is waited for behind the norm.
template <u32 kReader>
AKUNU_DEVICE_CALL void norm_experts(Block b) {
    using T = Fragments<kReader>;
    const auto& p = b.params<NormExpertsParams>();
    const u32 experts = p.gate_up.experts, dim = p.gate_up.k, k = padded_inputs(dim);
    const u32 thread = thread_id_anew(), lane = thread % 32, warp = thread / 32;
    const TileMemory m = tile_memory(k, 1);
    const TilePieces<kReader, 2> pieces(row_codes_bytes(k) + choices_bytes(experts, p.route.groups), thread);
    const u32 number = block_state().walk[b.slot].number;
    u64* const words = in_global(block_state().launch.words + number % kWordBuffers * kMostWords);
    const float* const bias = b.buffer<float>(10);
    const auto router_row = [&](u32 n) { return n < experts ? b.buffer<float>(6) + u64(n) * dim : nullptr; };
    RouterRows rows{{router_row(b.first()), router_row(b.first() + b.blocks())}, {0.0f, 0.0f}};
    stage_inputs<T, true, true, false>(b, {dim, k}, k, m, thread, rows);
    AKUNU_UNROLL
    for (u32 r = 0; r < kStagedRouterRows; ++r) {
        const float sum = reduce_warp(rows.sums[r], Add());
        if (lane == 0) shared_at<float>(router_memory(m) + (r * kWarps + warp) * 4) = sum;
    }
    sync_block();
    const float scale = staged_norm(m, 1.0f / float(dim), p.eps);
    if (const u32 n = b.first() + thread * b.blocks(); thread < kStagedRouterRows && n < experts) {
        float sum = 0.0f;
        for (u32 w = 0; w < kWarps; ++w) sum += shared_at<float>(router_memory(m) + (thread * kWarps + w) * 4);
        leave_word(words + n, float_to_bits(p.has_bias ? sum * scale + bias[n] : sum * scale), number);
    }
    // For a feed-forward beside the experts.
    const Output normed{nullptr, b.buffer<u16>(11), kActF16};
    for (u32 i = (b.first() + thread * b.blocks()) * 4; p.stores_norm && i < dim; i += kThreads * b.blocks() * 4) {
        const auto four = [&](u32 buffer) { return *reinterpret_cast<const float4*>(b.buffer<float>(buffer) + i); };
        const float4 v = four(0), w = four(1);
        normed.store4(i, {v.x * w.x * scale, v.y * w.y * scale, v.z * w.z * scale, v.w * w.w * scale});
    }
    const RouteScratch at = scratch_of(m, experts, p.route.groups, warp);
    constexpr u32 kPairs = 2;  // of words that a lane asks for at once
    for (u32 base = 0; base < experts; base += 64 * kPairs) {
        u64 w[kPairs][2];
        const auto place = [&](u32 j) { return smaller(base + (j * 32 + lane) * 2, (experts - 1) / 2 * 2); };
        wait_for_words([&] {
            bool all = true;
            AKUNU_UNROLL
            for (u32 j = 0; j < kPairs; ++j) {
                load_words(words + place(j), w[j]);
                all &= number_of(w[j][0]) == number && (place(j) + 1 == experts || number_of(w[j][1]) == number);
            }
            return all;
        });
        AKUNU_UNROLL
        for (u32 j = 0; j < kPairs; ++j) {
            at.gates[place(j)] = bits_to_float(value_of(w[j][0]));
            if (place(j) + 1 < experts) at.gates[place(j) + 1] = bits_to_float(value_of(w[j][1]));
        }
    }
    const Chosen mine = choose(p.route, at, b.buffer<float>(2), b.buffer<float>(9));
    if (b.first() == 0 && warp == 0 && lane < p.gate_up.chosen) {
        b.buffer<u32>(5)[lane] = mine.id;
        b.buffer<float>(8)[lane] = mine.weight;
    }
    multiply_chosen<kReader>(b, p.gate_up, m, pieces, scale, [&](u32 choice) { return shuffle(mine.id, choice); });
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
    const RowLength row{p.k, padded_inputs(p.k)};
    const u32 k = p.chosen * row.padded, each = row.padded / kStepInputs;
    // As a matmul of so many results deals them, so that threads add to what they have left.
    const Share tiles = share_of((p.n + kTileRows - 1) / kTileRows, 0, k);
    u64* const words = in_global(block_state().walk[b.slot].left);
    const u32 number = block_state().walk[b.slot].number;
    const auto id_of = [&](u32 choice) { return smaller(ids[choice], p.experts - 1); };
    if (tiles.begin == tiles.end) return;
    const TileMemory m = tile_memory(k, 1);
    const TilePieces<kReader, 1> pieces(row_codes_bytes(k), thread);
    stage_inputs<T, false, false, true>(b, row, k, m, thread);
    sync_warp();
    for (u32 step = warp + lane * kWarps; step < k / kStepInputs; step += 32 * kWarps) {
        shared_at<float>(m.factors + step * 4) *= weights[step / each];
    }
    sync_block();
    u32 partials = m.partials, done = tiles.begin;
    pieces.multiply(
        tiles.end - tiles.begin, p.chosen, each, tile_inputs<T>(k, m, lane),
        [&](u32 i, const u8*(&at)[1]) {
            at[0] = expert_tile_at<kReader>(b, 0, p.k, id_of(i % p.chosen), tiles.begin + i / p.chosen);
        },
        [&](float(&sums)[1][2]) {
            store_sums(partials, (done - tiles.begin) % kTilesAtOnce, warp, lane, sums);
            if ((++done - tiles.begin) % kTilesAtOnce != 0 && done != tiles.end) return;
            sync_block();
            const u32 begin = tiles.begin + (done - 1 - tiles.begin) / kTilesAtOnce * kTilesAtOnce;
            const u32 i = thread / kTileRows, n = (begin + i) * kTileRows + thread % kTileRows;
            if (begin + i < done && n < p.n) {
                float sum = sum_of_warps(partials, i, thread % kTileRows);
                for (u32 c = 0; p.has_bias && c < p.chosen; ++c) sum += weights[c] * bias[u64(id_of(c)) * p.n + n];
                if (p.accumulate) sum += y[n];
                if (words) leave_word(words + n, float_to_bits(sum), number);
                y[n] = sum;
            }
            partials = m.other_half(partials);
        });
}

}  // namespace akunu::cuda

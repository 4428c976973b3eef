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

// Pairs of tiles of gates and ups, which are dealt to the blocks: those of the chosen experts, choice after choice, and
// then those of a shared expert, which has so many rows. id_of(choice) is asked by whole warps.
template <u32 kReader, typename Ids>
struct ChosenUnits {
    const ExpertsGateUpParams& p;
    u32 shared;
    Ids id_of;
    u32 tiles = (p.n + kTileRows - 1) / kTileRows;  // of an expert

    AKUNU_DEVICE u32 all() const { return tiles * p.chosen + (shared + kTileRows - 1) / kTileRows; }
    // Which choice a unit is of: that of the shared expert is behind the others.
    AKUNU_DEVICE u32 choice(u32 u) const { return kHasShared ? smaller(u / tiles, p.chosen) : u / tiles; }
    AKUNU_DEVICE bool is_shared(u32 u) const { return kHasShared && shared != 0 && u >= tiles * p.chosen; }
    AKUNU_DEVICE u32 tile(u32 u) const { return u - choice(u) * tiles; }
    AKUNU_DEVICE u32 id(u32 u) const { return id_of(smaller(u / tiles, p.chosen - 1)); }
    // Where a unit's tile begins, of gates (0) or ups (1).
    AKUNU_DEVICE const u8* at(Block b, u32 weight, u32 u, u32 id) const {
        if (!is_shared(u)) return expert_tile_at<kReader>(b, weight, p.k, id, tile(u));
        return b.buffer<u8>(kSharedGate + weight) + u64(tile(u)) * tile_bytes(kReader, p.k);
    }
};

// act(gate)·up of the units, of whose inputs the warps have staged the steps that they multiply; results are `scale`
// times what was multiplied.
template <u32 kReader, typename Ids>
AKUNU_DEVICE void multiply_chosen(Block b, const ChosenUnits<kReader, Ids>& chosen, const TileMemory& m, float scale) {
    using T = Fragments<kReader>;
    constexpr TileLayout kLayout = tile_layout(kReader);
    constexpr u32 kTogether = kTilesAtOnce / 2;
    const ExpertsGateUpParams& p = chosen.p;
    const Output out{b.buffer<float>(6), b.buffer<u16>(7), p.formats};
    const u32 thread = thread_id_anew(), lane = thread % 32, warp = thread / 32, k = padded_inputs(p.k);
    const u32 units = chosen.all();
    const TileInputs in = tile_inputs<T>(k, m, lane);
    u32 partials = m.partials;
    for (u32 begin = b.first(); begin < units; begin += kTogether * b.blocks()) {
        const u32 turns = smaller(kTogether, (units - begin + b.blocks() - 1) / b.blocks());
        for (u32 i = 0; i < turns; ++i) {
            const u32 u = begin + i * b.blocks(), id = chosen.id(u);
            const u8 *const gates = chosen.at(b, 0, u, id), *const ups = chosen.at(b, 1, u, id);
            float sums[2][2] = {};
            const auto units_of = [&](u32 step, const u8*(&at)[2]) {
                const u32 unit = step / kLayout.steps() * kLayout.unit_bytes();
                at[0] = gates + unit;
                at[1] = ups + unit;
                return step % kLayout.steps();
            };
            // All of a warp's steps at once, if they are so few.
            k <= 2 * kWarps* kStepInputs ? add_steps<T, 2, 2>(k / kStepInputs, in, units_of, sums)
                                         : add_steps<T, 2, 3>(k / kStepInputs, in, units_of, sums);
            store_sums(partials, 2 * i, warp, lane, sums);
        }
        sync_block();
        const u32 i = thread / kTileRows, u = begin + i * b.blocks();
        const u32 n = chosen.tile(u) * kTileRows + thread % kTileRows, id = chosen.id(u);
        if (i < turns && n < (chosen.is_shared(u) ? chosen.shared : p.n)) {
            const float gate = sum_of_warps(partials, 2 * i, thread % kTileRows) * scale;
            const float up = sum_of_warps(partials, 2 * i + 1, thread % kTileRows) * scale;
            const float v = gated(b, id, n, gate, up);
            if (chosen.is_shared(u)) {
                b.buffer<u16>(kSharedResults)[n] = to_half(v);
            } else {
                out.store(u64(chosen.choice(u)) * p.n + n, v);
            }
        }
        partials = m.other_half(partials);
    }
}
// The tiles that the block begins with come to the second-level cache.
template <u32 kReader, typename Ids>
AKUNU_DEVICE void fetch_chosen(Block b, const ChosenUnits<kReader, Ids>& chosen) {
    const u32 thread = thread_id_anew();
    if (thread / 32 != 0) return;
    const u32 u = b.first() + thread / 2 * b.blocks(), id = chosen.id(u);
    if (thread < kTilesAtOnce && u < chosen.all()) {
        fetch_to_cache(chosen.at(b, thread % 2, u, id), tile_bytes(kReader, chosen.p.k));
    }
}
template <u32 kReader>
AKUNU_DEVICE_CALL void experts_gate_up_row(Block b) {
    using T = Fragments<kReader>;
    const auto& p = b.params<ExpertsGateUpParams>();
    const u32* ids = b.buffer<u32>(5);
    const auto id_of = [&](u32 choice) { return smaller(ids[choice], p.experts - 1); };
    const ChosenUnits<kReader, decltype(id_of)> chosen{p, 0, id_of};
    if (b.first() >= chosen.all()) return;
    fetch_chosen(b, chosen);
    const u32 k = padded_inputs(p.k);
    const TileMemory m = tile_memory(k, 1);
    stage_inputs<T, false, false>(b, {p.k, k}, k, m, thread_id_anew());
    sync_warp();  // a warp has staged the very steps that it multiplies
    multiply_chosen(b, chosen, m, 1.0f);
}

// Of norm_experts, behind the sums of tiles: the warps' sums of router rows, [kStagedRouterRows][kWarps], and then for
// each warp where it has all logits and chooses.
AKUNU_DEVICE u32 router_memory(const TileMemory& m) { return m.partials + 2 * kPartialsBytes; }
AKUNU_DEVICE RouteScratch scratch_of(const TileMemory& m, u32 experts, u32 groups, u32 warp) {
    const u32 first = router_memory(m) + kStagedRouterRows * kWarps * 4;
    const u32 gates = first + warp * choice_bytes(experts, groups);
    return {gates, gates + experts * 4, gates + 2 * experts * 4};
}

// Products of two rows of a router, which may be none, with the row that the block has staged, times the weights of its
// norm: of a block with more rows than it multiplies while it stages.
AKUNU_DEVICE_CALL float2 router_products(Block b, const float* one, const float* other, const float* norm, u32 dim) {
    RouterRows rows{{one, other}, false, {0.0f, 0.0f}};
    const InputSource from{b.buffer<float>(0), norm, nullptr};
    const u64* const words = b.taken();
    for (u32 i = thread_id_anew() * 4; i < dim; i += kThreads * 4) {
        RowInputs<true, RouterRows> in;
        in.load_weight(from, i, true);
        in.load_router(rows, i, true);
        // The thread has waited for these words.
        if (words != nullptr) {
            in.poll(words, i, 0);
        } else {
            in.load(from, i, true);
        }
        in.add_logits(rows);
    }
    return {rows.sums[0], rows.sums[1]};
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
    const u32 number = block_state().walk[b.slot].number;
    u64* const words = in_global(block_state().launch.words + number % kWordBuffers * kMostWords);
    const float* const bias = b.buffer<float>(10);
    const u32 shared = kHasShared ? p.shared : 0, results = experts + (kHasShared ? p.shared_router : 0);
    const auto router_row = [&](u32 n) {
        const float* const row = n < experts ? b.buffer<float>(6) + u64(n) * dim : b.buffer<float>(kSharedRouter);
        return n < results ? row : nullptr;
    };
    // The weights of a router's own norm take the place of a row.
    const bool has_norm = kHasRouterNorm && !p.route.has_choice_bias;
    const float* const own_norm = has_norm ? b.buffer<float>(kRouterNorm) : nullptr;
    u32 staged = (own_norm != nullptr ? 1 : kStagedRouterRows) * b.blocks();
    RouterRows rows{{router_row(b.first()), own_norm != nullptr ? own_norm : router_row(b.first() + b.blocks())},
                    own_norm != nullptr,
                    {0.0f, 0.0f}};
    // Rows that are multiplied later come to the second-level cache meanwhile.
    if (const u32 n = b.first() + staged + thread * b.blocks(); kHasMoreRows && n < results) {
        fetch_to_cache(router_row(n), dim * 4);
    }
    stage_inputs<T, true, true, false>(b, {dim, k}, k, m, thread, rows);
    float scale = 1.0f;
    for (u32 begin = b.first();; staged = kStagedRouterRows * b.blocks()) {
        AKUNU_UNROLL
        for (u32 r = 0; r < kStagedRouterRows; ++r) {
            const float sum = reduce_warp(rows.sums[r], Add());
            if (lane == 0) shared_at<float>(router_memory(m) + (r * kWarps + warp) * 4) = sum;
        }
        sync_block();
        scale = staged_norm(m, 1.0f / float(dim), p.eps);
        if (const u32 n = begin + thread * b.blocks(); thread * b.blocks() < staged && n < results) {
            float sum = 0.0f;
            for (u32 w = 0; w < kWarps; ++w) sum += shared_at<float>(router_memory(m) + (thread * kWarps + w) * 4);
            if (!kHasShared || n < experts) {
                leave_word(words + n, float_to_bits(p.has_bias ? sum * scale + bias[n] : sum * scale), number);
            } else {
                b.buffer<float>(kSharedWeight)[0] = gate_of(kGateSigmoid, sum * scale);
            }
        }
        begin += staged;
        if (!kHasMoreRows || begin >= results) break;
        const float2 sums = router_products(b, router_row(begin), router_row(begin + b.blocks()),
                                            own_norm != nullptr ? own_norm : b.buffer<float>(1), dim);
        rows.sums[0] = sums.x;
        rows.sums[1] = sums.y;
        sync_block();  // all sums have been read
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
            const u32 to = at.gates + place(j) * 4;
            shared_at<float>(to) = bits_to_float(value_of(w[j][0]));
            if (place(j) + 1 < experts) shared_at<float>(to + 4) = bits_to_float(value_of(w[j][1]));
        }
    }
    const Chosen mine = choose(p.route, at, b.buffer<float>(2), b.buffer<float>(9));
    if (b.first() == 0 && warp == 0 && lane < p.gate_up.chosen) {
        b.buffer<u32>(5)[lane] = mine.id;
        b.buffer<float>(8)[lane] = mine.weight;
    }
    const auto id_of = [&](u32 choice) { return shuffle(mine.id, choice); };
    const ChosenUnits<kReader, decltype(id_of)> chosen{p.gate_up, shared, id_of};
    fetch_chosen(b, chosen);
    multiply_chosen(b, chosen, m, scale);
}

// The chosen experts' results, added up: one behind the other their inputs are one row, whose steps have the experts'
// weights as factors, and tiles of all of them are dealt to the blocks. A shared expert's inputs are the last ones.
template <u32 kReader>
AKUNU_DEVICE_CALL void experts_down_row(Block b) {
    using T = Fragments<kReader>;
    constexpr TileLayout kLayout = tile_layout(kReader);
    const auto& p = b.params<ExpertsDownParams>();
    const u32 shared = kHasShared ? b.params<RowDownParams>().shared : 0, rows = p.chosen + (shared != 0 ? 1 : 0);
    const u32* ids = b.buffer<u32>(4);
    const float *weights = b.buffer<float>(5), *bias = b.buffer<float>(3);
    float* y = b.buffer<float>(2);
    const u32 thread = thread_id_anew(), lane = thread % 32, warp = thread / 32;
    const RowLength row{p.k, padded_inputs(p.k), p.chosen, shared, b.buffer<u16>(kSharedInputs)};
    const u32 k = p.chosen * row.padded + padded_inputs(shared), each = row.padded / kStepInputs;
    const float* const factor = b.buffer<float>(kSharedFactor);
    const auto weight_of = [&](u32 choice) {
        return !kHasShared || choice < p.chosen ? weights[choice] : factor != nullptr ? factor[0] : 1.0f;
    };
    // Which row a step is of.
    const auto row_of = [&](u32 step) { return kHasShared ? smaller(step / each, p.chosen) : step / each; };
    // As a matmul of so many results deals them, so that threads add to what they have left.
    const Share tiles = share_of((p.n + kTileRows - 1) / kTileRows, 0, k, 0);
    u64* const words = in_global(block_state().walk[b.slot].left);
    const u32 number = block_state().walk[b.slot].number;
    const auto id_of = [&](u32 choice) { return smaller(ids[choice], p.experts - 1); };
    const auto tile_at = [&](u32 choice, u32 tile) {
        if (!kHasShared || choice < p.chosen) return expert_tile_at<kReader>(b, 0, p.k, id_of(choice), tile);
        const u8* const codes = reinterpret_cast<const u8*>(b.command().weights[1].codes);
        return codes + u64(tile) * tile_bytes(kReader, shared);
    };
    if (tiles.begin == tiles.end) return;
    if (const u32 tile = tiles.begin + warp; lane < rows && tile < tiles.end) {
        fetch_to_cache(tile_at(lane, tile), tile_bytes(kReader, lane < p.chosen ? p.k : shared));
    }
    const TileMemory m = tile_memory(k, 1);
    const TileInputs in = tile_inputs<T>(k, m, lane);
    stage_inputs<T, false, false, true>(b, row, k, m, thread);
    sync_warp();
    for (u32 step = warp + lane * kWarps; step < k / kStepInputs; step += 32 * kWarps) {
        shared_at<float>(m.factors + step * 4) *= weight_of(row_of(step));
    }
    sync_warp();
    u32 partials = m.partials;
    for (u32 begin = tiles.begin; begin < tiles.end; begin += kTilesAtOnce) {
        const u32 turns = smaller(kTilesAtOnce, tiles.end - begin);
        for (u32 i = 0; i < turns; ++i) {
            const u32 tile = begin + i;
            float sums[1][2] = {};
            add_steps<T, 1, 3>(
                k / kStepInputs, in,
                [&](u32 step, const u8*(&at)[1]) {
                    const u32 of = row_of(step), in_row = step - of * each;
                    at[0] = tile_at(of, tile) + in_row / kLayout.steps() * kLayout.unit_bytes();
                    return in_row % kLayout.steps();
                },
                sums);
            store_sums(partials, i, warp, lane, sums);
        }
        sync_block();
        const u32 i = thread / kTileRows, n = (begin + i) * kTileRows + thread % kTileRows;
        if (i < turns && n < p.n) {
            float sum = sum_of_warps(partials, i, thread % kTileRows);
            for (u32 c = 0; p.has_bias && c < p.chosen; ++c) sum += weights[c] * bias[u64(id_of(c)) * p.n + n];
            if (p.accumulate) sum += y[n];
            if (words) leave_word(words + n, float_to_bits(sum), number);
            y[n] = sum;
        }
        partials = m.other_half(partials);
    }
}

}  // namespace akunu::cuda

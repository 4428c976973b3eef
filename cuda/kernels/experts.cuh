// Products with the weights of the experts that rows were sent to. Which they are the router has written: a block looks
// them up where it needs them, and no host knows of them.
//
// One row reads the weights of its experts, each warp some rows of them. More rows are sorted by expert in every
// block's shared memory, and tiles of an expert's rows and columns are multiplied on the tensor cores, so that weights
// are read once for all rows of a tile. A row's result is the same whatever rows its tile has besides.
#pragma once

#include "halves.cuh"
#include "matvec.cuh"
#include "route.cuh"

namespace akunu::cuda {

// Weight i of a command, of an expert.
AKUNU_DEVICE Weights expert_of(Block b, u32 i, u32 cols, u32 id) {
    const WeightPlanes& w = b.command().weights[i];
    const u64 at = u64(id) * b.command().params[kApartWord + i] * kExpertAlign;
    return {reinterpret_cast<const u8*>(w.codes + at), reinterpret_cast<const u8*>(w.extras + at),
            reinterpret_cast<const u8*>(w.biases + at), cols, w.spec};
}

// act(gate)·up, or act(gate) alone, with all that an expert may do besides.
struct Gated {
    const ExpertsGateUpParams& p;
    const float *gate_bias, *up_bias;
    AKUNU_DEVICE explicit Gated(Block b)
        : p(b.params<ExpertsGateUpParams>()), gate_bias(b.buffer<float>(3)), up_bias(b.buffer<float>(4)) {}
    AKUNU_DEVICE float operator()(u32 id, u32 n, float gate, float up) const {
        if (p.has_bias) {
            gate += gate_bias[u64(id) * p.n + n];
            if (p.gated) up += up_bias[u64(id) * p.n + n];
        }
        if (p.limit > 0.0f) {
            gate = fminf(gate, p.limit);
            up = fmaxf(-p.limit, fminf(up, p.limit));
        }
        const float act =
            p.sharpness == 1.0f ? activate(p.activation, gate) : gate / (1.0f + expf(-p.sharpness * gate));
        return p.gated ? act * (up + p.up_offset) : act;
    }
};

// Of one row at a time: warps take rows of gates and ups, eight neighbours a block.
template <typename F>
AKUNU_DEVICE_CALL void experts_gate_up_one(Block b) {
    const Gated gated(b);
    const auto& p = gated.p;
    const u32* ids = b.buffer<u32>(5);
    const Output out{b.buffer<float>(6), b.buffer<u16>(7), p.formats};
    const u32 parts = (p.n + kWarps - 1) / kWarps, units = parts * p.chosen;
    u32 staged = p.rows;
    for (u32 u = b.first(); u < units * p.rows; u += b.blocks()) {
        const u32 m = u / units, choice = u / parts, n = u % parts * kWarps + warp_id();
        if (m != staged) stage_input(b, p.k, [&](u32 i) { return input_at(b, u64(m) * p.k + i); });
        staged = m;
        if (n >= p.n) continue;
        const u32 id = smaller(ids[choice], p.experts - 1);
        float v[2] = {};
        if (p.gated) {
            const Weights ws[2] = {expert_of(b, 0, p.k, id), expert_of(b, 1, p.k, id)};
            const u32 at[2] = {n, n};
            dot_rows<F, 2>(b, ws, at, v);
        } else {
            const Weights ws[1] = {expert_of(b, 0, p.k, id)};
            const u32 at[1] = {n};
            float sum[1];
            dot_rows<F, 1>(b, ws, at, sum);
            v[0] = sum[0];
        }
        if (lane_id() == 0) out.store(u64(choice) * p.n + n, gated(id, n, v[0], v[1]));
    }
}

// Of one row at a time: a warp takes two neighbouring columns of the output and the groups of all choices' inputs,
// dealt to its lanes; as many choices at once as shared memory has room for.
template <typename F>
AKUNU_DEVICE_CALL void experts_down_one(Block b) {
    const auto& p = b.params<ExpertsDownParams>();
    const u32* ids = b.buffer<u32>(4);
    const float *weights = b.buffer<float>(5), *bias = b.buffer<float>(3);
    float* y = b.buffer<float>(2);
    const float* xs = reinterpret_cast<const float*>(b.shared());
    const u32 groups = (p.k + 31) / 32, room = kOpBytes / (groups * kGroupStride * sizeof(float));
    const u32 most = larger(1, smaller(room, p.chosen));
    constexpr u32 kRows = 2;
    const u32 parts = (p.n + kWarps * kRows - 1) / (kWarps * kRows);
    u32 staged = ~0u;
    for (u32 u = b.first(); u < parts * p.rows; u += b.blocks()) {
        const u32 m = u / parts, n = (u % parts * kWarps + warp_id()) * kRows;
        float sum[kRows] = {0.0f, 0.0f};
        for (u32 first = 0; first < p.chosen; first += most) {
            const u32 choices = smaller(most, p.chosen - first);
            if (m * p.chosen + first != staged) {
                staged = m * p.chosen + first;
                sync_block();
                float* to = reinterpret_cast<float*>(b.shared());
                for (u32 i = thread_id(); i < choices * groups * 32; i += kThreads) {
                    const u32 c = i / (groups * 32), at = i % (groups * 32);
                    to[i / 32 * kGroupStride + i % 32] = at < p.k ? input_at(b, u64(staged + c) * p.k + at) : 0.0f;
                }
                sync_block();
            }
            if (n >= p.n) continue;
            const u32 rows[kRows] = {n, smaller(n + 1, p.n - 1)};
            AKUNU_UNROLL_TWICE  // so that the loads of two groups are on their way
                for (u32 i = lane_id(); i < choices * groups; i += 32) {
                const u32 c = u32(staged + i / groups), id = smaller(ids[c], p.experts - 1);
                const Weights w = expert_of(b, 0, p.k, id);
                Group g[kRows];
                AKUNU_UNROLL
                for (u32 r = 0; r < kRows; ++r) F::load(w, rows[r], i % groups, g[r]);
                float part[kRows] = {0.0f, 0.0f};
                add_group<F, kRows>(xs + i * kGroupStride, g, part);
                AKUNU_UNROLL
                for (u32 r = 0; r < kRows; ++r) sum[r] += weights[c] * part[r];
            }
            for (u32 c = staged + lane_id(); p.has_bias && c < staged + choices; c += 32) {
                const float* of = bias + u64(smaller(ids[c], p.experts - 1)) * p.n;
                AKUNU_UNROLL
                for (u32 r = 0; r < kRows; ++r) sum[r] += weights[c] * of[rows[r]];
            }
        }
        AKUNU_UNROLL
        for (u32 r = 0; r < kRows; ++r) {
            const float v = reduce_warp(sum[r], Add());
            if (lane_id() != 0 || n + r >= p.n) continue;
            float& to = y[u64(m) * p.n + n + r];
            to = p.accumulate ? to + v : v;
        }
    }
}

// Tiles of kM choices of one expert by kN of its rows, by kWarpsM x kWarpsN warps, kK inputs at a time, weights and
// inputs as F16: two stages, one of which is filled while the other is multiplied.
template <u32 kRows>
struct ExpertTile {
    static constexpr u32 kM = kRows, kN = 64, kK = 128, kWarpsM = kM == 64 ? 2 : 1, kWarpsN = kWarps / kWarpsM;
    static constexpr u32 kFragmentsM = kM / kWarpsM / 16, kFragmentsN = kN / kWarpsN / 8;
    static constexpr u32 kStride = kK + 8;  // halves; rows begin in other banks
    static constexpr u32 kInputBytes = kM * kStride * 2, kStageBytes = (kM + kN) * kStride * 2;
    static constexpr u32 kVectors = kM * kK / 8 / kThreads;
    static_assert(kN * kK / 32 == kThreads, "a thread has one group of weights");
    static_assert(kVectors * kThreads * 8 == kM * kK, "threads load whole vectors of inputs");
};

// Choices of some rows, sorted by expert, and the tiles that they become, in shared memory behind the stages.
struct ChosenTiles {
    static constexpr u32 kAt = 2 * ExpertTile<64>::kStageBytes;
    static constexpr u32 kMostTiles = kMostTileChoices / 16 + kMostExperts;
    u32 *ends, *tiles;  // of experts; an expert each, and which part of its choices
    u16* choices;
    AKUNU_DEVICE explicit ChosenTiles(Block b)
        : ends(reinterpret_cast<u32*>(b.shared() + kAt)),
          tiles(ends + kMostExperts),
          choices(reinterpret_cast<u16*>(tiles + kMostTiles)) {}
    static_assert(kAt + (kMostExperts + kMostTiles) * 4 + kMostTileChoices * 2 <= kManyRowsBytes, "there is room");

    // Returns how many tiles there are, of up to `rows` choices. All blocks find the same order, that of the choices:
    // each takes other parts of it. A warp sorts a part of the choices; how many of each expert the warps before it
    // have is where the stages will be.
    AKUNU_DEVICE u32 sort(Block b, const u32* ids, u32 n, u32 experts, u32 rows) const {
        static_assert(kWarps * kMostExperts * 4 <= kAt, "there is room");
        u32* const cursors = reinterpret_cast<u32*>(b.shared());  // [warp][expert]
        u32* const mine = cursors + warp_id() * experts;
        u32& all = tiles[kMostTiles - 1];
        const u32 each = rounded_up((n + kWarps - 1) / kWarps, 32), begin = smaller(warp_id() * each, n),
                  end = smaller(begin + each, n);
        sync_block();
        for (u32 i = thread_id(); i < kWarps * experts; i += kThreads) cursors[i] = 0;
        sync_block();
        for (u32 i = begin + lane_id(); i < end; i += 32) atomic_add(mine + smaller(ids[i], experts - 1), 1u);
        sync_block();
        if (warp_id() == 0) place(cursors, experts, rows, all);
        sync_block();
        for (u32 first = begin; first < end; first += 32) {
            const u32 i = first + lane_id(), id = i < end ? smaller(ids[i], experts - 1) : u32(kMostExperts);
            // Lanes with the same expert.
            u32 peers = ~0u;
            for (u32 bit = 1; bit <= kMostExperts; bit *= 2) {
                const u32 have = vote((id & bit) != 0);
                peers &= id & bit ? have : ~have;
            }
            const u32 before = ones_in(peers & ((1u << lane_id()) - 1));
            if (i < end) choices[mine[id] + before] = u16(i);
            sync_warp();
            if (i < end && before == 0) mine[id] += ones_in(peers);
            sync_warp();
        }
        sync_block();
        return all;
    }
    // By a warp, from how many choices of each expert the warps have: where these go, and the tiles; 32 experts at a
    // time.
    AKUNU_DEVICE void place(u32* cursors, u32 experts, u32 rows, u32& all) const {
        u32 begin = 0, n_tiles = 0;
        for (u32 first = 0; first < experts; first += 32) {
            const u32 e = first + lane_id();
            u32 count = 0;
            for (u32 w = 0; e < experts && w < kWarps; ++w) count += cursors[w * experts + e];
            const u32 parts = (count + rows - 1) / rows;
            const u64 both = u64(parts) << 32 | count, before = sum_before(both), sum = reduce_warp(both, Add());
            u32 at = begin + u32(before);
            for (u32 w = 0; e < experts && w < kWarps; ++w) {
                const u32 of_warp = cursors[w * experts + e];
                cursors[w * experts + e] = at;
                at += of_warp;
            }
            if (e < experts) ends[e] = at;
            for (u32 i = 0; i < parts; ++i) tiles[n_tiles + u32(before >> 32) + i] = e | i << 16;
            begin += u32(sum);
            n_tiles += u32(sum >> 32);
        }
        if (lane_id() == 0) all = n_tiles;
    }
    // Of lanes before this one.
    AKUNU_DEVICE static u64 sum_before(u64 v) {
        u64 before = 0, block = v;
        AKUNU_UNROLL
        for (u32 mask = 1; mask < 32; mask *= 2) {
            const u64 other = shuffle_xor(block, mask);
            if (lane_id() & mask) before += other;
            block += other;
        }
        return before;
    }
};

// What a tile is: of which expert, and which of the sorted choices.
struct ExpertPart {
    u32 id, first, rows;
    AKUNU_DEVICE ExpertPart(const ChosenTiles& all, u32 tile, u32 most) {
        const u32 v = all.tiles[tile];
        id = v & 0xFFFF;
        const u32 begin = id == 0 ? 0 : all.ends[id - 1];
        first = begin + (v >> 16) * most;
        rows = smaller(most, all.ends[id] - first);
    }
};

// `input(m)` is where row m of the tile is; `weight_row(r, w, row)` says what row r of the tile's weights is, false
// where there is none; `store(m, r, a, b)` takes those of row m and the weights' rows r and r + 1.
template <typename F, typename T, typename Input, typename WeightRow, typename Store>
AKUNU_DEVICE void expert_tile(u32 k, Input&& input, WeightRow&& weight_row, Store&& store) {
    const u32 lane = lane_id(), warp = warp_id(), g = lane / 4, t = lane % 4;
    const u32 m0 = warp / T::kWarpsN * (T::kM / T::kWarpsM), n0 = warp % T::kWarpsN * (T::kN / T::kWarpsN);
    Weights w;
    u32 row = 0;
    const u32 r = thread_id() / (T::kK / 32), group = thread_id() % (T::kK / 32);
    const bool has_row = weight_row(r, w, row);
    const u16* rows[T::kVectors];
    AKUNU_UNROLL
    for (u32 i = 0; i < T::kVectors; ++i) rows[i] = input((i * kThreads + thread_id()) / (T::kK / 8));
    u32 held[16];
    uint4 inputs[T::kVectors];
    const auto load = [&](u32 k0) {
        AKUNU_UNROLL
        for (u32 i = 0; i < T::kVectors; ++i) {
            inputs[i] = rows[i] ? load_halves8(rows[i], k0 + thread_id() % (T::kK / 8) * 8, k) : uint4{0, 0, 0, 0};
        }
        if (has_row && k0 + group * 32 < k) {
            Group q;
            F::load(w, row, k0 / 32 + group, q);
            AKUNU_UNROLL
            for (int i = 0; i < 16; ++i) held[i] = pack_halves(value_of<F>(q, 2 * i), value_of<F>(q, 2 * i + 1));
        } else {
            AKUNU_UNROLL
            for (int i = 0; i < 16; ++i) held[i] = 0;
        }
    };
    const auto put = [&](u32 stage) {
        const u32 at = kSharedHead + stage * T::kStageBytes;
        AKUNU_UNROLL
        for (u32 i = 0; i < T::kVectors; ++i) {
            const u32 v = i * kThreads + thread_id();
            *reinterpret_cast<uint4*>(shared_memory() + at + v / (T::kK / 8) * T::kStride * 2 + v % (T::kK / 8) * 16) =
                inputs[i];
        }
        u8* to = shared_memory() + at + T::kInputBytes + r * T::kStride * 2 + group * 64;
        AKUNU_UNROLL
        for (u32 i = 0; i < 4; ++i) {
            *reinterpret_cast<uint4*>(to + 16 * i) =
                uint4{held[4 * i], held[4 * i + 1], held[4 * i + 2], held[4 * i + 3]};
        }
    };
    float all[T::kFragmentsM][T::kFragmentsN][4] = {};
    load(0);
    sync_block();
    put(0);
    u32 stage = 0;
    for (u32 k0 = 0; k0 < k; k0 += T::kK) {
        sync_block();
        if (k0 + T::kK < k) load(k0 + T::kK);
        const u32 at = kSharedHead + stage * T::kStageBytes;
        float sum[T::kFragmentsM][T::kFragmentsN][4] = {};  // tensor cores truncate what they add up
        AKUNU_UNROLL
        for (u32 s = 0; s < T::kK / 16; ++s) {
            u32 a[T::kFragmentsM][4];
            AKUNU_UNROLL
            for (u32 i = 0; i < T::kFragmentsM; ++i) {
                load_matrices(a[i], at + ((m0 + i * 16 + lane % 16) * T::kStride + s * 16 + lane / 16 * 8) * 2);
            }
            AKUNU_UNROLL
            for (u32 j = 0; j < T::kFragmentsN; ++j) {
                const u32 from = at + T::kInputBytes + ((n0 + j * 8 + g) * T::kStride + s * 16 + 2 * t) * 2;
                const auto pair = [&](u32 of) { return *reinterpret_cast<const u32*>(shared_memory() + from + of); };
                const u32 b[2] = {pair(0), pair(16)};
                AKUNU_UNROLL
                for (u32 i = 0; i < T::kFragmentsM; ++i) mma_f16(sum[i][j], a[i], b);
            }
        }
        AKUNU_UNROLL
        for (u32 i = 0; i < T::kFragmentsM; ++i) {
            AKUNU_UNROLL
            for (u32 j = 0; j < T::kFragmentsN; ++j) {
                AKUNU_UNROLL
                for (u32 e = 0; e < 4; ++e) all[i][j][e] += sum[i][j][e];
            }
        }
        stage = 1 - stage;
        if (k0 + T::kK < k) put(stage);
    }
    AKUNU_UNROLL
    for (u32 i = 0; i < T::kFragmentsM; ++i) {
        AKUNU_UNROLL
        for (u32 j = 0; j < T::kFragmentsN; ++j) {
            const u32 m = m0 + i * 16 + g, n = n0 + j * 8 + 2 * t;
            store(m, n, all[i][j][0], all[i][j][1]);
            store(m + 8, n, all[i][j][2], all[i][j][3]);
        }
    }
}

// Passes over as many rows at once as there is room for: each(first row, rows).
template <typename Each>
AKUNU_DEVICE void each_pass(u32 rows, u32 chosen, Each&& each) {
    const u32 most = kMostTileChoices / chosen;
    for (u32 first = 0; first < rows; first += most) each(first, smaller(most, rows - first));
}

// Rows of gate and up take turns, so that a thread has both results of a column; without ups it has two columns.
template <typename F, typename T>
AKUNU_DEVICE_CALL void experts_gate_up_tiles(Block b) {
    const Gated gated(b);
    const auto& p = gated.p;
    const Output out{b.buffer<float>(6), b.buffer<u16>(7), p.formats};
    const ChosenTiles sorted(b);
    const u32 turns = p.gated ? 2 : 1, columns = (turns * p.n + T::kN - 1) / T::kN;
    each_pass(p.rows, p.chosen, [&](u32 first_row, u32 rows) {
        const u32 first = first_row * p.chosen;
        const u32 tiles = sorted.sort(b, b.buffer<u32>(5) + first, rows * p.chosen, p.experts, T::kM);
        for (u32 u = b.first(); u < tiles * columns; u += b.blocks()) {
            const ExpertPart part(sorted, u % tiles, T::kM);
            const u32 n0 = u / tiles * (T::kN / turns);
            expert_tile<F, T>(
                p.k,
                [&](u32 m) -> const u16* {
                    if (m >= part.rows) return nullptr;
                    return b.buffer<u16>(0) + u64(first_row + sorted.choices[part.first + m] / p.chosen) * p.k;
                },
                [&](u32 r, Weights& w, u32& row) {
                    w = expert_of(b, r % turns, p.k, part.id);
                    row = n0 + r / turns;
                    return row < p.n;
                },
                [&](u32 m, u32 r, float gate, float up) {
                    const u32 n = n0 + r / turns;
                    if (m >= part.rows || n >= p.n) return;
                    const u64 to = u64(first + sorted.choices[part.first + m]) * p.n + n;
                    out.store(to, gated(part.id, n, gate, up));
                    if (turns == 1 && n + 1 < p.n) out.store(to + 1, gated(part.id, n + 1, up, 0.0f));
                });
        }
    });
}

// Choices' results go to memory of the launch's; the block whose tile of some columns comes last adds them up, by the
// numbers of a row's experts.
template <typename F, typename T>
AKUNU_DEVICE_CALL void experts_down_tiles(Block b) {
    const auto& p = b.params<ExpertsDownParams>();
    const u32* ids = b.buffer<u32>(4);
    const float *weights = b.buffer<float>(5), *bias = b.buffer<float>(3);
    float* y = b.buffer<float>(2);
    float* results = reinterpret_cast<float*>(block_state().launch.parts + u64(b.blocks()) * kPartBytes);
    const ChosenTiles sorted(b);
    const u32 columns = (p.n + T::kN - 1) / T::kN;
    u32 ticket = 0;
    each_pass(p.rows, p.chosen, [&](u32 first_row, u32 rows) {
        const u32 first = first_row * p.chosen;
        const u32 tiles = sorted.sort(b, ids + first, rows * p.chosen, p.experts, T::kM);
        for (u32 u = b.first(); u < tiles * columns; u += b.blocks()) {
            const ExpertPart part(sorted, u % tiles, T::kM);
            const u32 column = u / tiles, n0 = column * T::kN;
            expert_tile<F, T>(
                p.k,
                [&](u32 m) -> const u16* {
                    if (m >= part.rows) return nullptr;
                    return b.buffer<u16>(0) + u64(first + sorted.choices[part.first + m]) * p.k;
                },
                [&](u32 r, Weights& w, u32& row) {
                    w = expert_of(b, 0, p.k, part.id);
                    row = n0 + r;
                    return row < p.n;
                },
                [&](u32 m, u32 r, float v0, float v1) {
                    if (m >= part.rows) return;
                    const u32 n = n0 + r;
                    float* to = results + u64(first + sorted.choices[part.first + m]) * p.n + n;
                    if (n < p.n) to[0] = v0;
                    if (n + 1 < p.n) to[1] = v1;
                });
            if (!comes_last(b.grid()->groups[ticket + column], tiles)) continue;
            for (u32 i = warp_id(); i < rows; i += kWarps) {
                const u32 row = first_row + i, n = n0 + 2 * lane_id();
                float sum[2] = {0.0f, 0.0f};
                // Greater for lesser experts; 0 for lanes without one.
                const u32 mine = lane_id() < p.chosen ? ~(ids[u64(row) * p.chosen + lane_id()] << 8 | lane_id()) : 0;
                u32 next = largest_of_warp(mine);
                for (u32 c = 0; c < p.chosen; ++c) {
                    const u32 id = smaller(~next >> 8, p.experts - 1);
                    const u64 choice = u64(row) * p.chosen + (~next & 255);
                    next = largest_of_warp(mine < next ? mine : 0);
                    AKUNU_UNROLL
                    for (u32 e = 0; e < 2; ++e) {
                        if (n + e >= p.n) continue;
                        float v = load_fresh(results + choice * p.n + n + e);
                        if (p.has_bias) v += bias[u64(id) * p.n + n + e];
                        sum[e] += weights[choice] * v;
                    }
                }
                AKUNU_UNROLL
                for (u32 e = 0; e < 2; ++e) {
                    if (n + e >= p.n) continue;
                    float& to = y[u64(row) * p.n + n + e];
                    to = p.accumulate ? to + sum[e] : sum[e];
                }
            }
        }
        ticket += columns;
    });
}

// Large tiles where an expert has rows for them.
template <typename F>
AKUNU_DEVICE_CALL void experts_gate_up(Block b) {
    const auto& p = b.params<ExpertsGateUpParams>();
    if constexpr (F::kFloatBytes != 4) {  // inputs of F32 weights are F32, too
        if (p.rows > 1 && p.rows * p.chosen > 24 * p.experts) return experts_gate_up_tiles<F, ExpertTile<64>>(b);
        if (p.rows > 1) return experts_gate_up_tiles<F, ExpertTile<16>>(b);
    }
    experts_gate_up_one<F>(b);
}

template <typename F>
AKUNU_DEVICE_CALL void experts_down(Block b) {
    const auto& p = b.params<ExpertsDownParams>();
    if constexpr (F::kFloatBytes != 4) {
        if (p.rows > 1 && p.rows * p.chosen > 24 * p.experts) return experts_down_tiles<F, ExpertTile<64>>(b);
        if (p.rows > 1) return experts_down_tiles<F, ExpertTile<16>>(b);
    }
    experts_down_one<F>(b);
}

}  // namespace akunu::cuda

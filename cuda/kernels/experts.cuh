// Products with the weights of the experts that rows were sent to. Which they are the router has written: a block looks
// them up where it needs them, and no host knows of them.
//
// One row reads the weights of its experts: tiles of them on the tensor cores, or each warp some of their rows. More
// rows are sorted by expert in every block's shared memory, and tiles of an expert's rows and columns are multiplied on
// the tensor cores, so that weights are read once for all rows of a tile. A row's result is the same whatever rows its
// tile has besides.
#pragma once

#include "expert_rows.cuh"
#include "expert_tiles.cuh"
#include "expert_weights.cuh"
#include "matvec.cuh"
#include "route.cuh"

namespace akunu::cuda {

// Puts some rows of k inputs into shared memory as stage_input does, one behind the other. F16 ones come eight at a
// time, and a thread asks for several before it waits.
AKUNU_DEVICE void stage_rows(Block b, u64 first, u32 rows, u32 k) {
    constexpr u32 kAtOnce = 4;
    float* xs = reinterpret_cast<float*>(b.shared());
    const u32 groups = (k + 31) / 32, pieces = rows * groups * 4;
    sync_block();
    for (u32 base = thread_id(); base < pieces; base += kThreads * kAtOnce) {
        uint4 q[kAtOnce];
        AKUNU_UNROLL
        for (u32 j = 0; j < kAtOnce; ++j) {
            const u32 i = base + j * kThreads, row = i / (groups * 4), at = i % (groups * 4) * 8;
            q[j] = {0, 0, 0, 0};
            if (i < pieces) q[j] = load_halves8(b.buffer<u16>(0) + (first + row) * k, at, k);
        }
        AKUNU_UNROLL
        for (u32 j = 0; j < kAtOnce; ++j) {
            const u32 i = base + j * kThreads, words[4] = {q[j].x, q[j].y, q[j].z, q[j].w};
            if (i >= pieces) break;
            AKUNU_UNROLL
            for (u32 e = 0; e < 8; ++e) {
                xs[i / 4 * kGroupStride + i % 4 * 8 + e] = half_to_float(u16(words[e / 2] >> 16 * (e % 2)));
            }
        }
    }
    sync_block();
}
template <typename F>
AKUNU_DEVICE void stage_expert_rows(Block b, u64 first, u32 rows, u32 k) {
    if constexpr (F::kFloatBytes == 4) {
        const u32 groups = (k + 31) / 32;
        const float* x = b.buffer<float>(0) + first * k;
        stage_input(b, rows * groups * 32, [&](u32 i) {
            const u32 at = i % (groups * 32);
            return at < k ? x[u64(i / (groups * 32)) * k + at] : 0.0f;
        });
    } else {
        stage_rows(b, first, rows, k);
    }
}

// Of one row at a time: warps take rows of gates and ups, eight neighbours a block.
template <typename F>
AKUNU_DEVICE_CALL void experts_gate_up_one(Block b) {
    const auto& p = b.params<ExpertsGateUpParams>();
    const u32* ids = b.buffer<u32>(5);
    const Output out{b.buffer<float>(6), b.buffer<u16>(7), p.formats};
    const u32 parts = (p.n + kWarps - 1) / kWarps, units = parts * p.chosen;
    u32 staged = p.rows;
    for (u32 u = b.first(); u < units * p.rows; u += b.blocks()) {
        const u32 m = u / units, choice = u / parts, n = u % parts * kWarps + warp_id();
        if (m != staged) stage_expert_rows<F>(b, m, 1, p.k);
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
        if (lane_id() == 0) out.store(u64(choice) * p.n + n, gated(b, id, n, v[0], v[1]));
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
                stage_expert_rows<F>(b, staged, choices, p.k);
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

// Rows of gate and up take turns, so that a thread has both results of a column; without ups it has two columns.
template <typename F, typename T>
AKUNU_DEVICE_CALL void experts_gate_up_tiles(Block b) {
    const auto& p = b.params<ExpertsGateUpParams>();
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
                [&](u32 m) {
                    const u32 choice = sorted.choices[part.first + smaller(m, part.rows - 1)];
                    return b.buffer<u16>(0) + u64(first_row + choice / p.chosen) * p.k;
                },
                [&](u32 r, Weights& w) {
                    w = expert_of(b, r % turns, p.k, part.id);
                    return smaller(n0 + r / turns, p.n - 1);
                },
                [&](u32 m, u32 r, float gate, float up) {
                    const u32 n = n0 + r / turns;
                    if (m >= part.rows || n >= p.n) return;
                    const u64 to = u64(first + sorted.choices[part.first + m]) * p.n + n;
                    out.store(to, gated(b, part.id, n, gate, up));
                    if (turns == 1 && n + 1 < p.n) out.store(to + 1, gated(b, part.id, n + 1, up, 0.0f));
                });
        }
    });
}

// Adds a choice's result, or the sum of a row's, to the output.
struct DownOutput {
    const ExpertsDownParams& p;
    const float *weights, *bias;
    float* y;
    AKUNU_DEVICE explicit DownOutput(Block b)
        : p(b.params<ExpertsDownParams>()),
          weights(b.buffer<float>(5)),
          bias(b.buffer<float>(3)),
          y(b.buffer<float>(2)) {}
    AKUNU_DEVICE float weighted(u64 choice, u32 id, u32 n, float v) const {
        return weights[choice] * (p.has_bias ? v + bias[u64(id) * p.n + n] : v);
    }
    AKUNU_DEVICE void store(u64 row, u32 n, float v) const {
        float& to = y[row * p.n + n];
        to = p.accumulate ? to + v : v;
    }
};

// A row's results, one of each of its experts, are added up by the experts' numbers. A warp takes some columns of a
// row, and loads several experts' before it adds them.
AKUNU_DEVICE void add_choices(Block b, const DownOutput& out, const u32* ids, const float* results) {
    constexpr u32 kColumns = 4, kAtOnce = 4;  // of a lane
    const auto& p = out.p;
    const u32 lane = lane_id(), parts = (p.n + 32 * kColumns - 1) / (32 * kColumns);
    for (u32 u = b.first() * kWarps + warp_id(); u < p.rows * parts; u += b.blocks() * kWarps) {
        const u64 row = u / parts, first = row * p.chosen;
        const u32 n0 = u % parts * (32 * kColumns) + lane;
        // Greater for lesser experts; 0 for lanes without one, and for those that were taken.
        u32 mine = lane < p.chosen ? ~(smaller(ids[first + lane], p.experts - 1) << 8 | lane) : 0;
        float sum[kColumns] = {};
        AKUNU_NO_UNROLL
        for (u32 c = 0; c < p.chosen; c += kAtOnce) {
            u32 next[kAtOnce];
            float v[kAtOnce][kColumns];
            AKUNU_UNROLL
            for (u32 i = 0; i < kAtOnce; ++i) {
                next[i] = largest_of_warp(mine);
                if (mine == next[i]) mine = 0;
                const float* from = results + (first + (~next[i] & 255)) * p.n + n0;
                AKUNU_UNROLL
                for (u32 e = 0; e < kColumns; ++e) {
                    v[i][e] = next[i] != 0 && n0 + 32 * e < p.n ? load_fresh(from + 32 * e) : 0.0f;
                }
            }
            AKUNU_UNROLL
            for (u32 i = 0; i < kAtOnce; ++i) {
                AKUNU_UNROLL
                for (u32 e = 0; e < kColumns; ++e) {
                    if (next[i] == 0 || n0 + 32 * e >= p.n) continue;
                    sum[e] += out.weighted(first + (~next[i] & 255), ~next[i] >> 8, n0 + 32 * e, v[i][e]);
                }
            }
        }
        AKUNU_UNROLL
        for (u32 e = 0; e < kColumns; ++e) {
            if (n0 + 32 * e < p.n) out.store(row, n0 + 32 * e, sum[e]);
        }
    }
}

// Within a command: waits until all blocks have come so far, and sees what they have written. The counters are 0 again
// behind it, for whoever comes next behind a barrier of the grid.
AKUNU_DEVICE void wait_for_blocks(Block b) {
    u32 &arrived = b.grid()->groups[0], &left = b.grid()->groups[1];
    sync_block();
    if (thread_id() == 0) {
        arrive_release(&arrived);
        for (u32 looks = 1; load_acquire(&arrived) < b.blocks(); ++looks) {
            spin_pause();
            if (!gives_up(looks)) continue;
            publish(block_state().failure, kTimedOut);
            break;
        }
        if (atomic_next_ordered(&left, b.blocks() - 1) + 1 == b.blocks()) arrived = 0;
    }
    sync_block();
}

// Choices' results go to memory of the launch's, and are added up when all are there; of one expert a row they are the
// sum.
template <typename F, typename T>
AKUNU_DEVICE_CALL void experts_down_tiles(Block b) {
    const DownOutput out(b);
    const auto& p = out.p;
    const u32* ids = b.buffer<u32>(4);
    float* results = reinterpret_cast<float*>(block_state().launch.parts + u64(b.blocks()) * kPartBytes);
    const ChosenTiles sorted(b);
    const u32 columns = (p.n + T::kN - 1) / T::kN;
    each_pass(p.rows, p.chosen, [&](u32 first_row, u32 rows) {
        const u32 first = first_row * p.chosen;
        const u32 tiles = sorted.sort(b, ids + first, rows * p.chosen, p.experts, T::kM);
        for (u32 u = b.first(); u < tiles * columns; u += b.blocks()) {
            const ExpertPart part(sorted, u % tiles, T::kM);
            const u32 n0 = u / tiles * T::kN;
            expert_tile<F, T>(
                p.k,
                [&](u32 m) {
                    return b.buffer<u16>(0) + u64(first + sorted.choices[part.first + smaller(m, part.rows - 1)]) * p.k;
                },
                [&](u32 r, Weights& w) {
                    w = expert_of(b, 0, p.k, part.id);
                    return smaller(n0 + r, p.n - 1);
                },
                [&](u32 m, u32 r, float v0, float v1) {
                    if (m >= part.rows) return;
                    const u64 choice = first + sorted.choices[part.first + m];
                    const u32 n = n0 + r;
                    if (p.chosen == 1) {
                        if (n < p.n) out.store(choice, n, out.weighted(choice, part.id, n, v0));
                        if (n + 1 < p.n) out.store(choice, n + 1, out.weighted(choice, part.id, n + 1, v1));
                    } else {
                        if (n < p.n) results[choice * p.n + n] = v0;
                        if (n + 1 < p.n) results[choice * p.n + n + 1] = v1;
                    }
                });
        }
    });
    if (p.chosen == 1) return;
    wait_for_blocks(b);
    add_choices(b, out, ids, results);
}

// Large tiles where an expert has rows for them.
AKUNU_DEVICE bool fill_large_tiles(u32 rows, u32 chosen, u32 experts) {
    return rows * chosen > SmallExpertTile::kM * experts;
}

template <u32 kReader>
AKUNU_DEVICE_CALL void experts_gate_up(Block b) {
    using F = Format<kReader>;
    const auto& p = b.params<ExpertsGateUpParams>();
    // Clusters, which rows seldom share.
    if (p.experts > kMostExperts) return experts_gate_up_one<F>(b);
    if constexpr (F::kFloatBytes != 4) {  // inputs of F32 weights are F32, too
        if (p.rows > 1 && fill_large_tiles(p.rows, p.chosen, p.experts)) {
            return experts_gate_up_tiles<F, LargeExpertTile>(b);
        }
        if (p.rows > 1) return experts_gate_up_tiles<F, SmallExpertTile>(b);
    }
    if constexpr (has_expert_rows(kReader)) {
        if (p.gated && takes_expert_rows(kReader, p.k, 1)) return experts_gate_up_row<kReader>(b);
    }
    experts_gate_up_one<F>(b);
}

template <u32 kReader>
AKUNU_DEVICE_CALL void experts_down(Block b) {
    using F = Format<kReader>;
    const auto& p = b.params<ExpertsDownParams>();
    if constexpr (F::kFloatBytes != 4) {
        if (p.rows > 1 && fill_large_tiles(p.rows, p.chosen, p.experts)) {
            return experts_down_tiles<F, LargeExpertTile>(b);
        }
        if (p.rows > 1) return experts_down_tiles<F, SmallExpertTile>(b);
    }
    if constexpr (has_expert_rows(kReader)) {
        const u32 shared = b.params<RowDownParams>().shared;
        if (takes_expert_rows(kReader, p.k, p.chosen, shared)) return experts_down_row<kReader>(b);
    }
    experts_down_one<F>(b);
}

}  // namespace akunu::cuda
